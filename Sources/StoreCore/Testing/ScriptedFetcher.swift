/// A fetcher whose answers a test writes down, and whose fetches it can hold.
///
/// ```swift
/// let fetcher = ScriptedFetcher<Int, String>(.success("Ada"), .failure(URLError(.timedOut)))
/// let users = Store(cacher: MemoryCacher(), fetcher: fetcher)
/// #expect(try await users[1].requireData() == "Ada")
/// #expect(fetcher.requests.map(\.param) == [1])
/// ```
///
/// Hold a fetch to look at what happens while it runs:
///
/// ```swift
/// fetcher.hold()
/// async let user = users[2].requireData()
/// try await fetcher.started(count: 2)
/// fetcher.enqueue(.success("Grace"))
/// fetcher.release()
/// ```
///
/// A request that the script has no answer for throws ``StoreError/Code/unscriptedRequest``.
public final class ScriptedFetcher<Param: Hashable & Sendable, Content: Sendable>: RevalidatingFetcher, ScriptedOrigin {
    /// What the fetcher keeps.
    public let script: FetchScript<Param, Content>

    /// Makes a fetcher that gives these answers, one for each fetch, in this order.
    ///
    /// - Parameters:
    ///   - answers: The answers; more can be enqueued.
    ///   - cancellation: What a fetch does when its task is cancelled.
    public init(_ answers: ScriptedAnswer<Content>..., cancellation: ScriptedCancellation = .honoured) {
        script = FetchScript(answers: answers, cancellation: cancellation, answering: nil)
    }

    /// Makes a fetcher that asks a closure for each answer.
    ///
    /// - Parameters:
    ///   - cancellation: What a fetch does when its task is cancelled while it is held; the closure deals with its own.
    ///   - answering: Makes the answer when the fetch has left the gate; what it throws, the fetch throws.
    public init(
        cancellation: ScriptedCancellation = .honoured,
        answering: @escaping @Sendable (ScriptedRequest<Param>) async throws -> ScriptedAnswer<Content>
    ) {
        script = FetchScript(answers: [], cancellation: cancellation, answering: answering)
    }

    /// Gets the next answer of the script.
    ///
    /// - Parameters:
    ///   - param: The key; recorded.
    ///   - validator: What names the store's version; recorded.
    /// - Returns: What the script says.
    /// - Throws: What the script says, ``StoreError/Code/unscriptedRequest`` where it says nothing, and `CancellationError` at once when
    ///   the task is cancelled, unless the fetcher ignores that.
    public func fetch(param: Param, revalidating validator: Validator?) async throws -> FetchResult<Content> {
        try await script.respond(to: .content(param, revalidating: validator)).result
    }
}

/// A fetcher of pages in both directions whose answers a test writes down, and whose fetches it can hold.
///
/// ```swift
/// let fetcher = ScriptedPaginationFetcher<String, Int>(.page([1, 2], nextKey: "b"), .page([3]))
/// let lists = PaginationStore(cacher: MemoryCacher(), fetcher: fetcher)
/// _ = try await lists["numbers"].requireData()
/// await lists["numbers"].requestNextData()
/// #expect(fetcher.requests.last?.pageKey == "b")
/// ```
public final class ScriptedPaginationFetcher<Param: Hashable & Sendable, Element: Sendable>: TwoWayPaginationFetcher, ScriptedOrigin {
    /// The elements loaded so far.
    public typealias Content = [Element]

    /// What the fetcher keeps.
    public let script: FetchScript<Param, [Element]>

    /// Makes a fetcher that gives these answers, one for each page, in this order.
    ///
    /// - Parameters:
    ///   - answers: The answers; more can be enqueued.
    ///   - cancellation: What a fetch does when its task is cancelled.
    public init(_ answers: ScriptedAnswer<[Element]>..., cancellation: ScriptedCancellation = .honoured) {
        script = FetchScript(answers: answers, cancellation: cancellation, answering: nil)
    }

    /// Makes a fetcher that asks a closure for each answer.
    ///
    /// - Parameters:
    ///   - cancellation: What a fetch does when its task is cancelled while it is held; the closure deals with its own.
    ///   - answering: Makes the answer when the fetch has left the gate; what it throws, the fetch throws.
    public init(
        cancellation: ScriptedCancellation = .honoured,
        answering: @escaping @Sendable (ScriptedRequest<Param>) async throws -> ScriptedAnswer<[Element]>
    ) {
        script = FetchScript(answers: [], cancellation: cancellation, answering: answering)
    }

    /// Answers a store's request by the script.
    ///
    /// Stands in for the three methods below, so that a test can also see the validator of a first page and confirm it.
    public func respond(to request: OriginRequest<Param>) async throws -> OriginResponse<[Element]> {
        try await script.respond(to: request)
    }

    /// Gets the next answer of the script as the first page.
    public func fetch(param: Param) async throws -> Page<Element> {
        try await page(.content(param, revalidating: nil))
    }

    /// Gets the next answer of the script as the page that `nextKey` names.
    public func fetchNext(nextKey: String, param: Param) async throws -> Page<Element> {
        try await page(.page(.next, key: nextKey, param))
    }

    /// Gets the next answer of the script as the page that `prevKey` names.
    public func fetchPrev(prevKey: String, param: Param) async throws -> Page<Element> {
        try await page(.page(.prev, key: prevKey, param))
    }

    private func page(_ request: OriginRequest<Param>) async throws -> Page<Element> {
        let response = try await script.respond(to: request)
        guard case .modified(let elements, let freshness, let validator) = response.result else {
            throw StoreError(.nothingToConfirm, "answering \(request) with .notModified: it carried no validator")
        }
        return Page(
            elements, nextKey: response.nextKey, prevKey: response.prevKey, freshness: freshness, validator: validator)
    }
}
