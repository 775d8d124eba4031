internal import StoreCore

/// Where a pass writes down how far it has come, and from which progress is published, but never more often than is of use.
final class ProgressBoard: Sendable {
    private struct State: Sendable {
        var report: SyncReport
        var stageBegan: MonotonicInstant
        var nextPublication = MonotonicInstant.distantPast
        /// The progress of the last stage that has counted items.
        var counted: SyncProgress?
        /// Whether a failure ends the pass.
        var mustStop = false
        var hasFailedFatally = false
        /// Orders what is published: two tasks may come out of the lock in one order and publish in the other.
        var serial = 0

        /// Keeps the progress of a stage that has counted items; of a list, the total is known once another stage begins.
        mutating func noteCounts() {
            guard report.progress.doneItems > 0 else { return }
            counted = report.progress
            if report.progress.stage < .plan { counted?.totalItems = .exactly(report.progress.doneItems) }
        }
    }

    /// Guards the report, and the counts of its stages.
    private let state: Lock<State>
    private let time: any TimeSource
    private let began: MonotonicInstant
    private let interval: Duration
    private let publish: @Sendable (_ report: SyncReport, _ serial: Int) -> Void

    init(
        pass: Int, time: any TimeSource, interval: Duration,
        publish: @escaping @Sendable (_ report: SyncReport, _ serial: Int) -> Void
    ) {
        let now = time.now
        began = now
        self.time = time
        self.interval = interval
        self.publish = publish
        state = Lock(State(report: SyncReport(pass: pass), stageBegan: now))
    }

    var report: SyncReport { state.withLock { $0.report } }

    var mustStop: Bool { state.withLock { $0.mustStop } }

    /// A stage begins; this is always published. A stage that is about no items has exactly none, but for the end, which carries the counts
    /// of the last stage that had some.
    func enter(_ stage: SyncStage, items: SyncProgress.Total = .exactly(0), bytes: Int64? = nil) {
        let now = time.now
        note(now: now, always: true) { state in
            state.stageBegan = now
            state.noteCounts()
            state.report.progress = SyncProgress(stage: stage, totalItems: items, totalBytes: bytes)
            guard stage == .end, var last = state.counted else { return }
            last.stage = .end
            state.report.progress = last
        }
    }

    /// Items were read or done.
    func advance(items: Int, bytes: Int64 = 0, _ change: (inout SyncReport) -> Void = { _ in }) {
        note(now: time.now, always: false) { state in
            state.report.progress.doneItems += items
            state.report.progress.doneBytes = max(0, state.report.progress.doneBytes.saturatingAdd(bytes))
            change(&state.report)
        }
    }

    /// More of the remote list was read.
    func listed(items: Int) {
        note(now: time.now, always: false) { state in
            state.report.progress.doneItems += items
            state.report.progress.totalItems = .atLeast(state.report.progress.doneItems)
        }
    }

    /// Something went wrong with an item.
    func failed(_ failure: SyncFailure, stops: Bool) {
        let isFatal = FailureKind(judging: failure.error) == .fatal
        state.withLock { state in
            // A fatal error is one of the pass: further items that meet it in the same moment are pending, and did not fail by themselves.
            if isFatal, state.hasFailedFatally { return }
            state.hasFailedFatally = state.hasFailedFatally || isFatal
            state.report.failures.append(failure)
            if stops { state.mustStop = true }
        }
    }

    /// Takes back what has failed so far: all of it will be tried again.
    func forgetFailures() {
        state.withLock { state in
            state.report.failures = []
            state.mustStop = false
            state.hasFailedFatally = false
        }
    }

    /// Changes the report without publishing it.
    func change(_ change: (inout SyncReport) -> Void) {
        state.withLock { change(&$0.report) }
    }

    /// The report as it is at the end of the pass.
    func finish() -> SyncReport {
        let now = time.now
        return state.withLock { state in
            state.report.progress.elapsed = state.stageBegan.duration(to: now)
            state.noteCounts()
            if let counted = state.counted { state.report.progress = counted }
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

/// Counts the bytes of the item that a worker is downloading, so that progress moves within large items too, and knows whether the worker
/// still has its slot.
final class ItemMeter: Sendable {
    /// The meter of the item that this task downloads; `nil` outside a download.
    @TaskLocal static var current: ItemMeter?

    /// `nil` where what is downloaded does not belong to the stage that is shown.
    private let board: ProgressBoard?
    /// What was counted for the present item so far.
    private let counted = Lock<Int64>(0)
    private let slots: WorkerSlots
    private let hasSlot = Lock(false)

    init(board: ProgressBoard?, slots: WorkerSlots) {
        self.board = board
        self.slots = slots
    }

    /// Waits for a slot, where the worker has none.
    ///
    /// - Returns: Whether there was one: `false` where there is no more to do, or the task is cancelled.
    func takeSlot() async -> Bool {
        if hasSlot.withLock({ $0 }) { return true }
        guard await slots.take() else { return false }
        hasSlot.withLock { $0 = true }
        return true
    }

    /// Lets another worker go on meanwhile: from here on the item waits for the disk alone.
    func giveUpSlot() {
        let hadSlot = hasSlot.withLock { hasSlot in
            defer { hasSlot = false }
            return hasSlot
        }
        if hadSlot { slots.giveBack() }
    }

    func add(_ bytes: Int64) { count { $0.saturatingAdd(bytes) } }

    func reach(_ bytes: Int64) { count { _ in bytes } }

    private func count(_ next: (Int64) -> Int64) {
        // Never below zero and never beyond the largest number, whatever a processor says: differences of counts then fit too.
        let change = counted.withLock { counted in
            let before = counted
            counted = max(0, next(counted))
            return counted - before
        }
        board?.advance(items: 0, bytes: change)
    }

    /// The item has failed, or begins anew.
    func takeBack() {
        board?.advance(items: 0, bytes: -take())
    }

    /// What was counted for the item, which has ended; the next one begins at zero.
    func take() -> Int64 {
        counted.withLock { counted in
            defer { counted = 0 }
            return counted
        }
    }
}

extension SyncProgress {
    /// Says that bytes of the present item have arrived, so that progress moves within large items too.
    ///
    /// To be called by a processor while it downloads, from the task in which it was called or a child of it; elsewhere nothing happens.
    ///
    /// - Parameter bytes: How many bytes have arrived since the last call; negative where an item begins anew.
    public static func transferred(_ bytes: Int) {
        ItemMeter.current?.add(Int64(bytes))
    }

    /// Says how many bytes of the present item are here by now, for clients that tell totals.
    ///
    /// Otherwise as ``transferred(_:)``, and the two may be mixed.
    ///
    /// - Parameter bytes: How many bytes of the item have arrived so far; fewer than before where an item begins anew.
    public static func reached(_ bytes: Int64) {
        ItemMeter.current?.reach(bytes)
    }
}
