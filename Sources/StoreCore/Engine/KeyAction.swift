/// The number of something begun: a fetch, a cacher call, an epoch. Drawn from one counter of the whole store, so that what comes later
/// has the higher number, for all keys and beyond a key's short life in the engine.
struct Ticket: Hashable, Comparable, Sendable {
    let number: UInt64

    static func < (lhs: Ticket, rhs: Ticket) -> Bool { lhs.number < rhs.number }
}

/// Gives out tickets.
struct TicketCounter: Hashable, Sendable {
    private(set) var last: UInt64 = 0

    mutating func next() -> Ticket {
        last += 1
        return Ticket(number: last)
    }
}

/// Somebody who waits for an answer.
typealias CallerID = UInt64

/// What a caller waits for.
enum CallerNeed: Hashable, Sendable {
    /// Valid content, from wherever.
    case content
    /// Content that was fetched after the call, or by a fetch of the present epoch.
    case origin
    /// Valid content of the cache, without a fetch.
    case cached
    /// Valid content after a fetch that did not fail, or the end of a fetch.
    case freshness
    /// Valid content for later, of the store's own prefetch: nothing is handed over, a failure is no reason to fetch valid content again, and
    /// clearing the key ends it.
    case prefetch
    /// That a fetch of the present epoch has ended and what it brought is saved.
    case refresh
    /// That the truth is known; the caller stays registered so that the key keeps it until he leaves.
    case truth
    /// That the truth of this number or a later one is saved; the answer is a failure where the save has failed.
    case saved(Ticket)
    /// The same for content that was derived from the content before; answered with `outdated` where a newer record of another user takes
    /// its place, so that the caller derives it again.
    case savedEdit(Ticket)
    /// That the cacher has all that was accepted before, also what it has failed to take so far.
    case allSaved
    /// A page at one side.
    case page(PageDirection, continueWhenError: Bool)
    /// A page of a list that is being fetched: the caller is told so when the fetch has ended.
    case pageAfterFetch
    /// A page that another caller has asked for already.
    case joinedPage(PageDirection)

    /// Whether the caller keeps fetches going: one who only waits for the cacher does not.
    var wantsFetch: Bool {
        switch self {
        case .content, .origin, .freshness, .prefetch, .refresh, .page, .pageAfterFetch, .joinedPage: true
        case .cached, .truth, .saved, .savedEdit, .allSaved: false
        }
    }
}

/// What a caller is told.
@usableFromInline
enum CallerAnswer<Content: Sendable>: Sendable {
    case content(Content)
    case failure(any Error)
    case done
    case page(PageRequest)
    /// The truth that the caller started from is not the newest any longer.
    case outdated
    /// The caller's task was cancelled; never given by a machine.
    case cancelled
}

/// What a fetch is to get.
enum FetchOrder: Hashable, Sendable {
    /// The content of the key, and as many pages beside it as `pages` says.
    case content(revalidating: Validator?, pages: PageCounts)
    /// One page.
    case page(PageDirection, key: String)

    var target: StoreEventKind.Target {
        switch self {
        case .content: .content
        case .page(let direction, key: _): .page(direction)
        }
    }
}

/// What a fetch has got: what will stand in the record, but for its date. Two words, on its way through the frames of a fetch.
@usableFromInline
struct Fetched<Content: Sendable>: Sendable {
    /// The content, or one page of it; `nil` where the origin has confirmed what the store has.
    @usableFromInline let content: Content?
    /// What the origin said beside it; `nil` where it said nothing.
    @usableFromInline let details: RecordDetails?

    @inlinable
    init(content: Content?, details: RecordDetails?) {
        self.content = content
        self.details = details
    }

    /// What an origin has answered; `content` makes the engine's content of the origin's.
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

/// What a machine wants done; carried out by the engine in the order given.
///
/// Beside these a turn says whether there is something new to see and to mirror: that is done once, at the end.
enum KeyAction<Content: Sendable> {
    /// Load the record from the cacher, and report it with this ticket.
    case read(Ticket)
    /// Save or remove the record when the cacher is ready: `saveBegan` returns the newest content, and `saveFinished` ends the save.
    case save
    /// The cacher failed to take the newest content: save it again later.
    case saveFailed
    /// The failed save has succeeded or become needless.
    case saveRecovered
    /// Begin a fetch, and report its end with this ticket.
    case fetch(Ticket, FetchOrder)
    /// Cancel a fetch; whatever it still reports will be dropped.
    case cancel(Ticket)
    /// Answer a caller, who is no longer registered unless he waits for the truth.
    case answer(CallerID, CallerAnswer<Content>)
    /// Tell the store's event hook.
    case report(StoreEventKind)
}
