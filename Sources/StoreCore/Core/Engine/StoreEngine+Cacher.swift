#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

// Carries out the calls of the cacher's queue, and reports their ends to it and to the machines (C6).

typealias ClearingResult = SharedResult<Result<Void, any Error>>
typealias ListingResult = SharedResult<Result<[BoxedKey]?, any Error>>

extension StoreEngine {
    /// A call of the cacher of a store, and whether it runs.
    typealias CacherCall = (store: ObjectIdentifier, call: CacherQueue<BoxedKey>.Call, isRunning: WatchedState<Bool>)

    /// The call of a cacher in this task, which the task cannot wait for.
    @TaskLocal private static var cacherCall: CacherCall?

    /// Whether the task is inside a call of the cacher of any store.
    static var isInCacherCall: Bool { cacherCall?.isRunning.current == true }

    func calling<Result>(_ call: CacherQueue<BoxedKey>.Call, _ body: () async throws -> Result) async rethrows -> Result {
        let isRunning = WatchedState(true)
        defer { isRunning.update { $0 = false } }
        return try await Self.$cacherCall.withValue((ObjectIdentifier(self), call, isRunning), operation: body)
    }

    /// Whether a wait would never end, because the task waits inside the call of the own cacher that the wait depends on.
    ///
    /// - Parameters:
    ///   - param: The key with the awaited result; `nil` for all keys.
    ///   - need: The awaited result; by default that of a save.
    ///   - id: The caller, which is registered as one inside the call; `nil` for a look alone.
    func waitsForItself(_ param: BoxedKey? = nil, _ need: CallerNeed = .allSaved, registering id: CallerID? = nil) -> Bool {
        guard let current = Self.cacherCall, current.store == ObjectIdentifier(self), current.isRunning.current else { return false }
        guard let param else { return true }
        return state.withLock { state in
            // In one step with the look, so that neither a clearing nor another wait begins unnoticed in between.
            if let id { state.insideCallers[id] = (param, current) }
            var (waits, seen) = ([(param, need)], Set<BoxedKey>())
            while let (param, need) = waits.popLast() {
                let key = state.resolve(param)
                let dependsOnCalls = need.endsWithSave || state.live[key]?.value.machine.origin.isKnown == false
                guard dependsOnCalls, seen.insert(key).inserted else { continue }
                // The calls of all keys wait until the cacher is empty, and the clearing waits for this call.
                if key == current.call.key || state.queue.isBarred { return true }
                // The call of that key may wait inside for this one. A caller with a result, which is about to continue, waits no longer.
                for (id, caller) in state.insideCallers where caller.inside.isRunning.current && caller.inside.call.key == key {
                    guard let need = state.live[state.resolve(caller.param)]?.value.machine.desk.callers[id] else { continue }
                    waits.append((caller.param, need))
                }
            }
            return false
        }
    }

    /// Waits for a result inside a call of the own cacher, unless the result depends on that call. The wait ends when a clearing begins to
    /// wait for the call and the result depends on the clearing.
    // Not inlined, so that other callers do not pay for its frame.
    @inline(never)
    func valueInsideCall(
        _ result: SharedResult<CallerResult<BoxedContent>>, _ id: CallerID, _ param: BoxedKey, _ need: CallerNeed,
        isolation: isolated (any Actor)? = #isolation
    ) async -> CallerResult<BoxedContent> {
        defer { state.withLock { _ = $0.insideCallers.removeValue(forKey: id) } }
        if waitsForItself(param, need, registering: id) {
            release(id, of: param)
            return .failure(StoreError.insideCall)
        }
        return await result.value { release(id, of: param) }
    }

    /// Starts the calls that the queue has released, in tasks of the store: the cancellation of a caller does not reach them.
    func startCalls(_ state: inout EngineState) {
        if !state.idleWaiters.isEmpty { resumeIdleWaiters(&state) }
        guard let backing else { return }
        for call in state.queue.takeCalls() {
            switch call {
            case .load(let param, let ticket):
                Task.detached(priority: Task.currentPriority) { [self] in
                    var result = await self.load(call, param, from: backing)
                    let release = self.links.isEmpty ? nil : await self.loadEntities(of: &result)
                    callEnded(param) { [result] key, transition in key.machine.cacheReadFinished(ticket, result, &transition) }
                    release?()
                }
            case .write(let param):
                // A newer record of another user has made the save unnecessary, and the key may have been forgotten since then. A key that
                // has content to save is live.
                guard let key = state.live[param], key.value.machine.saving.isRequested else {
                    state.queue.callEnded(param)
                    continue
                }
                let (record, base) = key.value.machine.saveBegan()
                startSave(record, param, backing, over: base)
            case .keys(let id):
                guard let result = state.listings.removeValue(forKey: id) else { continue }
                Task.detached(priority: Task.currentPriority) { [self] in
                    do { result.put(.success(try await calling(call) { try await backing.keys() })) } catch { result.put(.failure(error)) }
                    self.state.withLock { state in
                        state.queue.listingEnded()
                        startCalls(&state)
                    }
                }
            case .removeAll:
                (state.clearing, state.nextClearing) = (state.nextClearing, nil)
                let began = time.date
                Task.detached(priority: Task.currentPriority) { [self] in
                    let error = await Self.failure { try await calling(call) { try await backing.removeAll() } }
                    clearingEnded(began, error)
                }
            }
        }
    }

