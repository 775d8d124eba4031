/// The source of content, in the form that every store works with.
///
/// You rarely conform to this protocol. Conform to ``Fetcher``, ``RevalidatingFetcher``, ``PaginationFetcher`` or
/// ``TwoWayPaginationFetcher``, each of which implements ``respond(to:)``. Implement it yourself only if an origin needs more than they
/// offer, such as a conditional request for the first page of a list.
///
/// A store takes any `Origin` in one initializer, so that generic code cannot select the wrong kind of fetcher by accident.
public protocol Origin<Param, Content>: Sendable {
    /// The key of one piece of data.
    associatedtype Param: Hashable & Sendable
    /// The type of a key's data; an array of elements for a list.
    associatedtype Content: Sendable

    /// Responds to one request of a store.
    ///
    /// - Parameter request: The requested content and the version that the store already has.
    /// - Returns: The content, or confirmation that the store's version is current.
    /// - Throws: The origin's error, which reaches callers unchanged. The task is canceled when no caller or observer wants the response.
    func respond(to request: OriginRequest<Param>) async throws -> OriginResponse<Content>

    /// Returns whether a version that was saved earlier may be used for a key; otherwise it counts as missing.
    ///
    /// A store calls this method for each record with ``Validator/notes`` that it reads from its cacher. The default accepts every version.
    ///
    /// The read waits for the result, so the method must not call a method of the store that waits for the read. `close()` detects such a
    /// call, closes the store, and throws.
    ///
    /// - Parameters:
    ///   - validator: The validator of the saved version.
    ///   - param: The key.
    func accepts(_ validator: Validator, param: Param) async -> Bool
}

extension Origin {
    /// The default: every saved version fits.
    @inlinable
    public func accepts(_ validator: Validator, param: Param) async -> Bool { true }
}

/// A store's request to its origin.
public enum OriginRequest<Param: Hashable & Sendable>: Hashable, Sendable {
    /// The content of a key; `revalidating` is the validator of the store's version.
    case content(Param, revalidating: Validator?)
    /// The page named by `key`, in one direction of a key's list.
    case page(PageDirection, key: String, Param)
}

/// An origin's response: the content or its confirmation, and the keys of the pages beside it.
public struct OriginResponse<Content: Sendable>: Sendable {
    /// The content, or confirmation that the store's version is current.
    public var result: FetchResult<Content>
    /// The key of the page after this one; `nil` or empty if there is none, or if a confirmation leaves it unchanged (C25).
    public var nextKey: String?
    /// The key of the page before this one; `nil` or empty if there is none, or if a confirmation leaves it unchanged.
    public var prevKey: String?
    /// The reason for which the origin's list is taken as complete without a next key; `nil` if the origin states its end.
    public var guessedEnd: GuessedEnd?
    /// The time that the content has spent in caches before the request. Linked stores compare the ages of their values (E2).
    public var age: Duration

    /// Creates a response; omit the keys for content other than a list.
    ///
    /// - Parameters:
    ///   - result: The content, or confirmation that the store's version is current.
    ///   - nextKey: The key of the page after this one.
    ///   - prevKey: The key of the page before this one.
    ///   - guessedEnd: The reason for which the list is taken as complete without a next key.
    ///   - age: The time that the content has spent in caches before the request.
    @inlinable
    public init(
        _ result: FetchResult<Content>, nextKey: String? = nil, prevKey: String? = nil, guessedEnd: GuessedEnd? = nil,
        age: Duration = .zero
    ) {
        self.result = result
        self.nextKey = nextKey
        self.prevKey = prevKey
        self.guessedEnd = guessedEnd
        self.age = age
    }
}

/// The result of a conditional request.
public enum FetchResult<Content: Sendable>: Sendable {
    /// New content, its freshness, and the validator of this version.
    case modified(Content, Freshness = .unspecified, Validator? = nil)
    /// Confirmation that the store's version is current, and its new freshness; `.unspecified` keeps the freshness of that version.
    ///
    /// With a validator, both the freshness and the validator replace those of that version.
    case notModified(Freshness = .unspecified, Validator? = nil)
}

extension FetchResult: Equatable where Content: Equatable {}

/// The key of data that exists only once.
public struct UnitParam: Hashable, Sendable, Codable {
    /// Creates the only value; all instances are equal.
    public init() {}
}
