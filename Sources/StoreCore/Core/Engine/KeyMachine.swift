/// The state of one live key, and every decision about it: a value without lock, clock, or task.
///
/// Its inputs are facts (`callerArrived`, `fetchFinished`). Its outputs are ``KeyAction``s, which the engine carries out. Tickets identify
/// late results, which are dropped.
///
/// Its parts own the state: ``Book`` the accepted content, ``OriginWork`` reads, fetches and streams, ``SavePhase`` saves, ``Desk``
/// observers and callers, ``Sides`` pages. This file derives properties from them. `+Reading` handles observers,
/// callers, and the cache read; `+Fetching` fetches of the content; `+Pages` pages and their window; `+Writing` updates, clearing,
/// invalidation, closing, and the step that all changes share; `+Saving` saves; `+Sharing` the changes of other users of a shared
/// cacher; `+Patches` optimistic mutations; `+Commands` the changes of an outbox's commands; `+Live` streams of an origin that pushes.
/// The layer of linked stores is in `LinkedBook.swift`.
struct KeyMachine<Content: Sendable> {
    // The part that each change writes comes first, and the others are written only when they change: then two cores that alternate on a key
    // exchange few cache lines.

    var book = Book<Content>()
    var origin = OriginWork<Content>()
    var saving = SavePhase()
    var desk = Desk()
    /// The pages of a list; unused for other content.
    var sides = Sides()
    let rules: KeyRules<Content>

    /// The inputs and outputs of one transition.
    struct Transition {
        /// The time of the fact. Read at most once and only on demand, because most facts need no clock.
        private(set) lazy var now = time.now
        private(set) lazy var date = time.date
        private let time: any TimeSource
        var tickets: TicketCounter

        var actions = Few<KeyAction<Content>>.none
        /// Whether the fact changes the content, so that a fetch started now restarts an older one.
        var isWriting = false
        /// Whether the state may have changed; decided at the end of the transition.
        var publishes = false
        /// Whether the store itself causes the fact, so that a fetch started now has no caller.
        var isOwn = false
        var isPublished = false
        /// Whether memory gets the record that `mirrored` returns.
        var mirrors = false
        /// Content that is no longer needed. Released after the transition, outside the lock.
        var discarded = Few<Content>.none
        /// Patches and errors that are no longer needed. They hold user objects, so they are released outside the lock, too.
        var leftovers: [any Sendable] = []
        /// The layer of linked stores; `nil` for a store without links.
        var links: (any LinkLayer<Content>)?
        /// The change of the accepted content, for the stamps of its places.
        var linkChange: LinkChange<Content>?
        /// The step of a removal, which concerns all stores that show the entity.
        var removal: RemovalStep?

        init(time: any TimeSource, tickets: TicketCounter) {
            self.time = time
            self.tickets = tickets
        }

        /// Whether the content may have places of entities.
        var showsEntities: Bool { links?.clocks.sources.isEmpty == false }

        /// Returns the stamp of this moment; zero in a store without links, which reads no clock.
        mutating func stamp() -> Stamp {
            guard let links else { return 0 }
            return links.clocks.stamp(at: date)
        }

        /// Notes a response of an earlier moment in place of older content.
        mutating func noteFetched(_ stamp: @autoclosure () -> Stamp?, over old: CacheRecord<Content>?) {
            if links != nil { linkChange = .fetched(stamp() ?? self.stamp(), over: old) }
        }

        /// Notes a change of this moment, or of a given one; `other` is the accepted content, if it is not the changed one.
        mutating func noteChanged(from old: Content?, over other: Content? = nil, at moment: Stamp? = nil) {
            if links != nil { linkChange = .changed(from: old, at: moment ?? stamp(), over: other) }
        }
    }
}

