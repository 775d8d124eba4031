#if os(Linux)
internal import Foundation
internal import StoreCore

/// A transport that performs exchanges with libcurl, which is found or loaded at run time.
///
/// This is the default transport of ``RemoteHost`` on Linux. No response ends the process. A slow reader pauses the server instead of
/// filling memory or a disk. An unsafe request arrives at most once, even on a reused connection; over TLS, it gets a fresh connection:
///
/// ```swift
/// let transport = try CurlTransport()
/// let api = RemoteHost("api.example.com", transport: transport)
/// print(transport)                                            // libcurl 7.88.1
/// ```
///
/// Requests use HTTP/2 if the server offers it over TLS. Otherwise, and for all streamed responses, they use HTTP/1.1. A body of known
/// length is sent with `Content-Length`; any other body is chunked. The environment names the proxy unless ``RemoteHost/proxy`` is set. The
/// head of a response may have at most 1 000 fields and 256 KiB.
public final class CurlTransport: Transport, CustomStringConvertible {
    private let client: WireClient

    /// Creates a transport with its own connections and thread.
    ///
    /// - Parameter width: The maximum number of concurrent exchanges of one origin; further ones wait in order. Exchanges with slow readers do
    ///   not count. All origins share one eighth more, by the number of their exchanges. Connections use at most half of the file descriptors
    ///   of the process, which may lower the number.
    /// - Throws: `TransportFailure` with the code ``RemoteError/Code/unsupported`` if libcurl is missing, is older than 7.66, or resolves
    ///   names without threads.
    public convenience init(width: Int = 256) throws {
        try self.init(width: width, path: nil)
    }

    /// Creates a transport with the libcurl at a path, for tests.
    package init(width: Int, path: String?) throws {
        do {
            let connections = CurlTransport.connectionLimit
            client = try WireClient(path: path, width: min(width, connections), connections: connections)
        } catch let missing as WireLibrary.Missing {
            throw TransportFailure(.unsupported, "\(missing)", underlyingError: missing)
        } catch let failure as WireFailure {
            throw TransportFailure(failure)
        }
    }

    /// The name and version of the library.
    public var description: String { client.name }

    /// The number of exchanges in flight, for tests.
    package var exchangeCount: Int { client.exchangeCount }

    /// Sends a request and returns once the head of the response has arrived.
    public func perform(_ request: HTTPRequest, limits: ExchangeLimits) async throws -> HTTPResponse {
        try await perform(request, over: ConnectionOptions(), limits: limits)
    }

    /// Sends a request over a connection with options and returns once the head of the response has arrived.
    public func perform(
        _ request: HTTPRequest, over connection: ConnectionOptions, limits: ExchangeLimits
    ) async throws -> HTTPResponse {
        try await begin(request, connection, limits).response()
    }

    /// Not inlined: its temporaries would otherwise enlarge the frame of every waiting exchange.
    @inline(never)
    private func begin(
        _ request: HTTPRequest, _ connection: ConnectionOptions, _ limits: ExchangeLimits
    ) throws(TransportFailure) -> Exchange {
        // The engine's thread cannot wait for a manual clock.
        let keepsDeadlines = limits.time is SystemTime
        let exchange = Exchange(
            limits: limits, source: Exchange.Source(keepsDeadlines: keepsDeadlines, waitsForReader: true, leavesCoding: true))
        if exchange.mayBegin() { try begin(request, connection, exchange, keepsDeadlines: keepsDeadlines) }
        return exchange
    }

    private func begin(
        _ request: HTTPRequest, _ connection: ConnectionOptions, _ exchange: Exchange, keepsDeadlines: Bool
    ) throws(TransportFailure) {
        var wire = try WireRequest(request, exchange.limits, keepsDeadlines: keepsDeadlines)
        wire.tls = try WireTLS(connection.tls, on: client.build)
        wire.proxy = try WireProxy(connection.proxy)
        wire.allowsHTTP2 = connection.allowsHTTP2
        let engine: WireEngine
        do throws(WireFailure) { engine = try client.usableEngine() } catch { throw TransportFailure(error) }
        let ticket = engine.start(wire, CurlReceiver(exchange, request))
        exchange.onStop { engine.cancel(ticket) }
        exchange.onResume { engine.resume(ticket) }
    }

