/// Gets one piece of content from where it lives: an HTTP API, a file, a computation.
///
/// ```swift
/// struct UserFetcher: Fetcher {
///     func fetch(param id: User.ID) async throws -> User { try await api.user(id) }
/// }
/// ```
///
/// In a module that is built with the main actor as its default isolation, write `nonisolated struct UserFetcher: Fetcher`.
public protocol Fetcher<Param, Content>: Origin {
    // Declared again, or the compiler does not infer them from `fetch(param:)`.
    /// The key of one piece of data.
    associatedtype Param
    /// The data itself.
    associatedtype Content

    /// Gets the content for a key.
    ///
    /// - Parameter param: The key.
    /// - Returns: The content as the origin has it now.
    /// - Throws: Whatever the origin fails with; it reaches callers as it was thrown. The task is cancelled when nobody wants the answer.
    func fetch(param: Param) async throws -> Content
}

extension Fetcher {
    /// Answers a store's request by fetching; a plain fetcher has no pages and confirms nothing.
    @inlinable
    public func respond(to request: OriginRequest<Param>) async throws -> OriginResponse<Content> {
        switch request {
        case .content(let param, revalidating: _):
            OriginResponse(.modified(try await fetch(param: param)))
        case .page:
            throw StoreError(.noSuchPage, "fetching a page: this fetcher has no pages; use a PaginationFetcher")
        }
    }
}

/// Gets content, or learns from the origin that what the store has is still right.
///
/// ```swift
/// struct CheckedUserFetcher: RevalidatingFetcher {
///     let api: VersionedAPI
///
///     func fetch(param id: User.ID, revalidating validator: Validator?) async throws -> FetchResult<User> {
///         let answer = try await api.user(id, ifNoneMatch: validator?.entityTag)
///         guard let user = answer.user else { return .notModified(.fresh(for: answer.maxAge)) }
///         return .modified(user, .fresh(for: answer.maxAge), Validator(entityTag: answer.entityTag))
///     }
/// }
/// ```
public protocol RevalidatingFetcher<Param, Content>: Origin {
    // Declared again, or the compiler does not infer them from `fetch(param:revalidating:)`.
    /// The key of one piece of data.
    associatedtype Param
    /// The data itself.
    associatedtype Content

    /// Gets the content for a key unless the origin confirms the version that the store has.
    ///
    /// - Parameters:
    ///   - param: The key.
    ///   - validator: What names the store's version; `nil` where it has none, and then the answer must be `.modified`.
    /// - Returns: New content, or `.notModified`; a lifetime given by the origin beats the cacher's expiry.
    /// - Throws: Whatever the origin fails with; it reaches callers as it was thrown.
    func fetch(param: Param, revalidating validator: Validator?) async throws -> FetchResult<Content>
}

extension RevalidatingFetcher {
    /// Answers a store's request by a conditional fetch; such a fetcher has no pages.
    @inlinable
    public func respond(to request: OriginRequest<Param>) async throws -> OriginResponse<Content> {
        switch request {
        case .content(let param, let validator):
            OriginResponse(try await fetch(param: param, revalidating: validator))
        case .page:
            throw StoreError(.noSuchPage, "fetching a page: this fetcher has no pages; use a PaginationFetcher")
        }
    }
}
