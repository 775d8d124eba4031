internal import RemoteHTTP
internal import StoreCore
internal import StorePlatform

/// The system's view of the network path, which advises when to retry and never prevents a request.
///
/// ```swift
/// for await status in try Connectivity.system().statuses where status == .online {
///     await repositories.refresh()
/// }
/// ```
///
/// Only Apple's systems have a path monitor. On other systems, set the status that the app observes in a ``ManualConnectivity``.
public struct Connectivity: Sendable {
    /// The reachability of the network, which is advice and never prevents a request.
    public enum Status: String, Hashable, Sendable {
        /// A path to the network exists.
        case online
        /// No path to the network exists.
        case offline
        /// The system does not report the status.
        case unknown
    }

    /// A network path as the system describes it.
    ///
    /// ```swift
    /// for await path in try Connectivity.system().paths
    /// where path.isExpensive == false {
    ///     try await prefetchPictures()
    /// }
    /// ```
    public struct Path: Hashable, Sendable {
        /// Whether the path reaches the network, as far as the system reports it.
        public var status: Status
        /// Whether the path uses a cellular interface; `nil` if the system does not report it.
        public var isCellular: Bool?
        /// Whether the path is expensive, such as cellular or a personal hotspot; `nil` if the system does not report it.
        public var isExpensive: Bool?

        /// Creates a path.
        ///
        /// - Parameters:
        ///   - status: The reachability of the network.
        ///   - isCellular: Whether the path uses a cellular interface; `nil` if unknown.
        ///   - isExpensive: Whether the path is expensive; `nil` if unknown.
        public init(_ status: Status, isCellular: Bool? = nil, isExpensive: Bool? = nil) {
            self.status = status
            self.isCellular = isCellular
            self.isExpensive = isExpensive
        }
    }

    private let monitor: @Sendable (_ report: @escaping @Sendable (Path) -> Void) -> @Sendable () -> Void

    /// Creates connectivity from a custom monitor.
    ///
    /// - Parameter monitor: Starts to report the current path and each later one, and returns the closure that stops the reports. Each
    ///   sequence calls it once, and stops the reports when it ends.
    public init(monitor: @escaping @Sendable (_ report: @escaping @Sendable (Path) -> Void) -> @Sendable () -> Void) {
        self.monitor = monitor
    }

    /// The current status, followed by each change.
    ///
    /// A slow reader receives only the newest status. Each access creates a sequence of its own.
    public var statuses: AsyncStream<Status> { changes { $0.status } }

    /// The current path, followed by each change.
    ///
    /// A slow reader receives only the newest path. Each access creates a sequence of its own.
    public var paths: AsyncStream<Path> { changes { $0 } }

    private func changes<Value: Equatable & Sendable>(of part: @escaping @Sendable (Path) -> Value) -> AsyncStream<Value> {
        let (stream, continuation) = AsyncStream<Value>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let last = Lock<Value?>(nil)
        let stop = monitor { path in
            let value = part(path)
            // Yields under the lock to keep the order of changes. Yielding only buffers the value.
            last.withLock { last in
                guard last != value else { return }
                last = value
                continuation.yield(value)
            }
        }
        continuation.onTermination = { _ in stop() }
        return stream
    }

    /// Returns the connectivity that the system's path monitor reports.
    ///
    /// - Throws: ``RemoteError/Code/unsupported`` if the system has no monitor, as on Linux. Use ``ManualConnectivity`` there.
    public static func system() throws -> Connectivity {
        guard PathMonitor.isAvailable else {
            throw RemoteError(
                .build, .unsupported, operation: "Connectivity.system()",
                "this system has no path monitor; use ManualConnectivity")
        }
        return Connectivity { report in
            PathMonitor.start { report(Path($0)) }
        }
    }
}

extension Connectivity.Path {
    init(_ path: PathMonitor.Path) {
        switch path.isSatisfied {
        case true?: self.init(.online, isCellular: path.isCellular, isExpensive: path.isExpensive)
        // An unsatisfied path has no interface to describe.
        case false?: self.init(.offline)
        case nil: self.init(.unknown)
        }
    }
}
