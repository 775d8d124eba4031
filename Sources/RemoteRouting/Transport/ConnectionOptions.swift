/// The requirements for the connections of a host.
///
/// A host passes them to its transport with each request. A transport refuses options that it cannot fulfill; see ``Transport``.
public struct ConnectionOptions: Hashable, Sendable {
    /// The trust requirements for secure connections.
    public var tls = TLSOptions()
    /// The proxy of the connections.
    public var proxy = ProxyOptions.system
    /// Whether HTTP/2 is used if the server offers it; otherwise HTTP/1.1.
    public var allowsHTTP2 = true

    /// Creates the default options.
    public init() {}
}

extension ConnectionOptions {
    /// The options for another origin after a redirect, without the client certificate.
    var forOtherOrigin: ConnectionOptions {
        var copy = self
        copy.tls.clientCertificate = nil
        return copy
    }
}
