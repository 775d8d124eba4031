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
            let first = CombinedInput(self)
            let rest = (repeat CombinedInput(each others))
            var inputs: [any CombinationInput] = [first]
            for input in repeat each rest { inputs.append(input) }
            return CombinedSource<(Content, (repeat each Other))>(inputs) { combineContents(first, repeat each rest) }
        }
    }
}

extension LoadingStateSequence {
    /// The combined states of sequences with a key each. The content has the keys that have content.
    static func combined<Key: Hashable & Sendable, Value: Sendable>(
        _ sequences: [(Key, LoadingStateSequence<Value>)]
    ) -> LoadingStateSequence<[Key: Value]> where Content == [Key: Value] {
        LoadingStateSequence<[Key: Value]> {
            let inputs = sequences.map { (key: $0.0, input: CombinedInput($0.1)) }
            return CombinedSource<[Key: Value]>(inputs.map(\.input)) {
                let contents = inputs.compactMap { key, input in input.latest?.content.map { (key, $0) } }
                return inputs.isEmpty || !contents.isEmpty ? Dictionary(uniqueKeysWithValues: contents) : nil
            }
        }
    }
}

private func combineContents<First: Sendable, each Other: Sendable>(
    _ first: CombinedInput<First>, _ others: repeat CombinedInput<each Other>
) -> (First, (repeat each Other))? {
    do throws(MissingContent) {
        return (try first.requireContent(), (repeat try (each others).requireContent()))
    } catch {
        return nil
    }
}

/// The observer of a combination. It owns the tasks that follow the inputs, and they do not retain it.
private final class CombinedSource<Output: Sendable>: LoadingStateSource {
    private let inputs: [any CombinationInput]
    /// The progress apart from the states. Its lock also guards the states of all inputs, so that they are read at one moment.
    private let progress: WatchedState<CombinationProgress>
    private let content: @Sendable () -> Output?
    private var tasks: [Task<Void, Never>] = []
    private var phase = Phase.new

    private enum Phase { case new, following, ended }

    /// Creates a source; `content` combines the latest contents of the inputs under the lock of the progress.
    init(_ inputs: [any CombinationInput], content: @escaping @Sendable () -> Output?) {
        self.inputs = inputs
        self.content = content
        progress = WatchedState(CombinationProgress(inputCount: inputs.count))
    }

    deinit {
        for task in tasks { task.cancel() }
    }

    func next() async -> LoadingState<Output>? {
        guard phase != .ended, !Task.isCancelled else { return end() }
        if phase == .new {
            if inputs.isEmpty {
                phase = .ended
                return combine()
            }
            phase = .following
            tasks = inputs.map { $0.follow(progress) }
        }
        progress.update { $0.beginWaiting() }
        // The wait fails only if the task is canceled.
        _ = try? await progress.wait { progress -> Void? in progress.isReady ? () : nil }
        guard !Task.isCancelled else { return end() }
        return progress.update { $0.takeNews() ? combine() : nil } ?? end()
    }

    /// Combines the latest states of all inputs; returns `nil` until each input has a state.
    private func combine() -> LoadingState<Output>? {
        let states = inputs.compactMap { $0.latestWithoutContent }
        guard states.count == inputs.count else { return nil }
        let content = content()
        if let error = states.lazy.compactMap({ $0.error }).first { return .error(rawError: error, content: content) }
        guard !states.contains(where: { $0.isLoading }), let content else { return .loading(content: content) }
        // Several lists have no page states in common.
        let lists = states.filter { $0.pages(.next) != .none || $0.pages(.prev) != .none }
        let list = lists.count == 1 ? lists[0] : .completed(UnitParam())
        return .completed(content: content, next: list.pages(.next), prev: list.pages(.prev))
    }

    /// Leaves all inputs, so that every later call returns `nil`.
    private func end() -> LoadingState<Output>? {
        phase = .ended
        for task in tasks { task.cancel() }
        tasks = []
        return nil
    }
}
