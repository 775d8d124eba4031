internal import StoreCore

/// One wait of a test: its subject, its timeout, and its place in the source.
///
/// The timeout runs in real time. ``ManualTime`` stands still while a test waits, so a timeout on it would never pass.
///
/// A pause in which no task runs counts for at most a second, for example while other tests block all threads of the pool. The awaited
/// condition has had no chance meanwhile.
final class TestWait: Sendable {
    private let subject: String
    fileprivate let timeout: Duration
    /// The rest of the timeout, on a clock that stops while the machine sleeps, and the time of the last count.
    private let rest: Lock<(duration: Duration, counted: SuspendingClock.Instant)>
    private let fileID: String
    private let line: Int

    /// The longest time that counts at once.
    fileprivate static let part = Duration.seconds(1)

    init(subject: String, timeout: Duration, fileID: String, line: Int) {
        self.subject = subject
        self.timeout = timeout
        rest = Lock((timeout, SuspendingClock.now))
        self.fileID = fileID
        self.line = line
    }

    /// Subtracts the time since the last call, and returns the rest of the timeout; zero after it.
    fileprivate func remaining() -> Duration {
        rest.withLock { rest in
            let now = SuspendingClock.now
            rest.duration -= min(rest.counted.duration(to: now), Self.part)
            rest.counted = now
            return max(.zero, rest.duration)
        }
    }

    func error(_ code: StoreError.Code, _ reason: String, history: [String]) -> StoreError {
        var error = StoreError(code, "waiting for \(subject) at \(fileID):\(line): \(reason); so far:\(Self.numbered(history))")
        error.keepsLineBreaks = true
        return error
    }

    private static func numbered(_ lines: [String]) -> String {
        guard !lines.isEmpty else { return " nothing" }
        let left = max(0, lines.count - 100)
        let shown = lines.enumerated().dropFirst(left).map { "\n  \($0.offset + 1). \($0.element.escapedForDisplay())" }
        return (left > 0 ? "\n  (\(left) earlier)" : "") + shown.joined()
    }
}

/// A state that can tell a timed-out test what has happened so far.
protocol Recounted: Sendable {
    /// The lines that the error shows; made outside the lock.
    var history: [String] { get }
}

extension WatchedState where State: Recounted {
    /// Waits until `condition` holds, for at most a timeout in real time. It runs under the lock, now and after each change.
    func wait(
        for subject: String, _ timeout: Duration, _ fileID: String, _ line: Int, isolation: isolated (any Actor)? = #isolation,
        until condition: @escaping @Sendable (State) -> Bool
    ) async throws {
        let wait = TestWait(subject: subject, timeout: timeout, fileID: fileID, line: line)
        try await self.wait(wait, history: { $0.history }) { condition($0) ? () : nil }
    }

    /// Waits until `change` returns a value, and makes that change. It is also tried on copies of the state, without an effect.
    func take<Value: Sendable>(
        _ wait: TestWait, isolation: isolated (any Actor)? = #isolation, _ change: @escaping @Sendable (inout State) -> Value?
    ) async throws -> Value {
        while true {
            if let value = update(change) { return value }
            try await self.wait(wait, history: { $0.history }) { state in
                var copy = state
                return change(&copy).map { _ in }
            }
        }
    }
}

extension WatchedState {
    /// Waits until `condition` returns a value, for the rest of a timeout in real time, and returns the value.
    ///
    /// The condition receives the state after each change, and runs under the lock. `history` makes the lines that the error shows, outside
    /// the lock.
    func wait<Value: Sendable>(
        _ wait: TestWait, isolation: isolated (any Actor)? = #isolation, history: (State) -> [String],
        until condition: @escaping @Sendable (State) -> Value?
    ) async throws -> Value {
        while true {
            do {
                return try await self.wait(timeout: min(wait.remaining(), TestWait.part), until: condition)
            } catch is WaitTimedOut {
                guard wait.remaining() == .zero else { continue }
                throw wait.error(.waitTimedOut, "nothing matched within \(wait.timeout.inWords)", history: history(current))
            }
        }
    }
}
