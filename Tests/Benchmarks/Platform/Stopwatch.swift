/// A stopwatch for wall-clock time since its creation.
struct Stopwatch {
    private let began = ContinuousClock.now

    var nanoseconds: Double {
        let (seconds, attoseconds) = (ContinuousClock.now - began).components
        return Double(seconds) * 1e9 + Double(attoseconds) / 1e9
    }
}

/// Measures the nanoseconds per call of a loop of that many calls.
func perCall(_ count: Int, _ body: () async throws -> Void) async rethrows -> [Double] {
    let watch = Stopwatch()
    try await body()
    return [watch.nanoseconds / Double(count)]
}

/// Measures the nanoseconds per call of that many calls by plain tasks, because a group of a thousand tasks has a cost of its own.
func perCall(
    _ count: Int, over width: Int, _ body: @escaping @Sendable (_ number: Int) async throws -> Void
) async throws -> [Double] {
    let watch = Stopwatch()
    let tasks = (0..<width).map { first in Task { for number in stride(from: first, to: count, by: width) { try await body(number) } } }
    for task in tasks { try await task.value }
    return [watch.nanoseconds / Double(count)]
}

/// Consumes a value, so that the compiler cannot remove the loop that made it.
@inline(never)
func blackHole<Value>(_ value: Value) {}
