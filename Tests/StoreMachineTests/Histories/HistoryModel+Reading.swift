import StoreCore

// Observers, callers, fetches and pages.

extension HistoryModel {
    // MARK: Observers

    mutating func join(_ key: Int, forces: Bool) {
        self[key].observers += 1
        if self[key].isRead {
            welcome(key, forces: forces)
        } else {
            self[key].isForced = self[key].isForced || forces
            beginReading(key)
        }
        endTransition(key)
    }

    mutating func leave(_ key: Int) {
        self[key].observers -= 1
        endTransition(key)
    }

    private mutating func welcome(_ key: Int, forces: Bool) {
        if forces { return startFlight(key, explicit: true) }
        if !isValid(key) || self[key].heldOffUntil != nil { startFlightUnlessHeldOff(key) }
    }

    // MARK: Callers

    mutating func arrive(_ id: Int, _ key: Int, _ need: Need) {
        if self[key].isRead {
            admit(id, key, need)
        } else {
            self[key].callers.append(Caller(id: id, need: need))
            beginReading(key)
        }
        endTransition(key)
    }

    mutating func admit(_ id: Int, _ key: Int, _ need: Need) {
        switch need {
        case .prefetch where self[key].callers.contains { $0.need == .prefetch }: results[id] = "done"
        case .content, .freshness, .prefetch: admitReader(id, key, need)
        case .cached: results[id] = isValid(key) ? text(key) : "StoreError"
        case .origin, .refresh: wait(id, key, need, explicit: need == .refresh)
        case .page(let direction, let continues): admitPage(id, key, direction, continues)
        case .acceptedContent(let change): resumed.append((id, change, key))
        case .allSaved: admitSaver(id, key)
        case .saved(let revision, let result):
            if self[key].settled >= revision { results[id] = result } else { self[key].callers.append(Caller(id: id, need: need)) }
        case .joined, .pageAfterFetch, .kept: self[key].callers.append(Caller(id: id, need: need))
        }
    }

    private mutating func admitReader(_ id: Int, _ key: Int, _ need: Need) {
        if isValid(key), need != .freshness || self[key].heldOffUntil == nil { return results[id] = need == .content ? text(key) : "done" }
        if need == .content, isUsable(key, within: rules.staleWhileRevalidate) {
            startFlightUnlessHeldOff(key)
            self[key].flight?.isPromised = true
            results[id] = text(key)
        } else if self[key].flight == nil, isHeldOff(key) {
            results[id] = need == .content ? textAfterFailure(key) : "done"
        } else {
            wait(id, key, need, explicit: false)
        }
    }

    private mutating func wait(_ id: Int, _ key: Int, _ need: Need, explicit: Bool) {
        self[key].callers.append(Caller(id: id, need: need))
        startFlight(key, explicit: explicit)
    }

    private mutating func admitPage(_ id: Int, _ key: Int, _ direction: PageDirection, _ continues: Bool) {
        let (one, side) = (self[key], self[key].sides[direction] ?? Side())
        if one.pendingKeys != nil { return self[key].callers.append(Caller(id: id, need: .page(direction, continues: continues))) }
        if one.flight == nil, one.heldOffUntil != nil, !continues { return results[id] = "failed" }
        guard one.flight == nil, one.heldOffUntil == nil, let accepted = one.accepted,
            one.observers > 0 || isValid(key) || (accepted.isNeverValid && !accepted.isInvalidated)
        else { return wait(id, key, .pageAfterFetch, explicit: false) }
        if side.isLoading { return self[key].callers.append(Caller(id: id, need: .joined(direction))) }
        guard pageKey(direction, one) != nil else { return results[id] = "noPage" }
        if side.hasFailed, !continues { return results[id] = "failed" }
        self[key].sides[direction] = Side(isLoading: true, hasFailed: side.hasFailed)
        begun += 1
        self[key].callers.append(Caller(id: id, need: .page(direction, continues: continues)))
    }

    func text(_ key: Int) -> String { self[key].content.map { "\($0)" } ?? "nil" }

    func textAfterFailure(_ key: Int) -> String { isValid(key) || isUsable(key, within: rules.staleIfError) ? text(key) : "Offline" }

    mutating func answer(_ key: Int, _ choose: (Need) -> String?) {
        let callers = self[key].callers
        self[key].callers = []
        for caller in callers {
            if let result = choose(caller.need) { results[caller.id] = result } else { self[key].callers.append(caller) }
        }
    }

    /// Answers the callers that any accepted content serves.
    mutating func answerReaders(_ key: Int) {
        let content = text(key)
        answer(key) { need in
            switch need {
            case .content, .origin, .cached: content
            case .freshness, .prefetch: "done"
            case .pageAfterFetch: "notLoadedYet"
            default: nil
            }
        }
    }