    private func startSave(_ record: CacheRecord<BoxedContent>?, _ param: BoxedKey, _ backing: any EngineCacher, over base: Revision?) {
        Task.detached(priority: Task.currentPriority) { [self] in
            do {
                let outcome = try await calling(.write(param)) { try await Self.write(record, param, to: backing, over: base) }
                switch outcome {
                case .saved(let revision):
                    callEnded(param, hasWritten: true) { key, transition in
                        key.machine.saveFinished(nil, removing: record == nil, sharedRevision: revision, &transition)
                    }
                case .superseded(let newer, let revision):
                    let newer = newer.map { date($0, param, backing) }
                    callEnded(param) { key, transition in
                        let wasOutdating = key.machine.saveSuperseded(by: newer, revision, &transition)
                        if wasOutdating { key.repairs = key.machine.origin.flight?.ticket }
                    }
                }
            } catch {
                callEnded(param) { key, transition in key.machine.saveFinished(error, removing: record == nil, &transition) }
            }
        }
    }

    /// Returns a record with its age on the monotonic clock.
    func date(_ record: CacheRecord<BoxedContent>, _ param: BoxedKey, _ backing: any EngineCacher) -> HeldRecord<BoxedContent> {
        let now = time.date
        return date(record, now, time.now, needsRefresh: backing.needsRefresh(record, param: param, now: now))
    }

    private func load(
        _ call: CacherQueue<BoxedKey>.Call, _ param: BoxedKey, from backing: any EngineCacher
    ) async -> Result<HeldRecord<BoxedContent>?, any Error> {
        do {
            guard var record = try await calling(call, { try await backing.load(param: param) }),
                !state.withLock({ $0.queue.isCleared(param, rules.isShared ? record.fetchedAt : nil) })
            else { return .success(nil) }
            if record.details?.fields.commands != nil { forgetRetiredCommands(in: &record) }
            return .success(date(record, param, backing))
        } catch {
            return .failure(error)
        }
    }

    /// Reports the end of a call to its machine and to the queue. After a successful save or removal, retries a failed save of another key.
    func callEnded(
        _ param: BoxedKey, hasWritten: Bool = false, _ report: @Sendable (inout Key, inout Transition) -> Void
    ) {
        withEffects { state, effects in
            if let key = state.live[param] {
                take(key, &state, &effects, report)
                if key.value.lease != nil { endLease(of: &key.value) }
            }
            if hasWritten { state.queue.saved(param) }
            state.queue.callEnded(param)
            if hasWritten,
                let failed = state.queue.nextRetry(
                    after: rules.policy.minimumInterval, now: time.now, where: { state.live[$0]?.value.machine.mayRetrySave ?? false }),
                let key = state.live[failed]
            {
                take(key, &state, &effects) { key, transition in key.machine.otherKeyWasSaved(&transition) }
            }
            startCalls(&state)
        }
    }

    // MARK: Clearing

    /// Forgets everything, in memory and in the cacher.
    ///
    /// - Throws: The cacher's failure; `CancellationError` if the task is canceled, and ``StoreError/Code/reentrantFetch`` inside a call of
    ///   the own cacher, which do not stop the clearing.
    func clearAll() async throws {
        guard try await clearEverything(unlessClosed: true) else { throw StoreError.closedStore }
    }

    /// Forgets everything, by default even in a closed store. Returns whether everything was forgotten; `false` only for a closed store.
    @discardableResult
    func clearEverything(unlessClosed: Bool = false) async throws -> Bool {
        guard let result = beginClearing(unlessClosed: unlessClosed) else { return false }
        if backing != nil, waitsForItself() { throw StoreError.insideCall }
        // Cancellation ends the wait, and the clearing continues.
        let outcome = await result.value()
        // Even without a cacher to wait for, a canceled caller must see the same outcome.
        try Task.checkCancellation()
        try outcome?.get()
        return true
    }

    /// - Returns: The result to wait for; `nil` for a closed store that must not be cleared any longer, because its cacher's place may
    ///   belong to another one.
    private func beginClearing(unlessClosed: Bool) -> ClearingResult? {
        withEffects { state, effects -> ClearingResult? in
            if unlessClosed, state.isClosed { return nil }
            let result = state.nextClearing ?? ClearingResult()
            // First, so that the saves that the cleared keys request wait until the cacher is empty.
            if backing != nil {
                state.nextClearing = result
                state.queue.removeAll()
            }
            forgetMemory(&state, &effects)
            state.noteChangeOfAllKeys()
            for key in state.live.values {
                take(key, &state, &effects) { key, transition in key.machine.clearedWithCacher(&transition) }
            }
            // The cleared keys are known, so only saves wait until the cacher is empty.
            for (id, caller) in state.insideCallers where caller.inside.isRunning.current {
                guard let key = state.live[state.resolve(caller.param)], key.value.machine.desk.callers[id]?.endsWithSave == true else {
                    continue
                }
                take(key, &state, &effects) { key, transition in
                    key.machine.callerLeft(id, &transition)
                    transition.actions.append(.resume(id, .failure(StoreError.insideCall)))
                }
            }
            if backing == nil { result.put(.success(())) } else { startCalls(&state) }
            return result
        }
    }

