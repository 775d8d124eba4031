internal import StoreCore

/// Connectivity that is told, for tests and for systems without a path monitor.
///
/// ```swift
/// let connectivity = ManualConnectivity(.offline)
/// connectivity.set(.online)
/// ```
public final class ManualConnectivity: Sendable {
    private struct State {
        var status: Connectivity.Status
        var readers: [UInt64: AsyncStream<Connectivity.Status>.Continuation] = [:]
        var lastReader: UInt64 = 0
    }

    /// Guards the status together with who reads it, so that a new reader misses nothing.
    private let state: Lock<State>

    /// Begins with a status.
    public init(_ status: Connectivity.Status = .unknown) {
        state = Lock(State(status: status))
    }

    /// The status as it is.
    public var status: Connectivity.Status { state.withLock(\.status) }

    /// How many read it now.
    public var readerCount: Int { state.withLock(\.readers.count) }

    /// Tells a status; the one that is known already is not told again.
    public func set(_ status: Connectivity.Status) {
        // Told under the lock, so that two changes reach all readers in the same order; a stream only keeps what it is told.
        state.withLock { state in
            guard state.status != status else { return }
            state.status = status
            for reader in state.readers.values { reader.yield(status) }
        }
    }

    /// The connectivity to hand out; a reader that is slow sees only the latest status.
    public var connectivity: Connectivity {
        Connectivity { self.statuses() }
    }

    private func statuses() -> AsyncStream<Connectivity.Status> {
        let (stream, continuation) = AsyncStream<Connectivity.Status>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let reader = state.withLock { state in
            state.lastReader += 1
            state.readers[state.lastReader] = continuation
            continuation.yield(state.status)
            return state.lastReader
        }
        continuation.onTermination = { [weak self] _ in
            self?.state.withLock { _ = $0.readers.removeValue(forKey: reader) }
        }
        return stream
    }
}
