/// How a pass went, or how far it has come.
public struct SyncReport: Sendable {
    /// The number of the pass, from 1, for each synchronizer.
    public internal(set) var pass: Int

    /// How far the pass has come; at the end, the last stage that counted items.
    public internal(set) var progress = SyncProgress(stage: .begin, totalItems: .exactly(0))

    /// How many items the remote list has.
    public internal(set) var sourceCount = 0
    /// How many items were there locally.
    public internal(set) var localCount = 0
    /// How many items were there already as the source has them.
    public internal(set) var unchangedCount = 0
    /// What the plan was to do, also where it was not done.
    public internal(set) var planned = Planned()
    /// How many items were new and are there now.
    public internal(set) var addedCount = 0
    /// How many items had changed and are up to date now.
    public internal(set) var updatedCount = 0
    /// How many items were removed.
    public internal(set) var removedCount = 0
    /// How many previews were downloaded.
    public internal(set) var previewCount = 0
    /// How many bytes the items take that were downloaded, as the remote list says; it stays 0 where that gives no sizes.
    public internal(set) var downloadedBytes: Int64 = 0

    /// How many items of the plan were not downloaded, whether they failed or nobody tried.
    public internal(set) var pendingDownloadCount = 0
    /// Items that `prepareDownload(_:)` has left out of the downloads; the next pass plans them again.
    public internal(set) var leftOut: [SyncKey] = []
    /// What should have been removed and was not; the next pass does it.
    public internal(set) var pendingRemovals: [SyncKey] = []
    /// Local edits that were met: kept or overwritten, as `localEdits` says.
    public internal(set) var localEdits: [SyncKey] = []
    /// Local files or directories that could not be looked at, each with the reason; they are left alone, and no failure.
    public internal(set) var skipped: [SyncFailure] = []
    /// Keys that the remote list had more than once.
    public internal(set) var duplicates: [SyncKey] = []
    /// Everything that went wrong with single items, in the order in which it did.
    public internal(set) var failures: [SyncFailure] = []

    /// How long the pass took.
    public internal(set) var duration = Duration.zero

    /// How much a plan was to do.
    public struct Planned: Hashable, Sendable {
        /// How many items were new.
        public internal(set) var additions = 0
        /// How many items had changed.
        public internal(set) var updates = 0
        /// How many items were gone.
        public internal(set) var removals = 0
    }

    init(pass: Int) {
        self.pass = pass
    }

    /// Whether everything is as the source has it now, apart from items that were left out of the downloads.
    public var isComplete: Bool { failures.isEmpty && pendingDownloadCount == 0 && pendingRemovals.isEmpty }

    /// The counts in one line.
    public var summary: String {
        var parts = ["\(addedCount) added", "\(updatedCount) updated", "\(removedCount) removed", "\(unchangedCount) unchanged"]
        if !failures.isEmpty { parts.append("\(failures.count) failed") }
        if pendingDownloadCount > 0 { parts.append("\(pendingDownloadCount) not downloaded") }
        if !leftOut.isEmpty { parts.append("\(leftOut.count) left out") }
        if !pendingRemovals.isEmpty { parts.append("\(pendingRemovals.count) removals pending") }
        if !localEdits.isEmpty { parts.append("\(localEdits.count) edited locally") }
        if !skipped.isEmpty { parts.append("\(skipped.count) skipped") }
        return parts.joined(separator: ", ")
    }
}
