/// The transport of hosts that are given none.
enum DefaultTransport {
    /// Shared by all hosts, so that they share connections.
    static let shared: any Transport = make()

    private static func make() -> any Transport {
        #if os(Linux)
        do {
            return try CurlTransport()
        } catch {
            // `print(host.transport)` shows the reason.
            let reason = (error as? TransportFailure)?.message ?? "\(error)"
            return URLSessionTransport(becauseOf: reason)
        }
        #else
        return URLSessionTransport()
        #endif
    }
}
