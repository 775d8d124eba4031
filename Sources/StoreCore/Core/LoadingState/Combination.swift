/// One input of a combination, of any content.
protocol CombinationInput: Sendable {
    /// Starts a task that keeps the input's latest state, until the task is canceled or the input ends.
    func follow(_ progress: WatchedState<CombinationProgress>) -> Task<Void, Never>

    var latestWithoutContent: LoadingState<UnitParam>? { get }
}

final class CombinedInput<Content: Sendable>: CombinationInput {
    private let sequence: LoadingStateSequence<Content>
    /// Never contended: all access happens under the lock of the progress.
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

    var latestWithoutContent: LoadingState<UnitParam>? { latest?.map { _ in UnitParam() } }

    func follow(_ progress: WatchedState<CombinationProgress>) -> Task<Void, Never> {
        Task {
            for await state in sequence {
                // The previous state leaves the lock, because its release may run user code.
                _ = progress.update { progress in
                    let previous = self.latest
                    self.state.withLock { $0 = state }
                    progress.stateArrived(isFirst: previous == nil)
                    return previous
                }
            }
            progress.update { $0.inputEnded(hadState: self.latest != nil) }
        }
    }
}

struct MissingContent: Error {}

/// The progress of a combination apart from the states themselves.
struct CombinationProgress: Sendable {
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
