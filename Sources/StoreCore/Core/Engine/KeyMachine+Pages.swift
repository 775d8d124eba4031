// Pages of a list (C13): both directions load concurrently, each with one fetch at a time. A page of an older list is never added.

/// The page requests at both sides of a list (C13), and the index that merges pages.
struct Sides {
    var next = Side()
    var prev = Side()
    /// The page merger's index of the content; dropped when the content changes in another way.
    var mergeIndex: AnyObject?

    @inline(__always)
    var isLoading: Bool { next.ticket != nil || prev.ticket != nil }
    @inline(__always)
    var isInterrupted: Bool { next.isInterrupted || prev.isInterrupted }

    subscript(direction: PageDirection) -> Side {
        get { direction == .next ? next : prev }
        set { if direction == .next { next = newValue } else { prev = newValue } }
    }

    mutating func forgetFailures(into leftovers: inout [any Sendable]) {
        next.forgetFailure(into: &leftovers)
        prev.forgetFailure(into: &leftovers)
    }
}

/// The page request in one direction of a list.
struct Side {
    enum Request {
        case none
        case loading(Ticket)
        /// It begins again when no fetch of the list runs. Never the case after a transition without such a fetch.
        case interrupted
    }

    var request = Request.none
    /// The stamp of the start of the request; zero in a store without links.
    var stamp: Stamp = 0
    var failure: (any Error)?

    @inline(__always)
    var ticket: Ticket? { if case .loading(let ticket) = request { ticket } else { nil } }
    @inline(__always)
    var isInterrupted: Bool { if case .interrupted = request { true } else { false } }

    mutating func forgetFailure(into leftovers: inout [any Sendable]) {
        guard let failure else { return }
        leftovers.append(failure)
        self.failure = nil
    }
}

/// The page keys after the content is replaced.
enum PageKeys: Hashable, Sendable {
    case kept
    case replaced(next: String?, prev: String?)
}

extension KeyMachine {
    @inline(__always)
    func additionalState(_ direction: PageDirection) -> AdditionalLoadingState {
        guard rules.isList else { return .none }
        if isLoading(direction) { return .loading }
        if let error = sides[direction].failure { return .error(rawError: error) }
        return .fixed(canRequestAdditionalData: hasPage(direction))
    }

    // Mutating, like `sight`.
    @inline(__always)
    var completedKind: Sight.Kind {
        mutating get {
            guard rules.isList else { return .completed(next: .none, prev: .none) }
            let details = book.held?.record.details
            return .completed(
                next: Sight.Page(
                    isLoading: sides.next.ticket != nil, hasFailed: sides.next.failure != nil, hasPage: details?.hasPage(.next) == true),
                prev: Sight.Page(
                    isLoading: sides.prev.ticket != nil, hasFailed: sides.prev.failure != nil,
                    hasPage: rules.isTwoWay && details?.hasPage(.prev) == true))
        }
    }

    // Each of these reads one word. Reading a whole side or a page key would copy its references.

    @inline(__always)
    private func isLoading(_ direction: PageDirection) -> Bool { (direction == .next ? sides.next.ticket : sides.prev.ticket) != nil }

    @inline(__always)
    private func hasPage(_ direction: PageDirection) -> Bool {
        rules.hasSide(direction) && book.held?.record.details?.hasPage(direction) == true
    }

    func pageKey(_ direction: PageDirection) -> String? {
        // Content that is not a list has no pages, even if its record has page keys. A one-way list has none before the first page.
        guard rules.hasSide(direction) else { return nil }
        return direction == .next ? book.held?.record.nextKey : book.held?.record.prevKey
    }

    // MARK: Requests

    /// A caller requests a page; the accepted content is known.
    mutating func admitPage(
        _ id: CallerID, _ direction: PageDirection, continueWhenError: Bool, _ transition: inout Transition
    ) -> CallerResult<Content>? {
        if origin.awaitsKeys {
            desk.register(id, .page(direction, continueWhenError: continueWhenError))
            return nil
        }
        if origin.flight == nil, let failure = origin.failure, !continueWhenError { return .page(.failed(failure.error)) }
        guard origin.flight == nil, origin.failure == nil, let held = book.held,
            desk.observers > 0 || held.isValid(at: transition.now) || isNeverValid(held.record)
        else {
            desk.register(id, .pageAfterFetch)
            startFlight(forceRefresh: false, &transition)
            return nil
        }
        if sides[direction].ticket != nil {
            desk.register(id, .joinedPage(direction))
            report(.coalesced, &transition)
            return nil
        }
        guard let key = pageKey(direction) else { return .page(.noPage) }
        if let error = sides[direction].failure, !continueWhenError { return .page(.failed(error)) }
        desk.register(id, .page(direction, continueWhenError: continueWhenError))
        startPage(direction, key, &transition)
        return nil
    }

