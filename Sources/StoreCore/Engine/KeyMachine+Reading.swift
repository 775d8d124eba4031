// Observers, callers, and the read of the cache that comes before everything else.

extension KeyMachine {
    // MARK: Observers

    /// An observer has come; one that `forces` wants a fetch whatever the cache holds.
    mutating func observerJoined(forces: Bool, _ turn: inout Turn) {
        observers += 1
        if isRead {
            welcomeObserver(forces: forces, &turn)
        } else {
            forcePending = forcePending || forces
            beginReading(&turn)
        }
        endTurn(&turn)
    }

    mutating func observerLeft(_ turn: inout Turn) {
        observers -= 1
        endTurn(&turn)
    }

    private mutating func welcomeObserver(forces: Bool, _ turn: inout Turn) {
        if forces {
            startFlight(explicit: true, &turn)
        } else if let held, held.isValid(at: turn.now), failure == nil {
            report(.hit, &turn)
        } else {
            report(.miss, &turn)
            startFlightUnlessHeldOff(&turn)
        }
    }

    // MARK: Callers

    /// A caller has come.
    ///
    /// - Returns: The answer where there is one already; otherwise he is registered and will be answered by an action.
    mutating func callerArrived(_ id: CallerID, needing need: CallerNeed, _ turn: inout Turn) -> CallerAnswer<Content>? {
        var answer: CallerAnswer<Content>?
        if isRead || need.isSavedNeed || need == .allSaved {
            answer = admit(id, need, &turn)
        } else {
            register(id, need)
            beginReading(&turn)
        }
        endTurn(&turn)
        return answer
    }

    /// A caller has gone: cancelled, or done with the truth he held on to. Gone already where his answer was under way.
    mutating func callerLeft(_ id: CallerID, _ turn: inout Turn) {
        forget(id)
        endTurn(&turn)
    }

    /// Answers a caller at once or registers him and starts what he waits for; the truth is known.
    private mutating func admit(_ id: CallerID, _ need: CallerNeed, _ turn: inout Turn) -> CallerAnswer<Content>? {
        switch need {
        case .prefetch where callers.contains { $0.value == .prefetch }:
            // A key that is given twice is fetched once, and takes one place of the queue.
            return .done
        case .content, .freshness, .prefetch:
            if let answer = answerFromTruth(need, &turn) { return answer }
            register(id, need)
            startFlight(explicit: false, &turn)
        case .cached:
            return cachedAnswer(&turn)
        case .origin:
            register(id, need)
            startFlight(explicit: false, &turn)
        case .refresh:
            register(id, need)
            startFlight(explicit: true, &turn)
        case .truth:
            register(id, need)
            return .done
        case .saved(let revision), .savedEdit(let revision):
            if settledRevision >= revision { return .done }
            register(id, need)
        case .allSaved:
            return admitSaver(id, &turn)
        case .page(let direction, let continueWhenError):
            return admitPage(id, direction, continueWhenError: continueWhenError, &turn)
        case .pageAfterFetch, .joinedPage:
            register(id, need)
        }
        return nil
    }

    /// The answer that needs no waiting: valid content, content that a policy lets be served, or a failure that is held off (C3, C12).
    private mutating func answerFromTruth(_ need: CallerNeed, _ turn: inout Turn) -> CallerAnswer<Content>? {
        // `validate()` asks anew after a failure: valid content alone would leave the error on screen.
        if let held, let content, held.isValid(at: turn.now), need != .freshness || failure == nil {
            report(.hit, &turn)
            return need == .content ? .content(content) : .done
        }
        report(.miss, &turn)
        // A refusal that is known closes this window too: the caller waits for what the origin says now.
        if need == .content, failure?.error.allowsStaleContent ?? true, let held, let content,
            held.isUsable(within: held.record.freshness.staleWhileRevalidate ?? rules.policy.staleWhileRevalidate, at: turn.now)
        {
            startFlightUnlessHeldOff(&turn)
            // Nobody waits for it, but cancelling it would leave the content stale for as long as the origin is slow.
            flight?.isPromised = true
            return .content(content)
        }
        if flight == nil, let failure, holdsOff(at: turn.now) {
            return need == .content ? failureAnswer(failure.error, &turn) : .done
        }
        return nil
    }

    private func cachedAnswer(_ turn: inout Turn) -> CallerAnswer<Content> {
        if let held, let content, held.isValid(at: turn.now) {
            report(.hit, &turn)
            return .content(content)
        }
        report(.miss, &turn)
        let message =
            content == nil
            ? "reading the cache: there is no content; fetch it with .both or .origin"
            : "reading the cache: the content has expired; fetch it with .both or .origin, or take staleContent"
        return .failure(StoreError(.noValidCache, message, staleContent: content))
    }

