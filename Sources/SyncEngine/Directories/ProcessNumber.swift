#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The process identifier, which a lock file reports to other processes.
var processNumber: Int { Int(ProcessInfo.processInfo.processIdentifier) }
