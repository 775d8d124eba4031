internal import Foundation

/// All that a store knows of one live key, and all that it decides about it: pure, synchronous, without lock, clock or task.
///
/// Its inputs are facts (`callerArrived`, `fetchFinished`), each with the moment at which it became one; its outputs are ``KeyAction``s,
/// which the engine carries out. A result that no longer belongs here is recognised by its ticket and dropped.
///
/// What is told where: this file holds the state and what is derived from it; `+Reading` observers, callers and the cache read;
/// `+Fetching` fetches of the content; `+Pages` fetches beside it; `+Writing` updates and clearing; `+Saving` the saves; `+Patches`
/// optimistic mutations.
struct KeyMachine<Content: Sendable> {
    // MARK: The truth, and what is seen of it

    // What each change writes stands first and together, and what seldom changes is written only where it does: two cores that take turns
    // with a key hand each other few cache lines.

    /// The newest accepted record; without it the key has no content.
    var held: HeldRecord<Content>?
    /// When the truth was changed last; what the cacher has to catch up with.
    var revision = Ticket(number: 0)
    /// The truth that the cacher has, or that it failed to take.
    var settledRevision = Ticket(number: 0)
    /// How often what readers get has changed.
    var contentNumber: UInt64 = 0
    /// When older fetches, and the responses of older mutations, became worthless the last time (C5).
    var epoch = Ticket(number: 0)
    /// What was published last.
    var shown: Sight?
    /// Whether the truth is known: the cache was read, or something newer has been said.
    var isRead = false
    /// What the last fetch failed with, until one succeeds or the truth is set.
    var failure: Failure?
    /// The page merger's index of the content; dropped whenever the content changes in another way.
    var mergeIndex: AnyObject?
    let rules: KeyRules<Content>

    // MARK: Patches, in the order in which they were applied

    var patches: [Patch] = []
    /// The held content with all patches over it; `nil` where there are none.
    var overlay: Content?
    /// Whether an observed key is fetched once the last mutation is settled.
    var owesFetch = false

    // MARK: What is under way

    var flight: Flight?
    var next = Side()
    var prev = Side()
    /// The load that has been requested from the cacher.
    var reading: Ticket?
    /// Whether a save has been requested that has not begun.
    var isSaveRequested = false
    /// The revision that the running save saves.
    var saving: Ticket?
    /// A save that the cacher failed; the key stays live until it has succeeded.
    var failedSave: FailedSave?

    // MARK: Who is here

    var observers = 0
    var callers = FewByNumber<CallerNeed>.none
    /// How many of the callers want a fetch.
    var fetchCallers = 0
    /// How many of these wait for a refresh, which no update answers.
    var refreshCallers = 0

    // MARK: What waits for its time

    /// When an unwanted fetch is to be cancelled.
    var graceEnds: MonotonicInstant?
    /// Whether the present record is to be fetched again at its deadline; one that has none, or arrived expired, never is (C10).
    var refetchesAtDeadline = false
    /// A trigger that came too early.
    var triggerPending = false
    var lastFetchEnded: MonotonicInstant?
    /// An observer who joined before the cache was read and wants a fetch whatever it holds.
    var forcePending = false
    /// An invalidation that came before the cache was read.
    var invalidatePending = false
    /// A list was updated before the record whose page keys it keeps was read.
    var pendingKeys: PendingKeys?
    /// The changes that others make of this key; unused if the cacher is not shared.
    var sharing = SharedKey()

    init(rules: KeyRules<Content>) {
        self.rules = rules
    }

    /// What becomes of page keys that are still being read.
    enum PendingKeys: Hashable {
        case adopt
        /// The origin has given newer ones meanwhile.
        case ignore
    }

    struct Failure {
        var error: any Error
        /// Until when no automatic fetch is made.
        var holdsUntil: MonotonicInstant
    }

    /// A save that the cacher failed.
    enum FailedSave: Hashable {
        case content
        /// The record to be invalidated could not be read.
        case invalidation
    }

    /// A fetch of the content.
    struct Flight: Hashable {
        var ticket: Ticket
        /// Whether somebody asked for it in so many words, so that an update must not make it go away.
        var isExplicit: Bool
        /// Whether a caller was served stale content on the promise of it, so that it goes on although he waits for nothing.
        var isPromised = false
        /// Whether the origin was asked to confirm the present record.
        var revalidates: Bool
        /// The position of a shared cacher before the fetch began.
        var base = Revision.none
        /// Whether the fetch has not begun because a newer record of another user is being read.
        var isParked = false
    }

