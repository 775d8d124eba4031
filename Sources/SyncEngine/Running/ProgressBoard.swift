internal import StoreCore

/// The report of a running pass, with rate-limited publication of its progress.
final class ProgressBoard: Sendable {
    private struct State: Sendable {
        var report: SyncReport
        var stageBegan: MonotonicInstant
        var nextPublication = MonotonicInstant.distantPast
        /// The progress of the last stage that counted items.
        var counted: SyncProgress?
        /// Whether a failure ends the pass.
        var mustStop = false
        var hasFailedFatally = false
        /// The files and directories that the report names as the cause of a failure.
        var failedPlaces: Set<PathKey> = []
        /// The order of publications, because two tasks may leave the lock in one order and publish in the other.
        var serial = 0

        /// Stores the progress of a stage that counted items. The total of a list is exact once another stage begins.
        mutating func noteCounts() {
            guard report.progress.doneItems > 0 else { return }
            counted = report.progress
            if report.progress.stage < .plan { counted?.totalItems = .exactly(report.progress.doneItems) }
        }
    }

    /// Guards the report and the counts of its stages.
    private let state: Lock<State>
    private let time: any TimeSource
    private let began: MonotonicInstant
    private let interval: Duration
    private let publish: SyncHub.Publish

    init(pass: Int, time: any TimeSource, interval: Duration, publish: @escaping SyncHub.Publish) {
        let now = time.now
        began = now
        self.time = time
        self.interval = interval
        self.publish = publish
        state = Lock(State(report: SyncReport(pass: pass), stageBegan: now))
    }

    var report: SyncReport { state.withLock { $0.report } }

    var mustStop: Bool { state.withLock { $0.mustStop } }

    /// Begins a stage and publishes it.
    ///
    /// A stage without items has exactly zero. The end is an exception: it shows the counts of the last stage that had items.
    func enter(_ stage: SyncStage, items: SyncProgress.Total = .exactly(0), bytes: Int64? = nil) {
        let now = time.now
        note(now: now, always: true) { state in
            state.report.progress.elapsed = state.stageBegan.duration(to: now)
            state.noteCounts()
            state.stageBegan = now
            state.report.progress = SyncProgress(stage: stage, totalItems: items, totalBytes: bytes)
            guard stage == .end, var last = state.counted else { return }
            last.stage = .end
            state.report.progress = last
        }
    }

    /// Counts items that were read or finished.
    func advance(items: Int, bytes: Int64 = 0, _ change: (inout SyncReport) -> Void = { _ in }) {
        note(now: time.now, always: false) { state in
            state.report.progress.doneItems += items
            state.report.progress.doneBytes = max(0, state.report.progress.doneBytes.saturatingAdd(bytes))
            change(&state.report)
        }
    }

    /// Records the failure of an item; returns whether it ends the pass.
    @discardableResult
    func failed(_ failure: SyncFailure, _ options: SyncOptions) -> Bool {
        let isFatal = FailureKind(judging: failure.error) == .fatal
        let stops = options.stopsOnError || isFatal
        let place = (failure.error as? SyncError)?.place
        state.withLock { state in
            // A fatal error concerns the pass: other items that meet it at the same time are pending, not failed.
            if isFatal, state.hasFailedFatally { return }
            state.hasFailedFatally = state.hasFailedFatally || isFatal
            if stops { state.mustStop = true }
            // The other items of a directory without permission are pending, too.
            if let place, !state.failedPlaces.insert(place).inserted { return }
            state.report.failures.append(failure)
        }
        return stops
    }

    /// Changes the report without publishing it.
    func change(_ change: (inout SyncReport) -> Void) {
        state.withLock { change(&$0.report) }
    }

    /// Returns the report at the end of the pass, which has succeeded if it went through all of its stages.
    func finish(hasSucceeded: Bool = true) -> SyncReport {
        let now = time.now
        return state.withLock { state in
            state.report.progress.elapsed = state.stageBegan.duration(to: now)
            state.noteCounts()
            if let counted = state.counted { state.report.progress = counted }
            state.report.hasSucceeded = hasSucceeded
            state.report.duration = began.duration(to: now)
            return state.report
        }
    }

    private func note(now: MonotonicInstant, always: Bool, _ change: (inout State) -> Void) {
        let due = state.withLock { state -> (SyncReport, Int)? in
            change(&state)
            guard always || now >= state.nextPublication else { return nil }
            state.report.progress.elapsed = state.stageBegan.duration(to: now)
            state.report.duration = began.duration(to: now)
            state.nextPublication = now.advanced(by: interval)
            state.serial += 1
            return (state.report, state.serial)
        }
        if let (report, serial) = due { publish(report, serial) }
    }
}

/// The byte count of the item that a worker downloads, for progress within large items, and the state of the worker's slot.
final class ItemMeter: Sendable {
    /// The meter of the item that this task downloads; `nil` outside a download.
    @TaskLocal static var current: ItemMeter?

    private let board: ProgressBoard
    /// The number of bytes counted for the current item.
    private let counted = Lock<Int64>(0)
    private let slots: Permits
    /// The worker's slot, while it has one.
    private let slot = Lock<Permits.Permit?>(nil)

    init(board: ProgressBoard, slots: Permits) {
        self.board = board
        self.slots = slots
    }

    /// Waits for a slot, unless the worker has one; returns `false` if there are no more items, or if the task is canceled.
    func takeSlot() async -> Bool {
        if slot.withLock({ $0 != nil }) { return true }
        // The only error is the end of the items, or the cancellation of the task.
        guard let permit = try? await slots.take() else { return false }
        slot.withLock { $0 = permit }
        return true
    }

    /// Gives the slot to another worker, because the item only waits for the disk after this call.
    func giveUpSlot() {
        slot.withLock { $0.take() }?.release()
    }

    func add(_ bytes: Int64) { count { $0.saturatingAdd(bytes) } }

    func reach(_ bytes: Int64) { count { _ in bytes } }

    private func count(_ next: (Int64) -> Int64) {
        // Clamps the count to the range from zero to the largest number, so that differences of counts cannot overflow.
        let change = counted.withLock { counted in
            let before = counted
            counted = max(0, next(counted))
            return counted - before
        }
        board.advance(items: 0, bytes: change)
    }

    /// Subtracts the bytes of an item that failed or starts over.
    func takeBack() {
        board.advance(items: 0, bytes: -take())
    }

    /// Returns the number of bytes counted for the finished item, and resets it.
    func take() -> Int64 { counted.withLock { exchange(&$0, with: 0) } }
}

extension SyncProgress {
    /// Adds received bytes of the current item, so that progress moves within large items.
    ///
    /// A processor calls the method while it downloads, in the task of its call or in a child task. Elsewhere the method does nothing.
    ///
    /// - Parameter bytes: The number of bytes received since the last call; negative if an item starts over.
    public static func transferred(_ bytes: Int) {
        ItemMeter.current?.add(Int64(bytes))
    }

    /// Sets the number of received bytes of the current item, for clients that report totals.
    ///
    /// It can be mixed with ``transferred(_:)``, and the same rules apply.
    ///
    /// - Parameter bytes: The number of bytes of the item received so far; fewer than before if an item starts over.
    public static func reached(_ bytes: Int64) {
        ItemMeter.current?.reach(bytes)
    }
}
