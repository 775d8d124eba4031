internal import Foundation

/// The process identifier, which a lock file reports to other processes.
var processNumber: Int { Int(ProcessInfo.processInfo.processIdentifier) }
