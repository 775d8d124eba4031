#if canImport(Network)
internal import Dispatch
internal import Network

/// The paths of the system's path monitor; each sequence has a monitor of its own.
enum SystemPaths {
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
