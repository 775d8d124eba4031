internal import StoreCore

/// A pass: all stages in their order, and exactly one end.
final class SyncPass<Processor: SyncProcessor>: Sendable {
    typealias Item = Processor.Item

    let processor: Processor
    let options: SyncOptions
    let overrides: SyncOverrides
    let time: any TimeSource
    let board: ProgressBoard
    private let previews: PreviewMemory<Item>
    private let retries: Retries
    private let removed = Lock<Set<Item.Key>>([])

    init(
        processor: Processor, options: SyncOptions, overrides: SyncOverrides, time: any TimeSource, board: ProgressBoard,
        previews: PreviewMemory<Item> = PreviewMemory()
    ) {
        self.processor = processor
        self.options = options
        self.overrides = overrides
        self.time = time
        self.board = board
        self.previews = previews
        retries = Retries(policy: options.retry, time: time)
    }

    /// Runs the pass; returns its report, or the reason why the sides differ.
    func run() async -> Result<SyncReport, SyncError> {
        var failure: SyncError?
        do {
            try await runStages()
        } catch {
            let stage = board.report.progress.stage
            // In a canceled pass, the error of any call is reported as the cancellation.
            failure = Task.isCancelled ? SyncError(cancelledIn: stage, by: error) : SyncError(wrapping: error, stage: stage)
        }
        let report = board.finish(hasSucceeded: failure == nil)
        board.enter(.end)
        // A separate task, so that the end is not canceled together with the work before it.
        await Task { [processor] in await processor.syncDidEnd(report) }.value
        failure?.report = report
        return failure.map { .failure($0) } ?? .success(report)
    }

    private func runStages() async throws {
        board.enter(.begin)
        try await processor.syncWillBegin()
        var plan = try await Planning(processor: processor, options: options, time: time, board: board).plan()
        board.enter(.safetyGate)
        board.change { $0.take(plan, downloadsContents: options.downloadsContents) }
        if let refusal = SafetyGate.refusal(of: plan, options: options, overrides: overrides) { throw refusal }
        if let refusal = try await processor.refusal(of: plan) { throw refusal }
        defer { noteRemovals(plan.removals) }
        for refusal in plan.refusals {
            board.failed(SyncFailure(stage: .plan, key: SyncKey(refusal.key), error: refusal.error), options)
        }
        try Task.checkCancellation()
        let removals = plan.removals
        if !board.mustStop, !plan.isEmpty {
            board.enter(.prepare)
            plan.arrangeDownloads(by: options.order)
            plan.choose(try await processor.prepareDownload(plan))
            let leftOut = plan.leftOut.map { SyncKey($0) }
            board.change { report in
                report.leftOut = leftOut
                if options.downloadsContents { report.pendingDownloadCount -= leftOut.count }
            }
            if plan.removesFirst { try await removeAll(removals[...]) }
            // A link that is gone may have the name of a new file.
            try await apply(plan.metadata.filter { $0.item == nil })
            try await move(&plan)
            try await download(plan)
        }
        // A removed item may be the previous form of a failed one. Moves that became downloads have added their old items to the removals.
        // The safety gate has not counted these, so they stay after any failure.
        let failureCount = board.report.failures.count
        if mayRemove(despite: failureCount) {
            let gone = failureCount == 0 ? plan.removals[...] : removals[...]
            try await removeAll(gone.dropFirst(plan.removesFirst ? removals.count : 0))
        }
        // A new link may have the name of a removed file. A failed item, such as a file that was not moved, has nothing to change.
        let failed = Set(board.report.failures.lazy.map(\.key))
        let changes = plan.metadata.filter { $0.item != nil && !failed.contains(SyncKey($0.key)) }
        if mayRemove(despite: failed.count) { try await apply(changes) }
        try Task.checkCancellation()
        // The processor can detect a replaced target here, before the report claims success.
        if board.report.failures.isEmpty {
            try await StageFailure.catching(in: .end) {
                try await processor.syncWillEnd()
                try await plan.whenApplied?()
            }
        }
        let failures = board.report.failures
        if let first = failures.first {
            throw SyncError(
                .incomplete,
                "cannot complete the pass: \(counted(failures.count, "item")) failed, first \(first.description); the report names all of them; "
                    + "call sync() again for the remaining items",
                stage: first.stage, underlyingError: first.error)
        }
    }

    // MARK: Downloading

    var workers: ItemWorkers { ItemWorkers(options: options, time: time, board: board) }

