/// Where an API stands: scheme, host, port and what all its paths begin with.
///
/// ```swift
/// extension HostConfiguration {
///     static let production = HostConfiguration("api.example.com", basePath: "/v1")
///     static let staging = HostConfiguration("staging.example.com", port: 8443, basePath: "/v1")
///     static let local = HostConfiguration("localhost", scheme: .http, port: 8080)
/// }
/// ```
/// ```swift
/// let api = RemoteHost(.staging)
/// ```
///
/// A text may be a host, a host with its port, or a whole address with a base path:
///
/// ```swift
/// let api = RemoteHost("https://api.example.com/v1")
/// let local: HostConfiguration = "http://[::1]:8080"
/// ```
///
/// A text that is none of these has a fault, as has a user, a query, a fragment or another scheme. A host with a fault sends nothing: each request
/// throws ``RemoteError/Code/invalidRoute``. ``init(url:)`` throws the fault at once.
public struct HostConfiguration: Hashable, Sendable, ExpressibleByStringLiteral {
    /// A scheme of HTTP.
    public enum Scheme: String, Hashable, Sendable {
        /// Without encryption.
        case http
        /// With TLS.
        case https

        /// The port of the scheme.
        package var defaultPort: Int {
            switch self {
            case .http: 80
            case .https: 443
            }
        }
    }

    /// The scheme.
    public var scheme: Scheme = .https { didSet { fault = nil } }
    /// The host's name or address, and nothing else.
    public var host = "" { didSet { fault = nil } }
    /// The port; `nil` for the scheme's own.
    public var port: Int? { didSet { fault = nil } }
    /// The path before every route's path.
    public var basePath: RoutePath = "" { didSet { fault = nil } }
    /// The fault of the text that the configuration was made from; a change forgets it, and the request is checked anyway.
    private var fault: RouteFault?

    /// Makes a configuration without a host, to be filled.
    init() {}

    /// Makes a configuration; a fault of it is thrown when a request is built.
    ///
    /// - Parameters:
    ///   - host: A host, a host with its port, or an http or https address with a base path.
    ///   - scheme: The scheme; `nil` for that of the address, and for https without one.
    ///   - port: The port; `nil` for that of the text, or the scheme's own.
    ///   - basePath: The path before every route's path.
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

    /// Makes a configuration from a literal; a fault of it is thrown when a request is built.
    public init(stringLiteral value: String) {
        self.init(value)
    }

    /// The scheme, the host and the port of all requests.
    ///
    /// - Throws: ``RouteFault/Code/invalidOrigin``, or the fault of the text.
    func origin() throws(RouteFault) -> WebOrigin {
        if let fault { throw fault }
        return try WebOrigin(scheme: scheme, host: host, port: port)
    }

    /// The host as an error may name it: what is no host may hold a password.
    var name: String {
        do {
            return try origin().host
        } catch {
            return "to what is no host"
        }
    }
}

/// How much a host may send and how much is asked of it at once.
public struct HostLimits: Hashable, Sendable {
    /// How many bytes an answer may have that is decoded or returned as a whole, once unpacked.
    public var responseBytes: Int
    /// How many bytes that nobody has read yet are held in memory.
    public var memoryBytes: Int
    /// How many unread bytes may lie in a temporary file beyond that.
    public var spillBytes: Int
    /// How many exchanges run at once; further ones wait in order.
    public var concurrentExchanges: Int
    /// How many redirects of one request are followed.
    public var redirects: Int

    /// Makes limits.
    ///
    /// - Parameters:
    ///   - responseBytes: How many bytes an answer may have, once unpacked.
    ///   - memoryBytes: How many unread bytes are held in memory.
    ///   - spillBytes: How many unread bytes may lie in a temporary file.
    ///   - concurrentExchanges: How many exchanges run at once; at least one.
    ///   - redirects: How many redirects of one request are followed.
    public init(
        responseBytes: Int = 16 << 20, memoryBytes: Int = 1 << 20, spillBytes: Int = 1 << 30, concurrentExchanges: Int = 32,
        redirects: Int = 20
    ) {
        self.responseBytes = responseBytes
        self.memoryBytes = memoryBytes
        self.spillBytes = spillBytes
        self.concurrentExchanges = concurrentExchanges
        self.redirects = redirects
    }
}
