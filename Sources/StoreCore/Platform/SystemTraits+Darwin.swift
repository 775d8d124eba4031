#if canImport(Darwin)
/// The properties of Apple's systems that callers need to know.
package enum SystemTraits {
    #if os(macOS)
    package static let suspendsProcesses = false
    #else
    /// Whether the system suspends processes. It terminates a suspended process that holds a file lock.
    package static let suspendsProcesses = true
    #endif
    /// Whether a watch on a directory reports that a process that held a file open there has ended.
    package static let reportsClosedFiles = false
}
#endif
