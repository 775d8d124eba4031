#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

// Fetches of the content: at most one of the current epoch at a time (C1).

extension KeyMachine {
    /// Begins a fetch, or joins the running one.
    ///
    /// Only an explicitly requested fetch may reset a list to its first page. Any other fetch keeps the loaded pages, and interrupted page
    /// requests continue after it (C13).
    mutating func startFlight(forceRefresh: Bool, _ transition: inout Transition) {
        if origin.flight != nil {
            if forceRefresh { origin.changeFlight { $0.forceRefresh = true } }
            report(.coalesced, &transition)
            return
        }
        if endsWithoutOrigin(forceRefresh: forceRefresh, &transition) { return }
        if joinStream(forceRefresh: forceRefresh, &transition) { return }
        // A caller for a refresh may still wait to be admitted.
        let forceRefresh = forceRefresh || desk.refreshCallers > 0 || desk.forceRefreshPending
        if forceRefresh { supersedePages(&transition) } else { interruptPages(&transition) }
        let ticket = transition.tickets.next()
        automaticFetchBegins(&transition)
        let resets = forceRefresh && rules.policy.refreshScope == .firstPage
        let pages = resets || !rules.isList ? PageCounts() : loadedPages
        // A validator confirms the initial page alone. A list of several pages is fetched anew as a whole.
        let validator = pages == PageCounts() ? confirmableValidator : nil
        let base = rules.isShared ? base : .none
        let flight = Flight(
            ticket: ticket, forceRefresh: forceRefresh, revalidates: validator != nil, base: base, stamp: transition.stamp(),
            staleDue: staleDueOfFlight(&transition))
        if rules.isLive {
            beginStream(flight, &transition)
            transition.actions.append(.fetch(ticket, .values(after: validator)))
        } else {
            origin.phase = .fetching(flight)
            transition.actions.append(.fetch(ticket, .content(revalidating: validator, pages: pages)))
        }
        transition.publishes = true
    }

    /// Begins an automatic fetch, unless a failure holds it off.
    mutating func startFlightUnlessHeldOff(_ transition: inout Transition) {
        if origin.flight == nil, origin.holdsOff(at: transition.now) { return }
        startFlight(forceRefresh: false, &transition)
    }

    /// Any fetch serves a trigger. Expired content causes one automatic fetch, even if that fails (C10).
    mutating func automaticFetchBegins(_ transition: inout Transition) {
        desk.triggerPending = false
        if let held = book.held, !held.isValid(at: transition.now) { book.held?.refetchesAtDeadline = false }
    }

    /// Cancels the running fetch. Its result is dropped (C5). Returns whether the fetch was requested explicitly.
    @discardableResult
    mutating func dropFlight(_ transition: inout Transition) -> Bool {
        if origin.isStreaming {
            let isExplicit = origin.flight?.forceRefresh == true
            cancelStream(&transition)
            return isExplicit
        }
        guard case .fetching(let dropped) = origin.phase else { return false }
        origin.phase = .idle
        transition.actions.append(.cancel(dropped.ticket))
        transition.publishes = true
        return dropped.forceRefresh
    }

    /// Cancels the running fetch before a change that an older result must not undo. A stream keeps running (L3).
    ///
    /// - Returns: The canceled fetch.
    mutating func dropOvertakenFlight(_ transition: inout Transition) -> Flight? {
        guard case .fetching(let dropped) = origin.phase else { return nil }
        dropFlight(&transition)
        return dropped
    }

    /// The grace period of an unwanted fetch has ended. Cancels the fetch and silently restores the state before it (C9).
    mutating func cancelUnwanted(_ transition: inout Transition) {
        origin.graceEnds = nil
        dropFlight(&transition)
        supersedePages(&transition)
    }

    /// Accepts the result of a fetch, unless the fetch was canceled or replaced in the meantime.
    mutating func fetchFinished(_ ticket: Ticket, _ result: Result<Fetched<Content>, any Error>, _ transition: inout Transition) {
        guard case .fetching(let ended) = origin.phase, ended.ticket == ticket else {
            // Legal: the fetch was canceled or replaced while its result was on the way.
            report(.droppedAsOutdated(.content), &transition)
            return
        }
        origin.phase = .idle
        origin.lastEnded = transition.now
        transition.publishes = true
        switch result {
        case .success(let fetched): flightSucceeded(fetched, of: ended, &transition)
        case .failure(let error): flightFailed(error, &transition)
        }
        endTransition(&transition)
    }

