/// One input of a combination, whatever its content.
protocol CombinationInput: Sendable {
    /// Starts a task that keeps the input's latest state, until it is cancelled or the input ends.
    func follow(for combination: Combination) -> Task<Void, Never>
}

/// A sequence and its latest state.
final class CombinedInput<Content: Sendable>: CombinationInput {
    private let sequence: LoadingStateSequence<Content>
    /// Never contended: whoever comes here holds the combination's lock.
    private let state = Lock<LoadingState<Content>?>(nil)

    init(_ sequence: LoadingStateSequence<Content>) {
        self.sequence = sequence
    }

    /// The latest state; `nil` before the first one.
    var latest: LoadingState<Content>? { state.withLock { $0 } }

    /// The content of the latest state; a pack can be gone through only in an expression, which nothing but an error leaves early.
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

/// Where the tasks of a combination and its observer meet.
final class Combination: Sendable {
    /// What is known apart from the states. Its lock guards the states of all inputs too, so that they are read at one moment.
    private let progress: Lock<CombinationProgress>

    init(inputCount: Int) {
        progress = Lock(CombinationProgress(inputCount: inputCount))
    }

    /// An input has a new state, which `exchange` puts in the place of the one before.
    func stateArrived<Content: Sendable>(_ exchange: () -> LoadingState<Content>?) {
        // The state before leaves the lock with the waiter: what it releases may be user code.
        let (_, waiter) = progress.withLock { progress in
            let previous = exchange()
            return (previous, progress.stateArrived(isFirst: previous == nil))
        }
        waiter?.resume()
    }

    /// An input gives no more states.
    func inputEnded(hasState: () -> Bool) {
        progress.withLock { $0.inputEnded(hadState: hasState()) }?.resume()
    }

    /// Waits until there are states that were not taken yet; used by one task at a time.
    ///
    /// - Parameter isolation: The caller's actor, which is not left.
    /// - Returns: `false` once the task is cancelled.
    func hasNews(isolation: isolated (any Actor)? = #isolation) async -> Bool {
        await withTaskCancellationHandler {
            // Captured, for else the closure runs on no actor: two hops for every state of an actor.
            _ = isolation
            await withCheckedContinuation { (waiter: CheckedContinuation<Void, Never>) in
                let mustWait = progress.withLock { progress in
                    // A task is marked cancelled before its handlers run: either this sees the mark, or they find the waiter.
                    !Task.isCancelled && progress.wait(waiter)
                }
                if !mustWait { waiter.resume() }
            }
        } onCancel: {
            progress.withLock { $0.takeWaiter() }?.resume()
        }
        return !Task.isCancelled
    }

    /// What `combine` makes of all latest states, as they are at one moment; `nil` where they were taken already: at the end.
    func takeNews<Output: Sendable>(_ combine: () -> LoadingState<Output>?) -> LoadingState<Output>? {
        progress.withLock { $0.takeNews() ? combine() : nil }
    }
}

/// What a combination knows apart from the states themselves.
private struct CombinationProgress {
    /// Inputs that have given no state so far.
    private var silentCount: Int
    /// Inputs that may still give states.
    private var runningCount: Int
    /// Whether a state arrived since the observer took them last.
    private var hasNews = false
    /// Whether nothing can be given any longer but the news.
    private var isOver = false
    private var waiter: CheckedContinuation<Void, Never>?

    init(inputCount: Int) {
        silentCount = inputCount
        runningCount = inputCount
    }

    /// The observer asks for news; whether it must wait for them.
    mutating func wait(_ waiter: CheckedContinuation<Void, Never>) -> Bool {
        if isOver || (hasNews && silentCount == 0) { return false }
        if self.waiter != nil { refuseSecondWaiter() }
        self.waiter = waiter
        return true
    }

    mutating func stateArrived(isFirst: Bool) -> CheckedContinuation<Void, Never>? {
        if isFirst { silentCount -= 1 }
        hasNews = true
        return silentCount == 0 ? takeWaiter() : nil
    }

    mutating func inputEnded(hadState: Bool) -> CheckedContinuation<Void, Never>? {
        runningCount -= 1
        // Without a state of every input there never is anything to give.
        if !hadState || runningCount == 0 { isOver = true }
        return isOver ? takeWaiter() : nil
    }

    mutating func takeWaiter() -> CheckedContinuation<Void, Never>? {
        defer { waiter = nil }
        return waiter
    }

    /// Whether there is something to give; from now on it is given.
    mutating func takeNews() -> Bool {
        guard hasNews else { return false }
        hasNews = false
        return true
    }
}
