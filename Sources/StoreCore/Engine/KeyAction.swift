/// The number of a fetch, a load, a change, or an epoch. One counter numbers everything of a store, so that of two events, of any keys, the
/// later one has the higher number.
struct Ticket: Hashable, Comparable, Sendable {
    let number: UInt64

    static func < (lhs: Ticket, rhs: Ticket) -> Bool { lhs.number < rhs.number }
}

/// Issues tickets.
struct TicketCounter: Hashable, Sendable {
    private(set) var last: UInt64 = 0

    mutating func next() -> Ticket {
        last += 1
        return Ticket(number: last)
    }
}

/// The number of a caller or an observer.
typealias CallerID = UInt64

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
    /// Valid content for later, requested by the prefetch queue. The caller gets no content, a failed fetch is no reason to fetch valid
    /// content again, and clearing the key ends the wait.
    case prefetch
    /// The end of a fetch of the current epoch, and the save of its result.
    case refresh
    /// Knowledge of the accepted content. The caller stays registered, so that the key stays live until the caller leaves.
    case truth
    /// The save of this revision or a later one; fails if that save fails.
    case saved(Ticket)
    /// The save of content that was derived from the content before. The answer is `outdated` if a newer record of another user takes its
    /// place, so that the caller derives the content again.
    case savedEdit(Ticket)
    /// The save of all content accepted so far, including failed saves.
    case allSaved
    /// A page at one side of the list.
    case page(PageDirection, continueWhenError: Bool)
    /// A page of a list that is being fetched. The caller is resumed without a page when the fetch ends.
    case pageAfterFetch
    /// A page that an earlier caller has requested.
    case joinedPage(PageDirection)

    /// Whether the caller keeps a fetch running. A caller that waits only for the cacher does not.
    var wantsFetch: Bool {
        switch self {
        case .content, .origin, .freshness, .prefetch, .refresh, .page, .pageAfterFetch, .joinedPage: true
        case .cached, .truth, .saved, .savedEdit, .allSaved: false
        }
    }
}

/// The result for a caller.
@usableFromInline
enum CallerAnswer<Content: Sendable>: Sendable {
    case content(Content)
    case failure(any Error)
    case done
    case page(PageRequest)
    /// The content that the caller started from is no longer the newest.
    case outdated
    /// The caller's task was canceled. Machines never return this.
    case cancelled
}

/// The request of a fetch.
enum FetchOrder: Hashable, Sendable {
    /// The content of the key, and as many pages on each side as `pages` states.
    case content(revalidating: Validator?, pages: PageCounts)
    /// A single page.
    case page(PageDirection, key: String)
    /// A connection of a stream, after the version that a validator names.
    case values(after: Validator?)

    var target: StoreEventKind.Target {
        switch self {
        case .content, .values: .content
        case .page(let direction, key: _): .page(direction)
        }
    }
}

/// The result of a fetch: the new record without its date. Two words, because each frame of a fetch passes it on.
@usableFromInline
struct Fetched<Content: Sendable>: Sendable {
    /// The content, or one page of it; `nil` if the origin has confirmed the stored content.
    @usableFromInline let content: Content?
    /// Freshness, validator, and page keys from the origin; `nil` if it returned none of them.
    @usableFromInline let details: RecordDetails?

    @inlinable
    init(content: Content?, details: RecordDetails?) {
        self.content = content
        self.details = details
    }

    /// Converts an origin's response; `content` boxes its value.
    @inlinable
    init<Value>(_ response: OriginResponse<Value>, _ content: (Value) -> Content) {
        switch response.result {
        case .modified(let value, let freshness, let validator):
            self.content = content(value)
            details = RecordDetails(
                freshness: freshness, validator: validator, nextKey: response.nextKey, prevKey: response.prevKey)
        case .notModified(let freshness):
            self.content = nil
            details = RecordDetails(freshness: freshness)
        }
    }

    var freshness: Freshness { details?.fields.freshness ?? .unspecified }
}

/// An effect that a machine requests. The engine carries out the actions of a transition in their order.
///
/// Publishing and mirroring are not actions: a transition does each at most once, at its end.
enum KeyAction<Content: Sendable> {
    /// Load the record from the cacher, and report it with this ticket.
    case read(Ticket)
    /// The load has ended, and a fetch that follows it has begun. Only requested if fetches inherit the context of their first callers.
    case readEnded
    /// Save or remove the record when the cacher is ready: `saveBegan` returns the newest content, and `saveFinished` ends the save.
    case save
    /// The cacher failed to take the newest content: save it again later.
    case saveFailed
    /// The failed save has succeeded or become needless.
    case saveRecovered
    /// Begin a fetch, and report its end with this ticket.
    case fetch(Ticket, FetchOrder)
    /// Cancel a fetch. The machine drops what the fetch still reports.
    case cancel(Ticket)
    /// Resume a caller. The machine has already removed it, unless it waits for `.truth`.
    case answer(CallerID, CallerAnswer<Content>)
    /// Report an event of the store.
    case report(StoreEventKind)
}
