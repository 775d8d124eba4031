public import Foundation
internal import StoreCore
public import RemoteRouting

/// Recorded exchanges with a real server, which a test replays without the server.
///
/// ```swift
/// // Once, against the real server:
/// let recorder = ExchangeRecorder(recording: URLSessionTransport())
/// _ = try await RemoteHost("api.example.com", transport: recorder).data(
///     for: route)
/// try recorder.exchanges.encoded().write(to: file)
///
/// // From then on:
/// let exchanges = try RecordedExchanges(decoding: Data(contentsOf: file))
/// let api = RemoteHost("api.example.com", transport: exchanges.transport())
/// ```
///
/// A recording contains the request's method and URL, and the response without credentials and cookies. Secrets in URLs and response
/// bodies are recorded.
///
/// <doc:TestingWithoutANetwork> explains what to check in a recording.
public struct RecordedExchanges: Hashable, Sendable, Codable {
    struct Exchange: Hashable, Sendable, Codable {
        var method: String
        var url: String
        var status: Int
        /// The header fields of the response, as names and values.
        var fields: [[String]]
        /// The decoded body of the response.
        var body: Data
    }

    /// The exchanges, in the order in which their responses were complete.
    var exchanges: [Exchange] = []

    init() {}

    /// Creates recorded exchanges from the data of `encoded()`.
    ///
    /// - Throws: `DecodingError` if the data is malformed.
    public init(decoding data: Data) throws {
        self = try JSONDecoder().decode(RecordedExchanges.self, from: data)
    }

    /// Encodes the exchanges as JSON with sorted keys and line breaks.
    ///
    /// - Throws: `EncodingError` if encoding fails.
    public func encoded() throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return try encoder.encode(self)
    }

    /// Creates a transport that replays the responses of each method and URL, once each and in recorded order.
    ///
    /// A request without a remaining recorded response fails with ``RemoteError/Code/unsupported``.
    public func transport() -> MemoryTransport {
        let left = Lock(exchanges)
        return MemoryTransport { request in
            let found = left.withLock { left in
                let index = left.firstIndex { $0.method == request.method.rawValue && $0.url == request.url.absoluteString }
                return index.map { left.remove(at: $0) }
            }
            guard let exchange = found else {
                throw TransportFailure(
                    .unsupported, "no recorded response is left for this request; record it again, or compare its method and URL")
            }
            let headers = exchange.fields.compactMap { $0.count == 2 ? ($0[0], $0[1]) : nil }
            return MemoryTransport.Response(status: exchange.status, headers: headers, body: exchange.body)
        }
    }
}

/// A transport that records the exchanges of another transport.
public final class ExchangeRecorder: Transport {
    private let base: any Transport
    private let kept = Lock(RecordedExchanges())

    /// Creates a recorder.
    ///
    /// - Parameter base: The transport that performs the requests.
    public init(recording base: any Transport) { self.base = base }

    /// The exchanges with complete responses so far, without credentials and cookies.
    public var exchanges: RecordedExchanges { kept.withLock(\.self) }

    /// Performs a request and records its response; reads the whole body before it returns, and does not stream.
    public func perform(_ request: HTTPRequest, limits: ExchangeLimits) async throws -> HTTPResponse {
        try await perform(request, over: ConnectionOptions(), limits: limits)
    }

    /// Performs a request with connection options and records its response; reads the whole body before it returns.
    public func perform(
        _ request: HTTPRequest, over connection: ConnectionOptions, limits: ExchangeLimits
    ) async throws -> HTTPResponse {
        let response = try await base.perform(request, over: connection, limits: limits)
        let body = try await response.body.collect()
        let fields = response.fields.fields.filter { FieldRules.of($0.name).isDisjoint(with: [.secret, .framing]) }
        kept.withLock {
            $0.exchanges.append(
                RecordedExchanges.Exchange(
                    method: request.method.rawValue, url: request.url.absoluteString, status: response.status,
                    fields: fields.map { [$0.name, $0.value] }, body: body))
        }
        var whole = HTTPResponse(status: response.status, fields: response.fields, url: response.url, body: body)
        whole.metrics = response.metrics
        return whole
    }
}
