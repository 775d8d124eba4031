internal import StoreCore

// The configuration of the public initializer is declared here.
#if canImport(FoundationNetworking)
internal import Foundation
public import FoundationNetworking
#else
public import Foundation
#endif

/// A transport that performs exchanges with Foundation's `URLSession`.
///
/// Safe requests share a session and its connections. An unsafe request gets its own session and therefore a fresh connection. On Linux,
/// a reused connection that the server has closed would otherwise make libcurl send *any* request again, with or without a body. Refusing
/// to reopen the body stream does not prevent this, and neither does `Connection: close`.
///
/// This is the default transport of ``RemoteHost`` on Apple's systems. On Linux it replaces ``CurlTransport`` if libcurl is missing or
/// unusable. It then has the FoundationNetworking defects that the security notes of RemoteRouting list: some responses end the process.
///
/// On Apple's systems it supports all ``TLSOptions`` except the client certificate, with a fresh connection for each request. On Linux it
/// supports none. Unsupported options throw ``RemoteError/Code/unsupported``.
///
/// An existing session cannot take the transport's delegate; pass its configuration instead. Cookies, caching, credentials and timeouts of
/// the configuration are ignored, because the host handles them.
public final class URLSessionTransport: Transport, CustomStringConvertible {
    /// `URLSession`, with the reason if it replaces libcurl.
    public let description: String
    private let configuration: URLSessionConfiguration
    private let shared: URLSession
    private let delegate: SessionDelegate
    private let queue: OperationQueue
    /// The queue on which the session is called.
    ///
    /// Calls wait for the session's internal queue and must not block a thread of the concurrency pool. With many exchanges that would cost
    /// a quarter of the throughput, and cancellations would wait behind new requests.
    let starting = DispatchQueue(label: "RemoteRouting.URLSessionTransport.starting")
    /// The queue on which tasks are canceled.
    ///
    /// The delegate's queue would deadlock, because a canceled task may wait for it; the starting queue would delay new requests.
    private let cancelling = DispatchQueue(label: "RemoteRouting.URLSessionTransport.cancelling")

    /// Creates a transport.
    ///
    /// - Parameter configuration: The configuration to copy, such as proxies, TLS versions and connections per host.
    public convenience init(configuration: URLSessionConfiguration = .ephemeral) {
        self.init(configuration: configuration, reason: nil)
    }

    /// Creates a transport, with the reason if it replaces another one.
    init(configuration: URLSessionConfiguration = .ephemeral, reason: String?) {
        description = reason.map { "URLSession (\($0))" } ?? "URLSession"
        self.configuration = URLSessionTransport.prepared(configuration)
        queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        delegate = SessionDelegate(nil)
        shared = URLSession(configuration: self.configuration, delegate: delegate, delegateQueue: queue)
    }

    deinit {
        // Without invalidation a session lives forever. Exchanges in flight continue.
        shared.finishTasksAndInvalidate()
    }

