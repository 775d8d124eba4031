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
    /// The scheme.
    public var scheme: WebOrigin.Scheme
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
    public init(_ host: String, scheme: WebOrigin.Scheme = .https, port: Int? = nil, basePath: RoutePath = RoutePath()) {
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
    public func origin() throws(RouteFault) -> WebOrigin {
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
