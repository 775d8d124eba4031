// Callers: one-shot requests, each resumed exactly once and cancelable at any time (C9).

extension StoreEngine {
    /// Makes a request to a key's machine and waits for the result.
    ///
    /// - Returns: The result; `.cancelled` as soon as the caller's task is canceled.
    func request(
        _ param: BoxedKey, _ need: CallerNeed, id: CallerID? = nil, isolation: isolated (any Actor)? = #isolation
    ) async -> CallerResult<BoxedContent> {
        if Task.isCancelled { return .cancelled }
        let id = id ?? nextID()
        if need.wantsFetch, let scope = FetchScope.active { return await request(param, need, id: id, within: scope) }
        return await value(of: admit(id, to: param) { _, _ in need }, id, param, need)
    }

    /// Waits for the result of an admitted caller, unless it is immediate.
    // Inlined, because a frame of its own would enlarge each waiting task.
    @inline(__always)
    func value(
        of admission: Admission, _ id: CallerID, _ param: BoxedKey, _ need: CallerNeed, isolation: isolated (any Actor)? = #isolation
    ) async -> CallerResult<BoxedContent> {
        switch admission {
        case .immediate(let result):
            return result
        case .waiting(let result):
            if waitsForItself() { return await valueInsideCall(result, id, param, need) }
            return await result.value { release(id, of: param) }
        }
    }

    /// Admits a caller to a key. Most results are immediate, and cost neither a continuation nor a registration.
    ///
    /// - Parameter begin: Returns the caller's need, after a change of the key in the same transition.
    // Never inlined, because its locals would enlarge the frame of `request`, and thousands of callers may wait at once.
    @inline(never)
    func admit(
        _ id: CallerID, to param: BoxedKey, _ begin: @Sendable (inout KeyMachine<BoxedContent>, inout Transition) -> CallerNeed
    ) -> Admission {
        transition(param) { key, transition in
            let need = begin(&key.machine, &transition)
            return key.callerArrived(id, needing: need, &transition)
        } ?? .immediate(.failure(StoreError.closedStore))
    }

    /// Removes a caller that was canceled or no longer needs the accepted content.
    func release(_ id: CallerID, of param: BoxedKey) {
        transitionIfLive(param) { key, transition in
            key.machine.callerLeft(id, &transition)
            if key.callers[id] != nil { transition.actions.append(.resume(id, .cancelled)) }
        }
    }

    // MARK: Writing

    /// Changes the content, and waits until the change or a newer one is saved, or until the save has failed.
    func write(_ param: BoxedKey, _ change: @Sendable (inout KeyMachine<BoxedContent>, inout Transition) -> Ticket) async {
        if let saving = beginWriting(param, change) { await saving.end() }
    }

    /// Changes the content. Returns the save to wait for; `nil` if there is nothing to wait for.
    func beginWriting(_ param: BoxedKey, _ change: @Sendable (inout KeyMachine<BoxedContent>, inout Transition) -> Ticket) -> Saving? {
        guard backing != nil else {
            // Without a cacher to call, accepted content counts as saved.
            transition(param) { key, transition in change(&key.machine, &transition) }
            return nil
        }
        let id = nextID()
        let admission = admit(id, to: param) { machine, transition in .saved(change(&machine, &transition)) }
        guard case .waiting(let result) = admission else { return nil }
        return Saving(engine: self, param: param, id: id, result: result)
    }

    /// A wait for the save of a change.
    @usableFromInline
    struct Saving: Sendable {
        let engine: StoreEngine
        let param: BoxedKey
        let id: CallerID
        let result: SharedResult<CallerResult<BoxedContent>>

        /// Waits until the change or a newer one is saved, the save has failed, or the task is canceled.
        @usableFromInline
        func end() async { _ = await value() }

        @inline(__always)
        func value() async -> CallerResult<BoxedContent> { await engine.value(of: .waiting(result), id, param, .allSaved) }
    }

