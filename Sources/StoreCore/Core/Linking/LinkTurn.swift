internal import Synchronization

/// The layer between accepted content and patches, during one transition of one key.
final class LinkTurn: LinkLayer {
    typealias Content = BoxedContent

    /// The parts of the key that other stores may show.
    struct Mark: Equatable, Sendable {
        var revision: Ticket
        var content: UInt64
        var hasContent: Bool
        var isKnown: Bool
        /// The changes of commands that a key has before its record is read.
        var early: [Ticket]
    }

    /// The work that waits until the end of the transition, or until the lock of the store is released.
    struct Work: Sendable {
        var effects: [(engine: StoreEngine, effects: Effects)] = []
        var leftovers: [any Sendable] = []
        /// The entities that only their cachers know.
        var unread: [(engine: StoreEngine, key: BoxedKey)] = []
        /// Whether any entity may have changed since the content was reconciled.
        var hasLostChanges = false
        /// The events of the store, which its state numbers.
        var events: [StoreEventKind] = []
    }

    let before: Mark
    let work = Lock(Work())
    private let engine: StoreEngine
    private let param: BoxedKey

    init(_ engine: StoreEngine, _ param: BoxedKey, before: Mark) {
        self.engine = engine
        self.param = param
        self.before = before
    }

    var clocks: LinkClocks { engine.clocks }
    private var links: [LinkRules] { engine.links }

    func add(_ effects: Effects, of engine: StoreEngine) {
        if !effects.isEmpty { work.withLock { $0.effects.append((engine, effects)) } }
    }

    func discard(_ object: any Sendable) { work.withLock { $0.leftovers.append(object) } }

    // MARK: Settling

    func settle(_ book: inout Book<Content>, _ change: LinkChange<Content>?, isNew: Bool) -> LinkOutcome {
        guard var record = book.held?.record else {
            // Clearing an entity keeps the row that stands in for it.
            book.linked = book.linked?.value.row.map { OutOfLine(LinkedBook(row: $0)) }
            return []
        }
        // Both are taken out, so that arrays are changed in place. New content is still needed as it was.
        var linked = book.linked?.value ?? LinkedBook()
        book.linked?.value = LinkedBook()
        if !isNew { book.held?.record.content.box = nil }
        let number = clocks.number
        var outcome: LinkOutcome = []
        if isNew {
            date(&record, &linked, change)
            if clocks.own.isFollowed.load(ordering: .acquiring) {
                // Saved, because the cacher has the older content.
                if takeRow(&record, &linked) { outcome.formUnion([.accepted, .local]) }
                keepRow(of: record.content, linked)
            }
            let old = linked.places
            linked.places = links.enumerated().map { number, link in
                let entities = link.keys(record.content)
                return LinkedPlaces<Content>(entities: entities, stamps: stamps(of: entities, number, record, linked, change))
            }
            // Also for entities that are not in memory, into which the values are merged later.
            switch change {
            case .changed(_, let stamp, _)?:
                for (link, places) in zip(links, linked.places) { link.entities.note(.byUser, of: places, at: stamp) }
            case .fetched(let stamp, _)?, .page(let stamp, _)?:
                for (link, places) in zip(links, linked.places) { link.entities.note(.linked, of: places, at: stamp) }
            default: break
            }
            for (number, link) in links.enumerated() where old.indices.contains(number) {
                if number > 0 { movePlaces(number, record, &linked) }
                keepNewer(link, from: old[number], in: &linked.places[number], &record, change)
            }
            linked.row = nil
        }
        var removed: Set<Int> = []
        outcome.formUnion(reconcileLinks(&record, &linked, &removed, isNew: isNew))
        if !removed.isEmpty { outcome.formUnion(remove(removed, &record, &linked)) }
        linked.overlay = overlay(linked.places)
        if isNew || !outcome.isEmpty {
            var fields = record.fields
            fields.stamp = linked.stamp
            fields.parts = linked.parts.isEmpty ? nil : linked.parts
            fields.places = links.isEmpty ? nil : PlaceStamps(linked.places.map(\.stamps))
            record.details = RecordDetails(keeping: fields, reconciled: linked.overlay == nil ? number : 0)
        }
        book.held?.record = record
        if book.linked == nil { book.linked = OutOfLine(linked) } else { book.linked?.value = linked }
        return outcome
    }

