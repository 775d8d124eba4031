import StoreCore
import Trials

/// The expected behavior of a store of lists, implemented as simply as possible: sequentially, without concurrency.
///
/// It follows the laws and shares no code with the store. Times are in milliseconds.
struct HistoryModel: Sendable {
    /// One page of a list: the request that loaded it, the key of its opposite direction, and the number of its elements.
    struct Page: Hashable, Sendable {
        var direction: PageDirection?
        var key: String?
        var returnKey: String?
        var count = 1
    }

    struct Record: Hashable, Sendable {
        var content: [Int]
        var deadline: Int?
        var isInvalidated = false
        var validator: String?
        var nextKey: String?
        var prevKey: String?
        var fetchedAt: Int
        /// Whether it was expired on arrival.
        var isNeverValid = false
        /// The lifetime given by the origin.
        var lifetime: Int?
        /// The pages in the order of the list; one without a direction is the initial page.
        var pages = [Page()]
    }

    enum Need: Hashable, Sendable {
        case content, origin, cached, freshness, prefetch, refresh, pageAfterFetch
        case page(PageDirection, continues: Bool), joined(PageDirection)
        case saved(Int, result: String)
        /// The waits of `waitUntilSaved()` for one key, before and after the record to save is known.
        case allSaved, kept(Int)
        case acceptedContent(Change)

        var wantsFetch: Bool {
            switch self {
            case .cached, .saved, .allSaved, .kept, .acceptedContent: false
            default: true
            }
        }

        /// Whether the caller waits for the cacher and not for the accepted content.
        var isSaved: Bool {
            switch self {
            case .saved, .kept: true
            default: false
            }
        }

        var isPage: Bool { if case .page = self { true } else { false } }
    }

    /// The change that a caller makes once the accepted content is known.
    enum Change: Hashable, Sendable { case append(Int), patch(Int), invalidate }

    struct Caller: Sendable { var id: Int, need: Need }
    struct Side: Hashable, Sendable { var isLoading = false, hasFailed = false, isInterrupted = false }
    struct Patch: Sendable { var id: Int, number: Int, began: Int, isBeforePage = false, isConfirmed = false }
    struct Flight: Hashable, Sendable {
        var validator: String?, isExplicit = false, isPromised = false
        /// The pages still to fetch, the page being fetched, and the list so far.
        var nextPages = 0, prevPages = 0
        var asking: PageDirection?, askedKey: String?
        /// Whether it begins with another page than the initial one.
        var startsInside = false
        var soFar: Record?
    }
    enum PendingKeys: Hashable, Sendable { case adopt, ignore }
    struct Debt: Hashable, Sendable {
        var isInvalidation = false
        var since: Int
    }

    /// A call of the cacher: a load, or saving or removing the record of `revision`.
    struct Call: Sendable {
        var isLoad = false
        var record: Record?
        var revision = 0
        var isDeferred = false
    }

    struct Key: Sendable {
        var isRead = false
        var accepted: Record?
        var revision = 0
        var settled = 0
        /// A failed save that is still pending.
        var debt: Debt?
        /// Whether the record could not be read, so that the cacher may have one without later changes.
        var isUnreadable = false
        var heldOffUntil: Int?
        var patches: [Patch] = []
        /// Changes that the response to an earlier mutation may not contain.
        var changes = 0
        var owesFetch = false
        var flight: Flight?
        var sides: [PageDirection: Side] = [.next: Side(), .prev: Side()]
        var call: Call?
        var callers: [Caller] = []
        var observers = 0
        var graceEnds: Int?
        var refetches = false
        var isTriggered = false
        var lastFetchEnded: Int?
        var isForced = false
        var isInvalidationPending = false
        /// What to do with the page keys of a record that is still being read.
        var pendingKeys: PendingKeys?

        var content: [Int]? { accepted.map { $0.content + patches.map(\.number) } }
        var isWanted: Bool { observers > 0 || callers.contains { $0.need.wantsFetch } }
        var isFetching: Bool { flight != nil || sides.values.contains(where: \.isLoading) }
        var isIdle: Bool {
            observers == 0 && callers.isEmpty && !isFetching && call == nil && patches.isEmpty && settled == revision
                && !isInvalidationPending
        }
    }

