public import RemoteHTTP

/// The location of an API: scheme, host, port and base path.
///
/// ```swift
/// extension HostConfiguration {
///     static let production = HostConfiguration(
///         "api.example.com", basePath: "/v1")
///     static let staging = HostConfiguration(
///         "staging.example.com", port: 8443, basePath: "/v1")
///     static let local = HostConfiguration("localhost", scheme: .http, port: 8080)
/// }
/// ```
/// ```swift
/// let api = RemoteHost(.staging)
/// ```
///
/// The text may be a host, a host with its port, or a whole address with a base path:
///
/// ```swift
/// let api = RemoteHost("https://api.example.com/v1")
/// let local: HostConfiguration = "http://[::1]:8080"
/// ```
///
/// Any other text is invalid, for example one with a user, a query, a fragment or another scheme. A host with an invalid text sends
/// nothing: each request throws ``RemoteError/Code/invalidRoute``. ``init(url:)`` throws at once. An international name is converted to its
/// ASCII form (UTS 46), and is invalid if the system's Foundation cannot convert it.
///
/// <doc:DescribingRoutes> lists the forms of an address.
public struct HostConfiguration: Hashable, Sendable, ExpressibleByStringLiteral {
    /// The scheme of an API's addresses (RFC 9110 §4.2).
    public typealias Scheme = HTTPScheme

    /// The scheme; https unless a text or an argument states another.
    public var scheme: Scheme = .https { didSet { fault = nil } }
    /// The host's name or IP address, without a port.
    public var host = "" { didSet { fault = nil } }
    /// The port; `nil` for the scheme's default.
    public var port: Int? { didSet { fault = nil } }
    /// The path that precedes every route's path.
    public var basePath: RoutePath = "" { didSet { fault = nil } }
    /// The fault of the text. A change clears it, because each request is checked again.
    private var fault: RouteFault?

    init() {}

    /// Creates a configuration; a fault is thrown when a request is built.
    ///
    /// - Parameters:
    ///   - host: A host, a host with its port, or an http or https address with a base path.
    ///   - scheme: The scheme; `nil` for the scheme of the address, or https.
    ///   - port: The port; `nil` for the port of the text, or the scheme's default.
    ///   - basePath: The path that precedes every route's path.
    public init(_ host: String, scheme: Scheme? = nil, port: Int? = nil, basePath: RoutePath = "") {
        do throws(RouteFault) {
            self = try HostText(host).configuration(scheme: scheme, port: port, basePath: basePath)
        } catch {
            self.host = host
            self.scheme = scheme ?? .https
            self.port = port
            self.basePath = basePath
            fault = error
        }
    }

    /// Creates a configuration from a literal; a fault is thrown when a request is built.
    public init(stringLiteral value: String) {
        self.init(value)
    }

    /// The scheme, host and port of all requests; throws ``RouteFault/Code/invalidOrigin``, or the fault of the text.
    func origin() throws(RouteFault) -> WebOrigin {
        if let fault { throw fault }
        return try WebOrigin(scheme: scheme, host: host, port: port)
    }

    /// The host's name for error messages; an invalid host is left out, because it may hold a password.
    var name: String { (try? origin().host) ?? "to an invalid host" }
}

/// Limits on response sizes, and on concurrent exchanges and streams.
///
/// <doc:SecurityNotes> lists the limits and what they protect.
public struct HostLimits: Hashable, Sendable {
    /// The maximum size of a response that is read as a whole, in bytes after decompression; 16 MiB by default.
    public var responseBytes: Int
    /// The maximum number of unread bytes in memory; 1 MiB by default.
    public var memoryBytes: Int
    /// The maximum number of further unread bytes in a temporary file; 1 GiB by default.
    public var spillBytes: Int
    /// The maximum number of concurrent exchanges, without streams; 32 by default. Further ones wait in order.
    public var concurrentExchanges: Int
    /// The maximum number of open streams; 128 by default.
    ///
    /// ``RemoteBytes``, events, live keys and downloads are streams. A further one waits, at most for the timeout of a response head.
    public var concurrentStreams: Int
    /// The maximum number of redirects that one request follows; 20 by default.
    public var redirects: Int

    /// Creates limits.
    ///
    /// - Parameters:
    ///   - responseBytes: The maximum size of a response, in bytes after decompression.
    ///   - memoryBytes: The maximum number of unread bytes in memory.
    ///   - spillBytes: The maximum number of further unread bytes in a temporary file.
    ///   - concurrentExchanges: The maximum number of concurrent exchanges, without streams; at least 1.
    ///   - concurrentStreams: The maximum number of open streams; at least 1.
    ///   - redirects: The maximum number of redirects that one request follows.
    public init(
        responseBytes: Int = 16 << 20, memoryBytes: Int = 1 << 20, spillBytes: Int = 1 << 30, concurrentExchanges: Int = 32,
        concurrentStreams: Int = 128, redirects: Int = 20
    ) {
        self.responseBytes = responseBytes
        self.memoryBytes = memoryBytes
        self.spillBytes = spillBytes
        self.concurrentExchanges = concurrentExchanges
        self.concurrentStreams = concurrentStreams
        self.redirects = redirects
    }
}