    /// Gives the places of a page the values of its list that are newer, even if their entities have left memory since.
    func keepNewer(_ page: inout Content, _ book: Book<Content>, than stamp: Stamp) {
        guard let content = book.held?.record.content, let places = book.linked?.value.places else { return }
        for (link, old) in zip(links, places) where old.stamps.contains(where: { $0 > stamp }) {
            let loaded = link.keys(page)
            var values: [Int: Content] = [:]
            for key in loaded.distinct where old.stamp(of: key) ?? 0 > stamp {
                guard let value = old.value(of: key, in: content, link) else { continue }
                for position in loaded.positions(of: key) { values[position] = value }
            }
            guard !values.isEmpty else { continue }
            discard(page)
            link.assign(&page, values)
        }
    }

    func followAdded(_ content: inout Content, _ book: inout Book<Content>) {
        // Not for entities, where a command costs the same however many are pending.
        guard !links.isEmpty else { return }
        let commands = Set(book.patches.lazy.compactMap { $0.command?.id })
        guard !commands.isEmpty, let places = book.linked?.value.places, places.count == links.count else { return }
        var removed: Set<Int> = []
        for (number, link) in links.enumerated() {
            let shown = link.keys(content)
            let keys = shown.distinct.filter { places[number].entities.firstPosition(of: $0) == nil }
            var (added, values): ([BoxedKey: Content?], [Int: Content]) = ([:], [:])
            for (key, entity) in zip(keys, link.entities.values(of: keys, self)) {
                let (created, positions, known) = (entity.key ?? key, shown.positions(of: key), places[number].added[key] ?? nil)
                added[key] = .some(known)
                if entity.isUnread, known == nil { link.entities.readLater(created) }
                // If none of these commands changes the entity too, the row that they show is newer.
                guard created != key || known != nil || entity.commands.contains(where: commands.contains) else { continue }
                if link.remove != nil, entity.isHidden || (created != key && shown.firstPosition(of: created) != nil) {
                    removed.formUnion(positions)
                    continue
                }
                if created != key { link.rename?(&content, positions, created) }
                guard let accepted = entity.content ?? known, link.otherIdentity(accepted, created) == nil else { continue }
                added[key] = accepted
                var value = entity.shown ?? accepted
                // The pending changes of an entity without content.
                if entity.content == nil { for patch in entity.patches { patch(&value) } }
                for position in positions { values[position] = link.project(value) }
            }
            book.linked?.value.places[number].added = added
            if !values.isEmpty { link.assign(&content, values) }
        }
        if !removed.isEmpty { links.first { $0.remove != nil }?.remove?(&content, removed) }
    }

