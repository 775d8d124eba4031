/// A fetcher that follows an origin that pushes: server-sent events, a WebSocket, the observation of a database, or a text that arrives
/// token by token.
///
/// ```swift
/// struct PriceFeed: LiveFetcher {
///     let api: PriceAPI
///
///     func values(
///         param ticker: String, after last: Validator?
///     ) -> some AsyncSequence<LiveValue<Price>, any Error> {
///         api.prices(of: ticker, after: last?.entityTag).map {
///             LiveValue.content($0, Validator(entityTag: $0.id))
///         }
///     }
/// }
///
/// let prices = Store(
///     cacher: MemoryCacher<String, Price>(), fetcher: PriceFeed(api: api))
/// ```
///
/// The store follows one stream for each key, however many observers and callers the key has. The stream runs while the key is observed,
/// and for the grace period of ``StorePolicy/unwantedFetch`` after that. After a failure, the store connects again as
/// ``StorePolicy/retry`` states. After a normal end, the content is complete: the store connects again when it has expired, or for a
/// trigger.
///
/// <doc:LiveData> explains streams, lost connections and saves.
public protocol LiveFetcher<Param, Content>: Origin {
    /// The key of one piece of data.
    associatedtype Param
    /// The type of a key's data, inferred from the elements of `values(param:after:)`.
    associatedtype Content = Values.Element.Content
    /// The sequence of one connection's values; its end is the end of the connection.
    associatedtype Values: AsyncSequence where Values.Element: LiveElement, Values.Element.Content == Content

    /// Connects to the origin.
    ///
    /// The store takes the next value only after it has accepted the last one. A sequence must end or throw when its task is canceled. If
    /// a stream ignores cancellation, its values are dropped.
    ///
    /// - Parameters:
    ///   - param: The key.
    ///   - last: The validator of the store's version; `nil` if the store has none. With a validator, the stream may begin with changes of
    ///     that version, or confirm it with ``LiveValue/current``. Without a validator, it must begin with ``LiveValue/content(_:_:)``.
    /// - Returns: The values of one connection. An error that the sequence throws ends the connection and reaches observers unchanged.
    func values(param: Param, after last: Validator?) -> Values
}

extension LiveFetcher {
    /// Responds to a store's request with the first value of a new connection, for use behind another origin.
    ///
    /// - Parameter request: The requested content and the version that the store already has.
    /// - Returns: The first content, or confirmation of the store's version.
    /// - Throws: The error of the sequence; ``StoreError/Code/endedWithoutValue`` if it ends without content;
    ///   ``StoreError/Code/nothingToChange`` if it begins with a change.
    @inlinable
    public func respond(to request: OriginRequest<Param>) async throws -> OriginResponse<Content> {
        guard case .content(let param, let validator) = request else {
            throw StoreError(.noSuchPage, "fetching a page: this fetcher has no pages; use a PaginationFetcher")
        }
        for try await value in values(param: param, after: validator) {
            switch value.live {
            case .content(let content, let validator): return OriginResponse(.modified(content, .unspecified, validator))
            case .change: throw StoreError.nothingToChange
            case .current: if validator != nil { return OriginResponse(.notModified()) }
            }
        }
        try Task.checkCancellation()
        throw StoreError.endedWithoutValue
    }
}

extension StoreError {
    @usableFromInline static var endedWithoutValue: StoreError {
        StoreError(
            .endedWithoutValue,
            "following the origin: its stream ended before its first value; let it throw if the connection is lost")
    }

    @usableFromInline static var nothingToChange: StoreError {
        StoreError(
            .nothingToChange,
            "following the origin: its stream began with a change, but there is no version to change; begin with the whole content")
    }

    static func silent(for duration: Duration) -> StoreError {
        StoreError(
            .silentStream,
            "following the origin: its stream was silent for \(duration.inWords); send LiveValue.current between values")
    }
}

extension StoreError.Code {
    /// A stream of a live fetcher ended before its first value.
    public static let endedWithoutValue = StoreError.Code(rawValue: "endedWithoutValue")
    /// A stream of a live fetcher began with a change, although the store had no version of it.
    public static let nothingToChange = StoreError.Code(rawValue: "nothingToChange")
    /// A stream of a live fetcher was silent longer than the policy's `idleTimeout`.
    public static let silentStream = StoreError.Code(rawValue: "silentStream")
}
