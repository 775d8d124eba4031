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
            return CombinedSource(inputs) { combine(first, repeat each rest) }
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
            return CombinedSource(inputs.map(\.input)) {
                let states = inputs.compactMap { $0.input.latest }
                // A sequence has ended without a state.
                guard states.count == inputs.count else { return nil }
                let contents = zip(inputs, states).compactMap { input, state in state.content.map { (input.key, $0) } }
                let content = inputs.isEmpty || !contents.isEmpty ? Dictionary(uniqueKeysWithValues: contents) : nil
                if let error = states.lazy.compactMap({ $0.error }).first { return .error(rawError: error, content: content) }
                guard !states.contains(where: { $0.isLoading }), let content else { return .loading(content: content) }
                return .completed(content)
            }
        }
    }
}

/// Combines the latest states of all inputs; returns `nil` until each input has a state.
private func combine<First: Sendable, each Other: Sendable>(
    _ first: CombinedInput<First>, _ others: repeat CombinedInput<each Other>
) -> LoadingState<(First, (repeat each Other))>? {
    var hasAll = first.latest != nil
    var isLoading = first.latest?.isLoading == true
    var rawError = first.latest?.error
    var pages = PagesBeside()
    pages.add(first.latest)
    for other in repeat each others {
        let state = other.latest
        pages.add(state)
        hasAll = hasAll && state != nil
        isLoading = isLoading || state?.isLoading == true
        rawError = rawError ?? state?.error
    }
    guard hasAll else { return nil }
    let content = combineContents(first, repeat each others)
    if let rawError { return .error(rawError: rawError, content: content) }
    // A completed state always has content, so the second condition never drops one.
    guard !isLoading, let content else { return .loading(content: content) }
    return .completed(content: content, next: pages.next, prev: pages.prev)
}

/// The page states of the only list among combined sequences; none if several sequences have pages.
private struct PagesBeside {
    private(set) var next = AdditionalLoadingState.none
    private(set) var prev = AdditionalLoadingState.none
    private var lists = 0

    mutating func add(_ state: LoadingState<some Any>?) {
        guard case .completed(content: _, let next, let prev) = state, next != .none || prev != .none else { return }
        lists += 1
        (self.next, self.prev) = lists == 1 ? (next, prev) : (.none, .none)
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
    private let combination: Combination
    private let combine: @Sendable () -> LoadingState<Output>?
    private var tasks: [Task<Void, Never>] = []
    private var phase = Phase.new

    private enum Phase { case new, following, ended }

    /// Creates a source that observes nothing yet.
    ///
    /// - Parameters:
    ///   - inputs: The inputs to combine; not shared with another source.
    ///   - combine: Combines the latest states of the inputs; runs under the combination's lock.
    init(_ inputs: [any CombinationInput], combine: @escaping @Sendable () -> LoadingState<Output>?) {
        self.inputs = inputs
        self.combine = combine
        combination = Combination(inputCount: inputs.count)
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
            tasks = inputs.map { $0.follow(for: combination) }
        }
        guard await combination.hasNews() else { return end() }
        return combination.takeNews(combine) ?? end()
    }

    /// Leaves all inputs, so that every later call returns `nil`.
    private func end() -> LoadingState<Output>? {
        phase = .ended
        for task in tasks { task.cancel() }
        tasks = []
        return nil
    }
}