    /// What a `.content` caller gets when fetching failed: the stale content where a policy allows it, else the error (RFC 5861 §4).
    func failureAnswer(_ error: any Error, _ turn: inout Turn) -> CallerAnswer<Content> {
        if let held, let content {
            let window = held.record.freshness.staleIfError ?? rules.policy.staleIfError
            // A refresh may have been asked for while the content is still valid: then there is nothing stale about it.
            if held.isValid(at: turn.now) { return .content(content) }
            // A refusal must reach the caller: stale content would hide that access to it was withdrawn.
            if error.allowsStaleContent, held.isUsable(within: window, at: turn.now) { return .content(content) }
        }
        return .failure(error)
    }

    // MARK: The cache read

    mutating func beginReading(_ turn: inout Turn) {
        guard reading == nil else { return }
        let ticket = turn.tickets.next()
        reading = ticket
        turn.actions.append(.read(ticket))
    }

    /// The cacher has answered; what it says counts only while nothing newer is known.
    mutating func cacheReadFinished(_ ticket: Ticket, _ result: Result<HeldRecord<Content>?, any Error>, _ turn: inout Turn) {
        guard reading == ticket else { return }
        reading = nil
        if case .failure(let error) = result { report(.cacherFault(.load, error), &turn) }
        if !isRead {
            switch result {
            case .success(let record): held = record
            case .failure(let error):
                failCacheCallers(error, &turn)
                // A record that could not be read cannot be dated expired: as long as it may come back, the key must stay to deny it.
                if invalidatePending { noteFailedSave(.invalidation, &turn) }
            }
            becomeRead(&turn)
            readAgain(&turn)
        } else if readAgainFinished(result, &turn) {
            // The read was for a change of another user.
        } else if pendingKeys != nil {
            // A read that failed has no keys to keep.
            adoptKeys(of: (try? result.get())?.record, &turn)
        }
        endTurn(&turn)
    }

    /// `.cache` asks for the cache alone, so its failure is the answer; so it is for those who wait for an invalidation to be saved.
    private mutating func failCacheCallers(_ error: any Error, _ turn: inout Turn) {
        answerCallers(&turn) { need in need == .cached || need == .allSaved ? .failure(error) : nil }
    }

    /// The truth is known from here on: everybody who waited for it gets what he came for.
    mutating func becomeRead(_ turn: inout Turn) {
        isRead = true
        refetchesAtDeadline = rules.policy.revalidatesOnExpiry && held?.expires(after: turn.now) == true
        if held != nil { mirror(&turn) }
        if invalidatePending {
            invalidatePending = false
            applyInvalidation(&turn)
        }
        if observers > 0 {
            welcomeObserver(forces: forcePending, &turn)
            forcePending = false
            turn.publishes = true
        }
        readmitCallers(&turn)
    }

    /// Lets callers who came before the truth was known try again, in the order in which they came.
    ///
    /// Those who want a page come last: a fetch of the list that another one starts would supersede it at once.
    mutating func readmitCallers(_ turn: inout Turn) {
        guard !callers.isEmpty else { return }
        let inOrder = callers.sorted { ($0.value.isPageNeed ? 1 : 0, $0.number) < ($1.value.isPageNeed ? 1 : 0, $1.number) }
        for (id, need) in inOrder where !need.isSavedNeed {
            forget(id)
            if let answer = admit(id, need, &turn) { turn.actions.append(.answer(id, answer)) }
        }
    }

    // MARK: The register

    mutating func register(_ id: CallerID, _ need: CallerNeed) {
        callers.put(need, at: id)
        if need.wantsFetch { fetchCallers += 1 }
        if need == .refresh { refreshCallers += 1 }
    }

    mutating func forget(_ id: CallerID) {
        guard let need = callers.remove(id) else { return }
        if need.wantsFetch { fetchCallers -= 1 }
        if need == .refresh { refreshCallers -= 1 }
    }

    /// Answers every caller whose need `choose` knows an answer to.
    mutating func answerCallers(_ turn: inout Turn, _ choose: (CallerNeed) -> CallerAnswer<Content>?) {
        var (wantedFetch, wantedRefresh) = (0, 0)
        callers.removeAll { id, need in
            guard let answer = choose(need) else { return false }
            turn.actions.append(.answer(id, answer))
            if need.wantsFetch { wantedFetch += 1 }
            if need == .refresh { wantedRefresh += 1 }
            return true
        }
        fetchCallers -= wantedFetch
        refreshCallers -= wantedRefresh
    }
}

extension CallerNeed {
    /// Whether the caller waits for the cacher alone, and so needs no truth.
    var isSavedNeed: Bool {
        switch self {
        case .saved, .savedEdit: true
        default: false
        }
    }

    /// Whether the caller asks for a page and nobody knows yet what the list is like.
    var isPageNeed: Bool {
        if case .page = self { true } else { false }
    }
}

extension Error {
    /// Whether stale content may take the place of the error; an error without advice leaves it to the windows alone.
    fileprivate var allowsStaleContent: Bool { (self as? any FailureAdvising)?.allowsStale ?? true }
}