/// The settings of a store that its machines need; one object for all keys.
final class KeyRules<Content: Sendable>: Sendable {
    let expiry: Expiry
    let policy: StorePolicy
    /// Whether memory in front of the cacher mirrors each accepted record.
    let hasFront: Bool
    let hasBacking: Bool
    let reports: Bool
    /// The rules of a list; `nil` for content that is not a list.
    let list: ListRules<Content>?
    /// Whether the content is a list, which may have pages.
    let isList: Bool
    /// Whether the list may have pages before the first one.
    let isTwoWay: Bool
    /// The position of a shared cacher; `nil` if the cacher is not shared.
    let position: (@Sendable () -> Revision)?
    let isShared: Bool
    let inheritsContext: Bool
    /// Whether the origin pushes, so that a stream replaces single fetches.
    let isLive: Bool

    init(
        expiry: Expiry = .never, policy: StorePolicy = .default, hasFront: Bool = false, hasBacking: Bool = true,
        reports: Bool = true, list: ListRules<Content>? = nil, position: (@Sendable () -> Revision)? = nil,
        isLive: Bool = false
    ) {
        self.expiry = expiry
        self.policy = policy
        self.hasFront = hasFront
        self.hasBacking = hasBacking
        self.reports = reports
        self.list = list
        isList = list != nil
        isTwoWay = list?.isTwoWay == true
        self.position = position
        isShared = position != nil
        inheritsContext = policy.fetchContext == .firstCaller
        self.isLive = isLive
    }

    /// Whether content may have pages at this side.
    @inline(__always)
    func hasSide(_ direction: PageDirection) -> Bool { direction == .next ? isList : isTwoWay }
}

// MARK: - Derived properties

extension KeyMachine {
    /// The content that observers and callers get: the accepted content with the patches applied.
    var content: Content? { book.content }

    // The properties that every transition reads are inlined: a call would copy the whole machine.

    /// Whether there is a state to show.
    @inline(__always)
    var isVisible: Bool { origin.flight != nil || origin.failure != nil || book.held != nil || book.overlay != nil }

    /// The state for observers; `nil` before anything is known.
    @inline(__always)
    var state: LoadingState<Content>? {
        if origin.flight != nil { return .loading(content: content ?? placeholder) }
        if let failure = origin.failure { return .error(rawError: failure.error, content: content ?? placeholder) }
        // Computed first, so that the content is moved into the state and not copied.
        let (next, prev) = (additionalState(.next), additionalState(.prev))
        return content.map { .completed(content: $0, next: next, prev: prev) }
    }

    /// The distinguishing parts of the current state.
    // Mutating, so that the machine is read in place: the end of each transition would copy it otherwise.
    @inline(__always)
    var sight: Sight? {
        mutating get {
            let number = book.held == nil && book.overlay == nil ? nil : book.contentNumber
            // The patches also apply to a row in place of content.
            if origin.flight != nil { return Sight(kind: .loading, content: number ?? rowNumber) }
            if origin.failure != nil { return Sight(kind: .error, content: number ?? rowNumber) }
            guard let number else { return nil }
            return Sight(kind: completedKind, content: number)
        }
    }

    @inline(__always)
    private var rowNumber: UInt64? { book.linked?.value.row == nil ? nil : book.contentNumber }

    /// Whether the key has no observers, no callers, and no work in progress.
    @inline(__always)
    var isIdle: Bool {
        desk.isEmpty && origin.isIdle && !sides.isLoading && !saving.isRunning && book.patches.isEmpty
            && saving.tried == book.revision
    }

    private func automaticFetchAllowed(after interval: Duration) -> MonotonicInstant {
        max(origin.lastEnded?.advanced(by: interval) ?? .distantPast, origin.failure?.holdsUntil ?? .distantPast)
    }

    /// The time of the next automatic fetch of an observed key, because its content expires or a trigger is pending.
    @inline(__always)
    var automaticFetchDue: MonotonicInstant? {
        guard desk.observers > 0, origin.isKnown, origin.flight == nil else { return nil }
        if desk.triggerPending { return automaticFetchAllowed(after: max(.zero, rules.policy.minimumInterval)) }
        // A stream that waits connects again anyway.
        guard book.held?.refetchesAtDeadline == true, !origin.isStreaming, let held = book.held else { return nil }
        // Fetched content may expire at once, so the interval bounds the rate. A trigger has its own pace.
        return max(held.deadline, automaticFetchAllowed(after: rules.policy.boundedInterval))
    }

