internal import Foundation

/// How many processors there are to work with.
var availableProcessors: Int { ProcessInfo.processInfo.activeProcessorCount }
