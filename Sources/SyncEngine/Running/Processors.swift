#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The number of active processors.
var availableProcessors: Int { ProcessInfo.processInfo.activeProcessorCount }
