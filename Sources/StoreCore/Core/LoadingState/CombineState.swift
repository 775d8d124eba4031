extension LoadingStateSequence {
    /// Combines the states of several sequences: an error takes precedence over loading, and loading over completed.
    ///
    /// ```swift
    /// for await state in users[id].publish().combineState(
    ///     posts[id].publish(), settings.publish())
    /// {
    ///     if let (user, posts, settings) = state.content {
    ///         show(user, posts, settings)
    ///     }
    /// }
    /// ```
    ///
    /// - The first state arrives once every sequence has produced its first state, so that the screen does not flicker.
    /// - A state has content once all sequences have content. Its error is that of the first sequence in the order of the call that has
    ///   one.
    /// - A completed state carries the page states of the only list among the sequences. If several sequences have pages, it carries none,
    ///   because a page request would match more than one list.
    /// - Each state combines the latest states of all sequences at one moment. A slow observer misses intermediate states, never the newest
    ///   one. It holds one state per sequence.
    /// - When a sequence ends, its last state remains. The combination ends when all sequences have ended, or when one ends without a
    ///   state.
    ///
    /// - Parameter others: The sequences to combine with this sequence.
    /// - Returns: A sequence; each of its iterators observes all inputs with one task each. The tasks start at the first `next()`, at the
    ///   priority of that call. They end when the iterator is released or its task is canceled.
    public func combineState<each Other: Sendable>(
        _ others: repeat LoadingStateSequence<each Other>
    ) -> LoadingStateSequence<(Content, repeat each Other)> {
        combined(repeat each others).mapContent { (contents: (Content, (repeat each Other))) in
            let others = contents.1
            return (contents.0, repeat each others)
        }
    }

    /// Combines the states of several sequences, with content that a closure makes from theirs.
    ///
    /// ```swift
    /// let greetings = users[id].publish().combineState(
    ///     settings.publish()
    /// ) { user, salutation in
    ///     "\(salutation) \(user.name)"
    /// }
    /// ```
    ///
    /// The rules of ``combineState(_:)`` apply.
    ///
    /// - Parameters:
    ///   - others: The sequences to combine with this sequence.
    ///   - transform: Makes the content once all sequences have content. It runs in the observer's task, at most once for each state that
    ///     the observer receives.
    /// - Returns: A sequence; each of its iterators observes all inputs, as with ``combineState(_:)``.
    public func combineState<each Other: Sendable, Output: Sendable>(
        _ others: repeat LoadingStateSequence<each Other>,
        transform: @escaping @Sendable (_ content: Content, repeat each Other) -> Output
    ) -> LoadingStateSequence<Output> {
        combined(repeat each others).mapContent { (contents: (Content, (repeat each Other))) in
            let others = contents.1
            return transform(contents.0, repeat each others)
        }
    }

    /// The combination before its content becomes a tuple or a transform's arguments: a pack expands only from a tuple of its own.
    ///
    /// A generic struct in place of the tuple traps in the runtime of Swift 6.3: "Pack expansion count type should be a pack".
    private func combined<each Other: Sendable>(
        _ others: repeat LoadingStateSequence<each Other>
    ) -> LoadingStateSequence<(Content, (repeat each Other))> {
        LoadingStateSequence<(Content, (repeat each Other))> {
            var inputs = [combinationInput]
            for other in repeat each others { inputs.append(other.combinationInput) }
            return CombinedSource<(Content, (repeat each Other))>(inputs) { contents in
                typedContents(contents, Content.self, repeat (each Other).self)
            }
        }
    }
}

extension LoadingStateSequence {
    /// The combined states of sequences with a key each. The content has the keys that have content.
    static func combined<Key: Hashable & Sendable, Value: Sendable>(
        _ sequences: [(Key, LoadingStateSequence<Value>)]
    ) -> LoadingStateSequence<[Key: Value]> where Content == [Key: Value] {
        LoadingStateSequence<[Key: Value]> {
            CombinedSource<[Key: Value]>(sequences.map(\.1.combinationInput)) { contents in
                let known = zip(sequences, contents).compactMap { input, content in content.map { (input.0, $0.value(as: Value.self)) } }
                return sequences.isEmpty || !known.isEmpty ? Dictionary(uniqueKeysWithValues: known) : nil
            }
        }
    }
}

/// Returns the contents with their own types; `nil` until all inputs have content.
private func typedContents<First: Sendable, each Other: Sendable>(
    _ contents: [BoxedContent?], _ first: First.Type, _ others: repeat (each Other).Type
) -> (First, (repeat each Other))? {
    var rest = contents.compactMap { $0 }[...]
    guard rest.count == contents.count else { return nil }
    func next<Value: Sendable>(as type: Value.Type) -> Value { rest.removeFirst().value(as: Value.self) }
    return (next(as: First.self), (repeat next(as: (each Other).self)))
}

/// The observer of a combination. It owns the tasks that follow the inputs, and they do not retain it.
private final class CombinedSource<Output: Sendable>: LoadingStateSource {
    private let inputs: [CombinationInput]
    private let states: WatchedState<CombinedStates>
    private let content: @Sendable (_ contents: [BoxedContent?]) -> Output?
    private var tasks: [Task<Void, Never>] = []
    private var phase = Phase.new

    private enum Phase { case new, following, ended }

    /// Creates a source; `content` combines the latest contents of the inputs.
    init(_ inputs: [CombinationInput], content: @escaping @Sendable (_ contents: [BoxedContent?]) -> Output?) {
        self.inputs = inputs
        self.content = content
        states = WatchedState(CombinedStates(inputCount: inputs.count))
    }

    deinit {
        for task in tasks { task.cancel() }
    }

    func next() async -> LoadingState<Output>? {
        guard phase != .ended, !Task.isCancelled else { return end() }
        if phase == .new {
            if inputs.isEmpty {
                phase = .ended
                return combine([])
            }
            phase = .following
            tasks = inputs.enumerated().map { input, follow in follow(input, states) }
        }
        states.update { $0.beginWaiting() }
        // The wait fails only if the task is canceled.
        _ = try? await states.wait { states -> Void? in states.isReady ? () : nil }
        guard !Task.isCancelled, let latest = states.update({ $0.takeNews() }) else { return end() }
        return combine(latest)
    }

    /// Combines the latest states of all inputs.
    private func combine(_ states: [LoadingState<BoxedContent>]) -> LoadingState<Output> {
        let content = content(states.map(\.content))
        if let error = states.lazy.compactMap(\.error).first { return .error(rawError: error, content: content) }
        guard !states.contains(where: \.isLoading), let content else { return .loading(content: content) }
        // Several lists have no page states in common.
        let lists = states.filter { $0.pages(.next) != .none || $0.pages(.prev) != .none }
        guard lists.count == 1 else { return .completed(content) }
        return .completed(content: content, next: lists[0].pages(.next), prev: lists[0].pages(.prev))
    }

    /// Leaves all inputs, so that every later call returns `nil`.
    private func end() -> LoadingState<Output>? {
        phase = .ended
        for task in tasks { task.cancel() }
        tasks = []
        return nil
    }
}
