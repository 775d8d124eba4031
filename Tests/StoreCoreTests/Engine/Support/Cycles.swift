import Foundation
import Trials

/// The number of repetitions in tests of growth; set `STOREHOUSE_CYCLES=100000` for a long run.
enum Cycles {
    private static let wanted = ProcessInfo.processInfo.environment["STOREHOUSE_CYCLES"].flatMap { Int($0) }
    static let count = wanted ?? (isSanitized ? 2_000 : rounds(10_000, quick: 1_000))
    static let isLongRun = wanted != nil
}
