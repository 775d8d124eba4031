/// A sequence of states that a test sends, for testing code that takes a `LoadingStateSequence` without a store.
///
/// ```swift
/// let states = ManualStates<User>(.loading(content: nil))
/// let model = UserModel(following: states.sequence)
/// try await states.taken(by: 1)
/// states.send(.completed(ada))
/// ```
///
/// The sequence behaves like that of a store. An observer joins at its first `next()` and receives the current state, then always the
/// newest. At most one state is pending for each observer. An observer leaves when its task is canceled or its iterator is released.
public final class ManualStates<Content: Sendable>: Sendable {
    private struct Observer {
        var pending: LoadingState<Content>?
        var waiter: CheckedContinuation<LoadingState<Content>?, Never>?
    }

    private struct Feed: Sendable {
        var current: LoadingState<Content>?
        var observers: [Int: Observer] = [:]
        var joined = 0
        var isFinished = false

        /// The current state, then one line per observer in the order in which they joined.
        var history: [String] {
            let state = current.map { "current state: \($0.summary)" } ?? "no state was sent"
            return [state]
                + observers.sorted { $0.key < $1.key }.map { ticket, observer in
                    if observer.waiter != nil { return "observer \(ticket) waits for the next state" }
                    return observer.pending.map { "observer \(ticket) has not taken \($0.summary)" } ?? "observer \(ticket) is busy"
                }
        }

        /// Removes and returns all waiters; the other observers receive `pending`.
        mutating func takeWaiters(leaving pending: LoadingState<Content>?) -> [CheckedContinuation<LoadingState<Content>?, Never>] {
            observers.keys.sorted().compactMap { ticket in
                guard let waiter = observers[ticket]?.waiter else {
                    if let pending { observers[ticket]?.pending = pending }
                    return nil
                }
                observers[ticket]?.waiter = nil
                return waiter
            }
        }
    }

    /// One lock guards the current state and all observers; observers are resumed outside it.
    private let feed: WatchedState<Feed>

    /// Creates a sequence of states.
    ///
    /// - Parameter current: The first state of each observer; with `nil`, observers wait for the first state sent.
    public init(_ current: LoadingState<Content>? = nil) {
        feed = WatchedState(Feed(current: current))
    }

    /// The sequence to observe; each of its iterators is a separate observer.
    public var sequence: LoadingStateSequence<Content> {
        LoadingStateSequence { Source(self) }
    }

    /// Makes a state the current one and sends it to every observer.
    ///
    /// - Parameter state: The state; it replaces a pending state of an observer.
    public func send(_ state: LoadingState<Content>) {
        // The previous feed leaves the lock with the waiters, because its release may run user code.
        let (waiters, _) = feed.update { feed in
            let before = feed
            feed.current = state
            return (feed.takeWaiters(leaving: state), before)
        }
        for waiter in waiters { waiter.resume(returning: state) }
    }

    /// Ends the sequence of each observer after its pending state; a store's sequences never end this way.
    public func finish() {
        let waiters = feed.update { feed in
            feed.isFinished = true
            return feed.takeWaiters(leaving: nil)
        }
        for waiter in waiters { waiter.resume(returning: nil) }
    }

    /// The current number of observers.
    public var observerCount: Int { feed.read { $0.observers.count } }

    /// The number of observers that have joined since the sequence was created.
    public var joinedCount: Int { feed.read { $0.joined } }

    /// Waits until there are exactly `count` observers, without polling.
    ///
    /// - Parameters:
    ///   - count: The number of observers; zero waits until all have left.
    ///   - timeout: The longest wait, in real time.
    ///   - fileID: The file of the wait, for the error.
    ///   - line: The line of the wait, for the error.
    /// - Throws: ``StoreError/Code/waitTimedOut`` after the timeout, `CancellationError` as soon as the waiting task is canceled.
    public func observers(
        count: Int, timeout: Duration = .seconds(120), fileID: String = #fileID, line: Int = #line
    ) async throws {
        let wait = TestWait(subject: "\(count) observers", timeout: timeout, fileID: fileID, line: line)
        try await feed.wait(wait, history: { $0.history }) { $0.observers.count == count ? () : nil }
    }

    /// Waits until there are exactly `count` observers, and each has taken the newest state and awaits the next, without polling.
    ///
    /// - Parameters:
    ///   - count: The number of observers.
    ///   - timeout: The longest wait, in real time.
    ///   - fileID: The file of the wait, for the error.
    ///   - line: The line of the wait, for the error.
    /// - Throws: ``StoreError/Code/waitTimedOut`` after the timeout, `CancellationError` as soon as the waiting task is canceled.
    public func taken(
        by count: Int, timeout: Duration = .seconds(120), fileID: String = #fileID, line: Int = #line
    ) async throws {
        let wait = TestWait(subject: "\(count) observers that have taken the newest state", timeout: timeout, fileID: fileID, line: line)
        try await feed.wait(wait, history: { $0.history }) { feed in
            feed.observers.count == count && feed.observers.values.allSatisfy { $0.waiter != nil } ? () : nil
        }
    }

    // MARK: Observing

    private func join() -> Int {
        feed.update { feed in
            feed.joined += 1
            feed.observers[feed.joined] = Observer(pending: feed.current)
            return feed.joined
        }
    }

    private func leave(_ ticket: Int) {
        let observer = feed.update { $0.observers.removeValue(forKey: ticket) }
        observer?.waiter?.resume(returning: nil)
    }

    private func next(_ ticket: Int, isolation: isolated (any Actor)? = #isolation) async -> LoadingState<Content>? {
        await withTaskCancellationHandler {
            // Capturing the isolation keeps the closure on the caller's actor; otherwise each state costs two hops.
            _ = isolation
            return await withCheckedContinuation { (waiter: CheckedContinuation<LoadingState<Content>?, Never>) in
                let answer: LoadingState<Content>?? = feed.update { feed in
                    guard let observer = feed.observers[ticket] else { return .some(nil) }
                    // A task is marked as canceled before its handlers run: either this check sees the mark, or `leave` finds the waiter.
                    guard !Task.isCancelled else { return .some(nil) }
                    if let pending = observer.pending {
                        feed.observers[ticket]?.pending = nil
                        return pending
                    }
                    if feed.isFinished { return .some(nil) }
                    if observer.waiter != nil { refuseSecondWaiter() }
                    feed.observers[ticket]?.waiter = waiter
                    return nil
                }
                if let answer { waiter.resume(returning: answer) }
            }
        } onCancel: {
            leave(ticket)
        }
    }

    /// An observer, which leaves when its iterator is released.
    private final class Source: LoadingStateSource {
        private let states: ManualStates
        private var ticket: Int?

        init(_ states: ManualStates) {
            self.states = states
        }

        deinit {
            if let ticket { states.leave(ticket) }
        }

        func next() async -> LoadingState<Content>? {
            let ticket = self.ticket ?? states.join()
            self.ticket = ticket
            return await states.next(ticket)
        }
    }
}
