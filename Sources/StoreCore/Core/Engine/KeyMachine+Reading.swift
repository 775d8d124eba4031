// Observers, callers, and the read of the cache that precedes everything else.

extension KeyMachine {
    // MARK: Observers

    /// Adds an observer; with `forceRefresh` it wants a fetch regardless of the cache.
    mutating func observerJoined(forceRefresh: Bool, _ transition: inout Transition) {
        desk.observers += 1
        if origin.isKnown {
            welcomeObserver(forceRefresh: forceRefresh, &transition)
        } else {
            desk.forceRefreshPending = desk.forceRefreshPending || forceRefresh
            beginReading(&transition)
        }
        endTransition(&transition)
    }

    mutating func observerLeft(_ transition: inout Transition) {
        desk.observers -= 1
        endTransition(&transition)
    }

    private mutating func welcomeObserver(forceRefresh: Bool, _ transition: inout Transition) {
        // The stream of an observed key runs even if the content is valid, unless it has ended normally (L4).
        let beginsStream = rules.isLive && !origin.isStreaming && book.held?.record.details?.fields.isComplete != true
        if forceRefresh {
            startFlight(forceRefresh: true, &transition)
        } else if let held = book.held, held.isValid(at: transition.now), origin.failure == nil, !beginsStream {
            report(.hit, &transition)
        } else {
            report(.miss, &transition)
            startFlightUnlessHeldOff(&transition)
        }
    }

    // MARK: Callers

    /// A caller has arrived. Returns the result, if there is one already. Otherwise the caller is registered, and an action resumes it.
    mutating func callerArrived(_ id: CallerID, needing need: CallerNeed, _ transition: inout Transition) -> CallerResult<Content>? {
        var result: CallerResult<Content>?
        if origin.isKnown || need.waitsForSave {
            result = admit(id, need, &transition)
        } else {
            desk.register(id, need)
            beginReading(&transition)
        }
        endTransition(&transition)
        return result
    }

    /// A caller has left: it was canceled, or no longer needs the accepted content. It may have been resumed already.
    mutating func callerLeft(_ id: CallerID, _ transition: inout Transition) {
        if rules.isShared, case .savedEdit(let awaited) = desk.callers[id] { saving.leaveUnattended(awaited) }
        desk.forget(id)
        endTransition(&transition)
    }

    /// Returns a caller's result, or registers the caller and starts the work that it waits for. The accepted content is known.
    private mutating func admit(_ id: CallerID, _ need: CallerNeed, _ transition: inout Transition) -> CallerResult<Content>? {
        switch need {
        case .prefetch where desk.callers.contains { $0.value == .prefetch }:
            // A key that is prefetched twice is fetched once and takes one place in the queue.
            return .done
        case .content, .freshness, .prefetch:
            if let result = resultFromAccepted(need, &transition) { return result }
            desk.register(id, need)
            startFlight(forceRefresh: false, &transition)
        case .cached:
            return cachedResult(&transition)
        case .origin:
            // The newest value of a connected stream is what the origin has.
            if origin.isConnected, let content { return .content(content) }
            desk.register(id, need)
            startFlight(forceRefresh: false, &transition)
        case .refresh:
            desk.register(id, need)
            startFlight(forceRefresh: true, &transition)
        case .acceptedContent:
            desk.register(id, need)
            return desk.invalidatePending ? nil : .done
        case .saved(let revision), .savedEdit(let revision):
            if saving.tried >= revision { return .done }
            desk.register(id, need)
        case .allSaved:
            return admitSaver(id, &transition)
        case .page(let direction, let continueWhenError):
            return admitPage(id, direction, continueWhenError: continueWhenError, &transition)
        case .pageAfterFetch, .joinedPage:
            desk.register(id, need)
        }
        return nil
    }

    /// The result that needs no wait: valid content, stale content that a policy allows, or a failure that holds off fetches (C3, C12).
    private mutating func resultFromAccepted(_ need: CallerNeed, _ transition: inout Transition) -> CallerResult<Content>? {
        // `validate()` fetches again after a failure: valid content alone would leave the error on screen.
        if let held = book.held, let content, held.isValid(at: transition.now), need != .freshness || origin.failure == nil {
            report(.hit, &transition)
            return need == .content ? .content(content) : .done
        }
        report(.miss, &transition)
        if need == .content, let content = staleContent(&transition) {
            startFlightUnlessHeldOff(&transition)
            // No caller waits for the fetch, but canceling it would keep the content stale as long as the origin is slow.
            origin.changeFlight { $0.isPromised = true }
            return .content(content)
        }
        guard origin.flight == nil, let failure = origin.failure else { return nil }
        // Callers wait for the next connection of a stream (L4).
        if origin.isStreaming { return need == .content ? staleResult(failure.error, &transition) : nil }
        guard origin.holdsOff(at: transition.now) else { return nil }
        return need == .content ? failureResult(failure.error, &transition) : .done
    }

