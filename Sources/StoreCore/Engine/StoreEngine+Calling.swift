// Callers: one-shot questions, each answered exactly once, each cancellable at any moment (C9).

extension StoreEngine {
    /// Asks a key's machine for something and waits for the answer.
    ///
    /// - Returns: The answer; `.cancelled` as soon as the caller's task is.
    func ask(
        _ param: BoxedKey, _ need: CallerNeed, id: CallerID? = nil, isolation: isolated (any Actor)? = #isolation
    ) async -> CallerAnswer<BoxedContent> {
        if Task.isCancelled { return .cancelled }
        let id = id ?? nextID()
        if need.wantsFetch, let scope = FetchScope.active { return await ask(param, need, id: id, within: scope) }
        return await ask(param, id: id) { machine, id, turn in machine.callerArrived(id, needing: need, &turn) }
    }

    /// Tells a key's machine something, and waits for what the telling has registered a caller for.
    ///
    /// - Parameters:
    ///   - param: The key.
    ///   - id: The caller.
    ///   - isolation: The caller's actor, which is not left.
    ///   - begin: Tells the machine, under the lock, and also when the task is cancelled; returns the answer if there is one already.
    func ask(
        _ param: BoxedKey, id: CallerID, isolation: isolated (any Actor)? = #isolation,
        _ begin: @Sendable (inout KeyMachine<BoxedContent>, CallerID, inout Turn) -> CallerAnswer<BoxedContent>?
    ) async -> CallerAnswer<BoxedContent> {
        switch pose(param, id, begin) {
        case .answered(let answer):
            return answer
        case .waiting(let reply):
            return await reply.value { release(id, of: param) }
        }
    }

    /// Poses a question. Most are answered on the spot, and cost neither a continuation nor a place to be found at.
    // Never inlined: what is made here would stand in the frame of `ask`, of which thousands may wait at once.
    @inline(never)
    func pose(
        _ param: BoxedKey, _ id: CallerID,
        _ begin: @Sendable (inout KeyMachine<BoxedContent>, CallerID, inout Turn) -> CallerAnswer<BoxedContent>?
    ) -> Asked {
        turn(param) { key, turn in
            if let answer = begin(&key.machine, id, &turn) { return .answered(answer) }
            let reply = Reply<CallerAnswer<BoxedContent>>()
            key.callers.put(reply, at: id)
            return .waiting(reply)
        }
    }

    /// What became of a question.
    enum Asked: Sendable {
        case answered(CallerAnswer<BoxedContent>)
        case waiting(Reply<CallerAnswer<BoxedContent>>)
    }

