// What concerns all keys at once.

extension StoreEngine {
    /// Says of all keys that fit that their content is out of date.
    func invalidate(where fits: @Sendable (BoxedKey) -> Bool) async throws {
        let live = state.withLock { Array($0.live.keys) }.filter(fits)
        for param in live { await invalidate(param) }
        guard let known = try await knownKeys() else {
            throw StoreError(
                .cannotEnumerate,
                "invalidating by a condition: the cacher cannot list its keys, so only live keys were invalidated; implement keys()")
        }
        let alreadyDone = Set(live)
        for param in known where !alreadyDone.contains(param) && fits(param) { await invalidate(param) }
    }

    /// The keys of all records, saved or still to be saved, and of whatever else is live, each once and in no order.
    ///
    /// - Throws: ``StoreError/Code/cannotEnumerate``, and whatever the cacher throws.
    func allKeys() async throws -> [BoxedKey] {
        // The live ones first: what is saved meanwhile is listed by the cacher, what was live already is known.
        let live = state.withLock { Set($0.live.keys) }
        guard let known = try await knownKeys() else {
            throw StoreError(.cannotEnumerate, "listing the keys: the cacher cannot list its keys; implement keys()")
        }
        return Array(live.union(known))
    }

    /// Lets observed keys be fetched at each element of a sequence.
    func addTrigger<Trigger: AsyncSequence & Sendable>(_ trigger: Trigger) -> RevalidationTrigger {
        let id = nextID()
        state.withLock { state in
            // Made under the lock, so that a sequence that ends at once cannot end before it is registered.
            state.triggers[id] = Task.detached { [weak self] in
                do {
                    for try await _ in trigger {
                        // A sequence that never suspends does not notice that its task is canceled, nor that the store is gone.
                        guard let self, !Task.isCancelled else { break }
                        triggerAll()
                        await Task.yield()
                    }
                } catch {
                    // A trigger that fails is a trigger that ends: the store goes on without it.
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
        var effects = Effects()
        state.withLock { state in
            for key in state.live.values where key.value.machine.observers > 0 {
                take(key, &state, &effects) { key, turn in key.machine.triggered(&turn) }
            }
        }
        effects.deliver(onEvent)
    }
}