    /// The expired content for a caller that need not wait for a fetch: within a window, or however old behind a slow fetch (C3, C26).
    private func staleContent(_ transition: inout Transition) -> Content? {
        // A known refusal by the origin closes this window, too: the caller waits for the origin's current response.
        guard origin.failure?.error.allowsStaleContent ?? true, let held = book.held, let content else { return nil }
        let slowFrom = origin.staleDue ?? .distantFuture
        let window: Duration = slowFrom <= transition.now ? .forever : rules.policy.staleWhileRevalidate
        return held.isUsable(within: held.record.freshness.staleWhileRevalidate ?? window, at: transition.now) ? content : nil
    }

    /// The time at which the callers of a fetch that begins now get stale content.
    func staleDueOfFlight(_ transition: inout Transition) -> MonotonicInstant {
        guard let limit = rules.policy.staleAfter else { return .distantFuture }
        return transition.now.advanced(by: max(.zero, limit))
    }

    /// The running fetch has taken so long that its callers get stale content, if there is any. The fetch goes on (C26).
    mutating func serveStaleContent(_ transition: inout Transition) {
        origin.changeFlight { $0.staleDue = .distantPast }
        origin.changeStream { if $0.staleDue != nil { $0.staleDue = .distantPast } }
        guard let content = staleContent(&transition) else { return }
        var isServed = false
        resumeCallers(&transition) { need in
            guard need == .content else { return nil }
            isServed = true
            return .content(content)
        }
        // The fetch runs to its end, as one that began behind stale content does.
        if isServed { origin.changeFlight { $0.isPromised = true } }
    }

    private func cachedResult(_ transition: inout Transition) -> CallerResult<Content> {
        if let held = book.held, let content, held.isValid(at: transition.now) {
            report(.hit, &transition)
            return .content(content)
        }
        report(.miss, &transition)
        let message =
            content == nil
            ? "reading the cache: there is no content; fetch it with .both or .origin"
            : "reading the cache: the content has expired; fetch it with .both or .origin, or take staleContent"
        return .failure(StoreError(.noValidCache, message, staleContent: content))
    }

    /// The result of a `.content` caller after a failed fetch: stale content if a policy allows it, otherwise the error (RFC 5861 §4).
    func failureResult(_ error: any Error, _ transition: inout Transition) -> CallerResult<Content> {
        staleResult(error, &transition) ?? .failure(error)
    }

    /// The content that a policy allows in place of an error.
    func staleResult(_ error: any Error, _ transition: inout Transition) -> CallerResult<Content>? {
        if let held = book.held, let content {
            let window = held.record.freshness.staleIfError ?? rules.policy.staleIfError
            // A refresh may have been requested while the content was valid.
            if held.isValid(at: transition.now) { return .content(content) }
            // A refusal must reach the caller: stale content would hide that access was withdrawn.
            if error.allowsStaleContent, held.isUsable(within: window, at: transition.now) { return .content(content) }
        }
        return nil
    }

    // MARK: The cache read

    /// Memory has been read. Without a cacher behind it, no other record can exist.
    mutating func memoryRead(_ found: HeldRecord<Content>?, now: @autoclosure () -> MonotonicInstant) {
        guard found != nil || !rules.hasBacking else { return }
        origin.becomeKnown()
        book.held = found
        if let details = found?.record.details { book.foldedCommands = details.fields.commands ?? [] }
        let refetches = rules.policy.revalidatesOnExpiry && found?.expires(after: now()) == true
        book.held?.refetchesAtDeadline = refetches
        desk.shown = sight
    }

    mutating func beginReading(_ transition: inout Transition) {
        guard origin.reading == nil else { return }
        let ticket = transition.tickets.next()
        origin.beginReading(ticket)
        transition.actions.append(.read(ticket))
    }

