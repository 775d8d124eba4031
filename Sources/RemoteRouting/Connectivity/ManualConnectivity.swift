internal import StoreCore

/// Connectivity that code sets, for tests and for systems without a path monitor.
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

    /// Guards the path together with its readers, so that a new reader misses no change.
    private let state: Lock<State>

    /// Begins with a path.
    ///
    /// - Parameters:
    ///   - status: The reachability of the network.
    ///   - isCellular: Whether the path uses a cellular interface; `nil` if unknown.
    ///   - isExpensive: Whether the path is expensive; `nil` if unknown.
    public init(_ status: Connectivity.Status = .unknown, isCellular: Bool? = nil, isExpensive: Bool? = nil) {
        state = Lock(State(path: Connectivity.Path(status, isCellular: isCellular, isExpensive: isExpensive)))
    }

    /// The current path.
    public var path: Connectivity.Path { state.withLock(\.path) }

    /// The number of sequences that are being read.
    package var readerCount: Int { state.withLock(\.readers.count) }

    /// Sets the path; readers get it if it differs from the one before.
    ///
    /// - Parameters:
    ///   - status: The reachability of the network.
    ///   - isCellular: Whether the path uses a cellular interface; `nil` if unknown.
    ///   - isExpensive: Whether the path is expensive; `nil` if unknown.
    public func set(_ status: Connectivity.Status, isCellular: Bool? = nil, isExpensive: Bool? = nil) {
        let path = Connectivity.Path(status, isCellular: isCellular, isExpensive: isExpensive)
        // Reports under the lock, so that two changes reach all readers in the same order; a reader's stream only buffers them.
        state.withLock { state in
            state.path = path
            for report in state.readers.values { report(path) }
        }
    }

    /// The connectivity to pass on; a slow reader gets only the newest path.
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
