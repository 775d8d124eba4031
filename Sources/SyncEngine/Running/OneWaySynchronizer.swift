public import StoreCore

/// The app's entry point: makes a local collection equal to a remote list, one way.
///
/// ```swift
/// let synchronizer = OneWaySynchronizer(
///     processor: PhotoProcessor(api: api, album: album))
/// let report = try await synchronizer.sync()
/// ```
///
/// At most one pass runs at a time. Calls of ``sync(overriding:)`` during a pass share one more pass after it.
///
/// <doc:GettingStarted> runs a first pass.
public final class OneWaySynchronizer<Processor: SyncProcessor>: Sendable {
    /// The app's part of the synchronization.
    public let processor: Processor
    /// The options of all passes, which cannot be changed after the creation.
    public let options: SyncOptions
    private let time: any TimeSource
    private let hub: SyncHub

    /// Creates a synchronizer without starting a pass.
    ///
    /// - Parameters:
    ///   - processor: The app's part of the synchronization.
    ///   - options: The options of all passes.
    ///   - time: The source of time; use a `ManualTime` in tests.
    public init(processor: Processor, options: SyncOptions = SyncOptions(), time: some TimeSource = .system) {
        precondition(
            options.order.canSort(Processor.Item.self), "SyncOptions.order ranks items of another type; rank \(Processor.Item.self)")
        self.processor = processor
        self.options = options
        self.time = time
        let previews = PreviewMemory<Processor.Item>()
        hub = SyncHub { pass, publish in
            let board = ProgressBoard(pass: pass.number, time: time, interval: options.progressInterval, publish: publish)
            return await SyncPass(
                processor: processor, options: options, overrides: pass.overrides, time: time, board: board, previews: previews
            ).run()
        }
    }

    /// Makes the local side equal to the source, and waits for the result.
    ///
    /// A call during a pass waits for one more pass, which all such calls share. Each caller gets the outcome of the first pass that began
    /// after its call. In a call of the processor, and in tasks that inherit its task-local values, the method throws an error.
    ///
    /// - Parameter overrides: The refusals of the safety gate to override in the pass that serves this call, and in no other.
    /// - Returns: The report of a complete pass, after which the local side equals the source.
    /// - Throws: ``SyncError`` with a report of every failed item; `CancellationError` as soon as the calling task is canceled. The run
    ///   itself is canceled when neither callers nor observers are left.
    @discardableResult
    public func sync(overriding overrides: SyncOverrides = []) async throws -> SyncReport {
        try await hub.sync(overrides)
    }

    /// Returns what `sync(overriding:)` would do now, with the reasons; changes nothing.
    ///
    /// The method calls only ``SyncProcessor/sourceList()``, ``SyncProcessor/localInventory()``, ``SyncProcessor/shouldUpdate(_:over:)``,
    /// ``SyncProcessor/refusals(among:)``, ``SyncProcessor/moves(in:)``, ``SyncProcessor/metadata(in:of:)``,
    /// ``SyncProcessor/refusal(of:)`` and ``SyncProcessor/prepareDownload(_:)``. These calls may overlap with those of a running pass.
    ///
    /// - Returns: The plan; ``SyncPlan/gateRefusal`` contains the error if the safety gate would refuse it.
    /// - Throws: ``SyncError``; `CancellationError` if the task is canceled, as soon as the processor's call returns.
    public func plan() async throws -> SyncPlan<Processor.Item> {
        do {
            return try await DryRun.$current.withValue(DryRun()) { try await makePlan() }
        } catch {
            try Task.checkCancellation()
            throw SyncError(wrapping: error, stage: .plan)
        }
    }

    private func makePlan() async throws -> SyncPlan<Processor.Item> {
        var plan = try await Planning(processor: processor, options: options, time: time, board: nil).plan()
        plan.gateRefusal = SafetyGate.refusal(of: plan, options: options, overrides: [])
        if plan.gateRefusal == nil { plan.gateRefusal = try await processor.refusal(of: plan) }
        plan.isDryRun = true
        plan.arrangeDownloads(by: options.order)
        if !plan.isEmpty {
            plan.choose(try await StageFailure.catching(in: .prepare) { try await processor.prepareDownload(plan) })
        }
        return plan
    }

    /// Cancels the run: every waiting caller gets `cancelled` at once, work in flight is canceled, and no queued pass begins.
    ///
    /// The run ends when the processor's calls have returned. A `sync()` called before that starts a new run afterward, which is not
    /// canceled.
    public func cancel() {
        hub.cancel()
    }

    /// Whether a pass is running, or was canceled and has not ended yet.
    public var isSyncing: Bool { hub.isSyncing }

    /// Returns the states of the current pass and of all later ones: running totals, then the report.
    ///
    /// An observer of a synchronizer that has never run waits for the first pass. While there are observers, a run is not canceled when its
    /// callers leave.
    ///
    /// - Returns: A sequence without an end; each of its iterators is an observer.
    public func publish() -> LoadingStateSequence<SyncReport> {
        LoadingStateSequence { [hub] in SyncObserver(hub) }
    }

    /// Returns the progress of the running pass, or the report of the last one; does not count as an observer. Cost: one lock.
    public func snapshot() -> SyncSnapshot { hub.snapshot() }
}

/// The downloaded previews of items without their content, so that the next pass does not download them again.
///
/// The memory lives as long as the synchronizer, and is bounded by the downloads of the last pass.
final class PreviewMemory<Item: SyncItem>: Sendable {
    private let versions = Lock<[Item.Key: Item.Version]>([:])

    /// Returns the downloads without a preview in their version; forgets all other previews.
    func missing(among downloads: [SyncPlan<Item>.Download]) -> [SyncPlan<Item>.Download] {
        versions.withLock { versions in
            guard !versions.isEmpty else { return downloads }
            let known = exchange(&versions, with: [:])
            return downloads.filter { download in
                guard let version = known[download.item.key], version == download.item.version else { return true }
                versions[download.item.key] = version
                return false
            }
        }
    }

    /// Records a preview in the version of its item, so that the next pass does not download it again.
    func arrived(_ item: Item) {
        versions.withLock { $0[item.key] = item.version }
    }

    /// Forgets a preview after its content was downloaded.
    func contentArrived(of key: Item.Key) {
        versions.withLock { $0[key] = nil }
    }
}
