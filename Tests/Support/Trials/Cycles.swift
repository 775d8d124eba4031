internal import Foundation

/// The number of repetitions in tests of growth; set `STOREHOUSE_CYCLES=100000` for a long run.
public enum Cycles {
    private static let wanted = ProcessInfo.processInfo.environment["STOREHOUSE_CYCLES"].flatMap { Int($0) }
    /// The number of repetitions.
    public static let count = wanted ?? (isSanitized ? 2_000 : rounds(10_000, quick: 1_000))
    /// Whether the environment sets the number.
    public static let isLongRun = wanted != nil
}