    let rules: HistoryRules
    var now = 0
    var keys: [Int: Key]
    /// The records in memory and in the cacher.
    var front: [Int: Record] = [:]
    var stored: [Int: Record] = [:]
    /// The results that callers got.
    var results: [Int: String] = [:]
    /// Running mutations and their keys.
    var performing: [Int: Int] = [:]
    /// The content that the origin returns for mutations.
    var responses: [Int: Int] = [:]
    /// The numbers of fetches begun and canceled so far.
    var begun = 0
    var cancelled = 0
    /// The calls of `waitUntilSaved()`: the number of open waits, and whether one has failed.
    var savers: [Int: (open: Int, hasFailed: Bool)] = [:]
    var clearers: [Int] = []
    var clearingFor: [Int] = []
    var isClearWanted = false
    var isClearing = false
    /// The keys that were saved since the last clear() failed; `nil` if it did not fail.
    var savedSince: Set<Int>?
    /// Changes to make by callers that just learned the accepted content.
    var resumed: [(id: Int, change: Change, key: Int)] = []

    init(rules: HistoryRules, keys: Int) {
        self.rules = rules
        self.keys = Dictionary(uniqueKeysWithValues: (0..<keys).map { ($0, Key()) })
    }

    subscript(key: Int) -> Key {
        get { keys[key] ?? Key() }
        set { keys[key] = newValue }
    }

    func isValid(_ key: Int) -> Bool {
        guard let accepted = self[key].accepted, !accepted.isInvalidated else { return false }
        return accepted.deadline.map { now < $0 } ?? true
    }

    func isUsable(_ key: Int, within window: Int) -> Bool {
        guard let accepted = self[key].accepted, !accepted.isInvalidated, let deadline = accepted.deadline, window > 0 else { return false }
        return now <= deadline + window
    }

    func isHeldOff(_ key: Int) -> Bool { self[key].heldOffUntil.map { now < $0 } ?? false }

    /// The last state that an observer of the key must have seen.
    func state(_ key: Int) -> LoadingState<[Int]>? {
        let one = self[key]
        if one.flight != nil { return .loading(content: one.content) }
        if one.heldOffUntil != nil { return .error(rawError: Offline(), content: one.content) }
        return one.content.map { .completed(content: $0, next: side(.next, one), prev: side(.prev, one)) }
    }

    private func side(_ direction: PageDirection, _ key: Key) -> AdditionalLoadingState {
        let side = key.sides[direction] ?? Side()
        if side.isLoading { return .loading }
        if side.hasFailed { return .error(rawError: Offline()) }
        return .fixed(canRequestAdditionalData: pageKey(direction, key) != nil)
    }

    func pageKey(_ direction: PageDirection, _ key: Key) -> String? { direction == .next ? key.accepted?.nextKey : key.accepted?.prevKey }

    /// Whether a caller waits for the accepted content to be known.
    func isReadAwaited(_ key: Int) -> Bool { self[key].callers.contains { if case .acceptedContent = $0.need { true } else { false } } }

    // MARK: The end of each step

    /// Fires due timers and forgets idle keys.
    mutating func finishStep() {
        while let due = keys.keys.sorted().first(where: { isDue($0) }) { fire(due) }
        for (key, one) in keys where one.isIdle && one.debt == nil { keys[key] = Key() }
    }

    var liveKeys: Set<Int> { Set(keys.filter { !$0.value.isIdle || $0.value.debt != nil }.keys) }

    /// Whether any work waits for a command.
    var isBusy: Bool { !requests.isEmpty || !cacherCalls.isEmpty || !performing.isEmpty }

    private func automaticFetchDue(_ key: Int) -> Int? {
        let one = self[key]
        guard one.observers > 0, one.flight == nil, one.isRead else { return nil }
        let allowed = max(one.lastFetchEnded.map { $0 + 1_000 } ?? .min, one.heldOffUntil ?? .min)
        if one.isTriggered { return allowed }
        guard one.refetches, let deadline = one.accepted?.deadline else { return nil }
        return max(deadline, allowed)
    }

    private func isDue(_ key: Int) -> Bool { (self[key].graceEnds ?? .max) <= now || (automaticFetchDue(key) ?? .max) <= now }

    private mutating func fire(_ key: Int) {
        if (self[key].graceEnds ?? .max) <= now {
            self[key].graceEnds = nil
            dropFlight(key)
            supersedePages(key)
        }
        if (automaticFetchDue(key) ?? .max) <= now { startFlight(key, explicit: false) }
        endTransition(key)
    }

    mutating func trigger() {
        for key in keys.keys.sorted() where self[key].observers > 0 && self[key].flight == nil { self[key].isTriggered = true }
    }

    mutating func endTransition(_ key: Int) {
        resumePages(key)
        advanceLane(key)
        if self[key].observers == 0 { (self[key].isForced, self[key].isTriggered) = (false, false) }
        if self[key].isWanted || !self[key].isFetching || self[key].flight?.isPromised == true {
            self[key].graceEnds = nil
        } else if self[key].graceEnds == nil, !rules.completesUnwanted {
            self[key].graceEnds = now + 1_000
        }
        let ready = resumed
        resumed = []
        for (id, change, key) in ready { go(on: id, change, key) }
    }
}
