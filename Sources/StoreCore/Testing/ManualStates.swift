public import StoreCore

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
///
/// <doc:TestingYourStore> tests a type that takes a sequence.
public final class ManualStates<Content: Sendable>: Sendable {
    private struct Observer {
        var pending: LoadingState<Content>?
        var isWaiting = false
    }

    private struct Feed: Recounted {
        var current: LoadingState<Content>?
        var observers: [Int: Observer] = [:]
        var joined = 0
        var isFinished = false

        var history: [String] {
            let state = current.map { "current state: \($0.summary)" } ?? "no state was sent"
            return [state]
                + observers.sorted { $0.key < $1.key }.map { ticket, observer in
                    if let pending = observer.pending { return "observer \(ticket) has not taken \(pending.summary)" }
                    return "observer \(ticket) \(observer.isWaiting ? "waits for the next state" : "is busy")"
                }
        }
    }

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
        // The previous feed leaves the lock, because its release may run user code.
        _ = feed.update { feed in
            let before = feed
            feed.current = state
            for ticket in feed.observers.keys { feed.observers[ticket]?.pending = state }
            return before
        }
    }

    /// Ends the sequence of each observer after its pending state; a store's sequences never end this way.
    public func finish() {
        feed.update { $0.isFinished = true }
    }

    /// The number of observers that have joined and not left.
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
        try await feed.wait(for: "\(count) observers", timeout, fileID, line) { $0.observers.count == count }
    }

    /// Waits until there are exactly `count` observers, and each has taken the newest state and awaits the next, without polling.
    ///
    /// Timeout, place and errors are those of ``observers(count:timeout:fileID:line:)``.
    public func taken(
        by count: Int, timeout: Duration = .seconds(120), fileID: String = #fileID, line: Int = #line
    ) async throws {
        try await feed.wait(for: "\(count) observers that have taken the newest state", timeout, fileID, line) { feed in
            feed.observers.count == count && feed.observers.values.allSatisfy { $0.isWaiting && $0.pending == nil }
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
        // The observer leaves the lock with its state, because its release may run user code.
        _ = feed.update { $0.observers.removeValue(forKey: ticket) }
    }

    private func next(_ ticket: Int, isolation: isolated (any Actor)? = #isolation) async -> LoadingState<Content>? {
        feed.update { feed in
            if feed.observers[ticket]?.isWaiting == true { refuseSecondWaiter() }
            feed.observers[ticket]?.isWaiting = true
        }
        do {
            try await feed.wait { feed -> Void? in
                feed.observers[ticket].map { $0.pending != nil || feed.isFinished } ?? true ? () : nil
            }
        } catch {
            // The task is canceled.
            leave(ticket)
            return nil
        }
        return feed.update { feed in
            feed.observers[ticket]?.isWaiting = false
            defer { feed.observers[ticket]?.pending = nil }
            return feed.observers[ticket]?.pending
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
