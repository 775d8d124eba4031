public import Foundation
internal import StoreCore

/// Exchanges with a real server, kept so that a test can play them again without it.
///
/// ```swift
/// let recorder = ExchangeRecorder(recording: URLSessionTransport())       // once, against the real server
/// _ = try await RemoteHost("api.example.com", transport: recorder).data(for: route)
/// try recorder.exchanges.encoded().write(to: file)
///
/// let exchanges = try RecordedExchanges(decoding: Data(contentsOf: file)) // from then on
/// let api = RemoteHost("api.example.com", transport: exchanges.transport())
/// ```
///
/// Credentials and cookies are left out of what is kept.
public struct RecordedExchanges: Hashable, Sendable, Codable {
    /// One exchange.
    struct Exchange: Hashable, Sendable, Codable {
        /// The method of the request.
        var method: String
        /// The address of the request.
        var url: String
        /// The status of the answer.
        var status: Int
        /// The header of the answer: names and values.
        var fields: [[String]]
        /// The body of the answer, unpacked.
        var body: Data
    }

    /// The exchanges, in the order in which their answers were complete.
    var exchanges: [Exchange] = []

    init() {}

    /// Reads what was written by `encoded()`.
    ///
    /// - Throws: `DecodingError` where it is something else.
    public init(decoding data: Data) throws {
        self = try JSONDecoder().decode(RecordedExchanges.self, from: data)
    }

    /// The exchanges as JSON that can be read and compared.
    ///
    /// - Throws: `EncodingError`.
    public func encoded() throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return try encoder.encode(self)
    }

    /// A transport that gives for each method and address the answers in the order in which they were recorded, each once.
    ///
    /// A request that was not recorded, or more often than it was, fails with ``RemoteError/Code/unsupported``.
    public func transport() -> MemoryTransport {
        let taking = Taking(left: exchanges)
        return MemoryTransport { request in
            guard let exchange = taking.take(request) else {
                throw TransportFailure(
                    .unsupported, "no answer was recorded for this request; record it, or look for a difference in its query")
            }
            let headers = exchange.fields.compactMap { $0.count == 2 ? ($0[0], $0[1]) : nil }
            return MemoryTransport.Answer(status: exchange.status, headers: headers, body: exchange.body)
        }
    }

    /// What has not been played yet.
    private final class Taking: Sendable {
        private let left: Lock<[Exchange]>

        init(left: [Exchange]) { self.left = Lock(left) }

        func take(_ request: HTTPRequest) -> Exchange? {
            left.withLock { left in
                let index = left.firstIndex { $0.method == request.method.rawValue && $0.url == request.url.absoluteString }
                return index.map { left.remove(at: $0) }
            }
        }
    }
}

/// A transport that keeps what goes through it.
public final class ExchangeRecorder: Transport {
    private let base: any Transport
    /// Guards what was kept.
    private let kept = Lock(RecordedExchanges())

    /// Makes a recorder.
    ///
    /// - Parameter base: What really sends the requests.
    public init(recording base: any Transport) { self.base = base }

    /// What has been kept so far.
    public var exchanges: RecordedExchanges { kept.withLock(\.self) }

    /// Sends a request, and keeps the answer once all of it is there; nothing is streamed through it.
    public func perform(_ request: HTTPRequest, limits: ExchangeLimits) async throws -> HTTPResponse {
        try await perform(request, over: ConnectionOptions(), limits: limits)
    }

    /// Sends a request over a connection that keeps the options, and keeps the answer likewise.
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
