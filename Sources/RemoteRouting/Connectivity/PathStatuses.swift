#if canImport(Network)
internal import Dispatch
internal import Network

/// The statuses of the system's path monitor; each sequence has a monitor of its own, which ends with it.
enum PathStatuses {
    static func make() -> AsyncStream<Connectivity.Status> {
        let (stream, continuation) = AsyncStream<Connectivity.Status>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let monitor = NWPathMonitor()
        monitor.pathUpdateHandler = { path in
            switch path.status {
            case .satisfied: continuation.yield(.online)
            case .unsatisfied: continuation.yield(.offline)
            case .requiresConnection: continuation.yield(.unknown)
            @unknown default: continuation.yield(.unknown)
            }
        }
        continuation.onTermination = { _ in monitor.cancel() }
        monitor.start(queue: DispatchQueue(label: "RemoteRouting.PathStatuses"))
        return stream
    }
}
#endif
