internal import Synchronization

// The layer of linked stores between accepted content and patches (E1 to E4).
//
// The lock of a store with links is taken before those of its entities, which are older stores. A change of an entity counts up a number
// before it is visible, so that every later read of linked content, hits in memory included, finds out and is reconciled once. When the
// lock of the entity's store is released, the places of live keys are marked, and only then are observers resumed.

extension StoreEngine {
    /// Follows the changes of the linked stores.
    func followEntities() {
        state.withLock { $0.links = LinkState() }
        for link in links {
            precondition(
                link.entities.scope == scope,
                "a store links to a store of another scope, so that clearing one would leave the data of the other: pass the same scope "
                    + "to both stores, or none")
            link.entities.state.withLock { state in
                link.entities.beginStamps(&state)
                state.links?.add(self)
                link.entities.clocks.own.isFollowed.store(true, ordering: .releasing)
                for field in link.fields ?? [] { link.entities.clocks.fields.withLock { $0[field.name] = field } }
            }
        }
    }

    /// Begins to stamp the contents of this store, at its first link or removal.
    func beginStamps(_ state: inout EngineState) {
        guard state.links == nil else { return }
        state.links = LinkState()
        let stamp = clocks.stamp(at: time.date)
        for key in state.live.values { key.value.machine.dateFetches(stamp) }
    }

    var linkFollowers: [StoreEngine] { state.withLock { $0.links?.followers.compactMap(\.engine) ?? [] } }

    // MARK: Transitions

    /// Begins a transition: reconciles the key with the changes of its entities before the fact.
    func beginLinked(_ key: inout Key, _ transition: inout Transition) -> LinkTurn {
        let turn = LinkTurn(before: key.machine.linkMark)
        transition.links = LinkLayer(clocks: clocks) { [self, param = key.param] book, change, isNew in
            settle(param, &book, change, isNew: isNew, turn)
        } keepNewer: { [self] page, book, stamp in
            keepNewer(in: &page, book, than: stamp, turn)
        }
        key.isMarked = false
        if key.isOutdated(links) { key.machine.entitiesChanged(&transition) }
        return turn
    }

    /// Ends a transition: counts a change that other stores may show, before it becomes visible.
    func endLinked(
        _ turn: LinkTurn, _ key: inout Key, _ transition: inout Transition, _ state: inout EngineState, _ effects: inout Effects
    ) {
        let after = key.machine.linkMark
        if let step = transition.removal {
            state.links?.removals.note(step, of: key.param)
            if case .succeeded = step { clocks.rows.withLock { $0.forget(key.param) } }
        } else if after.hasContent, after.revision != turn.before.revision,
            key.machine.origin.isRemoved || state.links?.removals.isDone(key.param) == true
        {
            key.machine.origin.isRemoved = false
            state.links?.removals.forget(key.param)
        }
        if after != turn.before || transition.removal != nil {
            let isRead = after.isKnown && (!turn.before.isKnown || !after.hasContent)
            noteLinkedChange(of: key.param, isRead: isRead, &state, &effects)
        }
        // Content that was accepted may be newer than an entity on disk. A loaded record has waited for its entities (E8).
        if !links.isEmpty, turn.before.isKnown, after.revision != turn.before.revision || turn.hasLostChanges {
            mergeLater(turn.unread, key.param)
        }
        for event in turn.deliver(to: &effects) { state.report(event, key.param, &effects) }
    }

    /// Counts a change that other stores may show, before it becomes visible, and marks it for them.
    func noteLinkedChange(of key: BoxedKey, isRead: Bool, _ state: inout EngineState, _ effects: inout Effects) {
        clocks.own.count()
        if let forgotten = state.links?.log.append(key) { effects.leftovers.append(forgotten) }
        effects.marks.append(LinkMark(engine: self, key: key, isRead: isRead))
    }

    /// Reconciles the key at a place before an observer looks.
    func reconcile(at place: Int) {
        var effects = Effects()
        state.withLock { state in
            guard let key = state.live.key(at: place), key.value.isMarked || key.value.isOutdated(links) else { return }
            take(key, &state, &effects) { _, _ in }
        }
        effects.deliver(onEvent)
    }

