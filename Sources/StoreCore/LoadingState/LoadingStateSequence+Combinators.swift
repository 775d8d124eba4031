extension LoadingStateSequence {
    /// The same states with other content.
    ///
    /// ```swift
    /// for await state in users[id].publish().mapContent(\.name) { render(state) }
    /// ```
    ///
    /// - Parameter transform: Makes the new content; called at most once for each state that an observer is given, in the observer's
    ///   task, and not for states that it misses.
    /// - Returns: A sequence whose iterators observe this one; nothing runs before their first `next()`.
    public func mapContent<Other: Sendable>(
        _ transform: @escaping @Sendable (Content) -> Other
    ) -> LoadingStateSequence<Other> {
        LoadingStateSequence<Other> { MappedSource(self, transform) }
    }

    /// The states without those that show the same as the one before them.
    ///
    /// - Parameter areSame: Whether two contents are the same for this observer; kind, error and pages are compared besides, errors by
    ///   type and `String(reflecting:)`.
    /// - Returns: A sequence whose iterators observe this one, and keep the last state that they gave.
    public func removeDuplicates(
        by areSame: @escaping @Sendable (_ previous: Content, _ current: Content) -> Bool
    ) -> LoadingStateSequence {
        LoadingStateSequence { DeduplicatedSource(self, areSame) }
    }

    /// Calls the one of three closures that fits each state, until the task is cancelled.
    ///
    /// While a closure runs no state is taken: the next call gets the newest one. The closures run where the caller runs.
    ///
    /// - Parameters:
    ///   - onLoading: Gets the last good content, if there is any.
    ///   - onCompleted: Gets the content and the states of the pages beside it.
    ///   - onError: Gets the error and the last good content, if there is any.
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
    /// The states without those that equal the one before them.
    ///
    /// - Returns: A sequence whose iterators observe this one, and keep the last state that they gave.
    public func removeDuplicates() -> LoadingStateSequence {
        removeDuplicates(by: ==)
    }
}

extension LoadingState {
    /// Whether both show the same to somebody who compares contents like this.
    func looksLike(_ other: LoadingState, by areSame: (Content, Content) -> Bool) -> Bool {
        // The content is compared apart; what is left of the states has an equality of its own.
        guard map({ _ in UnitParam() }) == other.map({ _ in UnitParam() }) else { return false }
        guard let content, let otherContent = other.content else { return true }
        return areSame(content, otherContent)
    }
}

/// Draws states and transforms each of them.
private final class MappedSource<Input: Sendable, Output: Sendable>: LoadingStateSource {
    private var upstream: LoadingStateSequence<Input>.Iterator
    private let transform: @Sendable (Input) -> Output

    init(_ sequence: LoadingStateSequence<Input>, _ transform: @escaping @Sendable (Input) -> Output) {
        upstream = sequence.makeAsyncIterator()
        self.transform = transform
    }

    func next() async -> LoadingState<Output>? {
        await upstream.next()?.map(transform)
    }
}

/// Draws states until one differs from the last one given.
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
