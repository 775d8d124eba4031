import StoreCore
import StoreCoreTesting

/// Observes a sequence, and waits for its first state.
func observeFirst<Content: Sendable>(
    _ sequence: LoadingStateSequence<Content>, fileID: String = #fileID, line: Int = #line
) async throws -> RecordingObserver<Content> {
    let observer = RecordingObserver(sequence)
    _ = try await observer.states(count: 1, fileID: fileID, line: line)
    return observer
}

/// Observes a sequence, and waits for its first completed state.
func observeCompleted<Content: Sendable>(
    _ sequence: LoadingStateSequence<Content>, fileID: String = #fileID, line: Int = #line
) async throws -> RecordingObserver<Content> {
    let observer = RecordingObserver(sequence)
    try await observer.next(fileID: fileID, line: line) { $0.isCompleted }
    return observer
}

extension Task {
    /// Cancels the task, and waits until it ends.
    func cancelAndWait() async {
        cancel()
        _ = await result
    }
}

extension ManualTime {
    /// Waits for sleepers, and advances the clocks.
    func advance(by duration: Duration, sleepers count: Int, fileID: String = #fileID, line: Int = #line) async throws {
        try await sleepers(atLeast: count, fileID: fileID, line: line)
        advance(by: duration)
    }
}