    /// The number of exchanges of safe requests in flight, for tests.
    package var exchangeCount: Int { delegate.count }

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
        if let problem = URLSessionTransport.problem(with: connection) { throw TransportFailure(.unsupported, problem) }
        #if !canImport(Darwin)
        if limits.upgrade != nil {
            throw TransportFailure(.unsupported, "URLSession opens no WebSockets on this system; install libcurl 7.66 or newer")
        }
        #endif
        let exchange = Exchange(limits: limits)
        let wire = try URLSessionTransport.wireRequest(request, exchange)
        // Other options need their own session, so that neither connections nor TLS sessions are shared.
        let ownTLS = request.method.isSafe && connection.tls == TLSOptions() ? nil : connection.tls
        if exchange.mayBegin() {
            starting.async { [self] in start(wire, exchange, ownTLS) }
        }
        return exchange
    }

    private func start(_ wire: URLRequest, _ exchange: Exchange, _ ownTLS: TLSOptions?) {
        // The caller may have been canceled meanwhile.
        guard exchange.mayBegin() else { return }
        var (session, delegate) = (shared, delegate)
        if let ownTLS {
            delegate = SessionDelegate(ownTLS)
            session = URLSession(configuration: configuration(for: ownTLS), delegate: delegate, delegateQueue: queue)
        }
        let task = makeTask(wire, exchange, in: session)
        delegate.add(exchange, for: task)
        task.resume()
        exchange.onStop { [cancelling] in cancelling.async { task.cancel() } }
    }

    private func makeTask(_ wire: URLRequest, _ exchange: Exchange, in session: URLSession) -> URLSessionTask {
        #if canImport(Darwin)
        if let upgrade = exchange.limits.upgrade { return SessionLink.task(wire, exchange, upgrade, in: session) }
        #endif
        return session.dataTask(with: wire)
    }

    /// Returns the reason why the system cannot fulfill the options; `nil` if it can.
    private static func problem(with connection: ConnectionOptions) -> String? {
        if connection.proxy != .system {
            return "URLSession uses the system's proxy or its configuration's; leave the host's proxy at .system"
        }
        if connection.unixSocketPath != nil { return "URLSession does not connect to Unix domain sockets; set unixSocketPath to nil" }
        if !connection.allowsHTTP2 { return "URLSession chooses the HTTP version itself; leave allowsHTTP2 at true" }
        #if canImport(Darwin)
        if connection.tls.clientCertificate == nil { return nil }
        return "URLSession does not accept a client certificate in PEM; use a custom transport"
        #else
        if connection.tls == TLSOptions() { return nil }
        return "URLSession does not support TLS options on this system; install libcurl, or remove the options"
        #endif
    }

    private func configuration(for tls: TLSOptions) -> URLSessionConfiguration {
        #if canImport(Darwin)
        if let version = tls.minimumVersion, let copy = configuration.copy() as? URLSessionConfiguration {
            copy.tlsMinimumSupportedProtocolVersion = version == .tls13 ? .TLSv13 : .TLSv12
            return copy
        }
        #endif
        return configuration
    }

    static func prepared(_ configuration: URLSessionConfiguration) -> URLSessionConfiguration {
        // A copy has the same class, so the default is never used.
        let copy = configuration.copy() as? URLSessionConfiguration ?? .ephemeral
        copy.httpCookieStorage = nil
        copy.httpShouldSetCookies = false
        copy.httpCookieAcceptPolicy = .never
        copy.urlCache = nil
        copy.urlCredentialStorage = nil
        // Without a cache, any other policy could only add `Cache-Control` to requests, or fail them.
        copy.requestCachePolicy = .useProtocolCachePolicy
        // Only upper bounds: the exchange enforces the deadlines to a fraction of a second, and a stream may last for years.
        copy.timeoutIntervalForRequest = 86_400
        copy.timeoutIntervalForResource = 315_360_000
        // The host limits concurrent exchanges; waiting in the session would count against the head deadline.
        copy.httpMaximumConnectionsPerHost = max(64, copy.httpMaximumConnectionsPerHost)
        return copy
    }

    private static func wireRequest(_ request: HTTPRequest, _ exchange: Exchange) throws(TransportFailure) -> URLRequest {
        var wire = URLRequest(url: request.url, timeoutInterval: 86_400)
        // A new request already has GET.
        if request.method != .get { wire.httpMethod = request.method.rawValue }
        // Joins the values here (RFC 9110 §5.3), because Foundation joins without a space, and only if the names have the same case.
        for field in request.fields.fields { wire.setValue(request.fields[field.name], forHTTPHeaderField: field.name) }
        guard request.body.isNone || (request.method != .get && request.method != .head) else {
            throw TransportFailure(.unsupported, "URLSession cannot send a \(request.method.rawValue) request with a body; use POST")
        }
        switch request.body {
        case .none: break
        case .data(let data): wire.httpBody = data
        case .stream(let stream):
            do {
                if stream.chunks == nil, let whole = try smallBody(of: stream) {
                    wire.httpBody = whole
                } else {
                    let stop = { @Sendable (error: any Error) in
                        // The session may have sent the head, and earlier parts of the body.
                        var failure = TransportFailure.unreadableBody(error)
                        failure.mayHaveArrived = true
                        exchange.stop(failure)
                    }
                    #if canImport(Darwin)
                    try BoundBody.attach(to: &wire, read: stream.opened(for: exchange), isOver: { exchange.isOver }, onFailure: stop)
                    // Otherwise the system sends a stream in chunks, which some servers refuse.
                    if let length = stream.length { wire.setValue("\(length)", forHTTPHeaderField: "Content-Length") }
                    #else
                    wire.httpBodyStream = BodyInputStream(try stream.opened(for: exchange), onFailure: stop)
                    #endif
                }
            } catch {
                throw .unreadableBody(error).beforeSending
            }
        }
        return wire
    }

    /// Reads a body that is short enough to be sent from memory; returns `nil` for any other body.
    ///
    /// On Linux a stream is always chunked (RFC 9112 §7.1), which some servers refuse.
    private static func smallBody(of stream: HTTPBodyStream) throws -> Data? {
        guard let length = stream.length, length <= 262_144 else { return nil }
        let read = try stream.checked(stream.open())
        var body = Data()
        while let piece = try read(65_536) { body.append(piece) }
        return body
    }
}
