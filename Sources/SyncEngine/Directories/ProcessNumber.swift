internal import Foundation

/// The number of this process, which a lock tells to whoever waits for it.
var processNumber: Int { Int(ProcessInfo.processInfo.processIdentifier) }
