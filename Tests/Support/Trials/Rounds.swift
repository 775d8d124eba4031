internal import Foundation

/// Returns the number of rounds of a randomized test: a quick default, or the number from the environment.
///
/// - Parameter usual: The number without `STOREHOUSE_SEEDS`.
public func rounds(_ usual: Int) -> Int { environment("STOREHOUSE_SEEDS") ?? usual }

/// Returns the seeds of a randomized test: `STOREHOUSE_SEEDS=300` sets their number, and `STOREHOUSE_SEED=7` selects a single one.
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

/// Whether the environment asks for more rounds than usual.
public var isLongRun: Bool { ProcessInfo.processInfo.environment["STOREHOUSE_SEEDS"] != nil }

/// Returns the time limit of a randomized test in minutes: the usual one, or a day where the environment asks for more rounds.
public func usually(_ minutes: Int) -> Int { isLongRun ? 24 * 60 : minutes }

private func environment<Number: FixedWidthInteger>(_ name: String) -> Number? {
    ProcessInfo.processInfo.environment[name].flatMap { Number($0) }
}
