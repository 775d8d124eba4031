internal import Foundation
internal import RemoteHTTP

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

/// Sends the requests of text fetchers without following redirects.
protocol TextTransport: Sendable {
    /// The library that sends the requests, with the reason if it is a fallback.
    var name: String { get }
    /// Whether bodies keep their content coding.
    var leavesCoding: Bool { get }

    /// Submits a request; ``TextExchange/onStop(_:)`` receives the closure that ends it early.
    ///
    /// - Throws: `WireFailure` if the request cannot be sent.
    func start(_ request: TextRequest, _ exchange: TextExchange) throws(WireFailure)
}

/// The transport that all fetchers share; created at the first request.
enum SharedTextTransport {
    static let transport: any TextTransport = make()

    /// Makes a transport.
    ///
    /// - Parameter path: A libcurl file to load instead of the system's.
    static func make(path: String? = nil) -> any TextTransport {
        #if os(Linux)
        // FoundationNetworking traps on some responses; with libcurl, no response can end the process.
        do { return try CurlTextTransport(path: path) } catch { return SessionTextTransport(becauseOf: "\(error)") }
        #else
        return SessionTextTransport()
        #endif
    }
}

#if os(Linux)
final class CurlTextTransport: TextTransport {
    private let client: WireClient

    /// Loads libcurl.
    ///
    /// - Parameter path: A libcurl file to load instead of the system's.
    /// - Throws: The reason why libcurl cannot be used.
    init(path: String? = nil) throws { client = try WireClient(path: path, width: 256) }

    var name: String { client.name }
    let leavesCoding = true

    func start(_ request: TextRequest, _ exchange: TextExchange) throws(WireFailure) {
        let engine = try client.usableEngine()
        var wire = WireRequest(url: request.url.absoluteString, method: "GET", mayRepeat: true)
        for field in request.fields { wire.add(field.name, field.value) }
        if !request.has("User-Agent") { wire.add("User-Agent", "Storehouse") }
        if !request.has("Accept-Encoding") { wire.add("Accept-Encoding", Inflater.isAvailable ? "gzip" : "identity") }
        let ticket = engine.start(wire, exchange)
        exchange.onStop { engine.cancel(ticket) }
    }
}
#endif

/// Sends requests with Foundation's `URLSession`, which decodes every content coding itself.
final class SessionTextTransport: TextTransport {
    let name: String
    let leavesCoding = false
    private let session: URLSession
    private let delegate = WireSessionDelegate()
    /// The queue that cancels tasks; not the delegate's queue, because a canceled task may wait for that queue.
    private let canceling = DispatchQueue(label: "TextStore.SessionTextTransport.canceling")

    init(becauseOf reason: String? = nil) {
        name = reason.map { "URLSession (\($0))" } ?? "URLSession"
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpCookieStorage = nil
        configuration.httpShouldSetCookies = false
        configuration.urlCache = nil
        configuration.urlCredentialStorage = nil
        configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
        // An upper bound only: the fetcher enforces the exact deadline.
        configuration.timeoutIntervalForRequest = 86_400
        // The fetchers limit the requests to one host; time spent waiting in the session would count towards the deadline.
        configuration.httpMaximumConnectionsPerHost = 64
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: queue)
    }

    deinit {
        // Tasks in flight retain the session's resources; a session that is never invalidated leaks.
        session.finishTasksAndInvalidate()
    }

    func start(_ request: TextRequest, _ exchange: TextExchange) {
        var wire = URLRequest(url: request.url, timeoutInterval: 86_400)
        for field in request.fields { wire.setValue(field.value, forHTTPHeaderField: field.name) }
        let task = session.dataTask(with: wire)
        delegate.add(exchange, for: task)
        exchange.onStop { [canceling] in canceling.async { task.cancel() } }
        task.resume()
    }
}
