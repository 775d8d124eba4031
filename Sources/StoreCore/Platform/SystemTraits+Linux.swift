#if !canImport(Darwin)
/// The properties of Linux that callers need to know.
package enum SystemTraits {
    /// Whether the system suspends processes. It terminates a suspended process that holds a file lock.
    package static let suspendsProcesses = false
    /// Whether a watch on a directory reports that a process that held a file open there has ended.
    package static let reportsClosedFiles = true
}
#endif
