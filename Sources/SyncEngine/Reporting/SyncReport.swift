/// The result of a pass, or its progress so far.
///
/// <doc:GettingStarted> shows how to read the report of a pass.
public struct SyncReport: Sendable {
    /// The number of the pass, counted from 1 for each synchronizer.
    public internal(set) var pass: Int

    /// The progress of the pass; at the end, that of the last stage that counted items.
    public internal(set) var progress = SyncProgress(stage: .begin, totalItems: .exactly(0))

    /// The number of items in the remote list.
    public internal(set) var sourceCount = 0
    /// The number of local items before the pass.
    public internal(set) var localCount = 0
    /// The number of items that needed no download: of the same version, or accepted as they are by the processor.
    public internal(set) var unchangedCount = 0
    /// The number of items that the source lacks and no sync has installed, as far as is known; they are left alone.
    ///
    /// After the loss of a directory's journal, they include the files that an earlier pass has installed.
    public internal(set) var foreignCount = 0
    /// The number of items in the remote list that the processor excludes.
    public internal(set) var excludedCount = 0
    /// The changes of the plan, including those not made.
    public internal(set) var planned = Planned()
    /// The number of downloaded items that were missing locally.
    public internal(set) var addedCount = 0
    /// The number of downloaded items that replaced a local one.
    public internal(set) var updatedCount = 0
    /// The number of local items removed because the list no longer has them.
    public internal(set) var removedCount = 0
    /// The number of items that were moved instead of downloaded, because their content existed under another key.
    public internal(set) var movedCount = 0
    /// The number of changes that needed no download, such as those of times and permissions.
    public internal(set) var metadataCount = 0
    /// The number of previews downloaded; 0 unless the options ask for previews.
    public internal(set) var previewCount = 0
    /// The size of all downloaded items in bytes, as the remote list gives it; 0 if the list has no sizes.
    public internal(set) var downloadedBytes: Int64 = 0

    /// The number of planned items that were not downloaded, either failed or not attempted.
    public internal(set) var pendingDownloadCount = 0
    /// Items that `prepareDownload(_:)` left out of the downloads; the next pass plans them again.
    public internal(set) var leftOut: [SyncKey] = []
    /// Items of the plan that were not removed; the next pass removes them.
    public internal(set) var pendingRemovals: [SyncKey] = []
    /// Local edits found by the pass; `localEdits` decides whether they are kept or overwritten.
    public internal(set) var localEdits: [SyncKey] = []
    /// Local files and directories that could not be read, or not be removed as foreign, with their reasons; they are left alone and are
    /// not failures.
    public internal(set) var skipped: [SyncFailure] = []
    /// Keys that occur more than once in the remote list.
    public internal(set) var duplicates: [SyncKey] = []
    /// All failures of single items, in the order of their occurrence; one for all items of a directory without permission.
    public internal(set) var failures: [SyncFailure] = []

    /// The time since the beginning of the pass; its whole duration once it has ended.
    public internal(set) var duration = Duration.zero

    /// The number of changes in a plan.
    public struct Planned: Hashable, Sendable {
        /// The number of items that are missing locally.
        public internal(set) var additions = 0
        /// The number of local items to replace.
        public internal(set) var updates = 0
        /// The number of local items that the list no longer has.
        public internal(set) var removals = 0
        /// The number of items with content that exists locally under another key.
        public internal(set) var moves = 0
        /// The number of changes that need no download.
        public internal(set) var metadata = 0
    }

    /// Whether the pass went through all of its stages; a pass that was refused, canceled, or failed before its plan has nothing pending.
    var hasSucceeded = false

    /// Whether the pass has ended and the local side equals the source, apart from items left out of the downloads.
    public var isComplete: Bool { hasSucceeded && failures.isEmpty && pendingDownloadCount == 0 && pendingRemovals.isEmpty }

    /// The counts in one line: additions, updates, removals and unchanged items always, all others unless they are zero.
    public var summary: String {
        let counts: [(Int, String)] = [
            (movedCount, "moved"), (metadataCount, "with new metadata"), (failures.count, "failed"),
            (pendingDownloadCount, "not downloaded"), (leftOut.count, "left out"), (pendingRemovals.count, "removals pending"),
            (localEdits.count, "edited locally"), (excludedCount, "excluded"), (foreignCount, "foreign"), (skipped.count, "skipped"),
        ]
        let parts: [String] =
            ["\(addedCount) added", "\(updatedCount) updated", "\(removedCount) removed", "\(unchangedCount) unchanged"]
            + counts.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
        return parts.joined(separator: ", ")
    }
}
