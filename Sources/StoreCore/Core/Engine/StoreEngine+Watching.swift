// The keys that change while something else is in progress, such as the reading of a list that cannot contain these changes (C5).

/// A change that is younger than a watch; of several changes of a key, the greatest counts.
package enum WatchedChange: Comparable, Hashable, Sendable {
    /// A request of a linked store that began after the watch has fetched values of the content.
    case linked
    /// A request that began after the watch has fetched the content.
    case fetched
    /// Another user of a shared cacher has changed the key.
    case elsewhere
    /// A user of the store has changed the key.
    case byUser
}

/// The keys that have changed since a watch began.
struct ChangedKeys: Sendable {
    /// The number of the last event before the watch.
    var start: UInt64
    /// The time at which the watch began, for comparisons with requests of linked stores.
    var stamp: Stamp
    /// Whether a user has changed every key.
    var all = false
    var changes: [BoxedKey: WatchedChange] = [:]

    func change(of param: BoxedKey) -> WatchedChange? { all ? .byUser : changes[param] }
}

extension EngineState {
    /// Notes a change of a key in the watches that are older than the change, by default in all.
    // Never inlined, because no watch runs most of the time.
    @inline(never)
    mutating func note(_ change: WatchedChange, of param: BoxedKey, where isOlder: @Sendable (ChangedKeys) -> Bool = { _ in true }) {
        // The numbers are copied, because a copy of the watches would make each insertion copy a dictionary.
        for id in Array(watches.keys) where watches[id].map(isOlder) ?? false {
            let greatest = max(watches[id]?.changes[param] ?? change, change)
            watches[id]?.changes[param] = greatest
        }
    }

    mutating func noteChangeOfAllKeys() {
        for id in Array(watches.keys) { watches[id]?.all = true }
    }
}

/// A record of the keys of a store that have changed since a moment; ends with its last reference.
package final class ChangeWatch<Param: Hashable & Sendable>: Sendable {
    private let engine: StoreEngine
    fileprivate let id: CallerID

    init(_ engine: StoreEngine) {
        self.engine = engine
        id = engine.nextID()
        let stamp = engine.clocks.stamp(at: engine.time.date)
        engine.state.withLock { $0.watches[id] = ChangedKeys(start: $0.tickets.last, stamp: stamp) }
    }

    deinit { engine.state.withLock { _ = $0.watches.removeValue(forKey: id) } }

    /// Returns the change of a key since the watch began; `nil` if there was none.
    ///
    /// A change by a user precedes the others.
    package func change(of param: Param) -> WatchedChange? {
        engine.state.withLock { state in state.watches[id]?.change(of: state.resolve(BoxedKey(param))) }
    }
}

extension Store {
    /// Begins to record the keys that change from now on.
    package func watchChanges() -> ChangeWatch<Param> { ChangeWatch(engine) }

    /// Sets or removes the content of a key, unless something newer was accepted since a watch began. Check and change are one step.
    ///
    /// A change by a user of the store or of a shared cacher stays. Content that a younger request has brought may be removed, but not
    /// replaced. The watch does not record the call itself.
    ///
    /// - Parameter content: The content; `nil` removes the content.
    /// - Returns: Whether the content was set or removed.
    package func replace(_ param: Param, by content: Content?, unlessNewerThan watch: ChangeWatch<Param>) async -> Bool {
        let (isReplaced, saving) = engine.replace(BoxedKey(param), by: content.map { BoxedContent($0) }, unlessNewerThan: watch.id)
        if let saving { await saving.end() }
        return isReplaced
    }

    /// Returns the content of a key without the changes that are not accepted yet, valid or not; `nil` if there is none, and for the
    /// temporary key of an entity that a command creates.
    ///
    /// - Throws: The error of the cacher; `CancellationError` if the task is canceled.
    package func acceptedContent(of param: Param) async throws -> Content? {
        let content: Content
        do {
            content = try await self[param].requireData(from: .cache)
        } catch let error as StoreError where error.code == .noValidCache {
            guard let stale = error.staleContent as? Content else { return nil }
            content = stale
        }
        return engine.state.withLock { state -> Content?? in
            // A key with pending changes is live.
            guard let machine = state.live[state.resolve(BoxedKey(param))]?.value.machine,
                machine.book.overlay != nil || !machine.book.patches.isEmpty
            else { return nil }
            return .some(machine.isTemporary ? nil : machine.book.held?.record.content.value(as: Content.self))
        } ?? content
    }
}

extension StoreEngine {
    /// Linked content has changed: the places with the stamp of the change have new values of their entities, which are keys here.
    ///
    /// - Parameter change: `.byUser`, or `.linked` if a request that began at the stamp has fetched the values.
    func note(_ change: WatchedChange, of places: LinkedPlaces<BoxedContent>, at stamp: Stamp) {
        state.withLock { state in
            guard !state.watches.isEmpty else { return }
            for (key, placed) in zip(places.entities.keys, places.stamps) where placed == stamp {
                state.note(change, of: state.resolve(key)) { change != .linked || $0.stamp < stamp }
            }
        }
    }

    fileprivate func replace(
        _ param: BoxedKey, by content: BoxedContent?, unlessNewerThan watch: CallerID
    ) -> (isReplaced: Bool, saving: Saving?) {
        let id = nextID()
        let admission: Admission? = withEffects { state, effects in
            let param = state.resolve(param)
            guard state.mayReplace(param, byContent: content != nil, watch), let key = liveKey(param, &state, &effects) else { return nil }
            let before = state.watches[watch]?.changes[param]
            let isLinked = content != nil && before == .linked
            let admission = take(key, &state, &effects) { key, transition -> Admission? in
                // Values that only linked stores show do not keep the item's first content away.
                if isLinked, key.machine.book.held != nil { return nil }
                let revision = key.machine.updated(content, &transition)
                return key.callerArrived(id, needing: .saved(revision), &transition)
            }
            state.watches[watch]?.changes[param] = before
            return admission
        }
        return switch admission {
        case nil: (false, nil)
        case .immediate?: (true, nil)
        case .waiting(let result)?: (true, Saving(engine: self, param: param, id: id, result: result))
        }
    }
}

extension EngineState {
    fileprivate func mayReplace(_ param: BoxedKey, byContent isContent: Bool, _ watch: CallerID) -> Bool {
        guard let changed = watches[watch] else { return false }
        return switch changed.change(of: param) {
        case nil, .linked?: true
        case .fetched?: !isContent
        case .byUser?, .elsewhere?: false
        }
    }
}