    /// What tells one state from the one before it, without comparing contents or errors: between two errors something is always loading.
    struct Sight: Hashable {
        enum Kind: Hashable { case loading, error, completed(next: Page, prev: Page) }
        enum Page: Hashable { case none, more, loading, error }

        var kind: Kind
        /// The number of the content, where there is any.
        var content: UInt64?
    }

    /// One side of a list.
    struct Side {
        var ticket: Ticket?
        /// Whether the request for a page was interrupted and begins again once no fetch of the list runs; not beyond the end of a
        /// transition without such a fetch.
        var isInterrupted = false
        var failure: (any Error)?

        mutating func forgetFailure(into leftovers: inout [any Sendable]) {
            guard let failure else { return }
            leftovers.append(failure)
            self.failure = nil
        }
    }

    /// An optimistic change that is not part of the truth yet.
    struct Patch: Sendable {
        var id: Ticket
        var isConfirmed = false
        /// Whether a page was added since, which the content that the mutation brings may lack.
        var isBeforePage = false
        var apply: @Sendable (inout Content) -> Void
    }

    /// What a machine may see of the world while it handles one fact, and what it wants done.
    struct Turn {
        /// The moment of the fact. Read once, and only where it is asked for: most facts need neither clock.
        private(set) lazy var now = time.now
        private(set) lazy var date = time.date
        private let time: any TimeSource
        var tickets: TicketCounter

        var actions = Few<KeyAction<Content>>.none
        /// Whether the fact is a change of the content, so that a fetch which begins now takes the place of one, and no caller asks for it.
        var isWriting = false
        /// Whether the state may look different now, which is decided at the end.
        var publishes = false
        /// Whether observers are to see the present state.
        var isPublished = false
        /// Whether the memory in front is to hold what is `mirrored` now.
        var mirrors = false
        /// Content that is no longer needed; kept to the end of the turn, so that it is released outside the lock.
        var discarded = Few<Content>.none
        /// Patches and errors that are no longer needed: what they hold is the user's, too.
        var leftovers: [any Sendable] = []

        init(time: any TimeSource, tickets: TicketCounter) {
            self.time = time
            self.tickets = tickets
        }
    }
}

// MARK: - What is derived

extension KeyMachine {
    /// What observers and callers get: the truth with the patches over it.
    var content: Content? { overlay ?? held?.record.content }

    /// Whether there is anything to show.
    var isVisible: Bool { flight != nil || failure != nil || held != nil || overlay != nil }

    // What is asked at each turn is inlined: a call would be given a copy of the whole machine.

    /// What an observer may show; `nil` before anything is known.
    @inline(__always)
    var state: LoadingState<Content>? {
        if flight != nil { return .loading(content: content) }
        if let failure { return .error(rawError: failure.error, content: content) }
        // First, so that the content is moved into the state and not copied.
        let (next, prev) = (additionalState(.next), additionalState(.prev))
        return content.map { .completed(content: $0, next: next, prev: prev) }
    }

    /// What tells the present state from others.
    @inline(__always)
    var sight: Sight? {
        let number = held == nil && overlay == nil ? nil : contentNumber
        if flight != nil { return Sight(kind: .loading, content: number) }
        if failure != nil { return Sight(kind: .error, content: number) }
        return number.map { Sight(kind: .completed(next: pageSight(.next), prev: pageSight(.prev)), content: $0) }
    }

    @inline(__always)
    private func pageSight(_ direction: PageDirection) -> Sight.Page {
        guard rules.isList else { return .none }
        if isLoading(direction) { return .loading }
        if hasFailed(direction) { return .error }
        return hasPage(direction) ? .more : .none
    }

    @inline(__always)
    func additionalState(_ direction: PageDirection) -> AdditionalLoadingState {
        guard rules.isList else { return .none }
        if isLoading(direction) { return .loading }
        if let error = self[direction].failure { return .error(rawError: error) }
        return .fixed(canRequestAdditionalData: hasPage(direction))
    }

    // Each asks for one word: a side as a whole, or a page's key, is copied with what it refers to.

    @inline(__always)
    private func isLoading(_ direction: PageDirection) -> Bool { (direction == .next ? next.ticket : prev.ticket) != nil }

    @inline(__always)
    private func hasFailed(_ direction: PageDirection) -> Bool { direction == .next ? next.failure != nil : prev.failure != nil }

    @inline(__always)
    private func hasPage(_ direction: PageDirection) -> Bool {
        rules.hasSide(direction) && held?.record.details?.hasPage(direction) == true
    }

