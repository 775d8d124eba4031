// Callers: one-shot requests, each resumed exactly once and cancelable at any time (C9).

extension StoreEngine {
    /// Makes a request to a key's machine and waits for the result.
    ///
    /// - Returns: The result; `.cancelled` as soon as the caller's task is canceled.
    func ask(
        _ param: BoxedKey, _ need: CallerNeed, id: CallerID? = nil, isolation: isolated (any Actor)? = #isolation
    ) async -> CallerResult<BoxedContent> {
        if Task.isCancelled { return .cancelled }
        let id = id ?? nextID()
        if need.wantsFetch, let scope = FetchScope.active { return await ask(param, need, id: id, within: scope) }
        return await ask(param, id: id, need) { machine, id, transition in machine.callerArrived(id, needing: need, &transition) }
    }

    /// Gives a fact to a key's machine, and waits for the result that the machine registered a caller for.
    ///
    /// - Parameters:
    ///   - param: The key.
    ///   - id: The caller.
    ///   - need: The result that the caller waits for.
    ///   - isolation: The caller's actor, which is not left.
    ///   - begin: Passes the fact to the machine under the lock, even if the task is canceled. Returns the result, if there is one already.
    func ask(
        _ param: BoxedKey, id: CallerID, _ need: CallerNeed, isolation: isolated (any Actor)? = #isolation,
        _ begin: @Sendable (inout KeyMachine<BoxedContent>, CallerID, inout Transition) -> CallerResult<BoxedContent>?
    ) async -> CallerResult<BoxedContent> {
        switch pose(param, id, begin) {
        case .answered(let answer):
            return answer
        case .waiting(let reply):
            if waitsForItself(param, need) {
                release(id, of: param)
                return .failure(StoreError.insideCall)
            }
            return await reply.value { release(id, of: param) }
        }
    }

    /// Gives a fact to a key's machine. Most results are immediate, and cost neither a continuation nor a registration.
    // Never inlined, because its locals would enlarge the frame of `ask`, and thousands of callers may wait at once.
    @inline(never)
    func pose(
        _ param: BoxedKey, _ id: CallerID,
        _ begin: @Sendable (inout KeyMachine<BoxedContent>, CallerID, inout Transition) -> CallerResult<BoxedContent>?
    ) -> Asked {
        transition(param) { key, transition in
            if let answer = begin(&key.machine, id, &transition) { return .answered(answer) }
            let reply = SharedResult<CallerResult<BoxedContent>>()
            key.callers[id] = reply
            return .waiting(reply)
        } ?? .answered(.failure(StoreError.closedStore))
    }

    /// A result, or a shared result to wait for.
    enum Asked: Sendable {
        case answered(CallerResult<BoxedContent>)
        case waiting(SharedResult<CallerResult<BoxedContent>>)
    }

    /// Removes a caller that was canceled or no longer needs the accepted content.
    func release(_ id: CallerID, of param: BoxedKey) {
        transitionIfLive(param) { key, transition in
            key.machine.callerLeft(id, &transition)
            if key.callers[id] != nil { transition.actions.append(.resume(id, .cancelled)) }
        }
    }

    // MARK: Pages

    /// Requests a page beside a list and waits for the result.
    @usableFromInline
    func requestPage(_ direction: PageDirection, of param: BoxedKey, continueWhenError: Bool) async -> PageRequest {
        switch await ask(param, .page(direction, continueWhenError: continueWhenError)) {
        case .page(let request): return request
        case .cancelled: return .failed(CancellationError())
        case .failure(let error): return .failed(error)
        case .content, .done, .outdated: preconditionFailure("a caller for a page was answered with something else")
        }
    }

    // MARK: Writing

    /// Changes the content, and waits until the change or a newer one is saved, or until the save has failed.
    func write(_ param: BoxedKey, _ change: @Sendable (inout KeyMachine<BoxedContent>, inout Transition) -> Ticket) async {
        if let saving = beginWriting(param, change) { await saving.end() }
    }

    /// Changes the content.
    ///
    /// - Returns: The save to wait for; `nil` if there is nothing to wait for.
    func beginWriting(_ param: BoxedKey, _ change: @Sendable (inout KeyMachine<BoxedContent>, inout Transition) -> Ticket) -> Saving? {
        guard backing != nil else {
            // Without a cacher to call, accepted content counts as saved.
            transition(param) { key, transition in change(&key.machine, &transition) }
            return nil
        }
        let id = nextID()
        let asked = pose(param, id) { machine, id, transition in
            let revision = change(&machine, &transition)
            return machine.callerArrived(id, needing: .saved(revision), &transition)
        }
        guard case .waiting(let reply) = asked else { return nil }
        return Saving(engine: self, param: param, id: id, reply: reply)
    }

