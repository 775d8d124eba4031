/// A machine's request to the origin.
enum FetchOrder: Hashable, Sendable {
    /// The content of the key, and as many pages on each side as `pages` states.
    case content(revalidating: Validator?, pages: PageCounts)
    /// One page in one direction; `key` is the page's key from the origin.
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

    @inlinable
    init<Value>(_ response: OriginResponse<Value>, _ content: (Value) -> Content) {
        switch response.result {
        case .modified(let value, let freshness, let validator):
            self.content = content(value)
            details = RecordDetails(
                freshness: freshness, validator: validator, nextKey: response.nextKey, prevKey: response.prevKey,
                guessedEnd: response.guessedEnd, age: response.age)
        case .notModified(let freshness, let validator):
            self.content = nil
            details = RecordDetails(
                freshness: freshness, validator: validator, nextKey: response.nextKey, prevKey: response.prevKey)
        }
    }

    var freshness: Freshness { details?.fields.freshness ?? .unspecified }

    /// The stamp of content that was requested at `start`: earlier by the age that the origin stated.
    func stamp(requestedAt start: Stamp) -> Stamp { start - min(start, details?.age ?? 0) }
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
    /// The failed save has succeeded or become unnecessary.
    case saveRecovered
    /// Begin a fetch, and report its end with this ticket.
    case fetch(Ticket, FetchOrder)
    /// Cancel a fetch. The machine drops what the fetch still reports.
    case cancel(Ticket)
    /// Resume a caller. The machine has already removed it, unless it waits for `.acceptedContent`.
    case resume(CallerID, CallerResult<Content>)
    case report(StoreEventKind)
}

/// The number of a fetch, a load, a change, or an epoch. A store has one counter for all of them. Therefore the later of two events has the
/// higher number, even if they concern different keys.
struct Ticket: Hashable, Comparable, Sendable {
    let number: UInt64

    static func < (lhs: Ticket, rhs: Ticket) -> Bool { lhs.number < rhs.number }
}

struct TicketCounter: Hashable, Sendable {
    private(set) var last: UInt64 = 0

    mutating func next() -> Ticket {
        last += 1
        return Ticket(number: last)
    }
}

/// The number of a caller or an observer.
typealias CallerID = UInt64
