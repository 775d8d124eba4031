internal import StoreCore

/// A bounded queue of new items between the remote list, while it is read, and the workers that download them.
///
/// Items that exceed the capacity are downloaded after the plan. Memory stays bounded, and slow downloads do not delay the list.
final class EarlyDownloads<Item: SyncItem>: ItemSource {
    typealias Download = SyncPlan<Item>.Download

    private struct State: Sendable {
        var waiting: ArraySlice<Download> = []
        var hasEnded = false
        var workers: Int
        /// The keys of items that began to download: finished, failed, or interrupted by the end of the pass.
        var begun: Set<Item.Key> = []
        var done: Set<Item.Key> = []
    }

    /// The largest number of waiting items.
    private let capacity: Int
    private let state: WatchedState<State>

    init(workers: Int, capacity: Int = 1_024) {
        self.capacity = capacity
        state = WatchedState(State(workers: workers))
    }

    /// The number of items that can be offered now; only `offer(_:)` reduces it.
    var room: Int { state.read { $0.hasEnded ? 0 : capacity - $0.waiting.count } }

    /// Offers items; items beyond the capacity do not begin early.
    func offer(_ downloads: some Collection<Download>) {
        guard !downloads.isEmpty else { return }
        state.update { state in
            guard !state.hasEnded else { return }
            state.waiting += downloads.prefix(capacity - state.waiting.count)
        }
    }

    /// Waits for the next item; returns `nil` when no further item will begin.
    func next() async -> Download? {
        while true {
            do {
                try await state.wait { $0.hasEnded || !$0.waiting.isEmpty ? () : nil }
            } catch {
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

    /// Counts a worker that has ended.
    func workerLeft() {
        state.update { $0.workers -= 1 }
    }

    /// Stops further items from beginning, and waits for the workers.
    ///
    /// - Returns: The keys of the items that began, and those of them that are finished.
    /// - Throws: `CancellationError` if the task is canceled.
    func finish() async throws -> (begun: Set<Item.Key>, done: Set<Item.Key>) {
        stop()
        return try await state.wait { $0.workers == 0 ? ($0.begun, $0.done) : nil }
    }
}

/// The start of downloads while the remote list is still being read.
struct EarlyStarter<Item: SyncItem>: Sendable {
    let workers: ItemWorkers
    let action: @Sendable (SyncPlan<Item>.Download) async throws -> Void
    let done: @Sendable (SyncPlan<Item>.Download, inout SyncReport) -> Void

    /// Runs a closure and meanwhile downloads the items that it offers; returns when both have ended.
    func whileReading<Result: Sendable>(_ read: (EarlyDownloads<Item>) async throws -> Result) async throws -> Result {
        let count = ItemWorkers.count(workers.options.concurrency)
        let slots = Permits(count)
        let workerCount = count + ItemWorkers.standbyCount
        let early = EarlyDownloads<Item>(workers: workerCount)
        // Items that failed after an earlier reading of the list are retried in this one.
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
                // A failed list cancels the downloads that began because of it.
                early.stop()
                group.cancelAll()
                throw error
            }
        }
    }
}
