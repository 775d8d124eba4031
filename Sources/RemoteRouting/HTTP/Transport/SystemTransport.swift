/// The transports that this module makes for the system.
package enum SystemTransport {
    /// The default transport, shared so that hosts and fetchers share connections.
    package static let shared = make()

    /// Creates the transport that suits the system, with its libcurl or the one at a path.
    package static func make(libcurl path: String? = nil) -> any Transport {
        #if os(Linux)
        do {
            return try CurlTransport(width: 256, path: path)
        } catch {
            let reason = (error as? TransportFailure)?.underlyingError.map { "\($0)" } ?? "\(error)"
            return URLSessionTransport(reason: reason)
        }
        #else
        return URLSessionTransport()
        #endif
    }

    /// Returns whether a transport ends every exchange at its deadline; only the transports of this module guarantee it.
    package static func keepsDeadlines(_ transport: any Transport) -> Bool {
        #if os(Linux)
        transport is CurlTransport || transport is URLSessionTransport
        #else
        transport is URLSessionTransport
        #endif
    }
}
