internal import Dispatch
internal import StoreCore

/// Flushes of the disk that are shared by all who wait for one.
///
/// To bring each small file to the disk by itself would cost more than its transfer.
final class GroupedFlush: Sendable {
    private struct State: Sendable {
        var sharing = FlushSharing()
        /// Why a flush has failed.
        var error: (any Error)?
        /// When a flush may begin that more may come to share.
        var earliest = DispatchTime.now()
    }

    private let interval: DispatchTimeInterval
    private let state = WatchedState(State())
    /// A flush may take seconds, which no thread of the tasks' pool may be held for.
    private let queue = DispatchQueue(label: "SyncEngine.GroupedFlush")

    /// Makes it for one file system.
    ///
    /// - Parameter interval: How long after the beginning of a flush the next one begins. Without it a fast disk would be flushed for every
    ///   second small file, which costs the machine a quarter of what their transfers do. Where a flush takes longer than this, nobody waits
    ///   for anything but the disk; nor does a file that is alone.
    init(interval: DispatchTimeInterval = .milliseconds(10)) {
        self.interval = interval
    }

    /// Whether a flush has failed, so that nobody knows what of all that was written is on the disk.
    var hasFailed: Bool { state.read { $0.sharing.hasFailed } }

    /// How many wait for a flush that has not begun, for tests.
    var waitingCount: Int { state.read { $0.sharing.waitingForNext } }

    /// Waits until a flush has ended that began after this call.
    ///
    /// - Parameters:
    ///   - isLast: Whether nobody else will come, so that there is nobody to wait for.
    ///   - flush: Brings to the disk what was written before it was called; called by one thread at a time, with the closure of whoever
    ///     came first.
    /// - Throws: What the flush threw, or one before it; `CancellationError` as soon as the task is cancelled.
    func wait(isLast: Bool = false, _ flush: @escaping @Sendable () throws -> Void) async throws {
        let (arrival, earliest) = state.update { ($0.sharing.arrived(), $0.earliest) }
        if arrival.isToBegin || isLast { begin(flush, at: isLast ? .now() : earliest) }
        do {
            let isWell = try await state.wait { $0.sharing.isWell(arrival.number) }
            if !isWell, let error = state.read({ $0.error }) { throw error }
        } catch let error as CancellationError {
            state.update { $0.sharing.left(arrival.number) }
            throw error
        }
    }

    private func begin(_ flush: @escaping @Sendable () throws -> Void, at time: DispatchTime) {
        queue.asyncAfter(deadline: time) { [self] in
            guard state.update({ $0.sharing.begins() }) else { return }
            let next = DispatchTime.now() + interval
            let failure: (any Error)?
            do {
                try flush()
                failure = nil
            } catch {
                failure = error
            }
            let isAnotherWanted = state.update { state in
                (state.earliest, state.error) = (next, failure)
                return state.sharing.ended(well: failure == nil)
            }
            if isAnotherWanted { begin(flush, at: next) }
        }
    }
}
