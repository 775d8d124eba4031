internal import Foundation

/// Returns the number of rounds of a randomized test: `STOREHOUSE_SEEDS=300` sets it, and `STOREHOUSE_ROUNDS=all` selects the whole number.
///
/// - Parameters:
///   - whole: The number of a whole run.
///   - quick: The number without either, for tests that otherwise take long; by default the whole number.
public func rounds(_ whole: Int, quick: Int? = nil) -> Int { environment("STOREHOUSE_SEEDS") ?? (isWholeRun ? whole : quick ?? whole) }

/// Returns the largest number of states that a search visits: a part of a whole run, all of it, or `STOREHOUSE_SEEDS` times as many.
///
/// - Parameters:
///   - whole: The number of a whole run.
///   - quick: The number without either variable; by default a tenth.
public func states(_ whole: Int, quick: Int? = nil) -> Int {
    if let factor: Int = environment("STOREHOUSE_SEEDS") { return whole * max(1, factor) }
    return isWholeRun ? whole : quick ?? max(1, whole / 10)
}

/// Returns the seeds of a randomized test: `STOREHOUSE_SEEDS=300` sets their number, `STOREHOUSE_FIRST=301` the first of them, and
/// `STOREHOUSE_SEED=7` selects a single one.
///
/// - Parameters:
///   - whole: The number of a whole run.
///   - quick: The number without either variable, for tests that otherwise take long; by default the whole number.
///   - sanitized: The number under the thread sanitizer, which makes each round ten times slower.
public func seeds<Seed: FixedWidthInteger>(_ whole: Seed, quick: Seed? = nil, sanitized: Seed? = nil) -> ClosedRange<Seed> {
    if let seed: Seed = environment("STOREHOUSE_SEED") { return seed...seed }
    let usual = isWholeRun ? whole : quick ?? whole
    let first: Seed = environment("STOREHOUSE_FIRST") ?? 1
    return first...(first - 1 + max(1, environment("STOREHOUSE_SEEDS") ?? (isSanitized ? sanitized : nil) ?? usual))
}

/// Returns the cases that a test runs: all of them in a whole run, otherwise the first, the last, and every few of the others.
///
/// - Parameters:
///   - whole: The cases of a whole run, in their order.
///   - step: The distance of two cases otherwise. Their places differ from run to run, unless `STOREHOUSE_SEED` sets them.
public func part<Case>(of whole: some Collection<Case>, each step: Int) -> [Case] {
    let all = Array(whole)
    if isWholeRun || isLongRun { return all }
    let first = (environment("STOREHOUSE_SEED") ?? Int.random(in: 0..<step)) % step
    return all.indices.filter { $0 == 0 || $0 == all.count - 1 || ($0 - first).isMultiple(of: step) }.map { all[$0] }
}

/// Returns the positions that a test of many visits: a part of them, and the edges.
///
/// - Parameters:
///   - all: The positions of a whole run.
///   - step: The distance, preferably a prime number: a multiple of the size of a field would visit the same byte of each field.
///   - edges: The positions at which the behavior changes, such as the ends of records.
public func positions(_ all: Range<Int>, every step: Int, and edges: [Int] = []) -> [Int] {
    Set(part(of: all, each: step)).union(edges.filter(all.contains)).sorted()
}

/// Returns the bits of a byte that a test of damage flips: all of them in a whole run, otherwise one that differs from byte to byte.
///
/// - Parameter offset: The position of the byte.
public func flippedBits(at offset: Int) -> ClosedRange<Int> { isWholeRun || isLongRun ? 0...7 : offset % 8...offset % 8 }

/// Whether the tests run under the thread sanitizer: `.ci/sanitize` sets the variable.
public var isSanitized: Bool { ProcessInfo.processInfo.environment["TSAN_OPTIONS"] != nil }

/// Whether the environment asks for whole runs: `.ci/night` sets the variable.
public var isWholeRun: Bool { ProcessInfo.processInfo.environment["STOREHOUSE_ROUNDS"] == "all" }

/// Whether the environment sets the number of rounds.
public var isLongRun: Bool { ProcessInfo.processInfo.environment["STOREHOUSE_SEEDS"] != nil }

/// The time limit of every test in minutes, and a day where the environment sets the number of rounds: only a hang reaches it.
public var hangMinutes: Int { isLongRun ? 24 * 60 : 30 }

/// The longest wait for something that happens in a moment: only a hang reaches it, even on a machine that does much else.
public let hangLimit = Duration.seconds(900)

private func environment<Number: FixedWidthInteger>(_ name: String) -> Number? {
    ProcessInfo.processInfo.environment[name].flatMap { Number($0) }
}