    func invalidate(_ param: BoxedKey) async {
        // The invalidation precedes any cancellation, which can only end the wait.
        let id = nextID()
        let admission = admit(id, to: param) { machine, transition in
            machine.invalidated(&transition)
            return .acceptedContent
        }
        defer { release(id, of: param) }
        guard case .done = await value(of: admission, id, param, .acceptedContent) else { return }
        await write(param) { machine, _ in machine.book.revision }
    }

    /// Changes the newest accepted content, if there is any. Returns whether there was content to change.
    func update(_ param: BoxedKey, _ transform: (inout BoxedContent) throws -> Void) async rethrows -> Bool {
        let holder = nextID()
        var attempts: [CallerID] = []
        defer {
            if !attempts.isEmpty { endEdits(attempts, of: param) }
            release(holder, of: param)
        }
        guard case .done = await request(param, .acceptedContent, id: holder) else { return false }
        while true {
            let newest = transition(param) { key, _ in (key.machine.book.held?.record.content, key.machine.book.revision) }
            guard let (held, revision) = newest, var content = held else { return false }
            // User code, so outside the lock. If the content changes in the meantime, the closure runs again on the newer content.
            try transform(&content)
            let (updated, refused, id) = (content, attempts, nextID())
            let admission =
                transition(param) { key, transition -> Admission in
                    guard key.machine.book.revision == revision else { return .immediate(.outdated) }
                    let newRevision = key.machine.updated(updated, as: .derived, &transition)
                    _ = key.editsEnded(refused)
                    return key.callerArrived(id, needing: .savedEdit(newRevision), &transition)
                } ?? .immediate(.failure(StoreError.closedStore))
            // Only a shared cacher refuses a save.
            if rules.isShared, case .waiting = admission { attempts.append(id) }
            switch await value(of: admission, id, param, .allSaved) {
            case .outdated: continue
            case .failure(let error as StoreError) where error.code == .closed: return false
            default: return true
            }
        }
    }

    /// Publishes the content that lacks these edits, unless others will still be applied again.
    private func endEdits(_ ids: [CallerID], of param: BoxedKey) {
        transitionIfLive(param) { key, transition in if key.editsEnded(ids) { transition.isPublished = true } }
    }

    /// Publishes a patch at once, and settles it when `perform` ends.
    ///
    /// - Parameter response: Finds the origin's response in the result of `perform`.
    func mutate<Result>(
        _ param: BoxedKey, _ patch: @escaping @Sendable (inout BoxedContent) -> Void, perform: () async throws -> Result,
        response: (Result) -> MutationResponse<BoxedContent> = { _ in .none }
    ) async throws -> Result {
        let holder = nextID()
        let admitted = await request(param, .acceptedContent, id: holder)
        guard case .done = admitted else {
            release(holder, of: param)
            if case .failure(let error) = admitted { throw error }
            throw CancellationError()
        }
        let id = transition(param) { key, transition in key.machine.patchStarted(patch, &transition) }
        release(holder, of: param)
        guard let id else { throw StoreError.closedStore }
        do {
            let result = try await perform()
            let response = response(result)
            let key = resolved(param)
            await write(param) { machine, transition in
                if let row = newestRow(of: key) { machine.rowBecomesContent(row, &transition) }
                machine.patchSucceeded(id, response, &transition)
                return machine.book.revision
            }
            return result
        } catch {
            transitionIfLive(param) { key, transition in key.machine.patchFailed(id, &transition) }
            throw error
        }
    }

    /// Sets the content of a key; `nil` clears it.
    ///
    /// - Parameter hash: The hash of the key, which is boxed only if it is not live.
    /// - Returns: The save to wait for; `nil` without a cacher, so that most callers need no frame to wait in.
    @usableFromInline
    func set(
        _ content: BoxedContent?, ofKeyWithHash hash: Int, where isKey: @Sendable (BoxedKey) -> Bool,
        makeKey: @Sendable () -> BoxedKey
    ) -> Saving? {
        guard backing == nil else { return beginWriting(makeKey()) { machine, transition in machine.updated(content, &transition) } }
        withEffects { state, effects in
            guard !state.isClosed,
                let key = state.live.find(HashIndex.hash(ofValue: hash), where: isKey) ?? liveKey(makeKey(), &state, &effects)
            else { return }
            take(key, &state, &effects) { key, transition in _ = key.machine.updated(content, &transition) }
        }
        return nil
    }
}