    private mutating func startPage(_ direction: PageDirection, _ key: String, _ transition: inout Transition) {
        let ticket = transition.tickets.next()
        sides[direction].request = .loading(ticket)
        if transition.links != nil { sides[direction].stamp = transition.stamp() }
        transition.actions.append(.fetch(ticket, .page(direction, key: key)))
        transition.publishes = true
    }

    /// Whether the list expired on arrival (C11). If it were fetched anew before each page, it would never get beyond its first page.
    private func isNeverValid(_ record: CacheRecord<Content>) -> Bool {
        guard !record.isInvalidated, let lifetime = record.freshness.lifetime ?? rules.expiry.lifetime else { return false }
        return lifetime <= .zero
    }

    /// Whether a page that has arrived will be added to the list.
    func willExtend(_ direction: PageDirection, _ ticket: Ticket, _ result: Result<Fetched<Content>, any Error>) -> Bool {
        guard sides[direction].ticket == ticket, rules.isList, book.held != nil, case .success(let fetched) = result else { return false }
        return fetched.content != nil
    }

    mutating func pageFinished(
        _ direction: PageDirection, _ ticket: Ticket, _ result: Result<Fetched<Content>, any Error>, _ transition: inout Transition
    ) {
        guard sides[direction].ticket == ticket else {
            // Legal: the list was replaced or fetched anew during the page request.
            report(.droppedAsOutdated(.page(direction)), &transition)
            return
        }
        sides[direction].request = .none
        sides[direction].forgetFailure(into: &transition.leftovers)
        transition.publishes = true
        switch result {
        case .success(let fetched):
            append(fetched, direction, &transition)
        case .failure(let error):
            pageFailed(direction, error, &transition)
        }
        endTransition(&transition)
    }

    private mutating func append(_ fetched: Fetched<Content>, _ direction: PageDirection, _ transition: inout Transition) {
        guard let page = fetched.content, let list = rules.list, book.held != nil else {
            let error = StoreError(.nothingToConfirm, "fetching a page: the origin confirmed it without being asked; return the page")
            pageFailed(direction, error, &transition)
            return
        }
        extendHeld(by: page, fetched, list, direction, &transition)
        acceptedContentChanged(.derived, &transition)
        resumePageCallers(direction, .loaded, joined: .joined, &transition)
    }

    /// Adds a page in place. The array is copied only if a snapshot of it is in use.
    private mutating func extendHeld(
        by page: Content, _ fetched: Fetched<Content>, _ list: ListRules<Content>, _ direction: PageDirection,
        _ transition: inout Transition
    ) {
        guard var held = book.held else { return }
        // A changed key interrupts or supersedes the request, so this key requested the page.
        let key = pageKey(direction)
        let stamp = fetched.stamp(requestedAt: sides[direction].stamp)
        var page = page
        transition.links?.keepNewer(&page, book, than: stamp)
        book.held = nil
        // An empty page takes no room.
        if let window = list.window, list.count(page) > 0 {
            makeRoom(in: &held.record, of: window, list, for: fetched.details, direction, &transition)
        }
        if transition.links != nil {
            transition.linkChange = .page(stamp, page)
            transition.discarded.append(page)
        }
        let before = list.count(held.record.content)
        var index = sides.mergeIndex
        sides.mergeIndex = nil
        let replaced = list.merge(&held.record.content, page, direction, &index)
        sides.mergeIndex = index
        if let replaced { transition.discarded.append(replaced) }
        held.record.details = RecordDetails(
            held.record.details, extendedBy: fetched.details, direction, key: key, sizes: (before, list.count(held.record.content)),
            keepsValidator: replaced == nil, mergesEmpty: list.window != nil)
        book.held = held
        book.contentNumber += 1
        for position in book.patches.indices { book.patches[position].isBeforePage = true }
        noteArrival(ofPage: page)
    }

    private mutating func pageFailed(_ direction: PageDirection, _ error: any Error, _ transition: inout Transition) {
        sides[direction].failure = error
        resumePageCallers(direction, .failed(error), &transition)
    }

