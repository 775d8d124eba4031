// The store of entities: what other stores read of them and merge into them, with its lock taken after theirs.

extension StoreEngine {
    /// The store whose entities the elements of this store's lists are; `nil` if they are not linked, or fragments.
    ///
    /// A change of such an element is one of the entity (E5).
    package func entities<Element>(of type: Element.Type) -> StoreEngine? {
        links.first { $0.elementType == ObjectIdentifier(type) }?.entities
    }

    /// The keys that have changed since a number; `nil` if any key may have.
    func changes(after number: UInt64) -> Set<BoxedKey>? {
        // Content that shows other entities changes with them, before its own changes are counted.
        guard links.isEmpty else { return nil }
        return state.withLock { $0.links?.log.keys(after: number &- LinkClock.first) }
    }

    /// The values of entities in memory, in the order of the keys.
    func values(of keys: [BoxedKey], _ turn: LinkTurn) -> [EntityValue] {
        var effects = Effects()
        let values: [EntityValue] = state.withLock { state in
            keys.map { key in
                let resolved = state.resolve(key)
                var value = value(of: resolved, &state, &effects)
                if value.content == nil, let row = clocks.rows.withLock({ $0[resolved] }) {
                    value.show(links.isEmpty ? row : following(row, of: resolved, turn))
                }
                value.key = resolved
                value.isHidden = state.links?.removals.isRunning(resolved) ?? false
                value.removal = state.links?.removals.stamp(of: resolved)
                return value
            }
        }
        turn.add(effects, of: self)
        return values
    }

    /// A row with the newer entities inside it, as the content of its key would show them.
    private func following(_ row: EntityRows.Row, of key: BoxedKey, _ turn: LinkTurn) -> EntityRows.Row {
        let number = clocks.number
        guard var content = row.content, row.reconciled != number else { return row }
        turn.discard(content)
        var followed = row
        if row.inner.isEmpty { followed.inner = links.map { _ in [:] } }
        for (number, link) in links.enumerated() {
            let places = link.keys(content)
            let keys = places.distinct
            var values: [Int: BoxedContent] = [:]
            for (key, entity) in zip(keys, link.entities.values(of: keys, turn)) {
                // The entity may have left memory since, and an older place may stand in for it.
                guard entity.stamp > followed.inner[number][key] ?? row.stamp, let inner = entity.content,
                    link.otherIdentity(inner, key) == nil
                else { continue }
                followed.inner[number][key] = entity.stamp
                for position in places.positions(of: key) { values[position] = link.project(inner) }
            }
            if !values.isEmpty { link.assign(&content, values) }
        }
        (followed.content, followed.reconciled) = (content, number)
        clocks.rows.withLock { [followed] in $0.keep(followed, of: key) }
        return followed
    }

    private func value(of key: BoxedKey, _ state: inout EngineState, _ effects: inout Effects) -> EntityValue {
        // A key that is still being saved takes no newer value of a place, so it must not show there either.
        guard !state.isClosed else { return EntityValue() }
        if let cell = state.live[key] {
            if cell.value.isOutdated(links) { take(cell, &state, &effects) { _, _ in } }
            return cell.value.entityValue()
        }
        guard let entry = front?.entry(key) else { return EntityValue(isUnread: backing != nil) }
        if !links.isEmpty, let cell = liveKey(key, &state, &effects) {
            return take(cell, &state, &effects) { key, _ in key.entityValue() }
        }
        let details = entry.record.details
        return EntityValue(
            content: entry.record.content, stamp: details?.fields.stamp ?? entry.record.fetchedAt.stamp,
            parts: details?.fields.parts ?? [:], commands: details?.fields.commands ?? [])
    }

    /// Merges parts of a place's value into an entity that has content (E3). Returns the value of the entity afterward.
    func merge(
        _ value: BoxedContent, _ parts: [Int], of link: LinkRules, into key: BoxedKey, at stamp: Stamp, _ turn: LinkTurn
    ) -> EntityValue? {
        var effects = Effects()
        let merged: EntityValue? = state.withLock { state in
            guard let cell = liveKey(key, &state, &effects) else { return nil }
            let merged: EntityValue? = take(cell, &state, &effects) { key, transition in
                if !link.isFull { key.machine.foldConfirmed(before: stamp, &transition) }
                guard var content = key.machine.book.held?.record.content, let linked = key.machine.book.linked?.value else { return nil }
                if let fields = link.fields {
                    let values = value.value(as: [any Sendable].self)
                    // The entity may have changed since it was read.
                    for part in parts where stamp > max(linked.stamp, linked.parts[fields[part].name] ?? 0) {
                        fields[part].set(&content, values[part])
                        key.machine.book.linked?.value.parts[fields[part].name] = stamp
                    }
                } else if stamp > linked.stamp {
                    content = value
                } else {
                    return key.entityValue()
                }
                key.machine.merged(content, at: stamp, isWhole: link.isFull, &transition)
                return key.entityValue()
            }
            if merged == nil { mergeRow(value, parts, of: link, into: state.resolve(key), at: stamp, &state, &effects) }
            return merged
        }
        turn.add(effects, of: self)
        return merged ?? values(of: [key], turn).first
    }