// MARK: - Callers for content

// Thousands may arrive at once: the first caller of a key registers with its machine, and the others join it.

extension StoreEngine {
    /// Requests a key's content and waits for the result.
    ///
    /// The call adds a single small frame to the caller's, so that a waiting task needs no memory beyond its initial allocation.
    ///
    /// - Returns: The result; `.cancelled` as soon as the caller's task is canceled.
    @usableFromInline
    func requireContent(
        _ key: BoxedKey, from source: GettingFrom, isolation: isolated (any Actor)? = #isolation
    ) async -> CallerResult<BoxedContent> {
        if Task.isCancelled { return .cancelled }
        // Events count each caller, and a caller that is a fetch, or a call of the own cacher, must not wait for itself.
        guard source == .both, onEvent == nil, FetchScope.active == nil, !waitsForItself() else {
            return await waitAlone(key, source.need)
        }
        switch joinCallers(key) {
        case .immediate(let result):
            return result
        case .waiting(let callerGroup, let ticket):
            // Written out by hand, see ``suspend(isolation:_:onCancel:)``.
            await withTaskCancellationHandler {
                _ = isolation
                await suspend { callerGroup.wait(ticket, $0) }
            } onCancel: {
                callerGroup.leave(ticket)
            }
            return callerGroup.result ?? .cancelled
        }
    }

    // Not inlined: its frame would enlarge that of each waiting caller, which does not need it.
    @inline(never)
    private func waitAlone(
        _ key: BoxedKey, _ need: CallerNeed, isolation: isolated (any Actor)? = #isolation
    ) async -> CallerResult<BoxedContent> {
        await request(key, need)
    }
}

extension GettingFrom {
    fileprivate var need: CallerNeed {
        switch self {
        case .both: .content
        case .origin: .origin
        case .cache: .cached
        }
    }
}

extension StoreEngine {
    enum JoinOutcome: Sendable {
        case immediate(CallerResult<BoxedContent>)
        case waiting(SharedResult<CallerResult<BoxedContent>>, SharedResult<CallerResult<BoxedContent>>.Ticket)
    }

    /// Joins the group of callers that wait for a key's content.
    ///
    /// The machine knows the group as a single caller: if one caller must wait for content, so must the next, because anything that would
    /// give the next caller a result has given it to the first.
    // Not inlined: its temporaries would enlarge the frame of its caller, and thousands of these may wait at once.
    @inline(never)
    func joinCallers(_ param: BoxedKey) -> JoinOutcome {
        let id = nextID()
        return withEffects { state, effects -> JoinOutcome in
            guard let key = liveKey(param, &state, &effects) else { return .immediate(.failure(StoreError.closedStore)) }
            if let callerGroup = key.value.callerGroup?.result { return .waiting(callerGroup, callerGroup.join()) }
            return take(key, &state, &effects) { key, transition -> JoinOutcome in
                if let result = key.machine.callerArrived(id, needing: .content, &transition) { return .immediate(result) }
                // Retains the engine while a caller waits, as any caller does.
                let callerGroup = SharedResult<CallerResult<BoxedContent>> { self.removeEmptyGroup($0, id, of: param) }
                key.callerGroup = (id, callerGroup)
                return .waiting(callerGroup, callerGroup.join())
            }
        }
    }

    /// Removes a group, which the machine knows by this number, after its last caller has left.
    func removeEmptyGroup(_ callerGroup: SharedResult<CallerResult<BoxedContent>>, _ id: CallerID, of param: BoxedKey) {
        transitionIfLive(param) { key, transition in
            // Another caller may have joined the group meanwhile, or the group may have received its result.
            guard callerGroup.count == 0, key.takeCallers(id) != nil else { return }
            key.machine.callerLeft(id, &transition)
        }
    }
}