    /// Drops page requests permanently, because the list is reset or its keys are replaced.
    mutating func supersedePages(_ transition: inout Transition) {
        interruptPages(&transition)
        endInterruptedPages(.superseded, &transition)
    }

    /// Ends interrupted page requests, which do not begin again.
    mutating func endInterruptedPages(_ outcome: PageRequest, _ transition: inout Transition) {
        for direction in PageDirection.allCases where sides[direction].isInterrupted {
            sides[direction].request = .none
            resumePageCallers(direction, outcome, &transition)
        }
    }

    /// Cancels pages that were requested before a change or a refetch. The requests begin again when no fetch of the list runs.
    mutating func interruptPages(_ transition: inout Transition) {
        // Checked first, because reading a whole side copies its error.
        guard sides.isLoading else { return }
        for direction in PageDirection.allCases { interruptPage(direction, &transition) }
    }

    mutating func interruptPage(_ direction: PageDirection, _ transition: inout Transition) {
        guard let ticket = sides[direction].ticket else { return }
        sides[direction].request = .interrupted
        transition.actions.append(.cancel(ticket))
        transition.publishes = true
    }

    /// Begins interrupted page requests again, with the current keys of the list.
    mutating func resumePages(_ transition: inout Transition) {
        guard origin.flight == nil else { return }
        for direction in PageDirection.allCases where sides[direction].isInterrupted {
            sides[direction].request = .none
            // A caller for a page wants it, so an unwanted list has no caller to resume.
            guard desk.wantsFetch else { continue }
            if let key = pageKey(direction) {
                // The fact that interrupted the request may come from any task.
                transition.isOwn = true
                startPage(direction, key, &transition)
            } else {
                resumePageCallers(direction, .noPage, &transition)
            }
        }
    }

    /// The record with the page keys of an updated list has been read; `nil` if its keys are of no use.
    mutating func adoptKeys(of record: CacheRecord<Content>?, _ transition: inout Transition) {
        if let record, let content = book.held?.record.content {
            book.held?.record.fields.nextKey = record.nextKey
            book.held?.record.fields.prevKey = record.prevKey
            book.held?.record.fields.guessedEnd = record.guessedEnd
            let pages = rules.resized(record.fields.pages, from: record.content, to: content)
            book.held?.record.fields.pages = pages
            acceptedContentChanged(.derived, &transition)
        }
        readmitCallers(&transition)
    }

    // MARK: Confirmations

    /// The validator of the record; `nil` if a confirmation of a list's initial page could not be applied to the content (C25).
    var confirmableValidator: Validator? {
        guard let record = book.held?.record, let validator = record.validator else { return nil }
        return record.details?.fields.pages != nil && initialPage(of: record) == nil ? nil : validator
    }

    /// Reduces a list to its initial page, which the origin has confirmed. Returns whether the list had other pages.
    func keepInitialPage(of record: inout CacheRecord<Content>) -> Bool {
        guard let list = rules.list, record.details?.fields.pages != nil, let page = initialPage(of: record) else { return false }
        // The dropped elements are still part of the accepted record, so nothing is released here.
        if page.after > 0 { _ = list.drop(&record.content, page.after, .next) }
        if page.before > 0 { _ = list.drop(&record.content, page.before, .prev) }
        var fields = record.fields
        (fields.nextKey, fields.prevKey, fields.pages) = (page.nextKey, page.prevKey, nil)
        fields.freshness.storage = page.storage
        record.fields = fields
        return page.isPart
    }

    /// The initial page within a list: the number of elements on both sides, its keys, and its storage. `nil` if it is not in the list.
    private func initialPage(
        of record: CacheRecord<Content>
    ) -> (before: Int, after: Int, nextKey: String?, prevKey: String?, storage: Freshness.Storage, isPart: Bool)? {
        let pages = record.pages
        // The record comes from a cacher, so its sizes may be wrong.
        guard let list = rules.list, rules.isPartition(pages.map(\.count), of: list.count(record.content)),
            let place = pages.firstIndex(where: { $0.direction == nil })
        else { return nil }
        let (front, back) = (pages[..<place], pages[(place + 1)...])
        // The key of a neighbor is the initial page's own key in that direction.
        guard front.allSatisfy({ $0.direction == .prev && $0.key != nil }), back.allSatisfy({ $0.direction == .next && $0.key != nil })
        else { return nil }
        return (
            front.reduce(0) { $0 + $1.count }, back.reduce(0) { $0 + $1.count }, back.first?.key ?? record.nextKey,
            front.last?.key ?? record.prevKey, pages[place].storage, pages.count > 1
        )
    }

