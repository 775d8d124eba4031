#if !canImport(Darwin)
extension PathMonitor {
    package static let isAvailable = false

    /// Never reports a path.
    @Sendable package static func start(_ report: @escaping @Sendable (Path) -> Void) -> @Sendable () -> Void { {} }
}
#endif
