public import StoreCore

/// A fetcher that returns answers from a test's script, and can hold its fetches.
///
/// ```swift
/// let fetcher = ScriptedFetcher<Int, String>(
///     .success("Ada"), .failure(URLError(.timedOut)))
/// let users = Store(cacher: MemoryCacher(), fetcher: fetcher)
/// #expect(try await users[1].requireData() == "Ada")
/// #expect(fetcher.requests.map(\.param) == [1])
/// ```
///
/// Hold a fetch to examine the state while it runs:
///
/// ```swift
/// fetcher.hold()
/// async let user = users[2].requireData()
/// try await fetcher.started(count: 2)
/// fetcher.enqueue(.success("Grace"))
/// fetcher.release()
/// ```
///
/// A request without an answer in the script throws ``StoreError/Code/unscriptedRequest``.
///
/// <doc:TestingYourStore> uses scripts in complete suites.
public final class ScriptedFetcher<Param: Hashable & Sendable, Content: Sendable>: RevalidatingFetcher, ScriptedOrigin {
    /// The answers and the recorded requests; use the methods of `ScriptedOrigin` instead.
    public let script: FetchScript<Param, Content>

    /// Creates a fetcher that returns these answers, one for each fetch, in this order.
    ///
    /// - Parameters:
    ///   - answers: The answers; more can be enqueued.
    ///   - cancellation: The behavior of a fetch whose task is canceled.
    public init(_ answers: ScriptedAnswer<Content>..., cancellation: ScriptedCancellation = .honored) {
        script = FetchScript(answers: answers, cancellation: cancellation, answering: nil)
    }

    /// Creates a fetcher that calls a closure for each answer.
    ///
    /// - Parameters:
    ///   - cancellation: The behavior of a held fetch whose task is canceled; the closure handles its own cancellation.
    ///   - answering: Makes the answer after the fetch has left the gate; the fetch rethrows its errors.
    public init(
        cancellation: ScriptedCancellation = .honored,
        answering: @escaping @Sendable (ScriptedRequest<Param>) async throws -> ScriptedAnswer<Content>
    ) {
        script = FetchScript(answers: [], cancellation: cancellation, answering: answering)
    }

    /// Returns the next answer of the script.
    ///
    /// - Parameters:
    ///   - param: The key; recorded.
    ///   - validator: The validator of the store's version; recorded.
    /// - Returns: The scripted result.
    /// - Throws: The scripted error; ``StoreError/Code/unscriptedRequest`` if the script has no answer; `CancellationError` as soon as the
    ///   task is canceled, unless the fetcher ignores cancellation.
    public func fetch(param: Param, revalidating validator: Validator?) async throws -> FetchResult<Content> {
        try await script.respond(to: .content(param, revalidating: validator)).result
    }
}

/// A fetcher of pages in both directions that returns answers from a test's script, and can hold its fetches.
///
/// ```swift
/// let fetcher = ScriptedPaginationFetcher<String, Int>(
///     .page([1, 2], nextKey: "b"), .page([3]))
/// let lists = PaginationStore(cacher: MemoryCacher(), fetcher: fetcher)
/// _ = try await lists["numbers"].requireData()
/// await lists["numbers"].requestNextData()
/// #expect(fetcher.requests.last?.pageKey == "b")
/// ```
///
/// <doc:TestingYourStore> tests a list and its failed page.
public final class ScriptedPaginationFetcher<Param: Hashable & Sendable, Element: Sendable>: TwoWayPaginationFetcher, ScriptedOrigin {
    /// The elements of a list, as its answers contain them page by page.
    public typealias Content = [Element]

    /// The answers and the recorded requests; use the methods of `ScriptedOrigin` instead.
    public let script: FetchScript<Param, [Element]>

    /// Creates a fetcher that returns these answers, one for each page.
    ///
    /// Otherwise as ``ScriptedFetcher/init(_:cancellation:)``.
    public init(_ answers: ScriptedAnswer<[Element]>..., cancellation: ScriptedCancellation = .honored) {
        script = FetchScript(answers: answers, cancellation: cancellation, answering: nil)
    }

    /// Creates a fetcher that calls a closure for each answer.
    ///
    /// Otherwise as ``ScriptedFetcher/init(cancellation:answering:)``.
    public init(
        cancellation: ScriptedCancellation = .honored,
        answering: @escaping @Sendable (ScriptedRequest<Param>) async throws -> ScriptedAnswer<[Element]>
    ) {
        script = FetchScript(answers: [], cancellation: cancellation, answering: answering)
    }

    /// Responds to a store's request with the script.
    ///
    /// This method replaces the three methods below, so that a test can also see the validator of a first page and confirm that page.
    public func respond(to request: OriginRequest<Param>) async throws -> OriginResponse<[Element]> {
        try await script.respond(to: request)
    }

    /// Returns the next answer of the script as the first page.
    public func fetch(param: Param) async throws -> Page<Element> {
        try await page(.content(param, revalidating: nil))
    }

    /// Returns the next answer of the script as the page that `nextKey` names.
    public func fetchNext(nextKey: String, param: Param) async throws -> Page<Element> {
        try await page(.page(.next, key: nextKey, param))
    }

    /// Returns the next answer of the script as the page that `prevKey` names.
    public func fetchPrev(prevKey: String, param: Param) async throws -> Page<Element> {
        try await page(.page(.prev, key: prevKey, param))
    }

    private func page(_ request: OriginRequest<Param>) async throws -> Page<Element> {
        let response = try await script.respond(to: request)
        guard case .modified(let elements, let freshness, let validator) = response.result else {
            throw StoreError(.nothingToConfirm, "answering \(request) with .notModified: it carried no validator; answer with .success")
        }
        return Page(
            elements, nextKey: response.nextKey, prevKey: response.prevKey, freshness: freshness, validator: validator,
            guessedEnd: response.guessedEnd)
    }
}
