extension LoadingStateSequence {
    /// Returns the same states with other content.
    ///
    /// ```swift
    /// for await state in users[id].publish().mapContent(\.name) { render(state) }
    /// ```
    ///
    /// - Parameter transform: Makes the new content, in the observer's task. It is called at most once for each state that an observer
    ///   receives, and never for missed states.
    /// - Returns: A sequence; its iterators observe this one, starting at their first `next()`.
    public func mapContent<Other: Sendable>(
        _ transform: @escaping @Sendable (Content) -> Other
    ) -> LoadingStateSequence<Other> {
        mapState { $0.map(transform) }
    }

    func mapState<Other: Sendable>(
        _ transform: @escaping @Sendable (LoadingState<Content>) -> LoadingState<Other>
    ) -> LoadingStateSequence<Other> {
        LoadingStateSequence<Other> { TransformedSource(self) { $0.map(transform) } }
    }

    /// Returns the states without consecutive duplicates.
    ///
    /// - Parameter areSame: Returns whether two contents are the same for this observer. Kind, error and page states are compared as well,
    ///   errors by type and `String(reflecting:)`.
    /// - Returns: A sequence; its iterators observe this one and keep the last state that they returned.
    public func removeDuplicates(
        by areSame: @escaping @Sendable (_ previous: Content, _ current: Content) -> Bool
    ) -> LoadingStateSequence {
        LoadingStateSequence {
            var previous: LoadingState<Content>?
            return TransformedSource<Content, Content>(self) { state in
                if let state, let previous, previous.looksLike(state, by: areSame) { return nil }
                previous = state
                return state
            }
        }
    }

    /// Calls the closure that matches each state, until the task is canceled or the sequence ends.
    ///
    /// While a closure runs, the method takes no state; the next call receives the newest state. The closures run on the caller's actor.
    ///
    /// - Parameters:
    ///   - onLoading: Receives the last good content, if there is any.
    ///   - onCompleted: Receives the content and both page states.
    ///   - onError: Receives the error and the last good content, if there is any.
    public func doAction(
        onLoading: (_ content: Content?) async -> Void,
        onCompleted: (_ content: Content, _ next: AdditionalLoadingState, _ prev: AdditionalLoadingState) async -> Void,
        onError: (_ rawError: any Error, _ content: Content?) async -> Void
    ) async {
        for await state in self {
            switch state {
            case .loading(let content): await onLoading(content)
            case .completed(let content, let next, let prev): await onCompleted(content, next, prev)
            case .error(let rawError, let content): await onError(rawError, content)
            }
        }
    }
}

extension LoadingStateSequence where Content: Equatable {
    /// Returns the states without consecutive duplicates.
    ///
    /// - Returns: A sequence; its iterators observe this one and keep the last state that they returned.
    public func removeDuplicates() -> LoadingStateSequence {
        removeDuplicates(by: ==)
    }
}

extension LoadingState {
    /// Returns whether both states show the same, given a comparison of contents.
    func looksLike(_ other: LoadingState, by areSame: (Content, Content) -> Bool) -> Bool {
        // The content is compared separately; the rest of a state has its own equality.
        guard map({ _ in UnitParam() }) == other.map({ _ in UnitParam() }) else { return false }
        guard let content, let otherContent = other.content else { return true }
        return areSame(content, otherContent)
    }
}

private final class TransformedSource<Input: Sendable, Output: Sendable>: LoadingStateSource {
    private var upstream: LoadingStateSequence<Input>.Iterator
    /// Returns the state to show for one of the input; `nil` leaves the state out. Gets `nil` at the end.
    private let transform: (LoadingState<Input>?) -> LoadingState<Output>?

    init(_ sequence: LoadingStateSequence<Input>, _ transform: @escaping (LoadingState<Input>?) -> LoadingState<Output>?) {
        upstream = sequence.makeAsyncIterator()
        self.transform = transform
    }

    func next() async -> LoadingState<Output>? {
        while let state = await upstream.next() {
            if let shown = transform(state) { return shown }
        }
        return transform(nil)
    }
}
