// Callers for content. Thousands may arrive at once: the first caller of a key registers with its machine, and the others join it.

extension StoreEngine {
    /// Requests a key's content and waits for the result.
    ///
    /// The call adds a single small frame to the caller's, so that a waiting task needs no memory beyond its initial allocation.
    ///
    /// - Returns: The result; `.cancelled` as soon as the caller's task is canceled.
    @usableFromInline
    func answer(
        _ key: BoxedKey, from source: GettingFrom, isolation: isolated (any Actor)? = #isolation
    ) async -> CallerAnswer<BoxedContent> {
        if Task.isCancelled { return .cancelled }
        // Events count each caller, and a caller that is a fetch, or a call of the own cacher, must not wait for itself.
        guard source == .both, onEvent == nil, FetchScope.active == nil, !waitsForItself() else {
            return await answerAlone(key, source.need)
        }
        switch joinCallers(key) {
        case .answered(let answer):
            return answer
        case .waiting(let crowd, let ticket):
            // Written out by hand, see ``suspend(isolation:_:onCancel:)``.
            await withTaskCancellationHandler {
                _ = isolation
                await suspend { crowd.wait(ticket, $0) }
            } onCancel: {
                crowd.leave(ticket)
            }
            return crowd.answer ?? .cancelled
        }
    }

    // Not inlined: its frame would enlarge that of each waiting caller, which does not need it.
    @inline(never)
    private func answerAlone(
        _ key: BoxedKey, _ need: CallerNeed, isolation: isolated (any Actor)? = #isolation
    ) async -> CallerAnswer<BoxedContent> {
        await ask(key, need)
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
    /// The outcome of a request for a key's content.
    enum JoinOutcome: Sendable {
        case answered(CallerAnswer<BoxedContent>)
        case waiting(Reply<CallerAnswer<BoxedContent>>, Reply<CallerAnswer<BoxedContent>>.Ticket)
    }

    /// Joins the callers that wait for a key's content.
    ///
    /// The machine knows the crowd as a single caller: if one caller must wait for content, so must the next, because anything that would
    /// give the next caller a result has given it to the first.
    // Not inlined: its temporaries would enlarge the frame of its caller, and thousands of these may wait at once.
    @inline(never)
    func joinCallers(_ param: BoxedKey) -> JoinOutcome {
        let joined = state.withLock { state -> JoinOutcome? in
            guard let crowd = state.live[param]?.value.crowd?.reply else { return nil }
            return .waiting(crowd, crowd.join())
        }
        if let joined { return joined }
        let id = nextID()
        return transition(param) { key, transition in
            // Another caller may have come first since the lock was released.
            if let crowd = key.crowd?.reply { return .waiting(crowd, crowd.join()) }
            if let answer = key.machine.callerArrived(id, needing: .content, &transition) { return .answered(answer) }
            // Retains the engine while a caller waits, as any caller does.
            let crowd = Reply<CallerAnswer<BoxedContent>> { crowd in self.dissolve(crowd, of: param) }
            key.crowd = (id, crowd)
            return .waiting(crowd, crowd.join())
        } ?? .answered(.failure(StoreError.closedStore))
    }

    /// Removes a crowd after its last caller has left.
    func dissolve(_ crowd: Reply<CallerAnswer<BoxedContent>>, of param: BoxedKey) {
        transitionIfLive(param) { key, transition in
            // The crowd may have received its result meanwhile, or another caller may have joined it.
            guard let (id, reply) = key.crowd, reply === crowd, crowd.count == 0 else { return }
            key.crowd = nil
            key.machine.callerLeft(id, &transition)
        }
    }
}
