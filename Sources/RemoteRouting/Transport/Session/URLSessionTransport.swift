internal import Foundation
internal import StoreCore

#if canImport(FoundationNetworking)
public import FoundationNetworking
#endif

/// Performs exchanges with Foundation's `URLSession`.
///
/// Safe requests share a session and its connections. An unsafe request gets a session of its own and with it a fresh connection: on
/// Linux a connection that the server has closed meanwhile makes the library below send *any* request a second time, its body or none,
/// and neither a stream that is refused when it is asked for again nor `Connection: close` keeps it from doing so.
///
/// The default of ``RemoteHost`` on Apple's systems; on Linux it stands in where libcurl is missing, with the faults of FoundationNetworking
/// that <doc:SecurityNotes> lists: some responses end the process.
///
/// Of the ``TLSOptions``, Apple's systems keep all but the client certificate, on a fresh connection for each request; Linux keeps none. What
/// cannot be kept is ``RemoteError/Code/unsupported``.
///
/// A finished session cannot take our delegate, so a session of your own is given as its configuration. Cookies, caching, credentials
/// and timeouts of the configuration are not used: these are decided above.
public final class URLSessionTransport: Transport, CustomStringConvertible {
    /// `URLSession`, with the reason where it stands in for libcurl.
    public let description: String
    private let configuration: URLSessionConfiguration
    private let shared: URLSession
    private let delegate: SessionDelegate
    private let queue: OperationQueue
    /// Where the session is called: its calls wait for a queue of its own, which no thread of the tasks' pool may be held for. With many
    /// exchanges at once that would cost a quarter of the throughput, and those who leave would stand behind those who begin.
    let starting = DispatchQueue(label: "RemoteRouting.URLSessionTransport.starting")
    /// Where tasks are cancelled: never on the delegate's queue, which a task under cancellation may be waiting for, and never where others
    /// would have to wait for that to begin.
    private let cancelling = DispatchQueue(label: "RemoteRouting.URLSessionTransport.cancelling")

    /// Makes a transport.
    ///
    /// - Parameter configuration: Where connections come from: proxies, TLS versions, connections per host. It is copied.
    public convenience init(configuration: URLSessionConfiguration = .ephemeral) {
        self.init(configuration: configuration, reason: nil)
    }

    /// Stands in for another transport.
    convenience init(becauseOf reason: String) { self.init(configuration: .ephemeral, reason: reason) }

    private init(configuration: URLSessionConfiguration, reason: String?) {
        description = reason.map { "URLSession (\($0))" } ?? "URLSession"
        self.configuration = URLSessionTransport.prepared(configuration)
        queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        delegate = SessionDelegate()
        shared = URLSession(configuration: self.configuration, delegate: delegate, delegateQueue: queue)
    }

    deinit {
        // Exchanges under way have what they need; a session that is not invalidated would live for ever.
        shared.finishTasksAndInvalidate()
    }

    /// How many exchanges of safe requests are under way, for tests.
    package var exchangeCount: Int { delegate.count }

    /// Sends a request and returns once the head of the answer is there.
    public func perform(_ request: HTTPRequest, limits: ExchangeLimits) async throws -> HTTPResponse {
        try await perform(request, over: ConnectionOptions(), limits: limits)
    }

    /// Sends a request over a connection that keeps the options, and returns once the head of the response is there.
    public func perform(
        _ request: HTTPRequest, over connection: ConnectionOptions, limits: ExchangeLimits
    ) async throws -> HTTPResponse {
        if let problem = URLSessionTransport.problem(with: connection) { throw TransportFailure(.unsupported, problem) }
        let exchange = Exchange(limits: limits)
        let wire = try URLSessionTransport.wireRequest(request, exchange)
        // Other options get a session of their own, so that neither connections nor sessions of TLS are shared.
        let isFresh = !request.method.isSafe || connection.tls != TLSOptions()
        if exchange.mayBegin() {
            starting.async { [self] in start(wire, exchange, connection.tls, isFresh: isFresh) }
        }
        return try await exchange.response()
    }

