/// What was waited for did not come about.
public struct NeverHappened: Error, CustomStringConvertible {
    /// What was waited for, and where.
    public let description: String
}

/// Lets other tasks go on until something is true that no task can wait for.
///
/// - Parameters:
///   - wish: What is to become true, for the error.
///   - patience: How long to wait on the real clock: all tests share few threads, and each may take as long as all of them.
///   - holds: Looks at it.
/// - Throws: ``NeverHappened``; `CancellationError` when the test's time is over.
public func until(
    _ wish: String = "it was so", patience: Duration = .seconds(300), _ holds: () async throws -> Bool, fileID: String = #fileID,
    line: Int = #line
) async throws {
    let start = ContinuousClock.now
    var rounds = 0
    while try await !holds() {
        rounds += 1
        // Most things are a few switches of tasks away. What is not must not be kept from a thread by those who wait for it.
        if rounds < 256 {
            await Task.yield()
        } else if ContinuousClock.now - start < patience {
            try await Task.sleep(for: .milliseconds(1))
        } else {
            throw NeverHappened(description: "Waited \(patience) in vain until \(wish) (\(fileID):\(line)).")
        }
    }
}
