/// Where content comes from, in the one form a store works with.
///
/// You rarely conform to this protocol. Conform to ``Fetcher``, ``RevalidatingFetcher``, ``PaginationFetcher`` or
/// ``TwoWayPaginationFetcher``, each of which answers ``respond(to:)`` for you. Conform to it beside one of these only where an origin
/// needs more than they can say, such as a conditional request for the first page of a list.
///
/// A store takes any `Origin` in one initializer, so that generic code cannot pick the wrong kind by accident.
public protocol Origin<Param, Content>: Sendable {
    /// The key of one piece of data.
    associatedtype Param: Hashable & Sendable
    /// The data itself.
    associatedtype Content: Sendable

    /// Answers one request of a store.
    ///
    /// - Parameter request: What is wanted, and what the store already has.
    /// - Returns: The content, or the word that what the store has is still right.
    /// - Throws: Whatever the origin fails with; it reaches callers as it was thrown. The task is cancelled when nobody wants the answer.
    func respond(to request: OriginRequest<Param>) async throws -> OriginResponse<Content>
}

/// What a store asks of its origin.
public enum OriginRequest<Param: Hashable & Sendable>: Hashable, Sendable {
    /// The content for a key; `revalidating` names the version that the store already has.
    case content(Param, revalidating: Validator?)
    /// The page that `key` names, at one side of the list for a key.
    case page(PageDirection, key: String, Param)
}

/// What an origin answers: the content or its confirmation, and the keys of the pages beside it.
public struct OriginResponse<Content: Sendable>: Sendable {
    /// The content, or the word that the store's own is still right.
    public var result: FetchResult<Content>
    /// What asks for the page after this one; `nil` or empty where there is none.
    public var nextKey: String?
    /// What asks for the page before this one; `nil` or empty where there is none.
    public var prevKey: String?

    /// Makes a response.
    ///
    /// - Parameters:
    ///   - result: The content, or the word that the store's own is still right.
    ///   - nextKey: What asks for the page after this one.
    ///   - prevKey: What asks for the page before this one.
    @inlinable
    public init(_ result: FetchResult<Content>, nextKey: String? = nil, prevKey: String? = nil) {
        self.result = result
        self.nextKey = nextKey
        self.prevKey = prevKey
    }
}

/// The answer to a conditional request.
public enum FetchResult<Content: Sendable>: Sendable {
    /// New content, how long it may be used, and what asks later whether it has changed.
    case modified(Content, Freshness = .unspecified, Validator? = nil)
    /// The content that the store already has is still right, for as long as this says.
    case notModified(Freshness = .unspecified)
}

extension FetchResult: Equatable where Content: Equatable {}

/// The key of data of which there is only one.
public struct UnitParam: Hashable, Sendable, Codable {
    /// Makes the only value there is.
    public init() {}
}