    /// Sets the stamp of accepted content. A value that fragments or full places have brought stays if it is newer than a response.
    private func date(
        _ record: inout CacheRecord<Content>, _ linked: inout LinkedBook<Content>, _ change: LinkChange<Content>?
    ) {
        switch change {
        case .fetched(let stamp, let old):
            if let old, linked.stamp > stamp {
                discard(record.content)
                record.content = old.content
                // The pages of a list stay with their elements, and so does the ban on saving them.
                let held = old.fields
                var fields = record.fields
                fields.validator = fields.validator?.withoutVersion
                (fields.nextKey, fields.prevKey) = (held.nextKey, held.prevKey)
                (fields.guessedEnd, fields.pages) = (held.guessedEnd, held.pages)
                if held.freshness.storage == .forbidden { fields.freshness.storage = .forbidden }
                record.fields = fields
            } else {
                linked.stamp = stamp
            }
        case .page(let stamp, _): if linked.stamp == 0 { linked.stamp = stamp }
        case .changed(_, let stamp, _), .merged(_, let stamp, isWhole: true): linked.stamp = max(linked.stamp, stamp)
        case .merged(_, _, isWhole: false): return
        case nil:
            linked.parts = (record.details?.fields.parts ?? [:]).mapValues { min($0, LinkClock.limit) }
            if let stamp = record.details?.fields.stamp {
                linked.stamp = min(stamp, LinkClock.limit)
            } else if linked.stamp == 0 {
                linked.stamp = record.fetchedAt.stamp
            }
            clocks.raise(to: linked.parts.values.reduce(linked.stamp, max))
        }
        let parts = linked.parts.filter { $0.value > linked.stamp }
        linked.parts = parts
        // The content before may have fields of fragments that the new one lacks.
        let before: Content? =
            switch change {
            case .fetched(_, let old)?: old?.content
            case .merged(let old, _, _)?: old
            default: nil
            }
        guard !parts.isEmpty, let before else { return }
        for (name, field) in clocks.fields.withLock({ $0 }) where parts[name] != nil { field.set(&record.content, field.get(before)) }
    }

    /// Takes over what places showed of a key without content, if that is newer than its first content; returns whether it is.
    private func takeRow(_ record: inout CacheRecord<Content>, _ linked: inout LinkedBook<Content>) -> Bool {
        guard let row = clocks.rows.withLock({ $0[param] }) else { return false }
        if let content = row.content, row.stamp > linked.stamp {
            discard(record.content)
            (record.content, linked.stamp, linked.parts) = (content, row.stamp, row.parts.mapValues { $0.stamp })
            if let validator = record.validator { record.validator = validator.withoutVersion }
            return true
        }
        var isChanged = false
        for (name, field) in clocks.fields.withLock({ $0 }) {
            guard let part = row.parts[name], part.stamp > max(linked.stamp, linked.parts[name] ?? 0) else { continue }
            field.set(&record.content, part.value)
            linked.parts[name] = part.stamp
            isChanged = true
        }
        return isChanged
    }

    /// Keeps the row as new as the content, which may leave memory, and the fields that fragments have brought: full places have them
    /// without their stamps, once the content is cleared.
    private func keepRow(of content: Content, _ linked: LinkedBook<Content>) {
        let fields = clocks.fields.withLock { $0 }
        clocks.rows.withLock { rows in
            guard var row = rows[param] ?? (linked.parts.isEmpty ? nil : EntityRows.Row()) else { return }
            if let old = row.content, row.merge(content, at: linked.stamp, fields) { discard(old) }
            for (name, field) in fields where linked.parts[name] != nil || row.parts[name] != nil {
                let stamp = max(linked.stamp, linked.parts[name] ?? 0)
                if stamp > rows.floor { _ = row.merge([field.get(content)], of: [field], 0..<1, at: stamp) }
            }
            rows.keep(row, of: param)
        }
    }

    private func stamps(
        of entities: any PlaceKeys, _ number: Int, _ record: CacheRecord<Content>, _ linked: LinkedBook<Content>,
        _ change: LinkChange<Content>?
    ) -> [Stamp] {
        let (link, keys) = (links[number], entities.keys)
        let old = linked.places.indices.contains(number) ? linked.places[number] : nil
        func kept(or stamp: Stamp) -> [Stamp] { keys.map { old?.stamp(of: $0) ?? stamp } }
        switch change {
        case .fetched(let stamp, _):
            return linked.stamp > stamp ? kept(or: stamp) : keys.map { _ in stamp }
        case .page(let stamp, let page):
            // A repeated place has the value of the list, if that is newer.
            let loaded = link.keys(page)
            return keys.map { key in
                guard let older = old?.stamp(of: key) else { return stamp }
                return loaded.firstPosition(of: key) == nil ? older : max(stamp, older)
            }
        case .changed(let before, let stamp, let accepted):
            let shown = accepted == nil ? old?.entities : before.map { link.keys($0) }
            return differing(link, keys, record.content, from: before, shown, old, at: stamp)
        case .merged(let before, let stamp, _):
            return differing(link, keys, record.content, from: before, old?.entities, old, at: stamp)
        case nil:
            let saved = record.details?.fields.places?.links
            guard let saved, saved.indices.contains(number), saved[number].count == keys.count else { return kept(or: linked.stamp) }
            if let newest = saved[number].max() { clocks.raise(to: newest) }
            return saved[number]
        }
    }