    private func start(_ wire: URLRequest, _ exchange: Exchange, _ tls: TLSOptions, isFresh: Bool) {
        // Its caller may have left meanwhile.
        guard exchange.mayBegin() else { return }
        let delegate = isFresh ? SessionDelegate(tls) : delegate
        let session = isFresh ? URLSession(configuration: configuration(for: tls), delegate: delegate, delegateQueue: queue) : shared
        let task = session.dataTask(with: wire)
        delegate.add(exchange, for: task, invalidatesSession: isFresh)
        task.resume()
        exchange.onStop { [cancelling] in cancelling.async { task.cancel() } }
    }

    /// Why the system cannot keep options; `nil` where it can.
    private static func problem(with connection: ConnectionOptions) -> String? {
        if connection.proxy != .system {
            return "URLSession takes the system's proxy, or that of its configuration; leave the host's proxy at .system"
        }
        if !connection.allowsHTTP2 { return "URLSession chooses the version of HTTP itself; leave allowsHTTP2 at true" }
        return problem(with: connection.tls)
    }

    private static func problem(with tls: TLSOptions) -> String? {
        #if canImport(Darwin)
        tls.clientCertificate == nil ? nil : "URLSession takes no client certificate in PEM; use a transport of your own for it"
        #else
        tls == TLSOptions() ? nil : "URLSession cannot keep TLS options on this system; install libcurl, or remove the options"
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

    private static func prepared(_ configuration: URLSessionConfiguration) -> URLSessionConfiguration {
        // The copy is made by Foundation and is of the same class.
        let copy = configuration.copy() as? URLSessionConfiguration ?? .ephemeral
        copy.httpCookieStorage = nil
        copy.httpShouldSetCookies = false
        copy.httpCookieAcceptPolicy = .never
        copy.urlCache = nil
        copy.urlCredentialStorage = nil
        copy.requestCachePolicy = .reloadIgnoringLocalCacheData
        // Only a ceiling: the deadlines are kept above, to the fraction of a second.
        copy.timeoutIntervalForRequest = 86_400
        // How many exchanges a host gets at once is decided above; waiting in here would count as waiting for the head.
        copy.httpMaximumConnectionsPerHost = max(64, copy.httpMaximumConnectionsPerHost)
        return copy
    }

    private static func wireRequest(_ request: HTTPRequest, _ exchange: Exchange) throws(TransportFailure) -> URLRequest {
        var wire = URLRequest(url: request.url, timeoutInterval: 86_400)
        // That of a new request.
        if request.method != .get { wire.httpMethod = request.method.rawValue }
        // Joined here (RFC 9110 §5.3): Foundation would do it without a blank, and only for names of the same case.
        for field in request.fields.fields { wire.setValue(request.fields[field.name], forHTTPHeaderField: field.name) }
        let isEmpty = if case .none = request.body { true } else { false }
        guard isEmpty || (request.method != .get && request.method != .head) else {
            throw TransportFailure(.unsupported, "a \(request.method.rawValue) with a body cannot be sent here; use POST")
        }
        switch request.body {
        case .none: break
        case .data(let data): wire.httpBody = data
        case .stream(let stream):
            do {
                if let whole = try smallBody(of: stream) {
                    wire.httpBody = whole
                } else {
                    wire.httpBodyStream = BodyInputStream(try stream.open()) { exchange.stop(.unreadableBody($0)) }
                }
            } catch {
                throw .unreadableBody(error).beforeSending
            }
        }
        return wire
    }

    /// A body that is short enough to be sent from memory, with its length; on Linux a stream is always sent in chunks (RFC 9112 §7.1),
    /// which some servers do not take.
    private static func smallBody(of stream: HTTPBodyStream) throws -> Data? {
        guard let length = stream.length, length <= 262_144 else { return nil }
        let read = try stream.open()
        var body = Data()
        while let piece = try read(65_536) {
            body.append(piece)
            guard body.count <= length else { break }
        }
        guard body.count == length else {
            throw TransportFailure(.bodyUnreadable, "the body has not the \(length) bytes that it was said to have")
        }
        return body
    }
}
