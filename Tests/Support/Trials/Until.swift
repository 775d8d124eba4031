internal import StoreCore

/// The error of a condition that was not met in time.
public struct NeverHappened: Error, CustomStringConvertible {
    /// The condition, and the place of the wait.
    public let description: String
}

/// Yields to other tasks until a condition holds that cannot be awaited.
///
/// - Parameters:
///   - wish: The condition in words, for the error.
///   - patience: The limit on the real clock.
///   - holds: Checks the condition.
/// - Throws: ``NeverHappened``; `CancellationError` when the test's time limit passes.
public func until(
    _ wish: String = "the condition holds", patience: Duration = hangLimit, _ holds: () async throws -> Bool, fileID: String = #fileID,
    line: Int = #line
) async throws {
    let start = ContinuousClock.now
    var rounds = 0
    while try await !holds() {
        rounds += 1
        let waited = ContinuousClock.now - start
        // Most conditions hold after a few task switches. For the others, sleeping leaves the threads to the tasks that they depend on. The
        // sleeps grow with the wait, because many tests wait at the same time.
        if rounds < 64 {
            await Task.yield()
        } else if waited < patience {
            try await Task.sleep(for: min(max(waited / 8, .milliseconds(1)), .milliseconds(16)))
        } else {
            throw NeverHappened(description: "waited \(patience) until \(wish), without success (\(fileID):\(line))")
        }
    }
}

/// Suspends until the task is canceled, for work that never ends by itself.
///
/// - Throws: `CancellationError`.
public func untilCanceled() async throws { _ = try await WatchedState(()).wait { _ -> Bool? in nil } }

/// Lets other tasks run for a while, which depends on no clock: for tests that nothing more happens, and for work that takes a moment.
public func otherTasksRun(turns: Int = 2_000) async { for _ in 0..<turns { await Task.yield() } }

/// Waits in real time, for measurements of an idle program: nothing else may depend on the time that has passed.
public func leaveIdle(seconds: Int) async throws { try await Task.sleep(for: .seconds(seconds)) }

extension Task where Failure == any Error {
    /// Waits for the result of a task that may never end, for example because it waits for a lock.
    ///
    /// - Parameters:
    ///   - wish: The result in words, for the error.
    ///   - patience: The limit on the real clock, after which the task is canceled.
    /// - Returns: The result.
    /// - Throws: ``NeverHappened`` after that time; the error of the task.
    public func value(
        of wish: String = "the task ends", within patience: Duration = hangLimit, fileID: String = #fileID, line: Int = #line
    ) async throws -> Success {
        let hasEnded = WatchedState(false)
        Task<Void, Never> {
            _ = await result
            hasEnded.update { $0 = true }
        }
        do {
            try await until(wish, patience: patience, { hasEnded.current }, fileID: fileID, line: line)
        } catch {
            cancel()
            throw error
        }
        return try await value
    }
}