    /// Keeps the values of places that are newer than a response, even if their entity has left memory since, and of those that a pushed
    /// change does not concern.
    private func keepNewer(
        _ link: LinkRules, from old: LinkedPlaces<Content>, in places: inout LinkedPlaces<Content>,
        _ record: inout CacheRecord<Content>, _ change: LinkChange<Content>?
    ) {
        let kept: (Stamp, Content, Bool)? =
            switch change {
            case .fetched(let stamp, let accepted?)?: (stamp, accepted.content, false)
            case .changed(_, let stamp, let accepted?)?: (stamp, accepted, true)
            default: nil
            }
        guard let (stamp, before, isPushed) = kept else { return }
        var values: [Int: Content] = [:]
        for key in places.entities.distinct {
            guard let newer = old.stamp(of: key), newer > stamp || (isPushed && places.stamp(of: key) != stamp),
                let value = old.value(of: key, in: before, link)
            else { continue }
            for position in places.entities.positions(of: key) {
                places.stamps[position] = newer
                values[position] = value
            }
        }
        if !values.isEmpty { link.assign(&record.content, values) }
    }

    /// The stamps of the places in changed content: those that differ are of the moment of the change (E4).
    private func differing(
        _ link: LinkRules, _ keys: [BoxedKey], _ content: Content, from before: Content?, _ shown: (any PlaceKeys)?,
        _ old: LinkedPlaces<Content>?, at stamp: Stamp
    ) -> [Stamp] {
        guard let before, let shown, let old else { return keys.map { _ in stamp } }
        let known = keys.indices.compactMap { place in shown.firstPosition(of: keys[place]).map { (place, older: $0) } }
        let values = link.values(content, known.map(\.0))
        let older = link.values(before, known.map(\.older))
        var stamps = keys.map { _ in stamp }
        // A visit may have skipped a place.
        guard values.count == known.count, older.count == known.count else { return stamps }
        for (number, (position, _)) in known.enumerated() where link.isSame(values[number], older[number]) {
            stamps[position] = old.stamp(of: keys[position]) ?? 0
        }
        return stamps
    }

    // MARK: Reconciling

    /// Reconciles the places of all links.
    ///
    /// A value that is copied may have places of other links inside, so these are found and reconciled again. Each round reaches one more
    /// level of such values.
    private func reconcileLinks(
        _ record: inout CacheRecord<Content>, _ linked: inout LinkedBook<Content>, _ removed: inout Set<Int>, isNew: Bool
    ) -> LinkOutcome {
        var outcome: LinkOutcome = []
        for round in 0...links.count {
            var hasCopied = false
            for number in links.indices {
                let isMoved = (isNew || outcome.contains(.accepted)) && links.count > 1 && movePlaces(number, record, &linked)
                guard round == 0 || isMoved else { continue }
                let step = reconcile(number, &record, &linked, &removed, isNew: isNew || isMoved || hasCopied)
                outcome.formUnion(step)
                if step.contains(.accepted) { hasCopied = true }
            }
            if !hasCopied || links.count == 1 { break }
        }
        return outcome
    }

    /// Finds the places of a link again, in content whose elements or values were changed by a link.
    ///
    /// The value at a place with another entity belongs to the entity around it, so its own entity is newer. Returns whether the places
    /// show other entities than before.
    @discardableResult
    private func movePlaces(_ number: Int, _ record: CacheRecord<Content>, _ linked: inout LinkedBook<Content>) -> Bool {
        let (old, entities) = (linked.places[number], links[number].keys(record.content))
        let keys = entities.keys
        guard keys != old.entities.keys else { return false }
        linked.places[number] = LinkedPlaces(entities: entities, stamps: keys.map { old.stamp(of: $0) ?? 0 }, number: old.number)
        return true
    }

