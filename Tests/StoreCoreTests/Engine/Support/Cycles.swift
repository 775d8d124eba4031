import Foundation

/// How often tests of growth repeat what they repeat; `STOREHOUSE_CYCLES=1000000` for a long run.
enum Cycles {
    static let count = ProcessInfo.processInfo.environment["STOREHOUSE_CYCLES"].flatMap { Int($0) } ?? 100_000
}
