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
    /// - A completed state has no pages beside it.
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
        LoadingStateSequence<(Content, repeat each Other)> {
            let first = CombinedInput(self)
            let rest = (repeat CombinedInput(each others))
            var inputs: [any CombinationInput] = [first]
            for input in repeat each rest { inputs.append(input) }
            return CombinedSource(inputs) { combine(first, repeat each rest) }
        }
    }
}

/// What the latest states of all inputs make together; `nil` before each of them has one.
private func combine<First, each Other>(
    _ first: CombinedInput<First>, _ others: repeat CombinedInput<each Other>
) -> LoadingState<(First, repeat each Other)>? {
    var hasAll = first.latest != nil
    var isLoading = first.latest?.isLoading == true
    var rawError = first.latest?.error
    for other in repeat each others {
        let state = other.latest
        hasAll = hasAll && state != nil
        isLoading = isLoading || state?.isLoading == true
        rawError = rawError ?? state?.error
    }
    guard hasAll else { return nil }
    let content = combineContents(first, repeat each others)
    if let rawError { return .error(rawError: rawError, content: content) }
    // A completed state has content, so the second condition never takes one away.
    guard !isLoading, let content else { return .loading(content: content) }
    return .completed(content)
}

private func combineContents<First, each Other>(
    _ first: CombinedInput<First>, _ others: repeat CombinedInput<each Other>
) -> (First, repeat each Other)? {
    do throws(MissingContent) {
        return (try first.requireContent(), repeat try (each others).requireContent())
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
