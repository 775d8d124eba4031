public import StoreCore

/// Makes a local collection equal to a remote list, one way; the object that you keep.
///
/// ```swift
/// let synchronizer = OneWaySynchronizer(processor: PhotoProcessor(api: api, album: album))
/// let report = try await synchronizer.sync()
/// ```
///
/// At most one pass runs at a time; calls of ``sync(overriding:)`` during it share one more pass after it.
public final class OneWaySynchronizer<Processor: SyncProcessor>: Sendable {
    /// What the work is done with.
    public let processor: Processor
    /// What the synchronizer does of its own accord.
    public let options: SyncOptions
    private let time: any TimeSource
    let hub: SyncHub

    /// Makes a synchronizer; nothing happens until it is asked.
    ///
    /// - Parameters:
    ///   - processor: What the work is done with.
    ///   - options: What the synchronizer does of its own accord.
    ///   - time: Where time comes from; a test gives a `ManualTime`.
    public init(processor: Processor, options: SyncOptions = SyncOptions(), time: some TimeSource = .system) {
        precondition(
            options.order.canSort(Processor.Item.self), "SyncOptions.order ranks another type of items than \(Processor.Item.self)")
        self.processor = processor
        self.options = options
        self.time = time
        let previews = PreviewMemory<Processor.Item>()
        hub = SyncHub { number, publish in
            ProgressBoard(pass: number, time: time, interval: options.progressInterval, publish: publish)
        } run: { pass, board in
            await SyncPass(processor: processor, options: options, overrides: pass.overrides, time: time, board: board, previews: previews)
                .run()
        }
    }

    /// Makes the local side equal to the source, and returns when it is.
    ///
    /// During a run, the call waits for one more pass, which begins after the present one and is shared by all who call meanwhile: each
    /// gets the outcome of the first pass that began after its call. A call of the processor that the run waits for cannot wait for the
    /// run: from within, and from tasks that inherit its task-local values, it is an error.
    ///
    /// - Parameter overrides: What the safety gate lets pass in the pass that this call is answered by, and in no other.
    /// - Returns: How the pass went; everything is as the source has it.
    /// - Throws: ``SyncError``, whose report names every item that failed; `CancellationError` as soon as the calling task is cancelled.
    ///   The run itself is cancelled when no caller and no observer is left.
    @discardableResult
    public func sync(overriding overrides: SyncOverrides = []) async throws -> SyncReport {
        try await hub.sync(overrides)
    }

    /// What `sync(overriding:)` would do now, and why; nothing is changed.
    ///
    /// Of the processor only ``SyncProcessor/sourceList()``, ``SyncProcessor/localInventory()``, ``SyncProcessor/shouldUpdate(_:over:)``,
    /// ``SyncProcessor/refusals(among:)`` and ``SyncProcessor/prepareDownload(_:)`` are called. They may be called beside those of a pass
    /// that runs.
    ///
    /// - Returns: The plan; ``SyncPlan/gateRefusal`` says whether the safety gate would stop it.
    /// - Throws: ``SyncError``; `CancellationError` where the task is cancelled, as soon as the processor's call returns.
    public func plan() async throws -> SyncPlan<Processor.Item> {
        do {
            return try await DryRun.$isOn.withValue(true) { try await makePlan() }
        } catch {
            try Task.checkCancellation()
            throw SyncError(wrapping: error, stage: .plan)
        }
    }

    private func makePlan() async throws -> SyncPlan<Processor.Item> {
        var plan = try await Planning(processor: processor, options: options, time: time, board: nil).plan()
        plan.gateRefusal = SafetyGate.refusal(of: plan, options: options, overrides: [])
        plan.isDryRun = true
        plan.arrangeDownloads(by: options.order)
        if !plan.isEmpty {
            do {
                plan.choose(try await processor.prepareDownload(plan))
            } catch {
                throw StageFailure(stage: .prepare, error: error)
            }
        }
        return plan
    }

    /// Gives up: every waiting caller gets `cancelled` at once, what is in flight is cancelled, and no other pass begins.
    ///
    /// Until the processor's calls have returned, the run has not ended; a `sync()` in between begins after it and is not cancelled.
    public func cancel() {
        hub.cancel()
    }

    /// Whether a pass runs, or is being cancelled and has not ended yet.
    public var isSyncing: Bool { hub.isSyncing }

    /// The states of the present pass and all later ones: totals while it runs, the report when it has ended.
    ///
    /// An observer of a synchronizer that has never run waits for the first pass. While somebody observes, a run is not cancelled because
    /// its callers have left.
    ///
    /// - Returns: A sequence that never ends by itself; each of its iterators is an observer.
    public func publish() -> LoadingStateSequence<SyncReport> {
        LoadingStateSequence { [hub] in SyncObserver(hub) }
    }
}