    /// Lets a caller go: he was cancelled, or is done with the truth he held on to.
    func release(_ id: CallerID, of param: BoxedKey) {
        turnIfLive(param) { key, turn in
            key.machine.callerLeft(id, &turn)
            if key.callers[id] != nil { turn.actions.append(.answer(id, .cancelled)) }
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

    /// Tells a machine something that makes a new truth, and waits until the cacher has it, or a newer one, or has failed to take it.
    func write(_ param: BoxedKey, _ change: @Sendable (inout KeyMachine<BoxedContent>, inout Turn) -> Ticket) async {
        if let saving = beginWriting(param, change) { await saving.end() }
    }

    /// Tells a machine something that makes a new truth.
    ///
    /// - Returns: Who waits until the cacher has it; `nil` where there is nothing to wait for.
    func beginWriting(_ param: BoxedKey, _ change: @Sendable (inout KeyMachine<BoxedContent>, inout Turn) -> Ticket) -> Saving? {
        guard backing != nil else {
            // Without a cacher that has to be called, what is true counts as saved.
            turn(param) { key, turn in _ = change(&key.machine, &turn) }
            return nil
        }
        let id = nextID()
        let asked = pose(param, id) { machine, id, turn in
            let revision = change(&machine, &turn)
            return machine.callerArrived(id, needing: .saved(revision), &turn)
        }
        guard case .waiting(let reply) = asked else { return nil }
        return Saving(engine: self, param: param, id: id, reply: reply)
    }

    /// Somebody who waits until the cacher has what he has told.
    @usableFromInline
    struct Saving: Sendable {
        let engine: StoreEngine
        let param: BoxedKey
        let id: CallerID
        let reply: Reply<CallerAnswer<BoxedContent>>

        /// Waits until the cacher has it, or a newer one, or has failed to take it, or the task is cancelled.
        @usableFromInline
        func end() async { _ = await reply.value { engine.release(id, of: param) } }
    }

    func invalidate(_ param: BoxedKey) async {
        // The invalidation itself is told before anything can be cancelled; only the waiting may be cut short.
        let id = nextID()
        let answer = await ask(param, id: id) { machine, id, turn in
            machine.invalidated(&turn)
            return machine.callerArrived(id, needing: .truth, &turn)
        }
        defer { release(id, of: param) }
        guard case .done = answer else { return }
        await write(param) { machine, _ in machine.revision }
    }

    /// Changes the newest accepted content; does nothing where there is none.
    ///
    /// - Returns: Whether there was content to change.
    func update(_ param: BoxedKey, _ transform: (inout BoxedContent) throws -> Void) async rethrows -> Bool {
        let holder = nextID()
        defer { release(holder, of: param) }
        guard case .done = await ask(param, .truth, id: holder) else { return false }
        while true {
            let (held, revision) = turn(param) { key, _ in (key.machine.held?.record.content, key.machine.revision) }
            guard var content = held else { return false }
            // User code, so outside the lock; if the truth changes meanwhile, it runs again on the newer one.
            try transform(&content)
            let updated = content
            let answer = await ask(param, id: nextID()) { machine, id, turn in
                guard machine.revision == revision else { return .outdated }
                let newRevision = machine.updated(updated, as: .derived, &turn)
                return machine.callerArrived(id, needing: .savedEdit(newRevision), &turn)
            }
            if case .outdated = answer { continue }
            return true
        }
    }

    /// Shows a patch at once, and settles it when `perform` ends.
    ///
    /// - Parameter response: Finds what the origin responded in what `perform` returned.
    func mutate<Result>(
        _ param: BoxedKey, _ patch: @escaping @Sendable (inout BoxedContent) -> Void, perform: () async throws -> Result,
        response: (Result) -> MutationResponse<BoxedContent> = { _ in .none }
    ) async throws -> Result {
        let holder = nextID()
        guard case .done = await ask(param, .truth, id: holder) else {
            release(holder, of: param)
            throw CancellationError()
        }
        let id = turn(param) { key, turn in key.machine.patchStarted(patch, &turn) }
        release(holder, of: param)
        do {
            let result = try await perform()
            let response = response(result)
            await write(param) { machine, turn in
                machine.patchSucceeded(id, response, &turn)
                return machine.revision
            }
            return result
        } catch {
            turnIfLive(param) { key, turn in key.machine.patchFailed(id, &turn) }
            throw error
        }
    }
}

extension StoreEngine {
    /// Sets the content of a key; `nil` forgets it.
    ///
    /// - Parameters:
    ///   - content: The new content.
    ///   - hash: The hash of the key, which is boxed only if it is not live.
    ///   - isKey: Whether a live key is the wanted one.
    ///   - makeKey: Makes the key.
    /// - Returns: The caller to wait for with a cacher; `nil` without one, so that most callers need no frame to wait in.
    @usableFromInline
    func set(
        _ content: BoxedContent?, ofKeyWithHash hash: Int, where isKey: @Sendable (BoxedKey) -> Bool,
        makeKey: @Sendable () -> BoxedKey
    ) -> Saving? {
        guard backing == nil else { return beginWriting(makeKey()) { machine, turn in machine.updated(content, &turn) } }
        turn({ $0.key(hash: UInt32(truncatingIfNeeded: hash), where: isKey, make: makeKey, rules: rules) }) { key, turn in
            _ = key.machine.updated(content, &turn)
        }
        return nil
    }
}
