internal import Dispatch
internal import StoreCore

/// Flushes of the disk that are shared by all their waiters.
///
/// Flushing each small file separately would cost more than its transfer.
final class GroupedFlush: Sendable {
    private struct State: Sendable {
        var sharing = FlushSharing()
        /// The outcome of the last flush.
        var outcome: Result<Void, any Error> = .success(())
        /// The earliest time at which a shared flush may begin.
        var earliest = DispatchTime.now()
        /// Whether waiters must be checked, because a flush has ended.
        var changes = ChangedParts.nothing
    }

    private let interval: DispatchTimeInterval
    /// An arriving waiter does not check the others, which wait for the end of their flush.
    private let state = WatchedState(State()) { $0.changes.take() }
    /// A flush may take seconds and must not block a thread of the cooperative pool.
    private let queue = DispatchQueue(label: "SyncEngine.GroupedFlush")

    /// Creates the flushes of one file system.
    ///
    /// - Parameter interval: The minimum time between the beginnings of two flushes. Without it, a fast disk would be flushed for every
    ///   second small file, which adds a quarter to the cost of their transfers. The interval causes no delay if a flush takes longer, or
    ///   for a single file.
    init(interval: DispatchTimeInterval = .milliseconds(10)) {
        self.interval = interval
    }

    /// Whether a flush has failed, so that the state of all written data is unknown.
    var hasFailed: Bool { state.read { $0.sharing.hasFailed } }

    /// The number of waiters for a flush that has not begun; for tests.
    var waitingCount: Int { state.read { $0.sharing.waitingForNext } }

    /// Waits for the end of a flush that begins after this call; one for the last waiter is not delayed.
    ///
    /// The closure of the first waiter flushes the data written before the calls. The error is that of this or an earlier flush, or a
    /// `CancellationError` as soon as the task is canceled.
    func wait(isLast: Bool = false, _ flush: @escaping @Sendable () throws -> Void) async throws {
        let (arrival, earliest) = state.update { ($0.sharing.arrived(), $0.earliest) }
        if arrival.isToBegin || isLast { begin(flush, at: isLast ? .now() : earliest) }
        do {
            let isWell = try await state.wait(for: arrival.number) { $0.sharing.isWell(arrival.number) }
            if !isWell { try state.read { $0.outcome }.get() }
        } catch let error as CancellationError {
            state.update { $0.sharing.left(arrival.number) }
            throw error
        }
    }

    private func begin(_ flush: @escaping @Sendable () throws -> Void, at time: DispatchTime) {
        queue.asyncAfter(deadline: time) { [self] in
            guard state.update({ $0.sharing.begins() }) else { return }
            let next = DispatchTime.now() + interval
            let outcome = Result { try flush() }
            let isAnotherWanted = state.update { state in
                (state.earliest, state.outcome, state.changes) = (next, outcome, .everything)
                return state.sharing.ended(well: (try? outcome.get()) != nil)
            }
            if isAnotherWanted { begin(flush, at: next) }
        }
    }
}
