internal import Foundation

/// The number of active processors.
var availableProcessors: Int { ProcessInfo.processInfo.activeProcessorCount }
