/// Whether the system sees a way to the network: advice for when to try again, and never a reason not to try.
///
/// ```swift
/// for await status in try Connectivity.system().statuses where status == .online {
///     await repositories.refresh()
/// }
/// ```
///
/// No request is ever held back by it: a path monitor errs, and a request tells the truth. On Apple's systems it follows the system's
/// path monitor; elsewhere there is none to ask, and statuses are what ``ManualConnectivity`` is told.
public struct Connectivity: Sendable {
    /// What is known of the way to the network.
    public enum Status: String, Hashable, Sendable {
        /// There is a way.
        case online
        /// There is none.
        case offline
        /// Nobody knows.
        case unknown
    }

    private let makeStatuses: @Sendable () -> AsyncStream<Status>

    /// Makes connectivity of a source of your own.
    ///
    /// - Parameter statuses: Makes a sequence that begins with the status as it is and never says the same twice in a row.
    public init(statuses: @escaping @Sendable () -> AsyncStream<Status>) {
        makeStatuses = statuses
    }

    /// The status as it is, and then each change; several may be read at a time.
    public var statuses: AsyncStream<Status> { makeStatuses() }

    /// What the system's path monitor sees.
    ///
    /// - Throws: ``RemoteError/Code/unsupported`` where the system has none, as on Linux; use ``ManualConnectivity`` there.
    public static func system() throws -> Connectivity {
        #if canImport(Network)
        return Connectivity { PathStatuses.make() }
        #else
        throw RemoteError(
            .build, .unsupported, operation: "Connectivity.system()",
            "this system has no path monitor; tell a ManualConnectivity what you learn otherwise")
        #endif
    }
}
