internal import StoreCore

#if canImport(Network)
internal import Dispatch
internal import Network
#endif

/// The system's view of the network path: advice for the next attempt, and never a reason not to try.
///
/// ```swift
/// for await status in try Connectivity.system().statuses where status == .online {
///     await repositories.refresh()
/// }
/// ```
///
/// Connectivity holds back no request: a path monitor errs, and a request shows the truth. On Apple's systems it follows the system's
/// path monitor. Other systems have no monitor; there, a ``ManualConnectivity`` reports what the app learns.
public struct Connectivity: Sendable {
    /// The reachability of the network.
    public enum Status: String, Hashable, Sendable {
        /// There is a path to the network.
        case online
        /// There is no path to the network.
        case offline
        /// The system does not say.
        case unknown
    }

    /// A network path as the system sees it.
    ///
    /// ```swift
    /// for await path in try Connectivity.system().paths where path.isExpensive == false {
    ///     try await prefetchPictures()
    /// }
    /// ```
    public struct Path: Hashable, Sendable {
        /// The reachability of the network.
        public var status: Status
        /// Whether the path uses a cellular interface; `nil` if the system does not say. It is never a guess.
        public var isCellular: Bool?
        /// Whether the system regards the path as expensive, as cellular and personal hotspots are; `nil` if it does not say.
        public var isExpensive: Bool?

        /// Makes a path.
        ///
        /// - Parameters:
        ///   - status: The reachability of the network.
        ///   - isCellular: Whether the path uses a cellular interface; `nil` if unknown.
        ///   - isExpensive: Whether the system regards the path as expensive; `nil` if unknown.
        public init(_ status: Status, isCellular: Bool? = nil, isExpensive: Bool? = nil) {
            self.status = status
            self.isCellular = isCellular
            self.isExpensive = isExpensive
        }
    }

    /// Starts a monitor that reports paths, and returns the closure that stops it.
    private let monitor: @Sendable (_ report: @escaping @Sendable (Path) -> Void) -> @Sendable () -> Void

    /// Makes connectivity of a monitor of your own.
    ///
    /// - Parameter monitor: Starts to report the current path and each later one, and returns the closure that stops it. It runs once for
    ///   each sequence; the sequence stops it when it ends.
    public init(monitor: @escaping @Sendable (_ report: @escaping @Sendable (Path) -> Void) -> @Sendable () -> Void) {
        self.monitor = monitor
    }

    /// The current status, and then each change; a slow reader gets the newest one. Several readers may read at a time.
    public var statuses: AsyncStream<Status> { changes { $0.status } }

    /// The current path, and then each change; a slow reader gets the newest one. Several readers may read at a time.
    public var paths: AsyncStream<Path> { changes { $0 } }

    private func changes<Value: Equatable & Sendable>(of part: @escaping @Sendable (Path) -> Value) -> AsyncStream<Value> {
        let (stream, continuation) = AsyncStream<Value>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let last = Lock<Value?>(nil)
        let stop = monitor { path in
            let value = part(path)
            // Yields under the lock, so that the stream gets changes in their order; a stream only buffers them.
            last.withLock { last in
                guard last != value else { return }
                last = value
                continuation.yield(value)
            }
        }
        continuation.onTermination = { _ in stop() }
        return stream
    }

    /// The connectivity that the system's path monitor sees.
    ///
    /// - Throws: ``RemoteError/Code/unsupported`` where the system has no monitor, as on Linux; use ``ManualConnectivity`` there.
    public static func system() throws -> Connectivity {
        #if canImport(Network)
        return Connectivity(monitor: SystemPaths.monitor)
        #else
        throw RemoteError(
            .build, .unsupported, operation: "Connectivity.system()",
            "this system has no path monitor; report what you learn otherwise to a ManualConnectivity")
        #endif
    }
}

#if canImport(Network)
/// The paths of the system's path monitor; each sequence has a monitor of its own.
private enum SystemPaths {
    @Sendable static func monitor(_ report: @escaping @Sendable (Connectivity.Path) -> Void) -> @Sendable () -> Void {
        let monitor = NWPathMonitor()
        monitor.pathUpdateHandler = { path in
            switch path.status {
            case .satisfied:
                report(Connectivity.Path(.online, isCellular: path.usesInterfaceType(.cellular), isExpensive: path.isExpensive))
            // A path that carries nothing has no interface to describe.
            case .unsatisfied: report(Connectivity.Path(.offline))
            case .requiresConnection: report(Connectivity.Path(.unknown))
            @unknown default: report(Connectivity.Path(.unknown))
            }
        }
        monitor.start(queue: DispatchQueue(label: "RemoteRouting.SystemPaths"))
        return { monitor.cancel() }
    }
}
#endif
