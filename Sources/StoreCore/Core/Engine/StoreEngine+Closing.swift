// Closing (C23): nothing begins any longer, and the call returns when nothing runs.

extension StoreEngine {
    /// Refuses all later requests, ends the observations, cancels what runs, and waits until nothing runs.
    ///
    /// - Parameter clearing: Whether the cacher is emptied; otherwise the accepted content is saved first.
    /// - Throws: The cacher's failure, after everything has ended; `CancellationError` if the task is canceled, which ends only the wait.
    package func close(clearing: Bool) async throws {
        shut()
        if waitsForItself() { throw StoreError.insideCall }
        try await ClosingCall.wait { [self] in
            let failure = await Self.failure { if clearing { try await empty() } else { try await waitUntilSaved() } }
            try await waitUntilIdle()
            if let failure { throw failure }
        }
    }

    /// Empties the cacher once: its place may belong to a new store afterward.
    private func empty() async throws {
        if state.withLock({ $0.isEmptied }) { return }
        try await clearEverything()
        state.withLock { $0.isEmptied = true }
    }

    /// Refuses all later requests, ends the observations, and cancels what runs.
    package func shut() {
        let (tasks, changes) = withEffects { state, effects -> ([Task<Void, Never>], ChangeObservation?) in
            guard !state.isClosed else { return ([], nil) }
            state.isClosed = true
            // Hits are served from memory, without a look at the engine.
            forgetMemory(&state, &effects)
            clocks.rows.withLock { $0.removeAll(upTo: .max) }
            for key in state.live.values {
                key.value.removeObservers(&effects.observers)
                take(key, &state, &effects) { key, transition in key.machine.closed(&transition) }
            }
            defer { (state.triggers, state.changes) = ([:], nil) }
            return (Array(state.triggers.values) + state.prefetching.workers.values, state.changes)
        }
        for task in tasks { task.cancel() }
        // Released outside the lock, because the end of an observation takes the lock of its cacher.
        _ = changes
    }

    /// Waits until no fetch and no call of the cacher runs, and the cacher does nothing in the background.
    private func waitUntilIdle() async throws {
        try await fetches.running.wait { $0 == 0 ? () : nil }
        let idle = SharedResult<Bool>()
        state.withLock { state in
            state.idleWaiters.append(idle)
            resumeIdleWaiters(&state)
        }
        guard await idle.value(onCancel: { idle.put(false) }) else { throw CancellationError() }
        await backing?.settle()
    }

    /// Counts the background work of the cacher of a released engine, such as a scan or the end of a lease, until it has ended.
    func settleLater() {
        guard let backing else { return }
        let (running, work) = (fetches.running, WorkScope(fetches.running))
        Task.detached {
            defer { work.end() }
            // The end of a canceled fetch ends its lease. Nothing cancels this task.
            try? await running.wait { $0 == 1 ? () : nil }
            await backing.settle()
        }
    }

    /// Resumes the calls that wait until the cacher is idle.
    func resumeIdleWaiters(_ state: inout EngineState) {
        guard state.queue.isIdle else { return }
        for waiter in state.idleWaiters { waiter.put(true) }
        state.idleWaiters = []
    }

    package var isOpen: Bool { !state.withLock { $0.isClosed } }

    func checkOpen() throws {
        if !isOpen { throw StoreError.closedStore }
    }
}

extension StoreError {
    /// The error of every request to a closed store.
    static var closedStore: StoreError {
        StoreError(.closed, "the store was closed, so it neither fetches nor saves; create a new store")
    }

    /// The error of a call that would wait for itself.
    static var insideCall: StoreError {
        StoreError(
            .reentrantFetch,
            "waiting for the cacher of a store: the wait is inside a call of that cacher or of accepts(_:param:), which must return first; "
                + "wait again outside")
    }
}