    func pageKey(_ direction: PageDirection) -> String? {
        // Content that is no list has no pages, whatever keys its record carries; a one-way list has none before the first.
        guard rules.hasSide(direction) else { return nil }
        return direction == .next ? held?.record.nextKey : held?.record.prevKey
    }

    subscript(direction: PageDirection) -> Side {
        get { direction == .next ? next : prev }
        set { if direction == .next { next = newValue } else { prev = newValue } }
    }

    /// Whether anybody would miss a fetch.
    var isWanted: Bool { observers > 0 || fetchCallers > 0 }

    /// Whether nothing would be lost if the engine forgot this key.
    var isIdle: Bool { isAtRest && failedSave == nil }

    /// Whether nothing goes on and nobody is here.
    var isAtRest: Bool {
        observers == 0 && callers.isEmpty && flight == nil && next.ticket == nil && prev.ticket == nil && reading == nil
            && saving == nil && patches.isEmpty && settledRevision == revision && !invalidatePending
    }

    func holdsOff(at now: MonotonicInstant) -> Bool {
        guard let failure else { return false }
        return now < failure.holdsUntil
    }

    /// The earliest moment at which an automatic fetch may begin.
    private func automaticFetchAllowed(after interval: Duration) -> MonotonicInstant {
        max(lastFetchEnded?.advanced(by: interval) ?? .distantPast, failure?.holdsUntil ?? .distantPast)
    }

    /// When an observed key is to be fetched because its content expires or a trigger waits.
    @inline(__always)
    var automaticFetchDue: MonotonicInstant? {
        guard observers > 0, flight == nil, isRead else { return nil }
        if triggerPending { return automaticFetchAllowed(after: max(.zero, rules.policy.minimumInterval)) }
        guard refetchesAtDeadline, let held else { return nil }
        // Expiry causes fetches that cause expiry; a trigger has a pace of its own.
        return max(held.deadline, automaticFetchAllowed(after: rules.policy.boundedInterval))
    }

    /// When the machine wants to be told the time again.
    @inline(__always)
    var nextWake: MonotonicInstant? {
        graceEnds != nil || (observers > 0 && (triggerPending || refetchesAtDeadline)) ? earliestWake : nil
    }

    @inline(__always)
    private var earliestWake: MonotonicInstant? {
        switch (graceEnds, automaticFetchDue) {
        case (let grace?, let due?): min(grace, due)
        case (let grace, let due): grace ?? due
        }
    }
}

// MARK: - Time, and the end of each turn

extension KeyMachine {
    /// The moment that `nextWake` named may have come.
    mutating func timerFired(_ turn: inout Turn) {
        if let graceEnds, graceEnds <= turn.now { cancelUnwanted(&turn) }
        if let due = automaticFetchDue, due <= turn.now { startFlight(explicit: false, &turn) }
        endTurn(&turn)
    }

    /// A trigger of the store asks for fresh content (C16).
    mutating func triggered(_ turn: inout Turn) {
        guard observers > 0 else { return }
        if flight != nil {
            report(.coalesced, &turn)
        } else {
            // One that comes too early is kept, not dropped: "the network is back" must not get lost in an interval.
            triggerPending = true
            if let due = automaticFetchDue, due <= turn.now { startFlight(explicit: false, &turn) }
        }
        endTurn(&turn)
    }

    /// What follows from any fact: the cacher catches up, unwanted fetches get their grace, observers see the outcome once.
    mutating func endTurn(_ turn: inout Turn) {
        if next.isInterrupted || prev.isInterrupted { resumePages(&turn) }
        requestSave(&turn)
        if observers == 0, forcePending || triggerPending { (forcePending, triggerPending) = (false, false) }
        let isFetching = flight != nil || next.ticket != nil || prev.ticket != nil
        if isWanted || !isFetching || flight?.isPromised == true {
            if graceEnds != nil { graceEnds = nil }
        } else if graceEnds == nil, case .cancel(let grace) = rules.policy.unwantedFetch {
            if grace > .zero { graceEnds = turn.now.advanced(by: grace) } else { cancelUnwanted(&turn) }
        }
        if turn.publishes {
            turn.publishes = false
            // Much of what happens under a running fetch looks the same as before (C7).
            let sight = sight
            if sight != shown {
                turn.isPublished = true
                shown = sight
            }
        }
    }

    func report(_ kind: @autoclosure () -> StoreEventKind, _ turn: inout Turn) {
        if rules.reports { turn.actions.append(.report(kind())) }
    }
}