    private mutating func flightSucceeded(_ fetched: Fetched<Content>, of flight: Flight, _ transition: inout Transition) {
        if let content = fetched.content {
            origin.outdateKeys()
            let stamp = fetched.stamp(requestedAt: flight.stamp)
            let isOutdated = stamp < flight.stamp && stamp < book.linked?.value.stamp ?? 0
            // Fetches older than the confirmation of a mutation were canceled, so this result contains the confirmed changes, unless it
            // comes from a cache and is older than the content or the confirmation.
            contentArrived(at: isOutdated ? nil : stamp < flight.stamp ? stamp : .max, &transition)
            // A list is as old as the page that arrived first: a later one does not date it (C25).
            let arrival = fetched.details?.arrival ?? transition.now
            let date = transition.date - arrival.duration(to: transition.now).timeInterval
            transition.noteFetched(stamp, over: book.held?.record)
            accept(
                CacheRecord(content: content, fetchedAt: date, details: fetched.details), at: arrival, .fetched(over: flight.base),
                &transition)
            origin.refetchesAfterMutations = false
        } else {
            guard flight.revalidates, var record = book.held?.record else {
                flightFailed(
                    StoreError(.nothingToConfirm, "fetching: the origin confirmed content without being asked; return it"), &transition)
                return
            }
            // The confirmation says nothing about the other pages of a list (C25).
            let isCut = keepInitialPage(of: &record)
            if isCut { transition.noteChanged(from: book.held?.record.content) }
            record.fetchedAt = transition.date
            // What the confirmation does not state stays as it was (RFC 9111 §3.2, §4.3.4).
            if let validator = fetched.details?.fields.validator {
                (record.freshness, record.validator) = (fetched.freshness, validator)
            } else if fetched.freshness != .unspecified {
                record.freshness = fetched.freshness
            }
            if let next = fetched.details?.fields.nextKey { (record.nextKey, record.guessedEnd) = (next, nil) }
            if let prev = fetched.details?.fields.prevKey { record.prevKey = prev }
            record.isInvalidated = false
            accept(record, keepingContent: !isCut, .fetched(over: flight.base), &transition)
        }
        resumeAfterFetch(&transition)
    }

    /// Resumes the callers that waited for a fetch with its result.
    mutating func resumeAfterFetch(_ transition: inout Transition) {
        // Content with a lifetime of zero is valid for the callers that waited for this fetch (C11).
        resumeWithContent(&transition)
        let revision = book.revision
        for (id, need) in desk.callers where need == .refresh {
            desk.forget(id)
            desk.register(id, .saved(revision))
        }
    }

    mutating func fail(_ error: any Error, _ transition: inout Transition) {
        forgetFailure(into: &transition.leftovers)
        origin.failure = FetchFailure(error: error, holdsUntil: transition.now.advanced(by: max(.zero, rules.policy.errorExpiry)))
    }

    mutating func flightFailed(_ error: any Error, _ transition: inout Transition) {
        fail(error, &transition)
        endInterruptedPages(.failed(error), &transition)
        let contentResult = failureResult(error, &transition)
        resumeCallers(&transition) { need in
            switch need {
            case .content: contentResult
            case .origin: .failure(error)
            case .freshness, .prefetch, .refresh: .done
            case .pageAfterFetch: .page(.notLoadedYet)
            default: nil
            }
        }
    }

    /// Drops the failures of the last fetch and the last pages. The errors are user objects, so they are released later.
    mutating func forgetFailures(into leftovers: inout [any Sendable]) {
        forgetFailure(into: &leftovers)
        sides.forgetFailures(into: &leftovers)
    }

    mutating func forgetFailure(into leftovers: inout [any Sendable]) {
        guard let failure = origin.failure else { return }
        leftovers.append(failure.error)
        origin.failure = nil
    }

    @inline(__always)
    var mirrored: HeldRecord<Content>? {
        // In memory, content that stands in for that of the origin could not be told from it, and would be saved later.
        guard var held = book.held, !held.isStandIn, held.record.freshness.storage == .allowed else { return nil }
        // Readers must see the patches, so the record without them must not be a hit.
        if !book.patches.isEmpty { held.deadline = .distantPast }
        return held
    }
}
