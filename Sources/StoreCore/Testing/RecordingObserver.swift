public import StoreCore

/// An observer that records every state it receives.
///
/// ```swift
/// fetcher.hold()
/// let recorder = RecordingObserver(users[1].publish())
/// try await recorder.next { $0.isLoading }
/// fetcher.release()
/// try await recorder.next { $0.isCompleted }
/// #expect(recorder.summary == "loading(nil) completed(Ada)")
/// ```
///
/// A wait considers only states after the last state that an earlier wait returned, so one state never satisfies two steps of a test.
/// ``states`` and ``wait(timeout:fileID:line:until:)`` cover the whole history.
///
/// The observer joins from its own task soon after its creation, and leaves when it is stopped or released. It takes each state at once,
/// but a sequence may drop states that follow each other faster than any observer can take them. Compare the whole history only if the test
/// waits between the steps.
///
/// <doc:TestingYourStore> uses recorders in complete suites.
public final class RecordingObserver<Content: Sendable>: Sendable {
    private struct Recording: Recounted {
        var states: [LoadingState<Content>] = []
        /// The number of states that waits have passed.
        var position = 0
        var isStopped = false
        var hasEnded = false

        var history: [String] { states.map(\.summary) }
    }

    /// The task writes; tests read and wait. The task retains the recording but not the observer, so that the observer can be released.
    private let recording: WatchedState<Recording>
    private let task: Task<Void, Never>

    /// Creates an observer that follows a sequence, at the priority of the caller.
    ///
    /// - Parameter sequence: The sequence to follow; the recorder is one of its observers.
    public init(_ sequence: LoadingStateSequence<Content>) {
        let recording = WatchedState(Recording())
        self.recording = recording
        task = Task {
            await Self.follow(sequence, into: recording)
            recording.update { $0.hasEnded = true }
        }
    }

    deinit {
        task.cancel()
    }

    /// A separate function, so that the iterator is released before the recording ends.
    private static func follow(_ sequence: LoadingStateSequence<Content>, into recording: WatchedState<Recording>) async {
        for await state in sequence {
            recording.update { if !$0.isStopped { $0.states.append(state) } }
        }
    }

    /// All states since the observer joined, oldest first; `stop()` ends the recording.
    public var states: [LoadingState<Content>] { recording.read { $0.states } }

    /// The recorded states in a few characters each, such as `loading(nil) completed(1)`.
    ///
    /// ``LoadingState/summary`` describes each state.
    public var summary: String { states.map(\.summary).joined(separator: " ") }

    /// Stops observing. No further state is recorded, and a wait for further states throws.
    public func stop() {
        recording.update { $0.isStopped = true }
        task.cancel()
    }

    /// Stops observing and waits until the sequence's iterator has been released.
    ///
    /// Timeout, place and errors are those of ``ended(timeout:fileID:line:)``.
    public func stopAndLeave(timeout: Duration = .seconds(120), fileID: String = #fileID, line: Int = #line) async throws {
        stop()
        try await ended(timeout: timeout, fileID: fileID, line: line)
    }

    /// Waits until the sequence has ended or the recorder was stopped, and the iterator was released, without polling.
    ///
    /// - Parameters:
    ///   - timeout: The longest wait, in real time.
    ///   - fileID: The file of the wait, for the error.
    ///   - line: The line of the wait, for the error.
    /// - Throws: ``StoreError/Code/waitTimedOut`` after the timeout, `CancellationError` as soon as the waiting task is canceled.
    public func ended(timeout: Duration = .seconds(120), fileID: String = #fileID, line: Int = #line) async throws {
        try await recording.wait(for: "the end of the recording", timeout, fileID, line) { $0.hasEnded }
    }

    /// Waits until `count` states have been recorded since the recorder was created, without polling.
    ///
    /// The next wait begins after these states.
    ///
    /// - Parameters:
    ///   - count: The number of states.
    ///   - timeout: The longest wait, in real time.
    ///   - fileID: The file of the wait, for the error.
    ///   - line: The line of the wait, for the error.
    /// - Returns: The first `count` states.
    /// - Throws: ``StoreError/Code/recordingEnded`` if no further state can arrive, ``StoreError/Code/waitTimedOut`` after the timeout,
    ///   `CancellationError` as soon as the task is canceled.
    public func states(
        count: Int, timeout: Duration = .seconds(120), fileID: String = #fileID, line: Int = #line
    ) async throws -> [LoadingState<Content>] {
        let wait = TestWait(subject: "\(count) states", timeout: timeout, fileID: fileID, line: line)
        let states = try await more(wait) { $0.states.count >= count }
        pass(count)
        return Array(states.prefix(count))
    }

    /// Waits for the next state that `predicate` accepts, after the last state that an earlier wait returned, without polling.
    ///
    /// A state that arrived between two waits is found, because it follows the first wait's state. For older states see ``states``. The
    /// predicate receives each state once, oldest first. The next wait begins after the returned state.
    ///
    /// Timeout, place and errors are those of ``states(count:timeout:fileID:line:)``.
    @discardableResult
    public func next(
        timeout: Duration = .seconds(120), fileID: String = #fileID, line: Int = #line,
        where predicate: (LoadingState<Content>) -> Bool
    ) async throws -> LoadingState<Content> {
        var seen = recording.read { $0.position }
        let wait = TestWait(subject: "a matching state behind state \(seen)", timeout: timeout, fileID: fileID, line: line)
        while true {
            let known = seen
            let states = try await more(wait) { $0.states.count > known }
            // User code runs outside the lock.
            if let index = states[known...].firstIndex(where: predicate) {
                pass(index + 1)
                return states[index]
            }
            seen = states.count
        }
    }

    /// Waits until `condition` accepts the whole history from the first state on, and returns it, without polling.
    ///
    /// The condition receives all states so far, at first and after each new state. The next wait begins after the accepted history.
    ///
    /// Timeout, place and errors are those of ``states(count:timeout:fileID:line:)``.
    @discardableResult
    public func wait(
        timeout: Duration = .seconds(120), fileID: String = #fileID, line: Int = #line,
        until condition: ([LoadingState<Content>]) -> Bool
    ) async throws -> [LoadingState<Content>] {
        let wait = TestWait(subject: "a matching history", timeout: timeout, fileID: fileID, line: line)
        var states = self.states
        while !condition(states) {
            let known = states.count
            states = try await more(wait) { $0.states.count > known }
        }
        pass(states.count)
        return states
    }

    /// Moves the position of later waits beyond `count` states; never moves it back.
    private func pass(_ count: Int) {
        recording.update { $0.position = max($0.position, count) }
    }

    private func more(
        _ wait: TestWait, until isThere: @escaping @Sendable (Recording) -> Bool
    ) async throws -> [LoadingState<Content>] {
        let (recording, isComplete) = try await recording.wait(wait, history: { $0.history }) { recording -> (Recording, Bool)? in
            if isThere(recording) { return (recording, true) }
            return recording.isStopped || recording.hasEnded ? (recording, false) : nil
        }
        guard isComplete else { throw wait.error(.recordingEnded, "the recording has ended", history: recording.history) }
        return recording.states
    }
}
