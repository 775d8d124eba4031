internal import Foundation

/// How many rounds a test of chance runs: a number that is quick, or as many as the environment says.
///
/// - Parameter usual: The number without `STOREHOUSE_SEEDS`.
public func rounds(_ usual: Int) -> Int { environment("STOREHOUSE_SEEDS") ?? usual }

/// The seeds of the rounds: `STOREHOUSE_SEEDS=300` is so many, `STOREHOUSE_SEED=7` is that one alone.
///
/// - Parameters:
///   - usual: The number without either.
///   - sanitized: The number under the thread sanitizer, which makes each round ten times slower.
public func seeds<Seed: FixedWidthInteger>(_ usual: Seed, sanitized: Seed? = nil) -> ClosedRange<Seed> {
    if let seed: Seed = environment("STOREHOUSE_SEED") { return seed...seed }
    return 1...max(1, environment("STOREHOUSE_SEEDS") ?? (isSanitized ? sanitized : nil) ?? usual)
}

/// Whether the tests run under the thread sanitizer: `.ci/sanitize` sets the variable.
public var isSanitized: Bool { ProcessInfo.processInfo.environment["TSAN_OPTIONS"] != nil }

/// Whether somebody wants more than the usual.
public var isLongRun: Bool { ProcessInfo.processInfo.environment["STOREHOUSE_SEEDS"] != nil }

private func environment<Number: FixedWidthInteger>(_ name: String) -> Number? {
    ProcessInfo.processInfo.environment[name].flatMap { Number($0) }
}
