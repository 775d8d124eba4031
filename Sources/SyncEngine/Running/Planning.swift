internal import StoreCore

/// The reading and comparison of both sides, without any change.
struct Planning<Processor: SyncProcessor>: Sendable {
    typealias Item = Processor.Item

    let processor: Processor
    let options: SyncOptions
    let time: any TimeSource
    /// Receives progress; `nil` for a dry run.
    let board: ProgressBoard?

    /// Makes the plan; after a transient failure, starts over. The error is a `StageFailure`.
    func plan() async throws -> SyncPlan<Item> {
        let retries = Retries(policy: options.retry, time: time)
        do throws(Retries.Failure) {
            return try await retries { try await makePlan() }
        } catch {
            throw error.error
        }
    }

    private func makePlan() async throws -> SyncPlan<Item> {
        board?.enter(.sourceList, items: .atLeast(0))
        let list = try await stage(.sourceList) { try await processor.sourceList() }
        var source = ListReading(reader: list.makeReader(), limit: options.listLimit, board: board)
        var selection = ListSelection<Item>(processor)
        var plan: SyncPlan<Item>
        var skipped: [SyncRefusal<Item.Key>] = []
        if list.order == .sortedByKey {
            let inventory = try await stage(.localInventory) { try await processor.localInventory() }
            skipped = inventory.skipped
            if inventory.order == .sortedByKey {
                plan = try await merge(&source, inventory, &selection)
            } else {
                plan = try await hash(&source, &selection) { inventory }
            }
        } else {
            // Reads the list first, so that the inventory is the more recent of the two.
            plan = try await hash(&source, &selection) {
                board?.enter(.localInventory, items: .atLeast(0))
                let inventory = try await stage(.localInventory) { try await processor.localInventory() }
                skipped = inventory.skipped
                return inventory
            }
        }
        plan.skipped = skipped
        plan.whenApplied = source.whenApplied
        plan.excludedCount = selection?.excludedCount ?? 0
        board?.enter(.plan, items: .exactly(plan.sourceCount))
        return try await stage(.plan) {
            let (described, repeated) = selection?.counting(options.duplicates) ?? ([], [])
            plan.duplicates += repeated
            if options.duplicates == .refuse, let first = plan.duplicates.first {
                throw SyncError(
                    .duplicateKeys,
                    "cannot read the remote list: it repeats \(counted(plan.duplicates.count, "key")), first “\(first)”; correct the list, or "
                        + "choose with SyncOptions.duplicates which item counts",
                    stage: .sourceList)
            }
            try await plan.settleUpdates(localEdits: options.localEdits) { try await processor.shouldUpdate($0, over: $1) }
            let downloads = plan.additions.map(\.item) + plan.updates.map(\.item)
            // Passes all items, because each may be in the way of another.
            if !downloads.isEmpty { plan.refuse(try await processor.refusals(among: downloads)) }
            if !downloads.isEmpty, options.downloadsContents { plan.take(try await processor.moves(in: plan)) }
            if selection != nil {
                let (changes, refusals) = try await processor.metadata(in: plan, of: described)
                plan.metadata = changes
                plan.refusals += refusals
                plan.refusedMetadataCount = refusals.count
            }
            // A removed item may be the previous form of a refused one.
            let mayRemove = plan.refusals.isEmpty || options.removalCondition == .despiteFailures
            plan.removesFirst = options.removalTiming == .beforeDownloads && mayRemove
            return plan
        }
    }

    private func merge(
        _ source: inout ListReading<Processor.Source.Reader>, _ inventory: LocalInventory<Item>, _ selection: inout ListSelection<Item>?
    ) async throws -> SyncPlan<Item> {
        var diff = MergeDiff<Item>(localEdits: options.localEdits, duplicates: options.duplicates)
        let nextLocal = inventory.makePages()
        while true {
            switch diff.advance() {
            case .source:
                let items = try await stage(.sourceList) { try await source.next() }
                try diff.take(source: items.map { selection?.remaining($0) ?? $0 })
            case .local:
                let entries = try await stage(.localInventory) { try await nextLocal() }
                try diff.take(local: entries.map { selection?.remaining($0) ?? $0 })
            case .nothing: return diff.finish()
            }
        }
    }

    private func hash(
        _ source: inout ListReading<Processor.Source.Reader>, _ selection: inout ListSelection<Item>?,
        inventory: () async throws -> LocalInventory<Item>
    ) async throws -> SyncPlan<Item> {
        var diff = HashedDiff<Item>(localEdits: options.localEdits, duplicates: options.duplicates)
        while let items = try await stage(.sourceList, { try await source.next() }) {
            diff.take(source: selection?.remaining(items) ?? items)
        }
        let nextLocal = try await inventory().makePages()
        while let entries = try await stage(.localInventory, { try await nextLocal() }) {
            try diff.take(local: selection?.remaining(entries) ?? entries)
        }
        return diff.finish()
    }

    private func stage<Result>(_ stage: SyncStage, _ body: () async throws -> Result) async throws -> Result {
        try await StageFailure.catching(in: stage) {
            try Task.checkCancellation()
            return try await body()
        }
    }
}

/// A mark of tasks that make a plan for a dry run, with the objects that processors keep until the plan is made.
final class DryRun: Sendable {
    /// The plan that the current task makes; `nil` in a pass.
    @TaskLocal static var current: DryRun?

    let kept = Lock<[ObjectIdentifier: any Sendable]>([:])
}

/// A reader that accepts only a complete list.
struct ListReading<Reader: SourceReader> {
    private var reader: Reader
    private let limit: Int
    private let board: ProgressBoard?
    private var count = 0
    private var pageCount = 0
    private var hasEnded = false
    /// The last page's function to call after the pass.
    private(set) var whenApplied: (@Sendable () async throws -> Void)?

    init(reader: Reader, limit: Int = .max, board: ProgressBoard?) {
        self.reader = reader
        self.limit = limit
        self.board = board
    }

    /// Returns the next items; `nil` after the source has marked the list as complete.
    mutating func next() async throws -> [Reader.Item]? {
        guard !hasEnded else { return nil }
        guard let page = try await reader.next() else {
            throw SyncError.ofList(
                .incompleteList, "it stopped after \(counted(count, "item")) without its end", remedy: "sync again")
        }
        count += page.items.count
        pageCount += 1
        // Pages count too, because a list of empty pages may not end either.
        guard max(count, pageCount) <= limit else {
            throw SyncError.ofList(
                .listLimit, "it has more than \(limit) items or pages and may never end",
                remedy: "correct the origin, or raise SyncOptions.listLimit")
        }
        board?.advance(items: page.items.count) { $0.progress.totalItems = .atLeast($0.progress.doneItems) }
        if case .complete(let expected) = page.end {
            hasEnded = true
            whenApplied = page.whenApplied
            if let expected, expected != count {
                throw SyncError.ofList(
                    .incompleteList, "it has \(counted(count, "item")) but should have \(expected)", remedy: "sync again")
            }
        }
        return page.items
    }
}

/// An error with its stage, for functions that run several stages.
struct StageFailure: Error, FailureAdvising {
    var stage: SyncStage
    var error: any Error

    var failureKind: FailureKind { FailureKind(judging: error) }
    var retryAfter: Duration? { (error as? any FailureAdvising)?.retryAfter }
    var attempts: Int { (error as? any FailureAdvising)?.attempts ?? 1 }

    /// Runs a part of a stage, and adds the stage to its error.
    static func catching<Result>(in stage: SyncStage, _ body: () async throws -> Result) async throws -> Result {
        do { return try await body() } catch { throw StageFailure(stage: stage, error: error) }
    }
}
