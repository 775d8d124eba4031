internal import StoreCore

/// Connectivity that the app sets, for tests and for systems without a path monitor.
///
/// ```swift
/// let connectivity = ManualConnectivity(.offline)
/// connectivity.set(.online)
/// ```
public final class ManualConnectivity: Sendable {
    private struct State {
        var path: Connectivity.Path
        var readers: [UInt64: @Sendable (Connectivity.Path) -> Void] = [:]
        var lastReader: UInt64 = 0
    }

    /// Guards the path and its readers together, so that a new reader misses no change.
    private let state: Lock<State>

    /// Creates connectivity with an initial path.
    ///
    /// - Parameters:
    ///   - status: The reachability of the network.
    ///   - isCellular: Whether the path uses a cellular interface; `nil` if unknown.
    ///   - isExpensive: Whether the path is expensive; `nil` if unknown.
    public init(_ status: Connectivity.Status = .unknown, isCellular: Bool? = nil, isExpensive: Bool? = nil) {
        state = Lock(State(path: Connectivity.Path(status, isCellular: isCellular, isExpensive: isExpensive)))
    }

    /// The path that was set last; that of the initializer before the first `set(_:)`.
    public var path: Connectivity.Path { state.withLock(\.path) }

    package var readerCount: Int { state.withLock(\.readers.count) }

    /// Sets the path; readers receive it if it differs from the previous path.
    ///
    /// - Parameters:
    ///   - status: The reachability of the network.
    ///   - isCellular: Whether the path uses a cellular interface; `nil` if unknown.
    ///   - isExpensive: Whether the path is expensive; `nil` if unknown.
    public func set(_ status: Connectivity.Status, isCellular: Bool? = nil, isExpensive: Bool? = nil) {
        let path = Connectivity.Path(status, isCellular: isCellular, isExpensive: isExpensive)
        // Reports under the lock, so that all readers receive changes in the same order. A reader's stream only buffers the path.
        state.withLock { state in
            state.path = path
            for report in state.readers.values { report(path) }
        }
    }

    /// The connectivity that this object controls; a slow reader receives only the newest path.
    public var connectivity: Connectivity {
        Connectivity { report in
            let reader = self.state.withLock { state in
                state.lastReader += 1
                state.readers[state.lastReader] = report
                report(state.path)
                return state.lastReader
            }
            return { [weak self] in
                self?.state.withLock { _ = $0.readers.removeValue(forKey: reader) }
            }
        }
    }
}
