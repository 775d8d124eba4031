import StoreCore

/// What a store of lists must do, said once more and as plainly as possible: one step after the other, nothing at the same time.
///
/// It is written from the laws and shares no code with the store. Times are milliseconds.
struct HistoryModel: Sendable {
    struct Rules: Sendable {
        var hasFront = true
        var hasBacking = false
        var lifetime: Int?
        var staleWhileRevalidate = 0
        var staleIfError = 0
        var errorExpiry = 0
        var refetchesOnExpiry = false
        var completesUnwanted = false
        var resetsOnRefresh = true
        var refetchesAfterMutation = true
    }

    struct Record: Hashable, Sendable {
        var content: [Int]
        var deadline: Int?
        var isInvalidated = false
        var validator: String?
        var nextKey: String?
        var prevKey: String?
        var fetchedAt: Int
        /// Whether it had expired when it came.
        var isNeverValid = false
        /// How long it is valid, where the origin said so.
        var lifetime: Int?
        /// Pages beside the one that the list began with.
        var nextPages = 0
        var prevPages = 0
    }

    enum Need: Hashable, Sendable {
        case content, origin, cached, freshness, prefetch, refresh, pageAfterFetch
        case page(PageDirection, continues: Bool), joined(PageDirection)
        case saved(Int, result: String)
        /// What one who waits until everything is saved waits for at one key, before and after it is known what that is.
        case allSaved, kept(Int)
        case truth(Change)

        var wantsFetch: Bool {
            switch self {
            case .cached, .saved, .allSaved, .kept, .truth: false
            default: true
            }
        }

        /// Whether it is the cacher that is waited for, and not the truth.
        var isSaved: Bool {
            switch self {
            case .saved, .kept: true
            default: false
            }
        }

        var isPage: Bool { if case .page = self { true } else { false } }
    }

    /// What a caller does once the truth is known.
    enum Change: Hashable, Sendable { case append(Int), patch(Int), invalidate }

    struct Caller: Sendable { var id: Int, need: Need }
    struct Side: Hashable, Sendable { var isLoading = false, hasFailed = false, isInterrupted = false }
    struct Patch: Sendable { var id: Int, number: Int, began: Int, isBeforePage = false, isConfirmed = false }
    struct Flight: Hashable, Sendable {
        var validator: String?, isExplicit = false, isPromised = false
        /// Pages that are still to be fetched, the page that is being fetched, and what has been fetched.
        var nextPages = 0, prevPages = 0
        var asking: PageDirection?, askedKey: String?
        var soFar: Record?
    }
    enum PendingKeys: Hashable, Sendable { case adopt, ignore }
    struct Debt: Hashable, Sendable {
        var isInvalidation = false
        var since: Int
    }

    /// A call of the cacher: a load, or the saving or removing of what was true at `revision`.
    struct Call: Sendable {
        var isLoad = false
        var record: Record?
        var revision = 0
        var isDeferred = false
    }

    struct Key: Sendable {
        var isRead = false
        var truth: Record?
        var revision = 0
        var settled = 0
        /// What the cacher failed to be told, and when.
        var debt: Debt?
        var heldOffUntil: Int?
        var patches: [Patch] = []
        /// Changes that the response of an earlier mutation may not know of.
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
        /// What becomes of the page keys of the record that is still being read, beneath a list that was set.
        var pendingKeys: PendingKeys?

        var content: [Int]? { truth.map { $0.content + patches.map(\.number) } }
        var isWanted: Bool { observers > 0 || callers.contains { $0.need.wantsFetch } }
        var isFetching: Bool { flight != nil || sides.values.contains(where: \.isLoading) }
        var isAtRest: Bool {
            observers == 0 && callers.isEmpty && !isFetching && call == nil && patches.isEmpty && settled == revision
                && !isInvalidationPending
        }
    }

