// Callers for content. Thousands may arrive at once: the first caller of a key registers with its machine, and the others join it.

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
    /// The outcome of a request for a key's content.
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
        let joined = state.withLock { state -> JoinOutcome? in
            guard let callerGroup = state.live[param]?.value.callerGroup?.result else { return nil }
            return .waiting(callerGroup, callerGroup.join())
        }
        if let joined { return joined }
        let id = nextID()
        return transition(param) { key, transition in
            // Another caller may have come first since the lock was released.
            if let callerGroup = key.callerGroup?.result { return .waiting(callerGroup, callerGroup.join()) }
            if let result = key.machine.callerArrived(id, needing: .content, &transition) { return .immediate(result) }
            // Retains the engine while a caller waits, as any caller does.
            let callerGroup = SharedResult<CallerResult<BoxedContent>> { callerGroup in self.dissolve(callerGroup, of: param) }
            key.callerGroup = (id, callerGroup)
            return .waiting(callerGroup, callerGroup.join())
        } ?? .immediate(.failure(StoreError.closedStore))
    }

    /// Removes a group after its last caller has left.
    func dissolve(_ callerGroup: SharedResult<CallerResult<BoxedContent>>, of param: BoxedKey) {
        transitionIfLive(param) { key, transition in
            // The group may have received its result meanwhile, or another caller may have joined it.
            guard let (id, result) = key.callerGroup, result === callerGroup, callerGroup.count == 0 else { return }
            key.callerGroup = nil
            key.machine.callerLeft(id, &transition)
        }
    }
}
