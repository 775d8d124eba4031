// Pages of a list (C13): both directions load concurrently, each with one fetch at a time. A page of an older list is never added.

extension KeyMachine {
    /// A caller requests a page; the accepted content is known.
    mutating func admitPage(
        _ id: CallerID, _ direction: PageDirection, continueWhenError: Bool, _ turn: inout Turn
    ) -> CallerAnswer<Content>? {
        if pendingKeys != nil {
            register(id, .page(direction, continueWhenError: continueWhenError))
            return nil
        }
        if flight == nil, let failure, !continueWhenError { return .page(.failed(failure.error)) }
        guard flight == nil, failure == nil, let held, observers > 0 || held.isValid(at: turn.now) || isNeverValid(held.record) else {
            register(id, .pageAfterFetch)
            startFlight(forceRefresh: false, &turn)
            return nil
        }
        if self[direction].ticket != nil {
            register(id, .joinedPage(direction))
            report(.coalesced, &turn)
            return nil
        }
        guard let key = pageKey(direction) else { return .page(.noPage) }
        if let error = self[direction].failure, !continueWhenError { return .page(.failed(error)) }
        register(id, .page(direction, continueWhenError: continueWhenError))
        startPage(direction, key, &turn)
        return nil
    }

    private mutating func startPage(_ direction: PageDirection, _ key: String, _ turn: inout Turn) {
        let ticket = turn.tickets.next()
        self[direction].ticket = ticket
        turn.actions.append(.fetch(ticket, .page(direction, key: key)))
        turn.publishes = true
    }

    /// Whether the list expired on arrival (C11). If it were fetched anew before each page, it would never get beyond its first page.
    private func isNeverValid(_ record: CacheRecord<Content>) -> Bool {
        guard !record.isInvalidated, let lifetime = record.freshness.lifetime ?? rules.expiry.lifetime else { return false }
        return lifetime <= .zero
    }

    /// Whether a page that has arrived will be added to the list.
    func willExtend(_ direction: PageDirection, _ ticket: Ticket, _ result: Result<Fetched<Content>, any Error>) -> Bool {
        guard self[direction].ticket == ticket, rules.isList, held != nil, case .success(let fetched) = result else { return false }
        return fetched.content != nil
    }

    /// A page has arrived or failed.
    mutating func pageFinished(
        _ direction: PageDirection, _ ticket: Ticket, _ result: Result<Fetched<Content>, any Error>, _ turn: inout Turn
    ) {
        guard self[direction].ticket == ticket else {
            // Legal: the list was replaced or fetched anew during the page request.
            report(.droppedAsOutdated(.page(direction)), &turn)
            return
        }
        self[direction].ticket = nil
        self[direction].forgetFailure(into: &turn.leftovers)
        turn.publishes = true
        switch result {
        case .success(let fetched):
            append(fetched, direction, &turn)
        case .failure(let error):
            pageFailed(direction, error, &turn)
        }
        endTurn(&turn)
    }

    private mutating func append(_ fetched: Fetched<Content>, _ direction: PageDirection, _ turn: inout Turn) {
        guard let page = fetched.content, let list = rules.list, held != nil else {
            let error = StoreError(.nothingToConfirm, "fetching a page: the origin confirmed a page that it was not asked to confirm")
            pageFailed(direction, error, &turn)
            return
        }
        extendHeld(by: page, fetched.details, list, direction, &turn)
        truthChanged(.derived, &turn)
        answerPage(direction, asked: .loaded, joined: .joined, &turn)
    }

    /// Adds a page in place. The array is copied only if a snapshot of it is in use.
    private mutating func extendHeld(
        by page: Content, _ details: RecordDetails?, _ list: ListRules<Content>, _ direction: PageDirection, _ turn: inout Turn
    ) {
        guard var record = held?.record, let deadline = held?.deadline else { return }
        // A changed key interrupts or supersedes the request, so this key requested the page.
        let key = pageKey(direction)
        held = nil
        if let window = list.window { makeRoom(in: &record, of: window, list, for: details, direction, &turn) }
        let before = list.count(record.content)
        if let replaced = list.merge(&record.content, page, direction, &mergeIndex) { turn.discarded.append(replaced) }
        record.details = RecordDetails(
            record.details, extendedBy: details, direction, key: key, sizes: (before, list.count(record.content)))
        held = HeldRecord(record, deadline: deadline)
        contentNumber += 1
        for position in patches.indices { patches[position].isBeforePage = true }
    }

    private mutating func pageFailed(_ direction: PageDirection, _ error: any Error, _ turn: inout Turn) {
        self[direction].failure = error
        answerPage(direction, asked: .failed(error), joined: .failed(error), &turn)
    }

    /// Drops page requests permanently, because the list is reset or its keys are replaced.
    mutating func supersedePages(_ turn: inout Turn) {
        interruptPages(&turn)
        for direction in PageDirection.allCases where self[direction].isInterrupted {
            self[direction].isInterrupted = false
            answerPage(direction, asked: .superseded, joined: .superseded, &turn)
        }
    }

    /// Cancels pages that were requested before a change or a refetch. The requests begin again when no fetch of the list runs.
    mutating func interruptPages(_ turn: inout Turn) {
        // Checked first, because reading a whole side copies its error.
        guard next.ticket != nil || prev.ticket != nil else { return }
        for direction in PageDirection.allCases { interruptPage(direction, &turn) }
    }

    mutating func interruptPage(_ direction: PageDirection, _ turn: inout Turn) {
        guard let ticket = self[direction].ticket else { return }
        self[direction].ticket = nil
        self[direction].isInterrupted = true
        turn.actions.append(.cancel(ticket))
        turn.publishes = true
    }

    /// Begins interrupted page requests again, with the current keys of the list.
    mutating func resumePages(_ turn: inout Turn) {
        guard flight == nil else { return }
        for direction in PageDirection.allCases where self[direction].isInterrupted {
            self[direction].isInterrupted = false
            // A caller for a page wants it, so an unwanted list has no caller to resume.
            guard isWanted else { continue }
            if let key = pageKey(direction) {
                startPage(direction, key, &turn)
            } else {
                answerPage(direction, asked: .noPage, joined: .noPage, &turn)
            }
        }
    }

    /// The fetch that interrupted the page requests has failed, and the list is as it was.
    mutating func failInterruptedPages(_ error: any Error, _ turn: inout Turn) {
        for direction in PageDirection.allCases where self[direction].isInterrupted {
            self[direction].isInterrupted = false
            answerPage(direction, asked: .failed(error), joined: .failed(error), &turn)
        }
    }

    /// The loaded pages after the content was replaced.
    func resized(_ pages: LoadedPages?, from old: Content, to new: Content) -> LoadedPages? {
        guard var pages, let list = rules.list else { return nil }
        let count = list.count(old)
        pages.resize { sizes in
            // The record comes from a cacher, so its sizes may be wrong.
            guard isPartition(sizes, of: count) else { return movedPages(sizes.map { _ in 0 }, to: list.count(new)) { _, _, _ in 0 } }
            return list.resize(sizes, old, new)
        }
        return pages
    }

    func isPartition(_ sizes: [Int], of count: Int) -> Bool {
        var left = count
        for size in sizes {
            guard size >= 0, size <= left else { return false }
            left -= size
        }
        return left == 0
    }

    private mutating func answerPage(
        _ direction: PageDirection, asked: PageRequest, joined: PageRequest, _ turn: inout Turn
    ) {
        answerCallers(&turn) { need in
            switch need {
            case .page(direction, continueWhenError: _): .page(asked)
            case .joinedPage(direction): .page(joined)
            default: nil
            }
        }
    }
}
