internal import Foundation

/// How many rounds a test of chance runs: a number that is quick, or as many as the environment says.
///
/// - Parameter usual: The number without `STOREHOUSE_SEEDS`.
public func rounds(_ usual: Int) -> Int { environment("STOREHOUSE_SEEDS") ?? usual }

/// The seeds of the rounds: `STOREHOUSE_SEEDS=300` is so many, `STOREHOUSE_SEED=7` is that one alone.
///
/// - Parameter usual: The number without either.
public func seeds<Seed: FixedWidthInteger>(_ usual: Seed) -> ClosedRange<Seed> {
    if let seed: Seed = environment("STOREHOUSE_SEED") { return seed...seed }
    return 1...max(1, environment("STOREHOUSE_SEEDS") ?? usual)
}

/// Whether somebody wants more than the usual.
public var isLongRun: Bool { ProcessInfo.processInfo.environment["STOREHOUSE_SEEDS"] != nil }

private func environment<Number: FixedWidthInteger>(_ name: String) -> Number? {
    ProcessInfo.processInfo.environment[name].flatMap { Number($0) }
}