    /// Reconciles content in memory before its first frame is shown.
    func reconcile(_ param: BoxedKey) {
        var effects = Effects()
        state.withLock { state in
            guard let key = liveKey(param, &state, &effects) else { return }
            take(key, &state, &effects) { _, _ in }
        }
        effects.deliver(onEvent)
    }

    /// Marks the live keys that show an entity, so that they are reconciled at their next read.
    ///
    /// - Returns: The effects, to be delivered after all stores are marked.
    func mark(_ mark: LinkMark) -> Effects {
        var effects = Effects()
        state.withLock { state in
            let numbers = links.indices.filter { links[$0].entities === mark.engine }
            // A list is saved with the change, and content that others show passes it on.
            let isFollowed = state.links?.followers.isEmpty == false
            let isEager = mark.isRead || backing != nil || isFollowed
            // The rows of keys without content show the entities inside them as well.
            if isFollowed, !clocks.rows.withLock({ $0.isEmpty }) { effects.marks.append(LinkMark(engine: self, key: nil, isRead: false)) }
            for key in state.live.values where mark.key.map({ key.value.shows($0, numbers) }) ?? key.value.isOutdated(links) {
                if isEager || !key.value.mark(&effects.observers) { take(key, &state, &effects) { _, _ in } }
            }
        }
        return effects
    }

    /// The newest value that a loaded full place of another store shows for a key of this one.
    func newestRow(of key: BoxedKey) -> BoxedContent? {
        guard clocks.own.isFollowed.load(ordering: .acquiring) else { return nil }
        return clocks.rows.withLock { $0[key] }?.content
    }

    // MARK: Settling

    /// Dates accepted content and its places, and reconciles them with their entities.
    private func settle(
        _ param: BoxedKey, _ book: inout Book<BoxedContent>, _ change: LinkChange<BoxedContent>?, isNew: Bool, _ turn: LinkTurn
    ) -> LinkOutcome {
        var linked = book.linked?.value ?? LinkedBook()
        guard var record = book.held?.record else {
            // Clearing an entity keeps the row that stands in for it.
            if let row = book.linked?.value.row {
                book.linked = OutOfLine(LinkedBook(row: row))
            } else if book.linked != nil {
                book.linked = nil
            }
            return []
        }
        let number = clocks.number
        var outcome: LinkOutcome = []
        if isNew {
            date(&record, &linked, change, turn)
            if clocks.own.isFollowed.load(ordering: .acquiring) {
                // Saved, because the cacher has the older content.
                if takeRow(param, &record, &linked, turn) { outcome.formUnion([.accepted, .local]) }
            }
            let old = linked.places
            linked.places = links.enumerated().map { places(of: $1, $0, record, linked, change) }
            // Also for entities that are not in memory, into which the values are merged later.
            switch change {
            case .changed(_, let stamp, _)?:
                for (link, places) in zip(links, linked.places) { link.entities.noteChange(of: places, at: stamp) }
            case .fetched(let stamp, _)?, .page(let stamp, _)?:
                for (link, places) in zip(links, linked.places) { link.entities.noteFetch(of: places, at: stamp) }
            default: break
            }
            linked.pending = links.map { _ in PendingChanges() }
            linked.numbers = links.map { _ in 0 }
            for (number, link) in links.enumerated() where old.indices.contains(number) {
                if number > 0 { movePlaces(number, record, &linked) }
                keepNewer(link, from: old[number], in: &linked.places[number], &record, change)
            }
            if linked.row != nil { linked.row = nil }
        }
        var removed: Set<Int> = []
        outcome.formUnion(reconcileLinks(&record, &linked, &removed, isNew: isNew, turn))
        if !removed.isEmpty { outcome.formUnion(remove(removed, &record, &linked, turn)) }
        linked.overlay = overlay(linked.pending)
        if isNew || !outcome.isEmpty {
            var fields = record.fields
            fields.stamp = linked.stamp
            fields.parts = linked.parts.isEmpty ? nil : linked.parts
            fields.places = links.isEmpty ? nil : PlaceStamps(linked.places.map(\.stamps))
            record.details = RecordDetails(fields, reconciled: linked.overlay == nil ? number : 0)
            book.held?.record = record
        }
        book.linked = OutOfLine(linked)
        return outcome
    }

