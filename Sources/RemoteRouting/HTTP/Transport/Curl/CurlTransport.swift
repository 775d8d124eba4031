#if os(Linux)
internal import Foundation
internal import StoreCore

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

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
/// Requests use HTTP/2 if the server offers it over TLS. Otherwise, and for streamed responses unless the server has only HTTP/2, they use
/// HTTP/1.1. A body of known length is sent with `Content-Length`, any other in chunks or frames. The environment names the proxy unless
/// ``RemoteHost/proxy`` is set. The head of a response may have at most 1 000 fields and 256 KiB.
public final class CurlTransport: Transport, CustomStringConvertible {
    private let library: WireLibrary
    private let width: Int
    private let connections: Int
    /// Guards the engine; a forked process creates its own for its first request.
    private let engine: Lock<WireEngine>

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

    /// Creates a transport with the libcurl at a path, and with a limit of connections, which includes those of paused exchanges.
    package init(width: Int, connections: Int? = nil, path: String?) throws {
        // `URLSession` also initializes libcurl, which is not thread-safe before 7.84. This session forces it to do so first.
        if !WireLibrary.isInitializationThreadSafe { URLSession(configuration: .ephemeral).invalidateAndCancel() }
        do {
            library = try WireLibrary(path: path)
        } catch {
            throw TransportFailure(.unsupported, "\(error); install libcurl 7.66 or newer", underlyingError: error)
        }
        let limit = connections ?? CurlTransport.connectionLimit
        self.width = min(width, limit)
        self.connections = limit
        engine = Lock(try WireEngine(library, width: min(width, limit), connections: limit))
    }

    /// The name and version of the library.
    public var description: String { "libcurl \(library.version)" }

    /// The number of exchanges in flight, for tests.
    package var exchangeCount: Int { engine.withLock(\.count) }

    /// Returns the engine of this process; throws if a forked process has no file descriptor left for its own.
    package func usableEngine() throws(TransportFailure) -> WireEngine {
        try engine.withLock { engine throws(TransportFailure) in
            // The thread of the old engine is not part of a forked process.
            if !engine.isUsable { engine = try WireEngine(library, width: width, connections: connections) }
            return engine
        }
    }

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
        guard exchange.mayBegin() else { return exchange }
        let build = library.build
        if connection.tls != TLSOptions(), let problem = connection.tls.problem(version: build.version, backend: build.tls) {
            throw TransportFailure(.unsupported, "\(problem); install a newer libcurl with OpenSSL, or remove the options")
        }
        let request = try WireRequest(request, over: connection, limits)
        let engine = try usableEngine()
        let ticket = engine.start(request, exchange)
        if let socket = request.socket { exchange.onEnd { socket.end() } }
        exchange.onStop { engine.cancel(ticket) }
        exchange.onResume { engine.resume(ticket) }
        return exchange
    }

    /// Half of the process's descriptors, without those of the engine itself. The rest is for other code, which may end the process without.
    private static var connectionLimit: Int {
        let limit = sysconf(Int32(_SC_OPEN_MAX))
        return limit < 0 ? 1 << 16 : max(4, Int(limit) / 2 - 8)
    }
}
#endif