    /// Empties memory, and drops everything that waits to be fetched.
    func forgetMemory(_ state: inout EngineState, _ effects: inout Effects) {
        forgetFront(&state, &effects)
        for batch in state.prefetching.removeAll() {
            if let keys = batch.cancel() { effects.leftovers.append(keys) }
            effects.leftovers.append(batch)
        }
    }

    func forgetFront(_ state: inout EngineState, _ effects: inout Effects) {
        if let front { effects.leftovers.append(front.removeAll()) }
        // The indexes refer to the elements of lists that are forgotten.
        state.idleIndexes.removeAll(&effects.leftovers)
    }

    private func clearingEnded(_ began: Date, _ error: (any Error)?) {
        let clearing = withEffects { state, effects -> ClearingResult? in
            if let error, onEvent != nil { state.report(.cacherFault(.removeAll, error), nil, &effects) }
            let ended = state.clearing.take()
            state.queue.clearingEnded(began: began, fails: error != nil)
            startCalls(&state)
            return ended
        }
        let message = "clearing the store: the cacher could not remove its records; remove the cause, then clear again"
        clearing?.put(error.map { .failure(StoreError(.cacherFailed, message, underlyingError: $0)) } ?? .success(()))
    }

    // MARK: Listing

    /// The keys of all records; `nil` if the cacher cannot list them. Waits while the cacher is being emptied.
    func knownKeys() async throws -> [BoxedKey]? {
        try checkOpen()
        // Under the lock, because content that changes in place leaves memory for a moment.
        guard backing != nil else { return state.withLock { _ in front?.keys() } }
        let (id, result, isInside) = (nextID(), ListingResult(), waitsForItself())
        let isListed = state.withLock { state in
            if isInside, state.queue.isBarred { return false }
            state.listings[id] = result
            state.queue.list(id)
            startCalls(&state)
            return true
        }
        guard isListed else { throw StoreError.insideCall }
        return try await result.value { result.put(.failure(CancellationError())) }.get()
    }

    // MARK: Waiting for saves

    /// Waits until the cacher has all content that was accepted before: of one key, or of all keys.
    ///
    /// - Parameter param: The key; `nil` for all keys.
    /// - Throws: ``StoreError/Code/cacherFailed`` if the cacher failed, after everything else is saved; `CancellationError`.
    func waitUntilSaved(_ param: BoxedKey? = nil) async throws {
        try Task.checkCancellation()
        if waitsForItself(param) { throw StoreError.insideCall }
        let (saves, clearing) = beginWaiting(param)
        var (faults, isCancelled): ([any Error], Bool) = ([], false)
        let isInside = waitsForItself()
        if let clearing {
            // Inside the call of another key, a clearing may have begun since the look above, and waits for that call.
            switch await isInside ? .failure(StoreError.insideCall) : clearing.value() {
            case .success?: break
            case .failure(let error)?: faults.append(error)
            case nil: isCancelled = true
            }
        }
        // The last save to end determines the duration, so the order does not matter. Cancellation resumes each wait at once.
        for save in saves {
            switch await save.value() {
            case .failure(let error): faults.append(error)
            case .cancelled: isCancelled = true
            case .content, .done, .page, .outdated: break
            }
        }
        if isCancelled { throw CancellationError() }
        guard let fault = faults.first else { return }
        if isInside, let fault = fault as? StoreError, fault.code == .reentrantFetch { throw fault }
        let message =
            "waiting until everything is saved: the cacher failed \(faults.count == 1 ? "once" : "\(faults.count) times"); unsaved content "
            + "stays in the store, so fix the cause and call waitUntilSaved() again"
        throw StoreError(.cacherFailed, message, underlyingError: fault)
    }

    /// Registers a caller at each key with a pending save, and retries failed saves.
    private func beginWaiting(_ param: BoxedKey?) -> (saves: [Saving], clearing: ClearingResult?) {
        withEffects { state, effects -> (saves: [Saving], clearing: ClearingResult?) in
            let saves = state.liveKeys(param).compactMap { key in
                take(key, &state, &effects) { key, transition in beginWaiting(&key, &transition) }
            }
            return (saves, state.nextClearing ?? state.clearing)
        }
    }

    /// - Returns: `nil` if everything is saved.
    private func beginWaiting(_ key: inout Key, _ transition: inout Transition) -> Saving? {
        let id = nextID()
        let immediate = key.machine.callerArrived(id, needing: .allSaved, &transition)
        if case .done = immediate { return nil }
        let saving = Saving(engine: self, param: key.param, id: id, result: SharedResult())
        if let immediate { saving.result.put(immediate) } else { key.callers[id] = saving.result }
        return saving
    }
}