    private func download(_ plan: SyncPlan<Item>) async throws {
        let downloads = plan.downloads
        if options.downloadsPreviews, !downloads.isEmpty, !board.mustStop {
            let missing = previews.missing(among: downloads)
            board.enter(.previews, items: .exactly(missing.count))
            await workers.run(missing, stage: .previews, key: \.item.key) { [processor] download in
                try await processor.downloadPreview(of: download.item)
            } done: { [previews] download, report in
                previews.arrived(download.item)
                report.previewCount += 1
            }
            try Task.checkCancellation()
        }
        guard options.downloadsContents, !downloads.isEmpty, !board.mustStop else { return }
        board.enter(.contents, items: .exactly(downloads.count), bytes: SyncPlan<Item>.sum(downloads.lazy.map(\.item.byteCount)))
        await workers.run(downloads, stage: .contents, key: \.item.key, bytes: { $0.item.byteCount }) { [processor] download in
            // It may have changed since the plan was made.
            guard try await processor.isUnchanged(download.item.key, since: download.local) else {
                throw SyncError.changedLocally(.contents)
            }
            try await processor.downloadContent(of: download.item)
        } done: { [previews] download, report in
            previews.contentArrived(of: download.item.key)
            if download.local == nil { report.addedCount += 1 } else { report.updatedCount += 1 }
            report.downloadedBytes = report.downloadedBytes.saturatingAdd(max(0, download.item.byteCount ?? 0))
            report.pendingDownloadCount -= 1
        }
        try await install(downloads)
        try Task.checkCancellation()
    }

    /// Lets the processor install the downloads that it has held back, and subtracts those that failed from the report.
    private func install(_ downloads: [SyncPlan<Item>.Download]) async throws {
        let refusals = try await processor.installDownloads(overriding: overrides)
        guard !refusals.isEmpty else { return }
        let keys = Set(refusals.lazy.map(\.key))
        let notInPlace = downloads.filter { keys.contains($0.item.key) }
        board.change { report in
            for download in notInPlace {
                if download.local == nil { report.addedCount -= 1 } else { report.updatedCount -= 1 }
                report.downloadedBytes = report.downloadedBytes.saturatingAdd(-max(0, download.item.byteCount ?? 0))
                report.pendingDownloadCount += 1
            }
        }
        // Items that a canceled pass did not install are pending, not failed.
        try Task.checkCancellation()
        for refusal in refusals {
            if let error = refusal.error as? SyncError, error.code == .sharedContent { throw error }
            board.failed(SyncFailure(stage: .contents, key: SyncKey(refusal.key), error: refusal.error), options)
        }
    }

    // MARK: Metadata

    private func apply(_ changes: [SyncPlan<Item>.MetadataChange]) async throws {
        guard !changes.isEmpty, !board.mustStop else { return }
        board.enter(.metadata, items: .exactly(changes.count))
        await workers.run(changes, stage: .metadata, key: \.key) { [processor] change in
            try await processor.apply(change)
        } done: { _, report in
            report.metadataCount += 1
        }
        try Task.checkCancellation()
    }

    // MARK: Removing

    /// The number of items removed in one call: small enough to find a failing item, large enough that the calls are cheap.
    private static var removalsInOneCall: Int { 256 }

    private func mayRemove(despite failureCount: Int) -> Bool { failureCount == 0 || options.removalCondition == .despiteFailures }

    /// Removes items in several calls; the old items of moves are removed in the stage of the moves, and do not count.
    func removeAll(_ removals: ArraySlice<SyncPlan<Item>.Removal>, in stage: SyncStage = .removals) async throws {
        guard !removals.isEmpty, !board.mustStop else { return }
        if stage == .removals { board.enter(.removals, items: .exactly(removals.count)) }
        var rest = removals
        while !rest.isEmpty, !board.mustStop {
            try Task.checkCancellation()
            try await remove(rest.prefix(Self.removalsInOneCall), in: stage)
            rest = rest.dropFirst(Self.removalsInOneCall)
        }
    }