    /// Reconciles the places of one link with the entities that have changed, or with all of them.
    private func reconcile(
        _ number: Int, _ record: inout CacheRecord<Content>, _ linked: inout LinkedBook<Content>, _ removed: inout Set<Int>, isNew: Bool
    ) -> LinkOutcome {
        let link = links[number]
        let current = link.entities.clocks.numberForFollowers
        guard isNew || linked.places[number].number != current else { return [] }
        let places = linked.places[number].entities
        let changed = isNew ? nil : link.entities.changes(after: linked.places[number].number)
        let keys = changed?.filter { places.firstPosition(of: $0) != nil } ?? places.distinct
        if !isNew, changed == nil, link.entities.links.isEmpty { work.withLock { $0.hasLostChanges = true } }
        linked.places[number].number = current
        var outcome: LinkOutcome = .reconciled
        let added = linked.places[number].added
        if !added.isEmpty, changed?.contains(where: { added[$0] != nil }) != false { outcome.insert(.shown) }
        guard !keys.isEmpty else { return outcome }
        var values: [Int: Content] = [:]
        var renamed: [(positions: [Int], key: BoxedKey)] = []
        var isReplaced = false
        for (key, entity) in zip(keys, link.entities.values(of: keys, self)) {
            let positions = places.positions(of: key)
            if let created = entity.key, created != key {
                isReplaced = true
                if places.firstPosition(of: created) == nil {
                    if link.rename != nil { renamed.append((positions, created)) }
                } else if link.remove != nil {
                    // The list has the created entity under its own key.
                    removed.formUnion(positions)
                    continue
                }
            }
            if entity.isUnread {
                work.withLock { work in
                    work.unread.append((link.entities, key))
                    // An entity that has changed may have left memory since, and a row may stand for another one than before.
                    if changed != nil || entity.key ?? key != key { work.hasLostChanges = true }
                }
            }
            if link.remove != nil {
                if let removal = entity.removal, removal >= linked.places[number].stamp(of: key) ?? 0 { removed.formUnion(positions) }
                if entity.isHidden != linked.places[number].hidden.isSuperset(of: positions) {
                    outcome.insert(.shown)
                    if entity.isHidden {
                        linked.places[number].hidden.formUnion(positions)
                    } else {
                        linked.places[number].hidden.subtract(positions)
                    }
                }
            }
            outcome.formUnion(reconcile(key, entity, link, positions, record.content, &linked.places[number], &values))
        }
        guard !values.isEmpty || !renamed.isEmpty else { return outcome }
        // With a second reference, each change would copy the whole list. Memory mirrors it again in the same transition.
        if !isNew, let drop = engine.front?.lend(param, record.details) { discard(drop) }
        if !values.isEmpty { link.assign(&record.content, values) }
        if !renamed.isEmpty {
            discard(record.content)
            outcome.insert(.local)
            for (positions, key) in renamed { link.rename?(&record.content, positions, key) }
        }
        outcome.insert(.accepted)
        // The key of a created entity has replaced a temporary one.
        guard isReplaced, movePlaces(number, record, &linked) else { return outcome }
        return outcome.union(reconcile(number, &record, &linked, &removed, isNew: true))
    }