    /// Handles the cancellation of a caller.
    mutating func cancel(_ id: Int) {
        if let key = performing.removeValue(forKey: id) {
            results[id] = "CancellationError"
            return patchFailed(id, key)
        }
        savers[id] = nil
        if clearers.contains(id) || clearingFor.contains(id) {
            clearers.removeAll { $0 == id }
            clearingFor.removeAll { $0 == id }
            results[id] = "CancellationError"
        }
        for key in keys.keys {
            guard let place = self[key].callers.firstIndex(where: { $0.id == id }) else { continue }
            switch self[key].callers.remove(at: place).need {
            case .content, .origin, .cached, .acceptedContent(.patch): results[id] = "CancellationError"
            case .freshness, .prefetch, .refresh, .acceptedContent(.invalidate): results[id] = "done"
            case .page, .joined, .pageAfterFetch: results[id] = "failed"
            case .saved(_, let result): results[id] = result
            case .allSaved, .kept: results[id] = "CancellationError"
            case .acceptedContent(.append): results[id] = "false"
            }
            endTransition(key)
        }
    }

    // MARK: Reading

    mutating func beginReading(_ key: Int) {
        guard self[key].call == nil else { return }
        if rules.hasFront, let record = front[key] {
            self[key].accepted = record
            becomeRead(key)
        } else if rules.hasBacking {
            self[key].call = Call(isLoad: true, isDeferred: isClearWanted || isClearing)
        } else {
            becomeRead(key)
        }
    }

    mutating func becomeRead(_ key: Int) {
        self[key].isRead = true
        self[key].refetches = rules.refetchesOnExpiry && isValid(key)
        if rules.hasFront, let accepted = self[key].accepted { front[key] = accepted }
        if self[key].isInvalidationPending {
            self[key].isInvalidationPending = false
            applyInvalidation(key)
        }
        if self[key].observers > 0 {
            welcome(key, forces: self[key].isForced)
            self[key].isForced = false
        }
        readmit(key)
    }

    mutating func readmit(_ key: Int) {
        let waiting = self[key].callers
        // Page requests come last.
        for caller in waiting.sorted(by: { ($0.need.isPage ? 1 : 0, $0.id) < ($1.need.isPage ? 1 : 0, $1.id) }) {
            guard !caller.need.isSaved else { continue }
            self[key].callers.removeAll { $0.id == caller.id && $0.need == caller.need }
            admit(caller.id, key, caller.need)
        }
    }

    // MARK: Fetches

    mutating func startFlightUnlessHeldOff(_ key: Int) {
        if self[key].flight == nil, isHeldOff(key) { return }
        startFlight(key, explicit: false)
    }

    mutating func startFlight(_ key: Int, explicit: Bool) {
        if let flight = self[key].flight {
            self[key].flight?.isExplicit = flight.isExplicit || explicit
            return
        }
        // An explicit fetch may reset the list. Any other keeps its pages, and page requests continue after it.
        let explicit = explicit || self[key].isForced || self[key].callers.contains { $0.need == .refresh }
        if explicit { supersedePages(key) } else { interruptPages(key) }
        if self[key].accepted != nil, !isValid(key) { self[key].refetches = false }
        var flight = Flight(isExplicit: explicit)
        if let accepted = self[key].accepted, !(explicit && rules.resetsOnRefresh) { refetchPages(of: accepted, in: &flight) }
        if flight.nextPages + flight.prevPages == 0, !flight.startsInside, self[key].accepted?.hasInitialPage == true {
            flight.validator = self[key].accepted?.validator
        }
        self[key].flight = flight
        self[key].isTriggered = false
        begun += 1
    }

    @discardableResult
    mutating func dropFlight(_ key: Int) -> Bool {
        guard let flight = self[key].flight else { return false }
        self[key].flight = nil
        cancelled += 1
        return flight.isExplicit
    }

    mutating func supersedePages(_ key: Int) {
        interruptPages(key)
        endInterruption(key, "superseded")
    }

    mutating func interruptPages(_ key: Int) {
        for direction in PageDirection.allCases where self[key].sides[direction]?.isLoading == true {
            self[key].sides[direction]?.isLoading = false
            self[key].sides[direction]?.isInterrupted = true
            cancelled += 1
        }
    }

    private mutating func endInterruption(_ key: Int, _ result: String) {
        for direction in PageDirection.allCases where self[key].sides[direction]?.isInterrupted == true {
            self[key].sides[direction]?.isInterrupted = false
            resumePageCallers(key, direction, asked: result, joined: result)
        }
    }

