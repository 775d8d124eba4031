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
    }

    private let state = WatchedState(State())
    /// A flush may take seconds, which no thread of the tasks' pool may be held for.
    private let queue = DispatchQueue(label: "SyncEngine.GroupedFlush")

    /// Whether a flush has failed, so that nobody knows what of all that was written is on the disk.
    var hasFailed: Bool { state.read { $0.sharing.hasFailed } }

    /// Waits until a flush has ended that began after this call.
    ///
    /// - Parameter flush: Brings to the disk what was written before it was called; called by one thread at a time, with the closure of
    ///   whoever came first.
    /// - Throws: What the flush threw, or one before it; `CancellationError` as soon as the task is cancelled.
    func wait(_ flush: @escaping @Sendable () throws -> Void) async throws {
        let number: Int
        switch state.update({ $0.sharing.arrived() }) {
        case .begin(let new):
            number = new
            begin(flush)
        case .wait(let next): number = next
        }
        do {
            let isWell = try await state.wait { $0.sharing.isWell(number) }
            if !isWell, let error = state.read({ $0.error }) { throw error }
        } catch let error as CancellationError {
            state.update { $0.sharing.left(number) }
            throw error
        }
    }

    private func begin(_ flush: @escaping @Sendable () throws -> Void) {
        queue.async { [self] in
            let failure: (any Error)?
            do {
                try flush()
                failure = nil
            } catch {
                failure = error
            }
            let next = state.update { state in
                state.error = failure
                return state.sharing.ended(well: failure == nil)
            }
            if case .begin = next { begin(flush) }
        }
    }
}