    /// A wait for the save of a change.
    @usableFromInline
    struct Saving: Sendable {
        let engine: StoreEngine
        let param: BoxedKey
        let id: CallerID
        let reply: SharedResult<CallerResult<BoxedContent>>

        /// Waits until the change or a newer one is saved, the save has failed, or the task is canceled.
        @usableFromInline
        func end() async {
            if engine.waitsForItself(param) { return engine.release(id, of: param) }
            _ = await reply.value { engine.release(id, of: param) }
        }
    }

    func invalidate(_ param: BoxedKey) async {
        // The invalidation precedes any cancellation, which can only end the wait.
        let id = nextID()
        let answer = await ask(param, id: id, .acceptedContent) { machine, id, transition in
            machine.invalidated(&transition)
            return machine.callerArrived(id, needing: .acceptedContent, &transition)
        }
        defer { release(id, of: param) }
        guard case .done = answer else { return }
        await write(param) { machine, _ in machine.book.revision }
    }

    /// Changes the newest accepted content, if there is any.
    ///
    /// - Returns: Whether there was content to change.
    func update(_ param: BoxedKey, _ transform: (inout BoxedContent) throws -> Void) async rethrows -> Bool {
        let holder = nextID()
        var attempts: [CallerID] = []
        defer {
            if !attempts.isEmpty { endEdits(attempts, of: param) }
            release(holder, of: param)
        }
        guard case .done = await ask(param, .acceptedContent, id: holder) else { return false }
        while true {
            let newest = transition(param) { key, _ in (key.machine.book.held?.record.content, key.machine.book.revision) }
            guard let (held, revision) = newest, var content = held else { return false }
            // User code, so outside the lock. If the content changes in the meantime, the closure runs again on the newer content.
            try transform(&content)
            let (updated, refused, id) = (content, attempts, nextID())
            let asked: Asked? = transition(param) { key, transition in
                guard key.machine.book.revision == revision else { return .answered(.outdated) }
                let newRevision = key.machine.updated(updated, as: .derived, &transition)
                _ = key.editsEnded(refused)
                if let answer = key.machine.callerArrived(id, needing: .savedEdit(newRevision), &transition) { return .answered(answer) }
                let reply = SharedResult<CallerResult<BoxedContent>>()
                key.callers[id] = reply
                return .waiting(reply)
            }
            guard let asked, case .waiting(let reply) = asked else {
                switch asked {
                case .answered(.outdated): continue
                case .answered(.failure(let error as StoreError)) where error.code == .closed: return false
                case .answered, .waiting: return true
                case nil: return false
                }
            }
            if waitsForItself(param) {
                release(id, of: param)
                return true
            }
            // Only a shared cacher refuses a save.
            if shared != nil { attempts.append(id) }
            switch await reply.value(onCancel: { release(id, of: param) }) {
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
        let answer = await ask(param, .acceptedContent, id: holder)
        guard case .done = answer else {
            release(holder, of: param)
            if case .failure(let error) = answer { throw error }
            throw CancellationError()
        }
        let id = transition(param) { key, transition in key.machine.patchStarted(patch, &transition) }
        release(holder, of: param)
        guard let id else { throw StoreError.closedStore }
        do {
            let result = try await perform()
            let response = response(result)
            let row = newestRow(of: param)
            await write(param) { machine, transition in
                if let row { machine.rowBecomesContent(row, &transition) }
                machine.patchSucceeded(id, response, &transition)
                return machine.book.revision
            }
            return result
        } catch {
            transitionIfLive(param) { key, transition in key.machine.patchFailed(id, &transition) }
            throw error
        }
    }
}

extension StoreEngine {
    /// Sets the content of a key; `nil` clears it.
    ///
    /// - Parameters:
    ///   - content: The new content.
    ///   - hash: The hash of the key, which is boxed only if it is not live.
    ///   - isKey: Whether a live key is the wanted one.
    ///   - makeKey: Creates the key.
    /// - Returns: The save to wait for; `nil` without a cacher, so that most callers need no frame to wait in.
    @usableFromInline
    func set(
        _ content: BoxedContent?, ofKeyWithHash hash: Int, where isKey: @Sendable (BoxedKey) -> Bool,
        makeKey: @Sendable () -> BoxedKey
    ) -> Saving? {
        guard backing == nil else { return beginWriting(makeKey()) { machine, transition in machine.updated(content, &transition) } }
        var effects = Effects()
        state.withLock { state in
            guard !state.isClosed,
                let key = state.live.find(HashIndex.hash(ofValue: hash), where: isKey) ?? liveKey(makeKey(), &state, &effects)
            else { return }
            take(key, &state, &effects) { key, transition in _ = key.machine.updated(content, &transition) }
        }
        effects.deliver(onEvent)
        return nil
    }
}
