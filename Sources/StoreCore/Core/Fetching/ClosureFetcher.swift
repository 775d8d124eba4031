/// A fetcher that calls a closure.
///
/// ```swift
/// let users = Store(cacher: MemoryCacher<Int, String>()) { id in "user \(id)" }
/// ```
public struct ClosureFetcher<Param: Hashable & Sendable, Content: Sendable>: Fetcher {
    @usableFromInline let body: @Sendable (Param) async throws -> Content

    /// Creates a fetcher from a closure that returns the content of any key.
    ///
    /// - Parameter body: Fetches the content of a key; runs in the store's own task, which is canceled when no caller or observer wants it.
    @inlinable
    public init(_ body: @escaping @Sendable (_ param: Param) async throws -> Content) {
        self.body = body
    }

    /// Fetches the content of a key by calling the closure.
    @inlinable
    public func fetch(param: Param) async throws -> Content {
        try await body(param)
    }
}

/// A revalidating fetcher that calls a closure.
public struct RevalidatingClosureFetcher<Param: Hashable & Sendable, Content: Sendable>: RevalidatingFetcher {
    @usableFromInline let body: @Sendable (Param, Validator?) async throws -> FetchResult<Content>

    /// Creates a fetcher from a closure that may confirm the store's version.
    ///
    /// - Parameter body: Fetches the content of a key, unless the origin confirms the version that the validator names.
    @inlinable
    public init(_ body: @escaping @Sendable (_ param: Param, _ validator: Validator?) async throws -> FetchResult<Content>) {
        self.body = body
    }

    /// Fetches the content of a key by calling the closure.
    @inlinable
    public func fetch(param: Param, revalidating validator: Validator?) async throws -> FetchResult<Content> {
        try await body(param, validator)
    }
}

/// A one-way pagination fetcher that calls a closure; the key of the first page is `nil`.
public struct PaginationClosureFetcher<Param: Hashable & Sendable, Element: Sendable>: PaginationFetcher {
    @usableFromInline let body: @Sendable (Param, String?) async throws -> Page<Element>

    /// Creates a fetcher from one closure for all pages.
    ///
    /// - Parameter body: Fetches the page that `nextKey` names, and the first page for `nil`.
    @inlinable
    public init(_ body: @escaping @Sendable (_ param: Param, _ nextKey: String?) async throws -> Page<Element>) {
        self.body = body
    }

    /// Fetches the first page by calling the closure.
    @inlinable
    public func fetch(param: Param) async throws -> Page<Element> {
        try await body(param, nil)
    }

    /// Fetches the page that `nextKey` names by calling the closure.
    @inlinable
    public func fetchNext(nextKey: String, param: Param) async throws -> Page<Element> {
        try await body(param, nextKey)
    }
}
