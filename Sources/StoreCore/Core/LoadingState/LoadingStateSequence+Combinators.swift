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
        LoadingStateSequence<Other> { MappedSource(self, transform) }
    }

    /// Returns the states without consecutive duplicates.
    ///
    /// - Parameter areSame: Returns whether two contents are the same for this observer. Kind, error and page states are compared as well,
    ///   errors by type and `String(reflecting:)`.
    /// - Returns: A sequence; its iterators observe this one and keep the last state that they returned.
    public func removeDuplicates(
        by areSame: @escaping @Sendable (_ previous: Content, _ current: Content) -> Bool
    ) -> LoadingStateSequence {
        LoadingStateSequence { DeduplicatedSource(self, areSame) }
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

private final class MappedSource<Input: Sendable, Output: Sendable>: LoadingStateSource {
    private var upstream: LoadingStateSequence<Input>.Iterator
    private let transform: @Sendable (LoadingState<Input>) -> LoadingState<Output>

    init(_ sequence: LoadingStateSequence<Input>, _ transform: @escaping @Sendable (LoadingState<Input>) -> LoadingState<Output>) {
        upstream = sequence.makeAsyncIterator()
        self.transform = transform
    }

    func next() async -> LoadingState<Output>? {
        await upstream.next().map(transform)
    }
}

private final class DeduplicatedSource<Content: Sendable>: LoadingStateSource {
    private var upstream: LoadingStateSequence<Content>.Iterator
    private let areSame: @Sendable (Content, Content) -> Bool
    private var previous: LoadingState<Content>?

    init(_ sequence: LoadingStateSequence<Content>, _ areSame: @escaping @Sendable (Content, Content) -> Bool) {
        upstream = sequence.makeAsyncIterator()
        self.areSame = areSame
    }

    func next() async -> LoadingState<Content>? {
        while let state = await upstream.next() {
            if let previous, previous.looksLike(state, by: areSame) { continue }
            previous = state
            return state
        }
        previous = nil
        return nil
    }
}