    /// The cacher has loaded the record, which counts only if nothing newer is known.
    mutating func cacheReadFinished(_ ticket: Ticket, _ result: Result<HeldRecord<Content>?, any Error>, _ transition: inout Transition) {
        guard let purpose = origin.endReading(ticket) else { return }
        if case .failure(let error) = result, !(error is UnacceptedVersion) { report(.cacherFault(.load, error), &transition) }
        switch purpose {
        case .content:
            switch result {
            case .success(let record):
                (book.held, origin.isUnreadable) = (record, false)
                saving.elsewhere.isAbsent = rules.isShared && record == nil
            case .failure(is UnacceptedVersion): origin.isUnreadable = false
            case .failure(let error):
                origin.isUnreadable = true
                // These callers depend on the cacher alone.
                resumeCallers(&transition) { need in need == .cached || need == .allSaved ? .failure(error) : nil }
                if desk.invalidatePending { noteUnsavedChange(.invalidation, &transition) }
            }
            becomeRead(&transition)
            readAgain(&transition)
        case .newerRecord(let revision, let isOutdated):
            newerRecordRead(revision, isOutdated: isOutdated, result, &transition)
        case .pageKeys(let isOutdated):
            // A failed read has no keys to keep.
            adoptKeys(of: isOutdated ? nil : (try? result.get())?.record, &transition)
            readAgain(&transition)
        case .nothing:
            // Changes of others may have been announced since the read began.
            readAgain(&transition)
        }
        endTransition(&transition)
        if rules.inheritsContext, origin.reading == nil { transition.actions.append(.readEnded) }
    }

    /// A record that could not be read cannot be invalidated. The key stays live, so that the record is not served when it can be read again.
    mutating func invalidationFailed(_ error: any Error, _ transition: inout Transition) {
        noteUnsavedChange(.invalidation, &transition)
        resumeCallers(&transition) { need in need == .allSaved ? .failure(error) : nil }
        settleInvalidation(&transition)
    }

    /// An invalidation no longer waits for a record: admits the callers that have waited for it.
    mutating func settleInvalidation(_ transition: inout Transition) {
        desk.invalidatePending = false
        guard origin.isKnown else { return }
        for (id, need) in desk.callers where need == .acceptedContent || need == .allSaved { readmit(id, need, &transition) }
    }

    /// The accepted content is known from now on: resumes the callers and serves the observers that waited for it.
    mutating func becomeRead(_ transition: inout Transition) {
        origin.becomeKnown()
        if rules.policy.revalidatesOnExpiry, let held = book.held { book.held?.refetchesAtDeadline = held.expires(after: transition.now) }
        if transition.links != nil { linkRead(&transition) }
        noteArrivalOfRecord()
        if !book.patches.isEmpty || book.held?.record.details != nil { reconcileCommands(&transition) }
        if book.held != nil { mirror(&transition) }
        if desk.invalidatePending {
            desk.invalidatePending = false
            applyInvalidation(&transition)
        }
        if desk.observers > 0 {
            welcomeObserver(forceRefresh: desk.forceRefreshPending, &transition)
            desk.forceRefreshPending = false
            transition.publishes = true
        }
        readmitCallers(&transition)
    }

    /// Admits the callers that came before the accepted content was known, oldest first.
    ///
    /// Callers for a page come last, because a fetch of the list that another caller starts would supersede the page at once.
    mutating func readmitCallers(_ transition: inout Transition) {
        guard !desk.callers.isEmpty else { return }
        let inOrder = desk.callers.sorted { ($0.value.isPageNeed ? 1 : 0, $0.key) < ($1.value.isPageNeed ? 1 : 0, $1.key) }
        for (id, need) in inOrder where !need.isSavedNeed { readmit(id, need, &transition) }
    }

    private mutating func readmit(_ id: CallerID, _ need: CallerNeed, _ transition: inout Transition) {
        desk.forget(id)
        if let result = admit(id, need, &transition) { transition.actions.append(.resume(id, result)) }
    }

    // MARK: Results

    mutating func resumeCallers(_ transition: inout Transition, _ choose: (CallerNeed) -> CallerResult<Content>?) {
        for (id, need) in desk.callers {
            guard let result = choose(need) else { continue }
            transition.actions.append(.resume(id, result))
            desk.forget(id)
        }
    }
}

extension Error {
    /// Whether stale content may replace the error. An error without advice leaves that to the windows.
    fileprivate var allowsStaleContent: Bool { (self as? any FailureAdvising)?.allowsStale ?? true }
}
