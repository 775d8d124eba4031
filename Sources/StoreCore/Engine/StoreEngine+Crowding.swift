// Callers for content, of whom thousands may come at once: the first of a key asks its machine, and all others wait with him.

extension StoreEngine {
    /// Asks for a key's content and waits for the answer.
    ///
    /// One frame beside that of whoever asks, and not a large one: then what a waiting task needs fits into what it has got with its making.
    ///
    /// - Returns: The answer; `.cancelled` as soon as the caller's task is.
    @usableFromInline
    func answer(
        _ key: BoxedKey, from source: GettingFrom, isolation: isolated (any Actor)? = #isolation
    ) async -> CallerAnswer<BoxedContent> {
        if Task.isCancelled { return .cancelled }
        // A store that reports events reports one of each caller, and a fetch that waits for a key waits on its own behalf.
        guard source == .both, onEvent == nil, FetchScope.active == nil else { return await answerAlone(key, source.need) }
        switch poseInCrowd(key) {
        case .answered(let answer):
            return answer
        case .waiting(let crowd, let seat):
            await withTaskCancellationHandler {
                // Without the capture the closure runs on no actor, and each wait of an actor's caller costs two hops.
                _ = isolation
                await suspend { crowd.wait(at: seat, $0) }
            } onCancel: {
                crowd.giveUp(seat)
            }
            return crowd.take(seat)
        }
    }

    // Never inlined: its frame would be part of that of each of thousands, who do not need it.
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
    /// What became of the question of one of many.
    enum AskedInCrowd: Sendable {
        case answered(CallerAnswer<BoxedContent>)
        case waiting(Crowd<CallerAnswer<BoxedContent>>, Crowd<CallerAnswer<BoxedContent>>.Seat)
    }

    /// Joins those who wait for a key's content. The machine need not hear of it: where one waits for content, so must the next, for
    /// whatever would spare him the waiting has answered the first.
    // Never inlined: what is made here would stand in the frame of its caller, of which thousands may wait at once.
    @inline(never)
    func poseInCrowd(_ param: BoxedKey) -> AskedInCrowd {
        let seated = state.withLock { state -> AskedInCrowd? in
            guard let crowd = state.live[param]?.value.crowd else { return nil }
            return .waiting(crowd, crowd.join())
        }
        if let seated { return seated }
        let id = nextID()
        return turn(param) { key, turn in
            // Somebody may have come first since the lock was open.
            if let crowd = key.crowd { return .waiting(crowd, crowd.join()) }
            if let answer = key.machine.callerArrived(id, needing: .content, &turn) { return .answered(answer) }
            // It keeps the store as long as somebody waits, as any caller does.
            let crowd = Crowd<CallerAnswer<BoxedContent>>(id, cancellation: .cancelled) { crowd in self.dissolve(crowd, of: param) }
            key.crowd = crowd
            return .waiting(crowd, crowd.join())
        }
    }

    /// Lets a crowd go whose last member has left.
    func dissolve(_ crowd: Crowd<CallerAnswer<BoxedContent>>, of param: BoxedKey) {
        turnIfLive(param) { key, turn in
            // Legal: it was answered on the way here, or somebody has joined it.
            guard key.crowd === crowd, crowd.count == 0 else { return }
            key.crowd = nil
            key.machine.callerLeft(crowd.id, &turn)
        }
    }
}
