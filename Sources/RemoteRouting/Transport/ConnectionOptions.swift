/// The demands on the connections that requests go over.
///
/// A host hands them to its transport with each request. A transport refuses what it cannot do; see ``Transport``.
public struct ConnectionOptions: Hashable, Sendable {
    /// The trust that is demanded of secure connections.
    public var tls = TLSOptions()
    /// The proxy that the connections go through.
    public var proxy = ProxyOptions.system
    /// Whether HTTP/2 is used where the server offers it; otherwise HTTP/1.1 is.
    public var allowsHTTP2 = true

    /// Makes the default options.
    public init() {}
}

extension ConnectionOptions {
    /// The options for another origin, which a redirect led to: it gets no client certificate.
    var forOtherOrigin: ConnectionOptions {
        var copy = self
        copy.tls.clientCertificate = nil
        return copy
    }
}
