public import StoreCore

/// A fetcher with a rule about which of its fetches reach the origin: a failure memory or a circuit breaker.
///
/// ```swift
/// let breaker = CircuitBreaker()
/// let prices = Store(
///     cacher: MemoryCacher(),
///     fetcher: PriceFetcher().rememberingFailures(for: .seconds(1))
///         .guarded(by: breaker))
/// ```
///
/// Use it in place of any fetcher, even in a ``PaginationStore``. Validators and page keys pass through unchanged. The rule decides on each
/// connection of a ``LiveFetcher``; the first value counts as its success.
///
/// <doc:OnAServer> explains how the decorators protect an upstream.
public struct DecoratedOrigin<Base: Origin>: Origin {
    /// The key of one piece of data.
    public typealias Param = Base.Param
    /// The content of the decorated fetcher, which passes through unchanged.
    public typealias Content = Base.Content

    private let base: Base
    private let rule: FetchRule<Base.Param>

    init(_ base: Base, rule: @escaping FetchRule<Base.Param>) {
        self.base = base
        self.rule = rule
    }

    /// Passes a request on to the fetcher, if the rule admits it.
    ///
    /// - Parameter request: The requested content and the version that the store already has.
    /// - Returns: The response of the fetcher.
    /// - Throws: The fetcher's error, unchanged; ``FetchError`` if the rule refuses the request.
    public func respond(to request: OriginRequest<Base.Param>) async throws -> OriginResponse<Base.Content> {
        try await perform(request) { try await base.respond(to: request) }
    }

    /// Returns whether the fetcher accepts a saved version; no request is sent, so the rule does not apply.
    ///
    /// - Parameters:
    ///   - validator: The validator of the saved version.
    ///   - param: The key.
    public func accepts(_ validator: Validator, param: Base.Param) async -> Bool { await base.accepts(validator, param: param) }

    private func perform<Response: Sendable>(
        _ request: OriginRequest<Base.Param>, _ fetch: () async throws -> Response
    ) async throws -> Response {
        let end = try rule(request)
        do {
            let response = try await fetch()
            // A response after the time limit is too late.
            end(StoreError.ofTimeLimit.map { FetchOutcome.failed($0) } ?? .responded)
            return response
        } catch {
            end(FetchOutcome(error))
            throw error
        }
    }
}

extension DecoratedOrigin: PaginationFetcher where Base: PaginationFetcher {
    /// An element of the decorated fetcher's list, which passes through unchanged.
    public typealias Element = Base.Element

    /// Fetches the first page, if the rule admits it; throws the errors of `respond(to:)`.
    public func fetch(param: Base.Param) async throws -> Page<Base.Element> {
        try await perform(.content(param, revalidating: nil)) { try await base.fetch(param: param) }
    }

    /// Fetches the page that a `nextKey` names, if the rule admits it; throws the errors of `respond(to:)`.
    public func fetchNext(nextKey: String, param: Base.Param) async throws -> Page<Base.Element> {
        try await perform(.page(.next, key: nextKey, param)) { try await base.fetchNext(nextKey: nextKey, param: param) }
    }
}

extension DecoratedOrigin: TwoWayPaginationFetcher where Base: TwoWayPaginationFetcher {
    /// Fetches the page that a `prevKey` names, if the rule admits it; throws the errors of `respond(to:)`.
    public func fetchPrev(prevKey: String, param: Base.Param) async throws -> Page<Base.Element> {
        try await perform(.page(.prev, key: prevKey, param)) { try await base.fetchPrev(prevKey: prevKey, param: param) }
    }
}

extension DecoratedOrigin: LiveFetcher where Base: LiveFetcher {
    /// Connects to the origin, if the rule admits it.
    ///
    /// - Parameters:
    ///   - param: The key.
    ///   - last: The validator of the store's version.
    /// - Returns: The values of one connection; they throw ``FetchError`` if the rule refuses it.
    public func values(param: Base.Param, after last: Validator?) -> some AsyncSequence<Base.Values.Element, any Error> {
        DecoratedValues {
            let end = try rule(.content(param, revalidating: last))
            return (base.values(param: param, after: last), end)
        }
    }
}

/// The values of a connection that a rule admits when the first value is requested.
private struct DecoratedValues<Base: AsyncSequence>: AsyncSequence {
    let connect: () throws -> (Base, (FetchOutcome) -> Void)

    func makeAsyncIterator() -> Iterator { Iterator(connect: connect) }

    struct Iterator: AsyncIteratorProtocol {
        let connect: () throws -> (Base, (FetchOutcome) -> Void)
        private var base: Base.AsyncIterator?
        /// Reports the outcome to the rule; `nil` before the connection and after the first value.
        private var end: ((FetchOutcome) -> Void)?

        init(connect: @escaping () throws -> (Base, (FetchOutcome) -> Void)) { self.connect = connect }

        mutating func next() async throws -> Base.Element? { try await next(isolation: #isolation) }

        mutating func next(isolation: isolated (any Actor)?) async throws -> Base.Element? {
            if base == nil {
                let (values, end) = try connect()
                (base, self.end) = (values.makeAsyncIterator(), end)
            }
            defer { end = nil }
            do {
                let value = try await base?.next(isolation: isolation)
                end?(value == nil ? FetchOutcome(endedWithoutValue) : .responded)
                return value
            } catch {
                end?(FetchOutcome(error))
                throw error
            }
        }
    }
}

/// The failure of a connection that ends before its first value.
private var endedWithoutValue: StoreError {
    StoreError(
        .endedWithoutValue, "following the origin: its stream ended before its first value; let it throw if the connection is lost")
}

/// Admits a fetch, or throws a `FetchError`. The returned closure is called once, when the fetch has ended.
typealias FetchRule<Param: Hashable & Sendable> = @Sendable (_ request: OriginRequest<Param>) throws -> (FetchOutcome) -> Void

/// The outcome of a fetch, as far as it matters to a rule.
enum FetchOutcome: Sendable {
    case responded
    case failed(any Error)
    /// The fetch was canceled or needs a closed store, or another rule has refused it. It says nothing about the origin.
    case unknown(isOpen: Bool)

    init(_ error: any Error) {
        let advice = error as? any FailureAdvising
        let isRefused = advice?.isRefusal == true
        // The store has canceled this fetch because the origin hangs.
        if let timeout = StoreError.ofTimeLimit, !isRefused {
            self = .failed(timeout)
            return
        }
        // The fetcher may use a store of a session that has ended.
        let isCanceled = error is CancellationError || advice?.failureKind == .cancelled || (error as? StoreError)?.code == .closed
        // An origin may report a cancellation by an error of its own.
        let isOpen = (error as? FetchError)?.code == .circuitOpen
        self = isCanceled || isRefused || Task.isCancelled ? .unknown(isOpen: isOpen) : .failed(error)
    }
}