    let rules: Rules
    var now = 0
    var keys: [Int: Key]
    /// What the memory in front and the cacher behind have.
    var front: [Int: Record] = [:]
    var stored: [Int: Record] = [:]
    /// What callers were told.
    var results: [Int: String] = [:]
    /// Mutations whose work goes on, and their keys.
    var performing: [Int: Int] = [:]
    /// What the origin will respond to mutations.
    var responses: [Int: Int] = [:]
    /// How many fetches were ever begun and cancelled.
    var begun = 0
    var cancelled = 0
    /// Those who wait until everything is saved: for how much, and whether some of it has failed.
    var savers: [Int: (open: Int, hasFailed: Bool)] = [:]
    var clearers: [Int] = []
    var clearingFor: [Int] = []
    var isClearWanted = false
    var isClearing = false
    /// When an emptying began that failed, and when the present one did.
    var forgotten: Int?
    var clearingBegan = 0
    /// Changes whose caller has just learned the truth.
    var resumed: [(id: Int, change: Change, key: Int)] = []

    init(rules: Rules, keys: Int) {
        self.rules = rules
        self.keys = Dictionary(uniqueKeysWithValues: (0..<keys).map { ($0, Key()) })
    }

    subscript(key: Int) -> Key {
        get { keys[key] ?? Key() }
        set { keys[key] = newValue }
    }

    func isValid(_ key: Int) -> Bool {
        guard let truth = self[key].truth, !truth.isInvalidated else { return false }
        return truth.deadline.map { now < $0 } ?? true
    }

    func isUsable(_ key: Int, within window: Int) -> Bool {
        guard let truth = self[key].truth, !truth.isInvalidated, let deadline = truth.deadline, window > 0 else { return false }
        return now <= deadline + window
    }

    func isHeldOff(_ key: Int) -> Bool { self[key].heldOffUntil.map { now < $0 } ?? false }

    /// What an observer of the key must have seen last.
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

    func pageKey(_ direction: PageDirection, _ key: Key) -> String? {
        direction == .next ? key.truth?.nextKey : key.truth?.prevKey
    }

    /// Whether somebody waits for the truth to be known.
    func isTruthAwaited(_ key: Int) -> Bool {
        self[key].callers.contains { if case .truth = $0.need { true } else { false } }
    }

    // MARK: The end of each step

    /// Time, and keys about which nothing goes on.
    mutating func finishStep() {
        while let due = keys.keys.sorted().first(where: { isDue($0) }) { fire(due) }
        for (key, one) in keys where one.isAtRest && one.debt == nil { keys[key] = Key() }
    }

    var liveKeys: Set<Int> { Set(keys.filter { !$0.value.isAtRest || $0.value.debt != nil }.keys) }

    /// Whether anything waits for a command.
    var isBusy: Bool { !requests.isEmpty || !cacherCalls.isEmpty || !performing.isEmpty }

    private func automaticFetchDue(_ key: Int) -> Int? {
        let one = self[key]
        guard one.observers > 0, one.flight == nil, one.isRead else { return nil }
        let allowed = max(one.lastFetchEnded.map { $0 + 1_000 } ?? .min, one.heldOffUntil ?? .min)
        if one.isTriggered { return allowed }
        guard one.refetches, let deadline = one.truth?.deadline else { return nil }
        return max(deadline, allowed)
    }

    private func isDue(_ key: Int) -> Bool {
        (self[key].graceEnds ?? .max) <= now || (automaticFetchDue(key) ?? .max) <= now
    }

    private mutating func fire(_ key: Int) {
        if (self[key].graceEnds ?? .max) <= now {
            self[key].graceEnds = nil
            dropFlight(key)
            supersedePages(key)
        }
        if (automaticFetchDue(key) ?? .max) <= now { startFlight(key, explicit: false) }
        endTurn(key)
    }

    mutating func trigger() {
        for key in keys.keys.sorted() where self[key].observers > 0 && self[key].flight == nil { self[key].isTriggered = true }
    }

    mutating func endTurn(_ key: Int) {
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
