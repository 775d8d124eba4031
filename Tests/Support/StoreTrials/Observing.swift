package import StoreCore
package import StoreCoreTesting
import Trials

/// Observes a sequence, and waits for its first state.
package func observeFirst<Content: Sendable>(
    _ sequence: LoadingStateSequence<Content>, fileID: String = #fileID, line: Int = #line
) async throws -> RecordingObserver<Content> {
    let observer = RecordingObserver(sequence)
    _ = try await observer.states(count: 1, fileID: fileID, line: line)
    return observer
}

/// Observes a sequence, and waits for its first completed state.
package func observeCompleted<Content: Sendable>(
    _ sequence: LoadingStateSequence<Content>, fileID: String = #fileID, line: Int = #line
) async throws -> RecordingObserver<Content> {
    let observer = RecordingObserver(sequence)
    try await observer.next(fileID: fileID, line: line) { $0.isCompleted }
    return observer
}

extension Task {
    /// Cancels the task, and waits until it ends.
    package func cancelAndWait() async {
        cancel()
        _ = await result
    }
}

extension Task where Failure == any Error {
    /// The value as text, or the type of the error.
    package var outcome: String {
        get async {
            switch await result {
            case .success(let value): "\(value)"
            case .failure(let error): "\(type(of: error))"
            }
        }
    }
}

extension ManualTime {
    /// Advances the clocks step by step until a condition holds.
    package func advance(
        by step: Duration, until wish: String, fileID: String = #fileID, line: Int = #line, _ holds: () -> Bool
    ) async throws {
        try await Trials.until(
            wish,
            {
                advance(by: step)
                return holds()
            }, fileID: fileID, line: line)
    }

    /// Waits for sleepers, and advances the clocks.
    package func advance(by duration: Duration, sleepers count: Int, fileID: String = #fileID, line: Int = #line) async throws {
        try await sleepers(atLeast: count, fileID: fileID, line: line)
        advance(by: duration)
    }
}