    /// The time at which waiting callers get stale content; `nil` for never, and once it has come.
    @inline(__always)
    private var staleDue: MonotonicInstant? {
        // The callers come first, because a stream is copied to be read.
        guard desk.hasCallersOfContent, book.held != nil, let due = origin.staleDue, due != .distantFuture, due != .distantPast
        else { return nil }
        return due
    }

    @inline(__always)
    var nextWake: MonotonicInstant? {
        var wake = book.linked?.value.pace.due ?? .distantFuture
        if origin.graceEnds != nil || origin.isStreaming
            || (desk.observers > 0 && (desk.triggerPending || book.held?.refetchesAtDeadline == true)) || staleDue != nil
        {
            wake = min(wake, origin.graceEnds ?? .distantFuture, automaticFetchDue ?? .distantFuture)
            wake = min(wake, staleDue ?? .distantFuture, origin.stream?.nextWake(isWanted: desk.wantsFetch) ?? .distantFuture)
        }
        return wake == .distantFuture ? nil : wake
    }

    // MARK: Time, and the end of each transition

    /// The time that `nextWake` returned may have come.
    mutating func timerFired(_ transition: inout Transition) {
        if let end = origin.graceEnds, end <= transition.now { cancelUnwanted(&transition) }
        if let due = staleDue, due <= transition.now { serveStaleContent(&transition) }
        if origin.isStreaming { streamTimerFired(&transition) }
        if book.linked?.value.pace.due != nil { book.linked?.value.pace.timerFired(at: transition.now) }
        if let due = automaticFetchDue, due <= transition.now { startFlight(forceRefresh: false, &transition) }
        endTransition(&transition)
    }

    /// A trigger of the store requests fresh content (C16).
    mutating func triggered(_ transition: inout Transition) {
        guard desk.observers > 0 else { return }
        if origin.flight != nil || origin.isConnected {
            report(.coalesced, &transition)
        } else {
            // An early trigger is kept: a trigger such as "the network is back" must not be lost.
            desk.triggerPending = true
            if let due = automaticFetchDue, due <= transition.now { startFlight(forceRefresh: false, &transition) }
        }
        endTransition(&transition)
    }

    /// Completes each transition: requests a save, starts or ends the grace period of an unwanted fetch, and publishes the outcome once.
    mutating func endTransition(_ transition: inout Transition) {
        if sides.isInterrupted { resumePages(&transition) }
        requestSave(&transition)
        if desk.observers == 0, desk.forceRefreshPending || desk.triggerPending {
            (desk.forceRefreshPending, desk.triggerPending) = (false, false)
        }
        let isFetching = origin.isRunning || sides.isLoading
        if desk.wantsFetch || !isFetching || origin.flight?.isPromised == true {
            if origin.graceEnds != nil { origin.graceEnds = nil }
        } else if origin.graceEnds == nil {
            beginGrace(&transition)
        }
        if transition.publishes {
            transition.publishes = false
            // Most changes during a running fetch leave the state as it was (C7).
            let sight = sight
            if sight != desk.shown {
                transition.isPublished = true
                desk.shown = sight
            }
        }
    }

    /// Starts the grace period of unwanted work, or ends it at once.
    private mutating func beginGrace(_ transition: inout Transition) {
        switch rules.policy.unwantedFetch {
        case .cancel(let grace) where grace > .zero: origin.graceEnds = transition.now.advanced(by: grace)
        case .cancel: cancelUnwanted(&transition)
        case .complete:
            // A fetch runs to its end, and a stream to its first value.
            guard origin.isStreaming, origin.flight == nil else { return }
            cancelStream(&transition)
        }
        requestSave(&transition)
    }

    func report(_ kind: @autoclosure () -> StoreEventKind, _ transition: inout Transition) {
        if rules.reports { transition.actions.append(.report(kind())) }
    }
}
