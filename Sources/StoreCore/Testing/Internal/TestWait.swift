internal import StoreCore
internal import StoreOutbox

/// One wait of a test: its subject, its timeout, and its place in the source.
///
/// The timeout runs in real time. ``ManualTime`` stands still while a test waits, so a timeout on it would never pass.
struct TestWait: Sendable {
    /// The awaited condition, such as `2 sleepers`.
    private let subject: String
    private let timeout: Duration
    /// The latest end of the wait, on a clock that stops while the machine sleeps.
    private let deadline: SuspendingClock.Instant
    private let fileID: String
    private let line: Int

    init(subject: String, timeout: Duration, fileID: String, line: Int) {
        self.subject = subject
        self.timeout = timeout
        deadline = SuspendingClock.now.advanced(by: timeout)
        self.fileID = fileID
        self.line = line
    }

    /// The real time until the deadline; zero after it.
    var remaining: Duration { max(.zero, SuspendingClock.now.duration(to: deadline)) }

    /// Returns the error of a wait that timed out.
    func timeoutError(history: [String]) -> StoreError {
        error(.waitTimedOut, "nothing matched within \(timeout.inWords)", history: history)
    }

    /// Returns an error that names the wait, the reason for its failure, and the history so far.
    ///
    /// - Parameters:
    ///   - code: The kind of error.
    ///   - reason: The reason for the failure.
    ///   - history: The lines to show, oldest first.
    func error(_ code: StoreError.Code, _ reason: String, history: [String]) -> StoreError {
        var error = StoreError(code, "waiting for \(subject) at \(fileID):\(line): \(reason); so far:\(Self.numbered(history))")
        error.keepsLineBreaks = true
        return error
    }

    /// Returns the newest 100 lines, numbered from 1.
    private static func numbered(_ lines: [String]) -> String {
        guard !lines.isEmpty else { return " nothing" }
        let left = max(0, lines.count - 100)
        let shown = lines.enumerated().dropFirst(left).map { "\n  \($0.offset + 1). \($0.element.escapedForDisplay())" }
        return (left > 0 ? "\n  (\(left) earlier)" : "") + shown.joined()
    }
}

extension WatchedState {
    /// Waits until `condition` returns a value, for a limited real time.
    ///
    /// - Parameters:
    ///   - wait: The wait; its deadline bounds the call.
    ///   - isolation: The caller's actor, which the call does not leave.
    ///   - history: Makes the lines that the error shows; runs outside the lock.
    ///   - condition: Receives the state after each change; runs under the lock.
    /// - Returns: The first value of `condition`.
    /// - Throws: ``StoreError/Code/waitTimedOut`` after the timeout, `CancellationError` as soon as the task is canceled.
    func wait<Value: Sendable>(
        _ wait: TestWait, isolation: isolated (any Actor)? = #isolation, history: (State) -> [String],
        until condition: @escaping @Sendable (State) -> Value?
    ) async throws -> Value {
        do {
            return try await self.wait(timeout: wait.remaining, until: condition)
        } catch is WaitTimedOut {
            throw wait.timeoutError(history: history(current))
        }
    }
}
