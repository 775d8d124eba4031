/// An observer that keeps every state it is given.
///
/// ```swift
/// fetcher.hold()
/// let recorder = RecordingObserver(users[1].publish())
/// try await recorder.first { $0.isLoading }
/// fetcher.release()
/// try await recorder.first { $0.isCompleted }
/// #expect(recorder.summary == "loading(nil) completed(Ada)")
/// ```
///
/// It joins from a task of its own soon after it was made, and leaves when it is stopped or released. It takes each state at once, but a
/// sequence may drop states that came about faster than any observer can take them: compare the whole history only where the test waits
/// between the steps.
public final class RecordingObserver<Content: Sendable>: Sendable {
    private struct Recording: Sendable {
        var states: [LoadingState<Content>] = []
        var isStopped = false
        var hasEnded = false
    }

    /// The task writes, tests read and wait; the task holds this and not the observer, so that the observer can be released.
    private let recording: WatchedState<Recording>
    private let task: Task<Void, Never>

    /// Starts to follow a sequence, at the priority of the caller.
    ///
    /// - Parameter sequence: What to follow; the recorder is one observer of it.
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

    /// A function of its own, so that the iterator is gone when the recording ends.
    private static func follow(_ sequence: LoadingStateSequence<Content>, into recording: WatchedState<Recording>) async {
        for await state in sequence {
            recording.update { recording in
                if !recording.isStopped { recording.states.append(state) }
            }
        }
    }

    /// The states so far, oldest first.
    public var states: [LoadingState<Content>] { recording.read { $0.states } }

    /// The states so far in a few characters each, such as `loading(nil) completed(1)`.
    ///
    /// Each is written by ``LoadingState/summary``.
    public var summary: String { Self.summary(of: states) }

    /// Stops observing; nothing is recorded from now on, and whoever waits for more gets an error.
    public func stop() {
        recording.update { $0.isStopped = true }
        task.cancel()
    }

    /// Stops observing and waits until the sequence's iterator has been released.
    ///
    /// - Throws: `CancellationError` as soon as the waiting task is cancelled.
    public func stopAndLeave() async throws {
        stop()
        try await ended()
    }

    /// Waits until the sequence has ended or the recorder was stopped, and the iterator has been released; no polling.
    ///
    /// - Throws: `CancellationError` as soon as the waiting task is cancelled.
    public func ended() async throws {
        try await recording.wait { $0.hasEnded ? () : nil }
    }

    /// Waits until so many states have been recorded; no polling.
    ///
    /// - Parameter count: How many states.
    /// - Returns: The first `count` states.
    /// - Throws: ``StoreError/Code/recordingEnded`` where no more can come, `CancellationError` as soon as the task is cancelled.
    public func states(count: Int) async throws -> [LoadingState<Content>] {
        let states = try await wait(for: "\(count) states") { $0.states.count >= count }
        return Array(states.prefix(count))
    }

    /// Waits for a state that `predicate` accepts, those recorded already included; no polling.
    ///
    /// - Parameter predicate: Looks at each state once, oldest first.
    /// - Returns: The first state that it accepted.
    /// - Throws: ``StoreError/Code/recordingEnded`` where no more can come, `CancellationError` as soon as the task is cancelled.
    @discardableResult
    public func first(where predicate: (LoadingState<Content>) -> Bool) async throws -> LoadingState<Content> {
        var seen = 0
        while true {
            let known = seen
            let states = try await wait(for: "a state that fits") { $0.states.count > known }
            // User code: outside the lock.
            if let state = states[known...].first(where: predicate) { return state }
            seen = states.count
        }
    }

    /// Waits until `condition` accepts the whole history; no polling.
    ///
    /// - Parameter condition: Looks at the states so far, at first and after new ones.
    /// - Returns: The states that it accepted.
    /// - Throws: ``StoreError/Code/recordingEnded`` where no more can come, `CancellationError` as soon as the task is cancelled.
    @discardableResult
    public func wait(until condition: ([LoadingState<Content>]) -> Bool) async throws -> [LoadingState<Content>] {
        var states = self.states
        while !condition(states) {
            let known = states.count
            states = try await wait(for: "a history that fits") { $0.states.count > known }
        }
        return states
    }

    private func wait(
        for wish: String, until isThere: @escaping @Sendable (Recording) -> Bool
    ) async throws -> [LoadingState<Content>] {
        let (states, cameTrue) = try await recording.wait { recording -> ([LoadingState<Content>], Bool)? in
            if isThere(recording) { return (recording.states, true) }
            return recording.isStopped || recording.hasEnded ? (recording.states, false) : nil
        }
        guard cameTrue else {
            throw StoreError(.recordingEnded, "waiting for \(wish): the recording ended with [\(Self.summary(of: states))]")
        }
        return states
    }

    private static func summary(of states: [LoadingState<Content>]) -> String {
        states.map(\.summary).joined(separator: " ")
    }
}