    /// Half of the process's descriptors, without those of the engine itself. The rest is for other code, which may end the process without.
    private static var connectionLimit: Int {
        let limit = sysconf(Int32(_SC_OPEN_MAX))
        return limit < 0 ? 1 << 16 : max(4, Int(limit) / 2 - 8)
    }
}

/// A receiver that forwards received parts to an exchange.
private final class CurlReceiver: WireReceiver {
    private let exchange: Exchange
    private let url: URL
    private let length: Int64?

    init(_ exchange: Exchange, _ request: HTTPRequest) {
        self.exchange = exchange
        url = request.url
        switch request.body {
        case .none: length = 0
        case .data(let data): length = Int64(data.count)
        case .stream(let stream): length = stream.length
        }
    }

    func sent(_ total: Int64) { exchange.sent(total, of: length) }

    func received(_ head: WireHead?, _ body: Data, isComplete: Bool) -> WireFlow {
        exchange.receive(head.map { HTTPResponse($0, url: url) }, body, isComplete: isComplete)
    }

    func completed(_ head: WireHead?, _ body: Data, _ metrics: WireMetrics) {
        _ = exchange.receive(head.map { HTTPResponse($0, url: url) }, body, isComplete: true, metrics)
    }

    func failed(_ failure: WireFailure) {
        if case .timedOut(let part) = failure.code {
            var late = TransportFailure(part, exchange.limits)
            late.mayHaveArrived = failure.mayHaveArrived
            exchange.fail(late)
        } else {
            exchange.fail(TransportFailure(failure))
        }
    }
}

extension HTTPResponse {
    init(_ head: WireHead, url: URL) {
        var fields = HTTPFields()
        // Ignores malformed fields instead of failing the response (RFC 9110 §5).
        for field in head.fields { try? fields.append(field.name, field.value) }
        self.init(status: head.status, fields: fields, url: url)
    }
}

extension WireTLS {
    /// The options in libcurl's form; `nil` for the defaults.
    fileprivate init?(_ options: TLSOptions, on build: WireLibrary.Build) throws(TransportFailure) {
        guard options != TLSOptions() else { return nil }
        self.init()
        authorities = options.authorities?.pem
        pins = options.pins.map { $0.digest.base64EncodedString() }
        certificate = options.clientCertificate.map { ($0.certificate, $0.key) }
        password = options.clientCertificate?.password ?? ""
        needsTLS13 = options.minimumVersion == .tls13
        guard let problem = problem(version: build.version, backend: build.tls) else { return }
        throw TransportFailure(.unsupported, "\(problem); install a newer libcurl with OpenSSL, or remove the options")
    }
}

extension WireRequest {
    init(_ request: HTTPRequest, _ limits: ExchangeLimits, keepsDeadlines: Bool) throws(TransportFailure) {
        let method = request.method
        let body: Body
        switch request.body {
        case .none: body = method == .post || method == .put || method == .patch ? .empty : .none
        case .data(let data): body = data.isEmpty ? .empty : .bytes(data)
        case .stream(let stream): body = .stream(length: stream.length, open: stream.open)
        }
        if method == .head, case .none = request.body {
        } else if method == .head {
            throw TransportFailure(.unsupported, "a HEAD request with a body cannot be sent; use POST")
        }
        self.init(
            url: request.url.absoluteString, method: method.rawValue, body: body, mayRepeat: request.mayRepeat,
            deadlines: keepsDeadlines ? limits.deadlines : Deadlines.Limits())
        reportsProgress = limits.onSent != nil
        // A body without a practical limit is streamed, not collected.
        isStream = limits.bodyBytes > 64 << 20
        var (hasCoding, hasAccept, hasType) = (false, false, false)
        for field in request.fields.fields {
            switch field.name.utf8.count {
            case 6 where field.name.equalsIgnoringCase("Accept"): hasAccept = true
            case 12 where field.name.equalsIgnoringCase("Content-Type"): hasType = true
            case 15 where field.name.equalsIgnoringCase("Accept-Encoding"): hasCoding = true
            default: break
            }
            add(field.name, field.value)
        }
        if !hasCoding {
            // A range counts stored bytes, so it must not be compressed.
            let takesGzip = Inflater.isAvailable && request.fields["Range"] == nil
            add("Accept-Encoding", takesGzip ? "gzip" : "identity")
        }
        if !hasAccept { suppress("Accept") }
        if case .none = body { return }
        if !hasType { suppress("Content-Type") }
        suppress("Expect")
    }
}
#endif