    /// Removes items in one call, each after a check.
    private func remove(_ removals: ArraySlice<SyncPlan<Item>.Removal>, in stage: SyncStage) async throws {
        var keys: Set<Item.Key> = []
        for removal in removals where !board.mustStop {
            let key = removal.local.key
            do throws(Retries.Failure) {
                try await retries {
                    guard try await processor.isUnchanged(key, since: removal.local) else { throw SyncError.changedLocally(stage) }
                }
                keys.insert(key)
            } catch {
                try judge(error, of: key, in: stage)
            }
        }
        guard !keys.isEmpty, !board.mustStop else { return }
        guard let failure = await attempt(keys, retries, in: stage) else { return }
        guard keys.count > 1, failure.kind != .fatal else {
            for key in keys.sorted() where !board.mustStop { try judge(failure, of: key, in: stage) }
            return
        }
        try Task.checkCancellation()
        // Some items may be removed already; removing them one by one shows which fail. A transient failure was retried already, so each key
        // then gets a single attempt.
        let single = failure.kind == .transient ? Retries(policy: .never, time: time) : retries
        for key in keys.sorted() where !board.mustStop {
            if let failure = await attempt([key], single, in: stage) { try judge(failure, of: key, in: stage) }
        }
    }

    /// Removes items in one call; returns its failure.
    private func attempt(_ keys: Set<Item.Key>, _ retries: Retries, in stage: SyncStage) async -> Retries.Failure? {
        do throws(Retries.Failure) {
            try await retries { try await processor.remove(keys) }
            guard stage == .removals else { return nil }
            removed.withLock { $0.formUnion(keys) }
            board.advance(items: keys.count) { $0.removedCount += keys.count }
            return nil
        } catch {
            return error
        }
    }

    /// Records the removals that were not made, however the pass ends.
    private func noteRemovals(_ removals: [SyncPlan<Item>.Removal]) {
        let removed = removed.withLock { $0 }
        guard removed.count < removals.count else { return }
        let pending = removals.lazy.map(\.local.key).filter { !removed.contains($0) }.map { SyncKey($0) }
        board.change { $0.pendingRemovals = Array(pending) }
    }

    private func judge(_ failure: Retries.Failure, of key: Item.Key, in stage: SyncStage) throws {
        try Task.checkCancellation()
        board.failed(SyncFailure(stage: stage, key: SyncKey(key), error: failure.error, attempts: failure.attempts), options)
    }
}

extension SyncReport {
    /// Records the counts of a plan before it is carried out.
    fileprivate mutating func take(_ plan: SyncPlan<some SyncItem>, downloadsContents: Bool) {
        sourceCount = plan.sourceCount
        localCount = plan.localCount
        unchangedCount = plan.unchangedCount
        foreignCount = plan.foreignCount
        excludedCount = plan.excludedCount
        planned = Planned(
            additions: plan.additions.count, updates: plan.updates.count, removals: plan.removals.count, moves: plan.moves.count,
            metadata: plan.metadata.count)
        let refused = plan.refusals.count - plan.refusedMetadataCount
        pendingDownloadCount = downloadsContents ? plan.additions.count + plan.updates.count + refused : 0
        duplicates = plan.duplicates.map { SyncKey($0) }
        skipped = plan.skipped.map { SyncFailure(stage: .localInventory, key: SyncKey($0.key), error: $0.error) }
        localEdits =
            plan.keptEdits.map { SyncKey($0) }
            + (plan.updates + plan.moves.map(\.download)).filter { $0.reason == .editedLocally }.map { SyncKey($0.item.key) }
            + plan.removals.filter { $0.reason == .editedLocally }.map { SyncKey($0.local.key) }
    }
}

extension SyncError {
    /// Reports a local item that has changed since the plan was made.
    static func changedLocally(_ stage: SyncStage) -> SyncError {
        SyncError(
            .changedLocally, "cannot replace or remove the item: it changed after the plan was made; sync again to compare it",
            stage: stage)
    }

    /// Creates the error of a canceled run; the error of its calls becomes the underlying error.
    init(cancelledIn stage: SyncStage, by error: any Error) {
        let cause = (error as? StageFailure)?.error ?? error
        self.init(
            .cancelled, "cannot finish the run: it was canceled in the stage “\(stage)”; call sync() to resume", stage: stage,
            underlyingError: cause is CancellationError ? nil : cause)
    }

    init(wrapping error: any Error, stage: SyncStage) {
        if let failure = error as? StageFailure {
            self.init(wrapping: failure.error, stage: failure.stage)
        } else if var own = error as? SyncError {
            own.stage = own.stage ?? stage
            self = own
        } else {
            self.init(
                .stageFailed,
                "cannot complete the pass: the stage “\(stage)” failed, and later stages were skipped; see the underlying error",
                stage: stage, underlyingError: error)
        }
    }
}

extension Int64 {
    /// Returns the sum, clamped to the representable range.
    func saturatingAdd(_ other: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? (other < 0 ? .min : .max) : sum
    }
}
