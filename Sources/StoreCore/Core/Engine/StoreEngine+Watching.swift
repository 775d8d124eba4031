// The keys that users change while something else is in progress, such as the reading of a list that cannot contain these changes (C5).

/// The keys that were changed since a watch began.
struct ChangedKeys: Sendable {
    var keys: Set<BoxedKey> = []
    /// Whether `clear()` has changed every key, including those not in `keys`.
    var all = false
}

extension EngineState {
    /// An update, a removal, an invalidation, a mutation or a command has changed a key. Fetched content is no change.
    // Never inlined, because no watch runs most of the time.
    @inline(never)
    mutating func noteChange(of param: BoxedKey) {
        for id in watches.keys { watches[id]?.keys.insert(param) }
    }

    mutating func noteChangeOfAllKeys() {
        for id in watches.keys { watches[id] = ChangedKeys(all: true) }
    }
}

/// A record of the keys of a store that its users have changed since a moment; ends with its last reference.
package final class ChangeWatch<Param: Hashable & Sendable>: Sendable {
    private let engine: StoreEngine
    private let id: CallerID

    init(_ engine: StoreEngine) {
        self.engine = engine
        id = engine.nextID()
        engine.state.withLock { $0.watches[id] = ChangedKeys() }
    }

    deinit { engine.state.withLock { _ = $0.watches.removeValue(forKey: id) } }

    /// Returns whether a key was changed since the watch began.
    ///
    /// - Parameter param: The key.
    package func hasChanged(_ param: Param) -> Bool {
        engine.state.withLock { state in
            guard let changed = state.watches[id] else { return false }
            return changed.all || changed.keys.contains(state.resolve(BoxedKey(param)))
        }
    }
}

extension Store {
    /// Begins to record the keys that users of the store change.
    package func watchChanges() -> ChangeWatch<Param> { ChangeWatch(engine) }

    /// Returns the content of a key without the changes that are not accepted yet, valid or not; `nil` if there is none, and for the
    /// temporary key of an entity that a command creates.
    ///
    /// - Parameter param: The key.
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
