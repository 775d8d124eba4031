extension LoadingStateSequence {
    /// The states of several sequences as one: an error beats loading, loading beats completed.
    ///
    /// ```swift
    /// for await state in users[id].publish().combineState(posts[id].publish(), settings.publish()) {
    ///     if let (user, posts, settings) = state.content { show(user, posts, settings) }
    /// }
    /// ```
    ///
    /// - The first state comes once every sequence has given its first, so that nothing flashes up meanwhile.
    /// - There is content once all of them have it. The error is that of the first sequence, in the order of the call, that has one.
    /// - A completed state has the next and previous page states of the list among the sequences. Where several sequences have pages
    ///   beside them, it has none: a request for a page would fit more than one list.
    /// - Each state is made of one state of each sequence, all of which were their latest at the same moment. States in between may be
    ///   missed, the newest is always given; a slow observer keeps one state of each sequence, however many come about.
    /// - Should a sequence end, its last state stays; the combination ends when all have ended, or one ends without any state.
    ///
    /// - Parameter others: What to combine with this sequence.
    /// - Returns: A sequence each of whose iterators observes all of these with one task each, from its first `next()`, at the priority of
    ///   that call, until it is released or its task is cancelled.
    public func combineState<each Other: Sendable>(
        _ others: repeat LoadingStateSequence<each Other>
    ) -> LoadingStateSequence<(Content, repeat each Other)> {
        combined(repeat each others).mapContent { (contents: (Content, (repeat each Other))) in
            let others = contents.1
            return (contents.0, repeat each others)
        }
    }

    /// The states of several sequences as one, with content that a closure makes of theirs.
    ///
    /// ```swift
    /// let greetings = users[id].publish().combineState(settings.publish()) { user, salutation in "\(salutation) \(user.name)" }
    /// ```
    ///
    /// States are combined by the rules of ``combineState(_:)``.
    ///
    /// - Parameters:
    ///   - others: The sequences to combine with this sequence.
    ///   - transform: Makes the content once all sequences have theirs. It runs in the observer's task, at most once for each state that
    ///     the observer is given.
    /// - Returns: A sequence each of whose iterators observes all of these, as with ``combineState(_:)``.
    public func combineState<each Other: Sendable, Output: Sendable>(
        _ others: repeat LoadingStateSequence<each Other>,
        transform: @escaping @Sendable (_ content: Content, repeat each Other) -> Output
    ) -> LoadingStateSequence<Output> {
        combined(repeat each others).mapContent { (contents: (Content, (repeat each Other))) in
            let others = contents.1
            return transform(contents.0, repeat each others)
        }
    }

    /// The combination before its contents become a tuple or a transform's arguments: a pack can be expanded only from a tuple of its own.
    ///
    /// A generic struct in place of the tuple ends the process in the runtime of Swift 6.3: "Pack expansion count type should be a pack".
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

/// What the latest states of all inputs make together; `nil` before each of them has one.
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
    // A completed state has content, so the second condition never takes one away.
    guard !isLoading, let content else { return .loading(content: content) }
    return .completed(content: content, next: pages.next, prev: pages.prev)
}

/// The page states of the only list among combined sequences; none where several sequences have pages.
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

/// The observer of a combination: it owns the tasks that draw from the inputs, and they do not own it.
private final class CombinedSource<Output: Sendable>: LoadingStateSource {
    private let inputs: [any CombinationInput]
    private let combination: Combination
    private let combine: @Sendable () -> LoadingState<Output>?
    private var tasks: [Task<Void, Never>] = []
    private var phase = Phase.new

    private enum Phase { case new, following, ended }

    /// Makes a source that has not joined anything yet.
    ///
    /// - Parameters:
    ///   - inputs: What to combine; not shared with another source.
    ///   - combine: What the latest states of the inputs make together; runs under the combination's lock.
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
            phase = .following
            tasks = inputs.map { $0.follow(for: combination) }
        }
        guard await combination.hasNews() else { return end() }
        return combination.takeNews(combine) ?? end()
    }

    /// Leaves all inputs, for good.
    private func end() -> LoadingState<Output>? {
        phase = .ended
        for task in tasks { task.cancel() }
        tasks = []
        return nil
    }
}
