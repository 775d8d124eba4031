internal import Observation
public import StoreCore

extension Observed {
    /// Waits until the model shows content that a predicate accepts, without polling.
    ///
    /// ```swift
    /// let model = Observed<String>()
    /// let following = Task { await model.follow(users[1]) }
    /// try await model.shows { $0 == "Ada" }
    /// ```
    ///
    /// The wait considers the content that the model shows now, and each later one. Content that is replaced before the main actor is free
    /// is not seen, as a view would not draw it.
    ///
    /// - Parameters:
    ///   - timeout: The longest wait, in real time.
    ///   - fileID: The file of the wait, for the error.
    ///   - line: The line of the wait, for the error.
    ///   - predicate: Receives the shown content.
    /// - Returns: The accepted content.
    /// - Throws: ``StoreError/Code/waitTimedOut`` after the timeout, with all states that the model has shown meanwhile;
    ///   `CancellationError` as soon as the task is canceled.
    @discardableResult
    public func shows(
        timeout: Duration = .seconds(120), fileID: String = #fileID, line: Int = #line, _ predicate: (_ content: Content) -> Bool
    ) async throws -> Content {
        let wait = TestWait(subject: "matching content", timeout: timeout, fileID: fileID, line: line)
        return try await first(wait) { state in state.content.flatMap { predicate($0) ? $0 : nil } }
    }

    /// Waits until the model shows a state that a predicate accepts, and returns the state, without polling.
    ///
    /// Timeout, place and errors are those of ``shows(timeout:fileID:line:_:)``.
    @discardableResult
    public func showsState(
        timeout: Duration = .seconds(120), fileID: String = #fileID, line: Int = #line,
        where predicate: (_ state: LoadingState<Content>) -> Bool
    ) async throws -> LoadingState<Content> {
        let wait = TestWait(subject: "a matching state", timeout: timeout, fileID: fileID, line: line)
        return try await first(wait) { predicate($0) ? $0 : nil }
    }

    private func first<Value: Sendable>(_ wait: TestWait, _ match: (LoadingState<Content>) -> Value?) async throws -> Value {
        var history: [String] = []
        while true {
            let isChanging = WatchedState(false)
            // The model reports a change before it makes it, on the main actor, so this task sees the new state when it continues.
            let state = withObservationTracking {
                self.state
            } onChange: {
                isChanging.update { $0 = true }
            }
            if history.last != state.summary { history.append(state.summary) }
            if let value = match(state) { return value }
            let shown = history
            try await isChanging.wait(wait, history: { _ in shown }) { $0 ? () : nil }
        }
    }
}