    /// Offers the value of a place for a key without content.
    func offer(_ value: BoxedContent, of link: LinkRules, for key: BoxedKey, at stamp: Stamp, _ turn: LinkTurn) -> EntityValue {
        var effects = Effects()
        state.withLock { state in
            let parts = Array(link.fields?.indices ?? 0..<0)
            mergeRow(value, parts, of: link, into: state.resolve(key), at: stamp, &state, &effects)
        }
        turn.add(effects, of: self)
        return values(of: [key], turn).first ?? EntityValue()
    }

    /// Keeps the value of a place as a row. Without memory in front of the cacher, the content leaves memory once it is saved.
    func keepRow(_ value: BoxedContent, of link: LinkRules, for key: BoxedKey, at stamp: Stamp) {
        guard front == nil else { return }
        let (parts, fields) = (Array(link.fields?.indices ?? 0..<0), clocks.fields.withLock { $0 })
        state.withLock { state in
            let key = state.resolve(key)
            guard state.links?.removals.stamp(of: key) ?? 0 < stamp else { return }
            _ = clocks.rows.withLock { $0.merge(value, parts, of: link, into: key, at: stamp, fields) }
        }
    }

    /// The scope is being cleared: forgets rows and removals, because the keys may be those of another user from now on.
    func forgetEntities() {
        withEffects { state, effects in
            guard state.links != nil, !state.isClosed else { return }
            for key in state.links?.removals.forgetAll() ?? [] { noteLinkedChange(of: key, isRead: false, &state, &effects) }
            let floor = clocks.stamp(at: time.date)
            clocks.rows.withLock { $0.removeAll(upTo: floor) }
            for key in state.live.values { take(key, &state, &effects) { key, transition in key.machine.forgetEntity(&transition) } }
        }
    }

    /// Merges parts of a place's value into the row of a key without content.
    ///
    /// Other places show the row too, and so do observers of the key while it loads (E6).
    private func mergeRow(
        _ value: BoxedContent, _ parts: [Int], of link: LinkRules, into key: BoxedKey, at stamp: Stamp, _ state: inout EngineState,
        _ effects: inout Effects
    ) {
        let fields = clocks.fields.withLock { $0 }
        let isNewer = clocks.rows.withLock { $0.merge(value, parts, of: link, into: key, at: stamp, fields) }
        guard isNewer else { return }
        noteLinkedChange(of: key, isRead: false, &state, &effects)
        guard let cell = state.live[key], let row = clocks.rows.withLock({ $0[key] })?.content else { return }
        take(cell, &state, &effects) { key, transition in
            // A confirmed change waits for an earlier one, and the row may contain it.
            if link.isFull, key.machine.book.patches.contains(where: \.isConfirmed) {
                key.machine.rowBecomesContent(row, &transition)
                key.machine.merged(row, at: stamp, isWhole: true, &transition)
            }
            guard key.machine.rowFound(row), key.machine.isVisible else { return }
            transition.isPublished = true
            key.machine.desk.shown = key.machine.sight
        }
    }
}

extension Effects {
    /// Marks the places of changed entities in all stores, and delivers all effects after that (E1).
    mutating func deliverLinked(_ onEvent: (@Sendable (StoreEvent<BoxedKey>) -> Void)?) {
        var others = takeLinked()
        var position = 0
        while position < others.count {
            let further = others[position].effects.takeLinked()
            // The observers there are resumed with those of these effects.
            observers.append(contentsOf: others[position].effects.observers.takeAll())
            others += further
            position += 1
        }
        deliver(onEvent)
        // In place, because each delivery releases content before it resumes callers.
        for position in others.indices {
            let engine = others[position].engine
            others[position].effects.deliver(engine.onEvent)
        }
    }

    /// Marks the places, and takes out the effects in other stores.
    private mutating func takeLinked() -> [(engine: StoreEngine, effects: Effects)] {
        var others = linked
        linked = []
        marks.takeAll().forEach { mark in
            let followers: [StoreEngine] = mark.engine.state.withLock { $0.links?.followers.compactMap(\.engine) ?? [] }
            for follower in followers { others.append((follower, follower.mark(mark))) }
        }
        return others
    }
}
