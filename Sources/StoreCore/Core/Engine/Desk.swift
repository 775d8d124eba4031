/// The observers and callers of a key: what they need, and what they were shown last.
struct Desk {
    var observers = 0
    private(set) var callers: [CallerID: CallerNeed] = [:]
    /// The number of callers that want a fetch.
    private(set) var fetchCallers = 0
    /// The number of callers that wait for a refresh, which no update satisfies.
    private(set) var refreshCallers = 0
    /// The state that was published last.
    var shown: Sight?
    /// Whether an observer that forces a fetch has joined before the cache was read.
    var forceRefreshPending = false
    /// Whether the content was invalidated before the cache was read.
    var invalidatePending = false

    /// Whether an observer or a caller wants a fetch.
    var wantsFetch: Bool { observers > 0 || fetchCallers > 0 }

    /// Whether a caller waits for content or a page, and not for a refresh alone.
    var hasCallersOfContent: Bool { fetchCallers > refreshCallers }

    @inline(__always)
    var isEmpty: Bool { observers == 0 && callers.isEmpty && !invalidatePending }

    mutating func register(_ id: CallerID, _ need: CallerNeed) {
        callers[id] = need
        if need.wantsFetch { fetchCallers += 1 }
        if need == .refresh { refreshCallers += 1 }
    }

    mutating func forget(_ id: CallerID) {
        guard let need = callers.removeValue(forKey: id) else { return }
        // A dictionary keeps its capacity: a thousand callers of an observed key would cost memory forever.
        if callers.isEmpty { callers = [:] }
        if need.wantsFetch { fetchCallers -= 1 }
        if need == .refresh { refreshCallers -= 1 }
    }
}

/// The distinguishing parts of a state. Contents and errors need no comparison: content has a number, and a loading state separates any
/// two errors.
struct Sight: Hashable {
    enum Kind: Hashable { case loading, error, completed(next: Page, prev: Page) }
    enum Page: Hashable {
        case none, more, loading, error

        @inline(__always)
        init(isLoading: Bool, hasFailed: Bool, hasPage: Bool) {
            self = isLoading ? .loading : hasFailed ? .error : hasPage ? .more : .none
        }
    }

    var kind: Kind
    /// The number of the content, if there is any.
    var content: UInt64?
}
