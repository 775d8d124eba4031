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
    public var scheme: Scheme
    /// The host's name or address, and nothing else.
    public var host: String
    /// The port; `nil` for the scheme's own.
    public var port: Int?
    /// What stands before every route's path.
    public var basePath: RoutePath

    /// Makes a configuration; it is checked when a request is built.
    ///
    /// - Parameters:
    ///   - host: The host's name or address, and nothing else.
    ///   - scheme: The scheme.
    ///   - port: The port; `nil` for the scheme's own.
    ///   - basePath: What stands before every route's path.
    public init(_ host: String, scheme: Scheme = .https, port: Int? = nil, basePath: RoutePath = "") {
        self.host = host
        self.scheme = scheme
        self.port = port
        self.basePath = basePath
    }

    /// A host that is reached by https on its usual port.
    public init(stringLiteral value: String) {
        self.init(value)
    }

    /// Who answers.
    ///
    /// - Throws: ``RouteFault/Code/invalidOrigin``.
    func origin() throws(RouteFault) -> WebOrigin {
        try WebOrigin(scheme: scheme, host: host, port: port)
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
