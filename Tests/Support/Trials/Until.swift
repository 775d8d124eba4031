/// The error of a condition that was not met in time.
public struct NeverHappened: Error, CustomStringConvertible {
    /// The condition, and the place of the wait.
    public let description: String
}

/// Yields to other tasks until a condition holds that cannot be awaited.
///
/// - Parameters:
///   - wish: The condition in words, for the error.
///   - patience: The limit on the real clock; generous, because all tests share few threads.
///   - holds: Checks the condition.
/// - Throws: ``NeverHappened``; `CancellationError` when the test's time limit passes.
public func until(
    _ wish: String = "the condition holds", patience: Duration = .seconds(300), _ holds: () async throws -> Bool, fileID: String = #fileID,
    line: Int = #line
) async throws {
    let start = ContinuousClock.now
    var rounds = 0
    while try await !holds() {
        rounds += 1
        // Most conditions hold after a few task switches. For the others, sleeping leaves the threads to the tasks that they depend on.
        if rounds < 256 {
            await Task.yield()
        } else if ContinuousClock.now - start < patience {
            try await Task.sleep(for: .milliseconds(1))
        } else {
            throw NeverHappened(description: "waited \(patience) until \(wish), without success (\(fileID):\(line))")
        }
    }
}
