// Operations on all keys.

extension StoreEngine {
    /// Invalidates the matching keys: first the live ones, then those that the cacher knows.
    func invalidate(where fits: @Sendable (BoxedKey) -> Bool) async throws {
        let live = state.withLock { $0.live.values.map(\.value.param) }.filter(fits)
        for param in live { await invalidate(param) }
        guard let known = try await knownKeys() else {
            throw StoreError(
                .cannotEnumerate,
                "invalidating by a condition: the cacher cannot list its keys, so only live keys were invalidated; implement keys()")
        }
        let alreadyDone = Set(live)
        for param in known where !alreadyDone.contains(param) && fits(param) { await invalidate(param) }
    }

    /// The keys of all saved records, pending saves, and other live keys, each once and in no order.
    ///
    /// - Throws: ``StoreError/Code/cannotEnumerate``, and any error of the cacher.
    func allKeys() async throws -> [BoxedKey] {
        // Live keys come first: the cacher then lists every record that is saved in the meantime.
        // The entity of a temporary key exists only as a command of an outbox.
        let live = state.withLock { Set($0.live.values.lazy.filter { !$0.value.machine.isTemporary }.map(\.value.param)) }
        guard let known = try await knownKeys() else {
            throw StoreError(.cannotEnumerate, "listing the keys: the cacher cannot list its keys; implement keys()")
        }
        return Array(live.union(known))
    }

    /// Revalidates the observed keys at each element of a sequence.
    func addTrigger<Trigger: AsyncSequence & Sendable>(_ trigger: Trigger) -> RevalidationTrigger {
        let id = nextID()
        state.withLock { state in
            guard !state.isClosed else { return }
            // Created under the lock, so that the task is registered before its sequence can end.
            state.triggers[id] = Task.detached { [weak self] in
                do {
                    for try await _ in trigger {
                        // A sequence that never suspends notices neither the cancellation of its task nor the release of the store.
                        guard let self, !Task.isCancelled else { break }
                        triggerAll()
                        await Task.yield()
                    }
                } catch {
                    // An error ends only this trigger.
                }
                self?.endTrigger(id)
            }
        }
        return RevalidationTrigger { [weak self] in self?.endTrigger(id) }
    }

    func endTrigger(_ id: CallerID) {
        state.withLock { $0.triggers.removeValue(forKey: id) }?.cancel()
    }

    private func triggerAll() {
        withEffects { state, effects in
            for key in state.live.values where key.value.machine.desk.observers > 0 {
                take(key, &state, &effects) { key, transition in key.machine.triggered(&transition) }
            }
        }
    }
}
