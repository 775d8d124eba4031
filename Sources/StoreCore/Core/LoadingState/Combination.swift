/// One input of a combination, of any content.
protocol CombinationInput: Sendable {
    /// Starts a task that keeps the input's latest state, until the task is canceled or the input ends.
    func follow(for combination: Combination) -> Task<Void, Never>
}

/// A sequence and its latest state.
final class CombinedInput<Content: Sendable>: CombinationInput {
    private let sequence: LoadingStateSequence<Content>
    /// Never contended: all access happens under the combination's lock.
    private let state = Lock<LoadingState<Content>?>(nil)

    init(_ sequence: LoadingStateSequence<Content>) {
        self.sequence = sequence
    }

    /// The latest state; `nil` before the first one.
    var latest: LoadingState<Content>? { state.withLock { $0 } }

    /// Returns the content of the latest state. It throws because only an error can leave an iteration over a parameter pack early.
    func requireContent() throws(MissingContent) -> Content {
        guard let content = latest?.content else { throw MissingContent() }
        return content
    }

    func follow(for combination: Combination) -> Task<Void, Never> {
        Task {
            for await state in sequence {
                combination.stateArrived { self.exchange(state) }
            }
            combination.inputEnded { self.latest != nil }
        }
    }

    private func exchange(_ state: LoadingState<Content>) -> LoadingState<Content>? {
        self.state.withLock { latest in
            defer { latest = state }
            return latest
        }
    }
}

struct MissingContent: Error {}

/// The meeting point of a combination's input tasks and its observer.
final class Combination: Sendable {
    /// The progress apart from the states. Its lock also guards the states of all inputs, so that they are read at one moment.
    private let progress: WatchedState<CombinationProgress>

    init(inputCount: Int) {
        progress = WatchedState(CombinationProgress(inputCount: inputCount))
    }

    /// Records a new state of an input; `exchange` stores it and returns the previous one.
    func stateArrived<Content: Sendable>(_ exchange: () -> LoadingState<Content>?) {
        // The previous state leaves the lock, because its release may run user code.
        _ = progress.update { progress in
            let previous = exchange()
            progress.stateArrived(isFirst: previous == nil)
            return previous
        }
    }

    /// Records that an input has ended.
    func inputEnded(hasState: () -> Bool) {
        progress.update { $0.inputEnded(hadState: hasState()) }
    }

    /// Waits until there are states that were not taken yet; used by one task at a time.
    ///
    /// - Parameter isolation: The caller's actor, which the call does not leave.
    /// - Returns: `false` once the task is canceled.
    func hasNews(isolation: isolated (any Actor)? = #isolation) async -> Bool {
        progress.update { $0.beginWaiting() }
        // The wait fails only if the task is canceled.
        _ = try? await progress.wait { progress -> Void? in progress.isReady ? () : nil }
        return !Task.isCancelled
    }

    /// Combines the latest states of all inputs, as of one moment; `nil` if they were already taken, which happens at the end.
    func takeNews<Output: Sendable>(_ combine: () -> LoadingState<Output>?) -> LoadingState<Output>? {
        progress.update { $0.takeNews() ? combine() : nil }
    }
}

/// The progress of a combination apart from the states themselves.
private struct CombinationProgress: Sendable {
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
        silentCount = inputCount
        runningCount = inputCount
    }

    /// Whether the observer need not wait.
    var isReady: Bool { isOver || (hasNews && silentCount == 0) }

    mutating func beginWaiting() {
        if isAwaited { refuseSecondWaiter() }
        isAwaited = true
    }

    mutating func stateArrived(isFirst: Bool) {
        if isFirst { silentCount -= 1 }
        hasNews = true
    }

    mutating func inputEnded(hadState: Bool) {
        runningCount -= 1
        // The combination can never produce a state if one input ended without any.
        if !hadState || runningCount == 0 { isOver = true }
    }

    /// Returns whether there are new states, and marks them as taken.
    mutating func takeNews() -> Bool {
        isAwaited = false
        guard hasNews else { return false }
        hasNews = false
        return true
    }
}
