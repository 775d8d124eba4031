/// The latest states of the inputs of a combination, read at one moment, and the news for its observer.
struct CombinedStates: Sendable {
    /// The latest state of each input; `nil` before the first one.
    private var latest: [LoadingState<BoxedContent>?]
    /// The number of inputs that have not produced a state yet.
    private var silentCount: Int
    /// The number of inputs that may still produce states.
    private var runningCount: Int
    /// Whether a state has arrived since the observer last took the states.
    private var hasNews = false
    /// Whether no further state can arrive.
    private var isOver = false
    private var isAwaited = false

    init(inputCount: Int) {
        latest = Array(repeating: nil, count: inputCount)
        silentCount = inputCount
        runningCount = inputCount
    }

    /// Whether the observer need not wait.
    var isReady: Bool { isOver || (hasNews && silentCount == 0) }

    mutating func beginWaiting() {
        if isAwaited { refuseSecondWaiter() }
        isAwaited = true
    }

    /// Takes a state of an input, and returns the one before. Its release may run user code.
    mutating func stateArrived(_ state: LoadingState<BoxedContent>, of input: Int) -> LoadingState<BoxedContent>? {
        let previous = latest[input]
        latest[input] = state
        if previous == nil { silentCount -= 1 }
        hasNews = true
        return previous
    }

    mutating func inputEnded(_ input: Int) {
        runningCount -= 1
        // The combination can never produce a state if one input ended without any.
        if latest[input] == nil || runningCount == 0 { isOver = true }
    }

    /// Returns the states of all inputs if there are new ones, and marks them as taken; `nil` also as long as an input has none.
    mutating func takeNews() -> [LoadingState<BoxedContent>]? {
        isAwaited = false
        guard hasNews else { return nil }
        hasNews = false
        return silentCount == 0 ? latest.compactMap { $0 } : nil
    }
}

/// Starts a task that keeps the latest state of an input of a combination, until the task is canceled or the input ends.
typealias CombinationInput = @Sendable (_ input: Int, _ states: WatchedState<CombinedStates>) -> Task<Void, Never>

extension LoadingStateSequence {
    /// The sequence as an input of a combination, without the type of its content.
    var combinationInput: CombinationInput {
        { input, states in
            Task {
                for await state in self {
                    let state = state.map { BoxedContent($0) }
                    // The previous state leaves the lock.
                    _ = states.update { $0.stateArrived(state, of: input) }
                }
                states.update { $0.inputEnded(input) }
            }
        }
    }
}
