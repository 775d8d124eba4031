/// A result that one or many callers wait for.
///
/// The lock of a result may be taken while the engine's lock is held, never the other way round. The result is kept under the lock and does
/// not travel with the continuation, because the thread sanitizer cannot follow a continuation.
final class SharedResult<Value: Sendable>: Sendable {
    typealias Ticket = WaiterList<Void>.Ticket

    private struct State {
        var result: Value?
        /// The callers without a result; the cancellation of its task removes a caller.
        var callers = WaiterList<Void>()
    }

    private let state = Lock(State())
    /// Called outside the lock when the last of several callers has left without a result.
    private let onEmpty: (@Sendable (SharedResult) -> Void)?

    init(onEmpty: (@Sendable (SharedResult) -> Void)? = nil) {
        self.onEmpty = onEmpty
    }

    /// The number of callers without a result.
    var count: Int { state.withLock { $0.callers.count } }

    var suspendedCount: Int { state.withLock { $0.callers.suspendedCount } }

    /// The number of callers for which there is storage, for tests.
    var capacity: Int { state.withLock { $0.callers.capacity } }

    /// Sets the result and resumes the callers in the order in which they joined; later results are ignored.
    func put(_ result: Value) {
        let callers = state.withLock { state -> [WaiterList<Void>.Waiter] in
            guard state.result == nil else { return [] }
            state.result = result
            return state.callers.removeAll()
        }
        for caller in callers { caller.resume() }
    }

    // MARK: One caller

    /// Suspends until there is a result.
    ///
    /// - Parameter cancel: Runs when the task is canceled, and at once if it already is; it must cause a result.
    func value(isolation: isolated (any Actor)? = #isolation, onCancel cancel: @Sendable () -> Void) async -> Value {
        let ticket = join()
        await suspend {
            wait(ticket, $0)
        } onCancel: {
            cancel()
        }
        guard let result = state.withLock(\.result) else { preconditionFailure("a caller was resumed without a result") }
        return result
    }

    // MARK: Many callers

    /// Suspends a caller until there is a result; `nil` if its task is canceled before.
    func value(isolation: isolated (any Actor)? = #isolation) async -> Value? {
        let ticket = join()
        await suspend {
            wait(ticket, $0)
        } onCancel: {
            leave(ticket)
        }
        return result
    }

    /// Adds a caller that is not suspended yet.
    func join() -> Ticket {
        state.withLock { $0.callers.join(()) }
    }

    /// Suspends a caller until there is a result, or until it leaves.
    func wait(_ ticket: Ticket, _ suspension: Suspension) {
        let isWaiting = state.withLock { $0.result == nil && $0.callers.suspend(ticket, suspension) }
        if !isWaiting { suspension.resume() }
    }

    /// Removes a caller, and reports that the last one has left; has no effect after the result.
    func leave(_ ticket: Ticket) {
        if remove(ticket) { onEmpty?(self) }
    }

    /// Removes a caller; returns whether it was the last one.
    func remove(_ ticket: Ticket) -> Bool {
        let (caller, isLast) = state.withLock { state in
            let caller = state.callers.remove(ticket)
            return (caller, caller != nil && state.callers.isEmpty)
        }
        caller?.resume()
        return isLast
    }

    /// The result; `nil` for a resumed caller that has left.
    var result: Value? { state.withLock(\.result) }
}
