internal import Synchronization

// The layer of linked stores between accepted content and patches (E1 to E4).
//
// The lock of a store with links is taken before those of its entities, which are older stores. A change of an entity counts up a number
// before it is visible, so that every later read of linked content, hits in memory included, finds out and is reconciled once. When the
// lock of the entity's store is released, the places of live keys are marked, and only then are observers resumed.

extension StoreEngine {
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

    // MARK: Transitions

    /// Begins a transition: reconciles the key with the changes of its entities before the fact.
    func beginLinked(_ key: inout Key, _ transition: inout Transition) -> LinkTurn {
        let turn = LinkTurn(self, key.param, before: key.machine.linkMark)
        transition.links = turn
        key.isMarked = false
        if key.isOutdated(links) { key.machine.entitiesChanged(&transition) }
        return turn
    }

    /// Ends a transition: counts a change that other stores may show, before it becomes visible.
    func endLinked(
        _ turn: LinkTurn, _ key: inout Key, _ transition: inout Transition, _ state: inout EngineState, _ effects: inout Effects
    ) {
        let (before, after, work) = (turn.before, key.machine.linkMark, turn.work.withLock { $0 })
        if let step = transition.removal {
            state.links?.removals.note(step, of: key.param)
            if case .succeeded = step { clocks.rows.withLock { $0.forget(key.param) } }
        } else if after.hasContent, after.revision != before.revision,
            key.machine.origin.removal != nil || state.links?.removals.isDone(key.param) == true
        {
            key.machine.origin.removal = nil
            state.links?.removals.forget(key.param)
        }
        if after != before || transition.removal != nil {
            let isRead = after.isKnown && (!before.isKnown || !after.hasContent)
            noteLinkedChange(of: key.param, isRead: isRead, &state, &effects)
        }
        // Content that was accepted may be newer than an entity on disk. A loaded record has waited for its entities (E8).
        if !links.isEmpty, before.isKnown, after.revision != before.revision || work.hasLostChanges { mergeLater(work.unread, key.param) }
        effects.linked += work.effects
        effects.leftovers += work.leftovers
        for event in work.events { state.report(event, key.param, &effects) }
    }

    /// Counts a change that other stores may show, before it becomes visible, and marks it for them.
    func noteLinkedChange(of key: BoxedKey, isRead: Bool, _ state: inout EngineState, _ effects: inout Effects) {
        guard state.links?.followers.isEmpty == false else { return }
        func note(_ key: BoxedKey) {
            clocks.own.count()
            if let forgotten = state.links?.log.append(key) { effects.leftovers.append(forgotten) }
            effects.marks.append(LinkMark(engine: self, key: key, isRead: isRead))
        }
        note(key)
        for former in state.links?.formerKeys[key] ?? [] { note(former) }
    }

    /// Looks for a state that an observer has not seen, after the key is reconciled.
    func lookReconciled(_ id: CallerID, at place: Int) -> Key.LookResult {
        withEffects { state, effects in
            guard let key = state.live.key(at: place) else { return .gone }
            if key.value.isMarked || key.value.isOutdated(links) { take(key, &state, &effects) { _, _ in } }
            return key.value.look(id)
        }
    }

    /// Marks the live keys that show an entity, so that they are reconciled at their next read. The effects are delivered after all marks.
    func mark(_ mark: LinkMark) -> Effects {
        var effects = Effects()
        state.withLock { state in
            // A list is saved with the change, and content that others show passes it on.
            let isFollowed = state.links?.followers.isEmpty == false
            let isEager = mark.isRead || backing != nil || isFollowed
            // Idle content in memory and the rows of keys without content show the entities inside them as well.
            if isFollowed, front != nil || !clocks.rows.withLock({ $0.isEmpty }) {
                effects.marks.append(LinkMark(engine: self, key: nil, isRead: false))
            }
            for key in state.live.values {
                guard mark.key.map({ key.value.shows($0, of: mark.engine, links) }) ?? key.value.isOutdated(links) else { continue }
                if isEager || !key.value.mark(&effects.observers) { take(key, &state, &effects) { _, _ in } }
            }
        }
        return effects
    }

    /// The newest value that a loaded full place of another store shows for a resolved key of this one.
    ///
    /// A transition that shows the value reads it itself, because a place may bring a newer value before the transition begins.
    func newestRow(of key: BoxedKey) -> BoxedContent? {
        guard clocks.own.isFollowed.load(ordering: .acquiring) else { return nil }
        return clocks.rows.withLock { $0[key] }?.content
    }
}

extension LiveKey {
    /// Whether the content was not reconciled with the last changes of its entities.
    // Mutating, as the next ones, so that the machine is read in place.
    mutating func isOutdated(_ links: [LinkRules]) -> Bool {
        guard machine.book.held != nil else { return false }
        guard let places = machine.book.linked?.value.places, places.count == links.count else { return true }
        return links.indices.contains(where: { places[$0].number != links[$0].entities.clocks.numberForFollowers })
    }

    mutating func shows(_ key: BoxedKey, of entities: StoreEngine, _ links: [LinkRules]) -> Bool {
        guard let places = machine.book.linked?.value.places else { return false }
        return zip(links, places).contains {
            $0.entities === entities && ($1.entities.firstPosition(of: key) != nil || $1.added[key] != nil)
        }
    }

    /// Resumes the observers, which reconcile the content when they look; returns `false` if there are none.
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
            shown: machine.book.overlay, commands: machine.book.foldedCommands + machine.book.patches.compactMap { $0.command?.id },
            patches: machine.book.held == nil ? machine.book.patches.map(\.apply) : [],
            isUnread: !machine.origin.isKnown, isReceived: linked?.isReceived ?? false)
    }
}

extension KeyMachine {
    fileprivate var linkMark: LinkTurn.Mark {
        mutating get {
            LinkTurn.Mark(
                revision: book.revision, content: book.contentNumber, hasContent: book.held != nil, isKnown: origin.isKnown,
                early: origin.isKnown || book.patches.isEmpty ? [] : book.patches.map(\.id))
        }
    }
}
