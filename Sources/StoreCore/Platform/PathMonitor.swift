/// The system's monitor of network paths, which Linux does not have.
package enum PathMonitor {
    /// A path as the system describes it.
    package struct Path: Sendable {
        /// Whether the path leads to the network; `nil` if the system does not know.
        package var isSatisfied: Bool?
        package var isCellular: Bool
        package var isExpensive: Bool
    }
}