    private func reconcile(
        _ key: BoxedKey, _ entity: EntityValue, _ link: LinkRules, _ positions: [Int], _ content: Content,
        _ places: inout LinkedPlaces<Content>, _ values: inout [Int: Content]
    ) -> LinkOutcome {
        let candidates = link.values(content, positions)
        // A visit may have skipped a place.
        guard candidates.count == positions.count,
            let newest = positions.indices.max(by: { (places.stamps[positions[$0]], $0) < (places.stamps[positions[$1]], $1) })
        else { return [] }
        var entity = entity
        // A value with another identity is not that of this key (E10).
        if let content = entity.content, let stated = link.otherIdentity(content, entity.key ?? key) {
            work.withLock { $0.events.append(.mismatchedIdentity(key: "\(key)", identity: stated)) }
            return positions.filter { places.pending.removeValue(forKey: $0) != nil }.isEmpty ? [] : .shown
        }
        var value = candidates[newest]
        // A value under a temporary key is older than any under the key that has replaced it.
        let stamp = entity.key ?? key == key ? places.stamps[positions[newest]] : 0
        // The first places alone: a longer content would displace its own rows, and offer them again without an end. Pending changes need
        // the row, and are few. A removed entity is back at the origin if it was requested after its removal.
        let isShared = positions[0] < EntityRows.share || !entity.patches.isEmpty
        if entity.content == nil, entity.removal.map({ $0 < stamp }) ?? true, isShared {
            entity = link.entities.offer(value, of: link, for: key, at: stamp, self)
        }
        let parts: [Stamp?] = link.fields?.map { entity.parts[$0.name] } ?? [nil]
        let decision = PlaceDecision(place: stamp, entity: entity.content == nil ? nil : entity.stamp, parts: parts)
        if !decision.merged.isEmpty, let merged = link.entities.merge(value, decision.merged, of: link, into: key, at: stamp, self) {
            entity = merged
        }
        if let content = entity.content {
            // All of it: with equal stamps and after a merge, the entity may have newer fields and newer entities inside.
            value = link.project(content)
            if isShared { link.entities.keepRow(value, of: link, for: key, at: decision.stamp) }
        } else if let fields = link.fields, !decision.copied.isEmpty {
            var values = value.value(as: [any Sendable].self)
            for part in decision.copied { if let newer = entity.fields[fields[part].name] { values[part] = newer } }
            value = Content(values)
        }
        var outcome: LinkOutcome = []
        // `nil` if the pending changes change nothing here.
        let shown = entity.shown.map(link.project).flatMap { link.isSame($0, value) ? nil : $0 }
        let unchanged = values.count
        for (number, position) in positions.enumerated() {
            if places.stamps[position] != decision.stamp { places.stamps[position] = decision.stamp }
            if !link.isSame(candidates[number], value) {
                values[position] = value
                if !entity.isReceived { outcome.insert(.local) }
            }
            if shown != nil || places.pending[position] != nil { outcome.insert(.shown) }
            places.pending[position] = shown
        }
        if values.count > unchanged { discard(candidates) }
        return outcome
    }

    /// Removes elements whose entities were removed (E7). All links of a list have the positions of its elements.
    private func remove(
        _ positions: Set<Int>, _ record: inout CacheRecord<Content>, _ linked: inout LinkedBook<Content>
    ) -> LinkOutcome {
        let old = record.content
        discard(old)
        links.first { $0.remove != nil }?.remove?(&record.content, positions)
        record.fields.pages = engine.rules.resized(record.fields.pages, from: old, to: record.content)
        for number in links.indices { movePlaces(number, record, &linked) }
        var none: Set<Int> = []
        return reconcileLinks(&record, &linked, &none, isNew: true).union([.accepted, .local])
    }

    private func overlay(_ places: [LinkedPlaces<Content>]) -> (@Sendable (inout Content) -> Void)? {
        guard places.contains(where: { !$0.pending.isEmpty || !$0.hidden.isEmpty }) else { return nil }
        return { [links] content in
            var isChanged = false
            for (link, places) in zip(links, places) where !places.pending.isEmpty {
                // A value of an earlier link may have brought other places, so these are found again.
                link.assign(&content, isChanged ? places.pendingValues(at: link.keys(content)) : places.pending)
                isChanged = true
            }
            // Elements have the same positions in all links of a list.
            let hidden = places.reduce(into: Set<Int>()) { $0.formUnion($1.hidden) }
            if !hidden.isEmpty { links.first { $0.remove != nil }?.remove?(&content, hidden) }
        }
    }
}
