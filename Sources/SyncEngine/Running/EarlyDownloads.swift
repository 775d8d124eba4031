internal import StoreCore

/// Items that the local side does not have, on their way from the list, which still arrives, to those who download them.
///
/// What waits is bounded: an item that finds no room is left for its turn after the plan, so that neither memory grows nor the list is
/// held up by slow downloads.
final class EarlyDownloads<Item: SyncItem>: ItemSource {
    typealias Download = SyncPlan<Item>.Download

    private struct State: Sendable {
        var waiting: ArraySlice<Download> = []
        var hasEnded = false
        var workers: Int
        /// The keys that somebody has begun with: done, failed, or left in the middle by a pass that ends.
        var begun: Set<Item.Key> = []
        var done: Set<Item.Key> = []
    }

    /// How many items wait at most.
    private let capacity: Int
    private let state: WatchedState<State>

    init(workers: Int, capacity: Int = 1_024) {
        self.capacity = capacity
        state = WatchedState(State(workers: workers))
    }

    /// How many items can be taken in now; only the one who offers makes this smaller.
    var room: Int { state.read { $0.hasEnded ? 0 : capacity - $0.waiting.count } }

    /// Takes items in; those that find no room are not begun early.
    func offer(_ downloads: some Collection<Download>) {
        guard !downloads.isEmpty else { return }
        state.update { state in
            guard !state.hasEnded else { return }
            state.waiting += downloads.prefix(capacity - state.waiting.count)
        }
    }

    /// The next item, as soon as there is one; `nil` when no more will be begun.
    func next() async -> Download? {
        while true {
            do {
                try await state.wait { $0.hasEnded || !$0.waiting.isEmpty ? () : nil }
            } catch {
                // The pass was cancelled.
                return nil
            }
            let (item, hasEnded) = state.update { state -> (Download?, Bool) in
                guard !state.hasEnded, let item = state.waiting.popFirst() else { return (nil, state.hasEnded) }
                state.begun.insert(item.item.key)
                return (item, false)
            }
            if let item { return item }
            if hasEnded { return nil }
        }
    }

    func stop() {
        state.update { state in
            state.hasEnded = true
            state.waiting = []
        }
    }

    var isStopped: Bool { state.read { $0.hasEnded } }

    func isDone(_ key: Item.Key) {
        state.update { _ = $0.done.insert(key) }
    }

    /// A worker has ended.
    func workerLeft() {
        state.update { $0.workers -= 1 }
    }

    /// Lets nobody begin with another item, and waits for those who have begun.
    ///
    /// - Returns: The keys that were begun with, and those of them that are done.
    /// - Throws: `CancellationError`.
    func finish() async throws -> (begun: Set<Item.Key>, done: Set<Item.Key>) {
        stop()
        return try await state.wait { $0.workers == 0 ? ($0.begun, $0.done) : nil }
    }
}

/// Downloads items while the remote list still arrives.
struct EarlyStarter<Item: SyncItem>: Sendable {
    let workers: ItemWorkers
    let action: @Sendable (SyncPlan<Item>.Download) async throws -> Void
    let done: @Sendable (SyncPlan<Item>.Download, inout SyncReport) -> Void

    /// Does something, and meanwhile downloads what it offers; returns when both have ended.
    func whileReading<Result: Sendable>(_ read: (EarlyDownloads<Item>) async throws -> Result) async throws -> Result {
        let count = ItemWorkers.count(workers.options.concurrency)
        let slots = WorkerSlots(count)
        let workerCount = count + WorkerSlots.standbyCount
        let early = EarlyDownloads<Item>(workers: workerCount)
        // What an earlier reading of the list has begun is tried again by this one.
        workers.board.forgetFailures()
        return try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<workerCount {
                group.addTask {
                    await workers.work(early, slots, stage: .contents, key: \.item.key, isAhead: true, action: action) { download, report in
                        early.isDone(download.item.key)
                        done(download, &report)
                    }
                    early.workerLeft()
                }
            }
            do {
                let result = try await read(early)
                early.stop()
                try await group.waitForAll()
                return result
            } catch {
                // Nothing that was begun for a list that failed goes on.
                early.stop()
                group.cancelAll()
                throw error
            }
        }
    }
}