    /// Restarts an interrupted page request once no fetch of the list runs.
    mutating func resumePages(_ key: Int) {
        guard self[key].flight == nil else { return }
        for direction in PageDirection.allCases where self[key].sides[direction]?.isInterrupted == true {
            self[key].sides[direction]?.isInterrupted = false
            guard self[key].isWanted else { continue }
            if pageKey(direction, self[key]) == nil {
                resumePageCallers(key, direction, asked: "noPage", joined: "noPage")
            } else {
                self[key].sides[direction]?.isLoading = true
                begun += 1
            }
        }
    }

    /// Adds a fetched page to the list; the last page ends the fetch.
    mutating func flightFetched(_ key: Int, _ page: Record) {
        guard var flight = self[key].flight else { return }
        var list = flight.soFar ?? page
        let added = Page(direction: flight.asking, key: flight.askedKey, returnKey: flight.asking == .next ? page.prevKey : page.nextKey)
        let asked = flight.soFar == nil ? nil : flight.asking
        switch asked {
        case nil: if flight.startsInside { list.pages = [added] }
        case .next:
            list.content += page.content
            list.nextKey = page.nextKey
            list.pages.append(added)
        case .prev:
            list.content = page.content + list.content
            list.prevKey = page.prevKey
            list.pages.insert(added, at: 0)
        }
        let loaded = { (direction: PageDirection) in list.pages.count { $0.direction == direction } }
        let loadedNext = flight.startsInside ? list.pages.count - 1 : loaded(.next)
        if loadedNext < flight.nextPages, asked != .prev, let next = list.nextKey {
            (flight.asking, flight.askedKey) = (.next, next)
        } else if flight.prevPages > 0, loaded(.prev) < flight.prevPages, let prev = list.prevKey {
            (flight.asking, flight.askedKey) = (.prev, prev)
        } else {
            // The list is as old as the page that arrived first.
            list.deadline = (list.lifetime ?? rules.lifetime).map { list.fetchedAt + $0 }
            return fetched(key, list)
        }
        flight.soFar = list
        flight.validator = nil
        self[key].flight = flight
        begun += 1
    }

    private mutating func resumePageCallers(_ key: Int, _ direction: PageDirection, asked: String, joined: String) {
        answer(key) { need in
            switch need {
            case .page(direction, continues: _): asked
            case .joined(direction): joined
            default: nil
            }
        }
    }

    /// Ends a fetch with a record or a failure.
    mutating func fetched(_ key: Int, _ record: Record?, confirms: Bool = false) {
        self[key].flight = nil
        self[key].lastFetchEnded = now
        if let record {
            if self[key].pendingKeys != nil, !confirms { self[key].pendingKeys = .ignore }
            if !confirms { self[key].patches.removeAll(where: \.isConfirmed) }
            accept(key, record)
            if !confirms { self[key].owesFetch = false }
            let revision = self[key].revision
            answerReaders(key)
            for place in self[key].callers.indices where self[key].callers[place].need == .refresh {
                self[key].callers[place].need = .saved(revision, result: "done")
            }
        } else {
            self[key].heldOffUntil = now + rules.errorExpiry
            endInterruption(key, "failed")
            let content = textAfterFailure(key)
            answer(key) { need in
                switch need {
                case .content: content
                case .origin: "Offline"
                case .freshness, .prefetch, .refresh: "done"
                case .pageAfterFetch: "notLoadedYet"
                default: nil
                }
            }
        }
        endTransition(key)
    }

    mutating func pageFetched(_ key: Int, _ direction: PageDirection, _ page: (elements: [Int], key: String?)?) {
        self[key].sides[direction] = Side()
        if let page {
            makeRoom(key, direction, page.key)
            let content = self[key].accepted?.content ?? []
            self[key].accepted?.content = direction == .next ? content + page.elements : page.elements + content
            let asked = pageKey(direction, self[key])
            let added = Page(direction: direction, key: asked, returnKey: page.key)
            let place = direction == .next ? self[key].accepted?.pages.count ?? 0 : 0
            self[key].accepted?.pages.insert(added, at: place)
            if direction == .next { self[key].accepted?.nextKey = page.key } else { self[key].accepted?.prevKey = page.key }
            for place in self[key].patches.indices { self[key].patches[place].isBeforePage = true }
            acceptedContentChanged(key)
            resumePageCallers(key, direction, asked: "loaded", joined: "joined")
        } else {
            self[key].sides[direction]?.hasFailed = true
            resumePageCallers(key, direction, asked: "failed", joined: "failed")
        }
        endTransition(key)
    }
}
