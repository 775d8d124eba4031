#if canImport(Darwin)
internal import Dispatch
internal import Network

extension PathMonitor {
    package static let isAvailable = true

    /// Starts a monitor that reports each path, beginning with the current one; the returned closure stops it.
    @Sendable package static func start(_ report: @escaping @Sendable (Path) -> Void) -> @Sendable () -> Void {
        let monitor = NWPathMonitor()
        monitor.pathUpdateHandler = { path in
            let isSatisfied: Bool? =
                switch path.status {
                case .satisfied: true
                case .unsatisfied: false
                case .requiresConnection: nil
                @unknown default: nil
                }
            report(Path(isSatisfied: isSatisfied, isCellular: path.usesInterfaceType(.cellular), isExpensive: path.isExpensive))
        }
        monitor.start(queue: DispatchQueue(label: "StorePlatform.PathMonitor"))
        return { monitor.cancel() }
    }
}
#endif
