/// A fetcher of content from an origin: an HTTP API, a file, a computation.
///
/// ```swift
/// struct UserFetcher: Fetcher {
///     func fetch(param id: User.ID) async throws -> User {
///         try await api.user(id)
///     }
/// }
/// ```
///
/// In a module with the main actor as its default isolation, write `nonisolated struct UserFetcher: Fetcher`.
///
/// <doc:GettingStarted> begins with a fetcher.
public protocol Fetcher<Param, Content>: Origin {
    // Redeclared, because otherwise the compiler cannot infer them from `fetch(param:)`.
    /// The key of one piece of data.
    associatedtype Param
    /// The type of a key's data, as the origin returns it.
    associatedtype Content

    /// Fetches the content of a key.
    ///
    /// - Parameter param: The key.
    /// - Returns: The content that the origin has now.
    /// - Throws: The origin's error, which reaches callers unchanged. The task is canceled when no caller or observer wants the content.
    func fetch(param: Param) async throws -> Content
}

extension Fetcher {
    /// Responds to a store's request with a fetch; a plain fetcher has no pages and never confirms a version.
    @inlinable
    public func respond(to request: OriginRequest<Param>) async throws -> OriginResponse<Content> {
        guard case .content(let param, revalidating: _) = request else {
            throw StoreError(.noSuchPage, "fetching a page: this fetcher has no pages; use a PaginationFetcher")
        }
        return OriginResponse(.modified(try await fetch(param: param)))
    }
}

/// A fetcher that returns new content, or the origin's confirmation that the store's version is still current.
///
/// ```swift
/// struct CheckedUserFetcher: RevalidatingFetcher {
///     let api: VersionedAPI
///
///     func fetch(
///         param id: User.ID, revalidating validator: Validator?
///     ) async throws -> FetchResult<User> {
///         let response = try await api.user(id, ifNoneMatch: validator?.entityTag)
///         guard let user = response.user else {
///             return .notModified(.fresh(for: response.maxAge))
///         }
///         return .modified(
///             user, .fresh(for: response.maxAge),
///             Validator(entityTag: response.entityTag))
///     }
/// }
/// ```
///
/// <doc:RefreshingAndExpiring> explains validators and freshness.
public protocol RevalidatingFetcher<Param, Content>: Origin {
    // Redeclared, because otherwise the compiler cannot infer them from `fetch(param:revalidating:)`.
    /// The key of one piece of data.
    associatedtype Param
    /// The type of a key's data, as the origin returns it.
    associatedtype Content

    /// Fetches the content of a key, unless the origin confirms the store's version.
    ///
    /// - Parameters:
    ///   - param: The key.
    ///   - validator: The validator of the store's version; `nil` if the store has none, and then the result must be `.modified`.
    /// - Returns: New content, or `.notModified`; a lifetime from the origin takes precedence over the cacher's expiry.
    /// - Throws: The origin's error, which reaches callers unchanged.
    func fetch(param: Param, revalidating validator: Validator?) async throws -> FetchResult<Content>
}

extension RevalidatingFetcher {
    /// Responds to a store's request with a conditional fetch; a revalidating fetcher has no pages.
    @inlinable
    public func respond(to request: OriginRequest<Param>) async throws -> OriginResponse<Content> {
        guard case .content(let param, let validator) = request else {
            throw StoreError(.noSuchPage, "fetching a page: this fetcher has no pages; use a PaginationFetcher")
        }
        return OriginResponse(try await fetch(param: param, revalidating: validator))
    }
}