    /// Sets the stamp of accepted content. A value that fragments or full places have brought stays if it is newer than a response.
    private func date(
        _ record: inout CacheRecord<BoxedContent>, _ linked: inout LinkedBook<BoxedContent>, _ change: LinkChange<BoxedContent>?,
        _ turn: LinkTurn
    ) {
        switch change {
        case .fetched(let stamp, let old):
            if let old, linked.stamp > stamp {
                turn.discard(record.content)
                record.content = old
                if let validator = record.validator { record.validator = validator.withoutVersion }
            } else {
                linked.stamp = stamp
            }
        case .page(let stamp, _): if linked.stamp == 0 { linked.stamp = stamp }
        case .changed(_, let stamp, _), .merged(_, let stamp, isWhole: true): linked.stamp = stamp
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
        guard !parts.isEmpty, let older = change?.older else { return }
        for (name, field) in clocks.fields.withLock({ $0 }) where parts[name] != nil { field.set(&record.content, field.get(older)) }
    }

    /// Takes over what places showed of a key without content, if that is newer than its first content.
    ///
    /// - Returns: Whether the content was changed.
    private func takeRow(
        _ param: BoxedKey, _ record: inout CacheRecord<BoxedContent>, _ linked: inout LinkedBook<BoxedContent>, _ turn: LinkTurn
    ) -> Bool {
        guard let row = clocks.rows.withLock({ $0[param] }) else { return false }
        if let content = row.content, row.stamp > linked.stamp {
            turn.discard(record.content)
            (record.content, linked.stamp, linked.parts) = (content, row.stamp, row.parts.mapValues(\.stamp))
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

    /// Finds the places of one link in new content, with their stamps.
    private func places(
        of link: LinkRules, _ number: Int, _ record: CacheRecord<BoxedContent>, _ linked: LinkedBook<BoxedContent>,
        _ change: LinkChange<BoxedContent>?
    ) -> LinkedPlaces {
        let entities = link.keys(record.content)
        let keys = entities.keys
        let old = linked.places.indices.contains(number) ? linked.places[number] : nil
        func kept(or stamp: Stamp) -> [Stamp] { keys.map { old?.stamp(of: $0) ?? stamp } }
        switch change {
        case .fetched(let stamp, _):
            return LinkedPlaces(entities: entities, stamps: linked.stamp > stamp ? kept(or: stamp) : keys.map { _ in stamp })
        case .page(let stamp, let page):
            // A repeated place has the value of the list, if that is newer.
            let loaded = link.keys(page)
            return LinkedPlaces(
                entities: entities,
                stamps: keys.map { key in
                    guard let older = old?.stamp(of: key) else { return stamp }
                    return loaded.positions(of: key).isEmpty ? older : max(stamp, older)
                })
        case .changed(let before, let stamp, let accepted):
            let shown = accepted == nil ? old?.entities : before.map { link.keys($0) }
            return LinkedPlaces(entities: entities, stamps: differing(link, keys, record.content, from: before, shown, old, at: stamp))
        case .merged(let before, let stamp, _):
            let stamps = differing(link, keys, record.content, from: before, old?.entities, old, at: stamp)
            return LinkedPlaces(entities: entities, stamps: stamps)
        case nil:
            let saved = record.details?.fields.places?.links
            guard let saved, saved.indices.contains(number), saved[number].count == keys.count else {
                return LinkedPlaces(entities: entities, stamps: kept(or: linked.stamp))
            }
            if let newest = saved[number].max() { clocks.raise(to: newest) }
            return LinkedPlaces(entities: entities, stamps: saved[number])
        }
    }

    /// Keeps the values of places that are newer than a response, even if their entity has left memory since, and of those that a pushed
    /// change does not concern.
    private func keepNewer(
        _ link: LinkRules, from old: LinkedPlaces, in places: inout LinkedPlaces, _ record: inout CacheRecord<BoxedContent>,
        _ change: LinkChange<BoxedContent>?
    ) {
        let kept: (Stamp, BoxedContent, Bool)? =
            switch change {
            case .fetched(let stamp, let accepted?)?: (stamp, accepted, false)
            case .changed(_, let stamp, let accepted?)?: (stamp, accepted, true)
            default: nil
            }
        guard let (stamp, before, isPushed) = kept else { return }
        var values: [Int: BoxedContent] = [:]
        for key in places.entities.distinct {
            guard let newer = old.stamp(of: key), newer > stamp || (isPushed && places.stamp(of: key) != stamp),
                let value = link.values(before, [old.entities.positions(of: key)[0]]).first
            else { continue }
            for position in places.entities.positions(of: key) {
                places.stamps[position] = newer
                values[position] = value
            }
        }
        if !values.isEmpty { link.assign(&record.content, values) }
    }

    /// Gives the places of a page the values of its list that are newer, even if their entities have left memory since.
    private func keepNewer(in page: inout BoxedContent, _ book: Book<BoxedContent>, than stamp: Stamp, _ turn: LinkTurn) {
        guard let content = book.held?.record.content, let places = book.linked?.value.places else { return }
        for (link, old) in zip(links, places) where old.stamps.contains(where: { $0 > stamp }) {
            let loaded = link.keys(page)
            var values: [Int: BoxedContent] = [:]
            for key in loaded.distinct where old.stamp(of: key) ?? 0 > stamp {
                guard let value = link.values(content, [old.entities.positions(of: key)[0]]).first else { continue }
                for position in loaded.positions(of: key) { values[position] = value }
            }
            guard !values.isEmpty else { continue }
            turn.discard(page)
            link.assign(&page, values)
        }
    }

    /// The stamps of the places in changed content: those that differ are of the moment of the change (E4).
    private func differing(
        _ link: LinkRules, _ keys: [BoxedKey], _ content: BoxedContent, from before: BoxedContent?, _ shown: (any PlaceKeys)?,
        _ old: LinkedPlaces?, at stamp: Stamp
    ) -> [Stamp] {
        guard let before, let shown, let old else { return keys.map { _ in stamp } }
        let known = keys.indices.compactMap { place in shown.positions(of: keys[place]).first.map { (place, older: $0) } }
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
        _ record: inout CacheRecord<BoxedContent>, _ linked: inout LinkedBook<BoxedContent>, _ removed: inout Set<Int>, isNew: Bool,
        _ turn: LinkTurn
    ) -> LinkOutcome {
        var outcome: LinkOutcome = []
        for round in 0...links.count {
            var hasCopied = false
            for number in links.indices {
                let isMoved = (isNew || outcome.contains(.accepted)) && links.count > 1 && movePlaces(number, record, &linked)
                guard round == 0 || isMoved else { continue }
                let step = reconcile(number, &record, &linked, &removed, isNew: isNew || isMoved || hasCopied, turn)
                outcome.formUnion(step)
                if step.contains(.accepted) { hasCopied = true }
            }
            if !hasCopied || links.count == 1 { break }
        }
        return outcome
    }

    /// Finds the places of a link again, in content whose elements or values were changed by a link.
    ///
    /// The value at a place with another entity belongs to the entity around it, so its own entity is newer.
    ///
    /// - Returns: Whether the places show other entities than before.
    @discardableResult
    private func movePlaces(_ number: Int, _ record: CacheRecord<BoxedContent>, _ linked: inout LinkedBook<BoxedContent>) -> Bool {
        let (old, entities) = (linked.places[number], links[number].keys(record.content))
        let keys = entities.keys
        guard keys != old.entities.keys else { return false }
        linked.places[number] = LinkedPlaces(entities: entities, stamps: keys.map { old.stamp(of: $0) ?? 0 })
        linked.pending[number] = PendingChanges()
        return true
    }

    /// Reconciles the places of one link with the entities that have changed, or with all of them.
    private func reconcile(
        _ number: Int, _ record: inout CacheRecord<BoxedContent>, _ linked: inout LinkedBook<BoxedContent>, _ removed: inout Set<Int>,
        isNew: Bool, _ turn: LinkTurn
    ) -> LinkOutcome {
        let link = links[number]
        let current = link.entities.clocks.numberForFollowers
        guard isNew || linked.numbers[number] != current else { return [] }
        let places = linked.places[number].entities
        let keys: [BoxedKey]
        if !isNew, let changed = link.entities.changes(after: linked.numbers[number]) {
            keys = changed.filter { !places.positions(of: $0).isEmpty }
        } else {
            keys = places.distinct
            if !isNew, link.entities.links.isEmpty { turn.noteLostChanges() }
        }
        linked.numbers[number] = current
        var outcome: LinkOutcome = .reconciled
        guard !keys.isEmpty else { return outcome }
        var values: [Int: BoxedContent] = [:]
        let entities = link.entities.values(of: keys, turn)
        for key in keys {
            let entity = entities[key] ?? EntityValue()
            if entity.key ?? key != key, link.remove != nil, !places.positions(of: entity.key ?? key).isEmpty {
                // The list has the created entity under its own key.
                removed.formUnion(places.positions(of: key))
                continue
            }
            if entity.isUnread { turn.noteUnread(key, of: link.entities) }
            let isRemoved = entity.removal.map { $0 >= linked.places[number].stamp(of: key) ?? 0 } ?? false
            if link.remove != nil {
                let positions = Set(places.positions(of: key))
                if isRemoved { removed.formUnion(positions) }
                if entity.isHidden != linked.pending[number].hidden.isSuperset(of: positions) { outcome.insert(.shown) }
                if entity.isHidden {
                    linked.pending[number].hidden.formUnion(positions)
                } else {
                    linked.pending[number].hidden.subtract(positions)
                }
            }
            outcome.formUnion(
                reconcile(key, entity, link, record.content, &linked.places[number], &linked.pending[number], &values, turn))
        }
        var renamed: [(positions: [Int], key: BoxedKey)] = []
        if link.rename != nil {
            for (key, entity) in entities {
                guard let created = entity.key, created != key, places.positions(of: created).isEmpty else { continue }
                renamed.append((places.positions(of: key), created))
            }
        }
        guard !values.isEmpty || !renamed.isEmpty else { return outcome }
        turn.discard(record.content)
        if !values.isEmpty { link.assign(&record.content, values) }
        for (positions, key) in renamed {
            link.rename?(&record.content, positions, key)
            outcome.insert(.local)
        }
        outcome.insert(.accepted)
        // The key of a created entity has replaced a temporary one.
        guard entities.contains(where: { $0.value.key != $0.key }), movePlaces(number, record, &linked) else { return outcome }
        return outcome.union(reconcile(number, &record, &linked, &removed, isNew: true, turn))
    }

    /// Reconciles the places of one entity.
    private func reconcile(
        _ key: BoxedKey, _ entity: EntityValue, _ link: LinkRules, _ content: BoxedContent, _ places: inout LinkedPlaces,
        _ pending: inout PendingChanges<BoxedContent>, _ values: inout [Int: BoxedContent], _ turn: LinkTurn
    ) -> LinkOutcome {
        let positions = places.entities.positions(of: key)
        let candidates = link.values(content, positions)
        // A visit may have skipped a place.
        guard candidates.count == positions.count,
            let newest = positions.indices.max(by: { (places.stamps[positions[$0]], $0) < (places.stamps[positions[$1]], $1) })
        else { return [] }
        var entity = entity
        // A value with another identity is not that of this key (E10).
        if let stated = entity.content.flatMap(link.identity), stated != entity.key ?? key {
            turn.report(.mismatchedIdentity(key: "\(key)", identity: "\(stated)"))
            return positions.filter { pending.values.removeValue(forKey: $0) != nil }.isEmpty ? [] : .shown
        }
        var value = candidates[newest]
        // A value under a temporary key is older than any under the key that has replaced it.
        let stamp = entity.key ?? key == key ? places.stamps[positions[newest]] : 0
        // The first places alone: a longer content would displace its own rows, and offer them again without an end. Pending changes need
        // the row, and are few. A removed entity is back at the origin if it was requested after its removal.
        let isShared = positions[0] < EntityRows.share || !entity.patches.isEmpty
        if entity.content == nil, entity.removal.map({ $0 < stamp }) ?? true, isShared {
            entity = link.entities.offer(value, of: link, for: key, at: stamp, turn)
        }
        let parts: [Stamp?] = link.fields?.map { entity.parts[$0.name] } ?? [nil]
        let decision = PlaceDecision(place: stamp, entity: entity.content == nil ? nil : entity.stamp, parts: parts)
        if !decision.merged.isEmpty, let merged = link.entities.merge(value, decision.merged, of: link, into: key, at: stamp, turn) {
            entity = merged
        }
        if let content = entity.content {
            // All of it: with equal stamps and after a merge, the entity may have newer fields and newer entities inside.
            value = link.project(content)
        } else if let fields = link.fields, !decision.copied.isEmpty {
            var values = value.value(as: [any Sendable].self)
            for part in decision.copied { if let newer = entity.fields[fields[part].name] { values[part] = newer } }
            value = BoxedContent(values)
        }
        var outcome: LinkOutcome = []
        let shown = link.pendingValue(of: entity, over: value)
        for (number, position) in positions.enumerated() {
            places.stamps[position] = decision.stamp
            if !link.isSame(candidates[number], value) {
                values[position] = value
                if !entity.isReceived { outcome.insert(.local) }
            }
            if shown != nil || pending.values[position] != nil { outcome.insert(.shown) }
            pending.values[position] = shown
        }
        return outcome
    }

    /// Removes elements whose entities were removed (E7). All links of a list have the positions of its elements.
    private func remove(
        _ positions: Set<Int>, _ record: inout CacheRecord<BoxedContent>, _ linked: inout LinkedBook<BoxedContent>, _ turn: LinkTurn
    ) -> LinkOutcome {
        turn.discard(record.content)
        links.first { $0.remove != nil }?.remove?(&record.content, positions)
        for number in links.indices { movePlaces(number, record, &linked) }
        var none: Set<Int> = []
        return reconcileLinks(&record, &linked, &none, isNew: true, turn).union([.accepted, .removed, .local])
    }

    /// The pending changes of all links as one change.
    private func overlay(_ pending: [PendingChanges<BoxedContent>]) -> (@Sendable (inout BoxedContent) -> Void)? {
        guard pending.contains(where: { !$0.isEmpty }) else { return nil }
        return { [links] content in
            for (link, changes) in zip(links, pending) where !changes.values.isEmpty { link.assign(&content, changes.values) }
            // Elements have the same positions in all links of a list.
            let hidden = pending.reduce(into: Set<Int>()) { $0.formUnion($1.hidden) }
            if !hidden.isEmpty { links.first { $0.remove != nil }?.remove?(&content, hidden) }
        }
    }
}

extension LinkRules {
    /// A place's value with the pending changes of its entity; `nil` if they change nothing there.
    fileprivate func pendingValue(of entity: EntityValue, over value: BoxedContent) -> BoxedContent? {
        guard let shown = entity.shown else { return nil }
        let pending = project(shown)
        return isSame(pending, value) ? nil : pending
    }
}

extension LinkChange {
    /// The content before a change that may lack the fields of fragments.
    fileprivate var older: Content? {
        switch self {
        case .fetched(_, let old): old
        case .merged(let old, _, _): old
        case .page, .changed: nil
        }
    }
}

extension LiveKey {
    /// Whether the content was not reconciled with the last changes of its entities.
    // Mutating, as the next ones, so that the machine is read in place.
    mutating func isOutdated(_ links: [LinkRules]) -> Bool {
        guard machine.book.held != nil else { return false }
        guard let numbers = machine.book.linked?.value.numbers, numbers.count == links.count else { return true }
        return zip(numbers, links).contains { $0 != $1.entities.clocks.numberForFollowers }
    }

    /// Whether the content shows an entity through one of some links.
    mutating func shows(_ key: BoxedKey, _ links: [Int]) -> Bool {
        guard let places = machine.book.linked?.value.places else { return false }
        return links.contains { places.indices.contains($0) && !places[$0].entities.positions(of: key).isEmpty }
    }

    /// Resumes the observers, which reconcile the content when they look.
    ///
    /// - Returns: `false` if there are none.
    mutating func mark(_ suspensions: inout Few<Suspension>) -> Bool {
        guard machine.desk.observers > 0 else { return false }
        isMarked = true
        observers.wake(&suspensions)
        return true
    }

    mutating func entityValue() -> EntityValue {
        let linked = machine.book.linked?.value
        return EntityValue(
            content: machine.book.held?.record.content, stamp: linked?.stamp ?? 0, parts: linked?.parts ?? [:],
            shown: machine.book.overlay, patches: machine.book.held == nil ? machine.book.patches.map(\.apply) : [],
            isUnread: !machine.origin.isKnown, isReceived: linked?.isReceived ?? false)
    }
}

extension KeyMachine {
    /// The parts of the key that other stores may show.
    fileprivate var linkMark: LinkTurn.Mark {
        mutating get {
            LinkTurn.Mark(
                revision: book.revision, content: book.contentNumber, hasContent: book.held != nil, isKnown: origin.isKnown,
                early: origin.isKnown || book.patches.isEmpty ? [] : book.patches.map(\.id))
        }
    }
}
