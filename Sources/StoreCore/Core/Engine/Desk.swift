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
    /// Whether a trigger came too early and waits for its time.
    var triggerPending = false

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

/// The result that a caller waits for.
enum CallerNeed: Hashable, Sendable {
    /// Valid content from the cache or the origin.
    case content
    /// Content fetched after the call, or by a fetch of the current epoch.
    case origin
    /// Valid content of the cache, without a fetch.
    case cached
    /// Valid content after a fetch that did not fail, or the end of a fetch.
    case freshness
    /// Valid content for later use, requested by the prefetch queue.
    ///
    /// The caller gets no content. After a failed fetch, valid content is not fetched again, and clearing the key ends the wait.
    case prefetch
    /// The end of a fetch of the current epoch, and the save of its result.
    case refresh
    /// Knowledge of the accepted content. The caller stays registered, so that the key stays live until the caller leaves.
    case acceptedContent
    /// The save of this revision or a later one; fails if that save fails.
    case saved(Ticket)
    /// The save of content that was derived from the previous content.
    ///
    /// The result is `outdated` if a newer record of another user replaces the derived content. The caller then derives it again.
    case savedEdit(Ticket)
    /// The save of all content accepted so far, including failed saves.
    case allSaved
    case page(PageDirection, continueWhenError: Bool)
    /// A page of a list that is being fetched. The caller is resumed without a page when the fetch ends.
    case pageAfterFetch
    case joinedPage(PageDirection)

    /// Whether the caller keeps a fetch running. A caller that waits only for the cacher does not.
    var wantsFetch: Bool {
        switch self {
        case .content, .origin, .freshness, .prefetch, .refresh, .page, .pageAfterFetch, .joinedPage: true
        case .cached, .acceptedContent, .saved, .savedEdit, .allSaved: false
        }
    }

    /// Whether the caller waits for the cacher alone and needs no content.
    var isSavedNeed: Bool {
        switch self {
        case .saved, .savedEdit: true
        default: false
        }
    }

    /// Whether the caller waits for a save of one change, or of all content, and needs no content.
    var waitsForSave: Bool { isSavedNeed || self == .allSaved }

    /// Whether the caller waits for a save at last.
    var endsWithSave: Bool { waitsForSave || self == .refresh }

    /// Whether the caller requests a page of a list that is not known yet.
    var isPageNeed: Bool {
        if case .page = self { true } else { false }
    }
}

@usableFromInline
enum CallerResult<Content: Sendable>: Sendable {
    case content(Content)
    case failure(any Error)
    case done
    case page(PageRequest)
    /// The content that the caller started from is no longer the newest.
    case outdated
    /// The caller's task was canceled. Machines never return this.
    case cancelled
}

enum Admission: Sendable {
    case immediate(CallerResult<BoxedContent>)
    case waiting(SharedResult<CallerResult<BoxedContent>>)
}