    private mutating func resumePageCallers(
        _ direction: PageDirection, _ outcome: PageRequest, joined: PageRequest? = nil, _ transition: inout Transition
    ) {
        resumeCallers(&transition) { need in
            switch need {
            case .page(direction, continueWhenError: _): .page(outcome)
            case .joinedPage(direction): .page(joined ?? outcome)
            default: nil
            }
        }
    }
}

extension KeyRules {
    func resized(_ pages: LoadedPages?, from old: Content, to new: Content) -> LoadedPages? {
        guard var pages, let list else { return nil }
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
}

// MARK: - The window

// The window of a list (C18): a page added at one end of a full list drops a page at the other end, which becomes the next page there.
// An empty page takes no room. It stays at its end until the next page there is merged with it.

extension KeyMachine {
    /// The pages that a fetch loads again: the loaded ones, up to the size of the window.
    var loadedPages: PageCounts {
        guard let loaded = book.held?.record.details?.fields.pages else { return PageCounts() }
        // A refetch in a window does not count empty pages, so it need not reach those at the ends.
        var pages = rules.list?.window == nil ? loaded.counts : loaded.withoutEmptyEnds.counts
        if let window = rules.list?.window {
            pages.next = min(pages.next, window - 1)
            pages.prev = min(pages.prev, window - 1 - pages.next)
        }
        // A one-way list begins with its initial page, even if its record comes from a two-way one.
        return rules.isTwoWay ? pages : PageCounts(next: pages.next)
    }

    /// Drops pages of a full list at the end opposite a page that is about to be added.
    ///
    /// The pages are dropped before the new one is added. An element that the new page repeats then moves to that page, and does not leave
    /// the list with a dropped one.
    mutating func makeRoom(
        in record: inout CacheRecord<Content>, of window: Int, _ list: ListRules<Content>, for page: RecordDetails?,
        _ direction: PageDirection, _ transition: inout Transition
    ) {
        let side: PageDirection = direction == .next ? .prev : .next
        let count = list.count(record.content)
        var pages = record.fields.pages?.all ?? [LoadedPage(record.freshness.storage, count: count)]
        // The record comes from a cacher, so its sizes may be wrong. Dropping by them would lose elements.
        guard rules.isPartition(pages.map(\.count), of: count) else { return }
        // The new page will be merged with an empty one.
        let room = pages.emptyEnd(direction) == nil ? window : window + 1
        var (dropped, keyOfDropped) = (0, String?.none)
        while pages.count >= room, let (key, count) = dropPage(at: side, of: &pages, beside: page) {
            dropped += count
            keyOfDropped = key
        }
        guard let keyOfDropped else { return }
        let kept = LoadedPages(pages)
        record.fields.pages = kept
        // A dropped page no longer forbids the storage of the list.
        record.freshness.storage = kept.storage
        if side == .next { record.fields.nextKey = keyOfDropped } else { record.fields.prevKey = keyOfDropped }
        if let elements = list.drop(&record.content, dropped, side) { transition.discarded.append(elements) }
        // The positions in the index are those of the longer list.
        sides.mergeIndex = nil
        // A page that was requested or failed at this end belongs behind the dropped one.
        interruptPage(side, &transition)
        sides[side].forgetFailure(into: &transition.leftovers)
    }

    /// Drops the page at one end.
    ///
    /// - Returns: The key of the page in the direction of this end, and its number of elements; `nil` if the key is unknown, so that the
    ///   page could not be requested again.
    private func dropPage(
        at side: PageDirection, of pages: inout [LoadedPage], beside new: RecordDetails?
    ) -> (key: String, count: Int)? {
        guard let page = side == .next ? pages.last : pages.first else { return nil }
        let rest = side == .next ? pages.dropLast() : pages.dropFirst()
        // The new page will be the neighbor of the last page that is dropped.
        let neighbor = side == .next ? rest.last : rest.first
        let keyOfNew = side == .next ? new?.fields.nextKey : new?.fields.prevKey
        let key = page.direction == side ? page.key : neighbor.map(\.returnKey) ?? keyOfNew
        guard let key, !key.isEmpty else { return nil }
        pages = Array(rest)
        return (key, page.count)
    }
}
