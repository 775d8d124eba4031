// Fetches of the content itself: at most one of the present epoch at a time (C1).

extension KeyMachine {
    /// Begins a fetch, or joins the one that runs.
    ///
    /// Only a fetch that was asked for by name may reset a list to its first page. Any other keeps the loaded pages, and requests for pages
    /// go on after it (C13).
    mutating func startFlight(explicit: Bool, _ turn: inout Turn) {
        if let running = flight {
            flight?.isExplicit = running.isExplicit || explicit
            report(.coalesced, &turn)
            return
        }
        // A caller that is still to be admitted asks by name, too.
        let explicit = explicit || refreshCallers > 0 || forcePending
        if explicit { supersedePages(&turn) } else { interruptPages(&turn) }
        let ticket = turn.tickets.next()
        triggerPending = false
        // Expired content has had its fetch now, however that ends (C10).
        if let held, !held.isValid(at: turn.now) { refetchesAtDeadline = false }
        let resets = explicit && rules.policy.refreshScope == .firstPage
        let pages = resets || !rules.isList ? PageCounts() : held?.record.pageCounts ?? PageCounts()
        // Several pages are one answer only if all of them are fetched anew, so the first one's validator is of no use then.
        let validator = pages == PageCounts() ? held?.record.validator : nil
        let base = rules.isShared ? base : .none
        flight = Flight(ticket: ticket, isExplicit: explicit, revalidates: validator != nil, base: base)
        turn.actions.append(.fetch(ticket, .content(revalidating: validator, pages: pages)))
        turn.publishes = true
    }

    /// Begins an automatic fetch unless a failure holds it off.
    mutating func startFlightUnlessHeldOff(_ turn: inout Turn) {
        if flight == nil, holdsOff(at: turn.now) { return }
        startFlight(explicit: false, &turn)
    }

    /// Gives the running fetch up; its result will go nowhere (C5).
    ///
    /// - Returns: Whether one was running that somebody had asked for in so many words.
    @discardableResult
    mutating func dropFlight(_ turn: inout Turn) -> Bool {
        guard let dropped = flight else { return false }
        flight = nil
        turn.actions.append(.cancel(dropped.ticket))
        turn.publishes = true
        return dropped.isExplicit
    }

    /// Nobody came back within the grace period: the state before the fetch is put back, silently (C9).
    mutating func cancelUnwanted(_ turn: inout Turn) {
        graceEnds = nil
        dropFlight(&turn)
        supersedePages(&turn)
    }

    /// A fetch has ended.
    mutating func fetchFinished(_ ticket: Ticket, _ result: Result<Fetched<Content>, any Error>, _ turn: inout Turn) {
        guard let ended = flight, ended.ticket == ticket else {
            // Legal: it was cancelled or overtaken while its last word was on the way.
            report(.droppedAsOutdated(.content), &turn)
            return
        }
        flight = nil
        lastFetchEnded = turn.now
        turn.publishes = true
        switch result {
        case .success(let fetched): flightSucceeded(fetched, of: ended, &turn)
        case .failure(let error): flightFailed(error, &turn)
        }
        endTurn(&turn)
    }

    private mutating func flightSucceeded(_ fetched: Fetched<Content>, of flight: Flight, _ turn: inout Turn) {
        if let content = fetched.content {
            if pendingKeys != nil { pendingKeys = .ignore }
            // A fetch that had begun before a mutation was confirmed is gone: this one brings what that mutation has done.
            discardPatches(&turn) { $0.isConfirmed }
            accept(CacheRecord(content: content, fetchedAt: turn.date, details: fetched.details), .fetched(over: flight.base), &turn)
            owesFetch = false
        } else {
            guard flight.revalidates, var record = held?.record else {
                flightFailed(
                    StoreError(.nothingToConfirm, "fetching: the origin confirmed content that it was not asked to confirm"), &turn)
                return
            }
            record.fetchedAt = turn.date
            record.freshness = fetched.freshness
            record.isInvalidated = false
            accept(record, keepingContent: true, .fetched(over: flight.base), &turn)
        }
        let (content, revision) = (self.content, self.revision)
        // Zero expiry is valid for those who waited for this fetch (C11).
        answerCallers(&turn) { need in
            switch need {
            case .content, .origin: content.map { .content($0) }
            case .freshness, .prefetch: .done
            case .pageAfterFetch: .page(.notLoadedYet)
            default: nil
            }
        }
        for (id, need) in callers where need == .refresh {
            forget(id)
            register(id, .saved(revision))
        }
    }

    private mutating func flightFailed(_ error: any Error, _ turn: inout Turn) {
        forgetFailure(into: &turn.leftovers)
        failure = Failure(error: error, holdsUntil: turn.now.advanced(by: max(.zero, rules.policy.errorExpiry)))
        failInterruptedPages(error, &turn)
        let contentAnswer = failureAnswer(error, &turn)
        answerCallers(&turn) { need in
            switch need {
            case .content: contentAnswer
            case .origin: .failure(error)
            case .freshness, .prefetch, .refresh: .done
            case .pageAfterFetch: .page(.notLoadedYet)
            default: nil
            }
        }
    }

    /// Makes a record the truth (C6): from here on every reader gets it.
    mutating func accept(
        _ record: consuming CacheRecord<Content>, keepingContent: Bool = false, _ change: ContentChange, _ turn: inout Turn
    ) {
        epoch = turn.tickets.next()
        var accepted = HeldRecord(record, expiry: rules.expiry, now: turn.now)
        refetchesAtDeadline = rules.policy.revalidatesOnExpiry && accepted.expires(after: turn.now)
        if held == nil {
            held = accepted
        } else {
            // Exchanged and not set, so that neither record is copied on the way.
            held?.exchange(with: &accepted)
            turn.discarded.append((consume accepted).record.content)
        }
        if keepingContent {
            forgetFailure(into: &turn.leftovers)
        } else {
            contentNumber += 1
            if mergeIndex != nil { mergeIndex = nil }
            forgetFailures(into: &turn.leftovers)
        }
        truthChanged(change, &turn)
    }

    /// Forgets what the last fetch failed with, and what the last pages did; the errors are the user's, and so not released here.
    mutating func forgetFailures(into leftovers: inout [any Sendable]) {
        forgetFailure(into: &leftovers)
        next.forgetFailure(into: &leftovers)
        prev.forgetFailure(into: &leftovers)
    }

    mutating func forgetFailure(into leftovers: inout [any Sendable]) {
        guard let failure else { return }
        leftovers.append(failure.error)
        self.failure = nil
    }

    /// The truth has a new number: patches go over it anew, the memory in front mirrors it, the cacher has to catch up.
    mutating func truthChanged(_ change: ContentChange, _ turn: inout Turn) {
        note(change)
        revision = turn.tickets.next()
        rebuildOverlay(&turn)
        mirror(&turn)
        turn.publishes = true
    }

    /// Lets the memory in front hold what a reader may get without asking the machine.
    func mirror(_ turn: inout Turn) {
        if rules.hasFront { turn.mirrors = true }
    }

    /// What the memory in front is to hold; `nil` for nothing.
    @inline(__always)
    var mirrored: HeldRecord<Content>? {
        guard var held, held.record.freshness.storage == .allowed else { return nil }
        // With patches over it, the record alone is not what a reader should get.
        if !patches.isEmpty { held.deadline = .distantPast }
        return held
    }
}
