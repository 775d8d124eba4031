/// The changes that a pass would make, with the reason for each.
///
/// ```swift
/// let plan = try await synchronizer.plan()
/// for update in plan.updates { print("\(update.item.key): \(update.reason)") }
/// ```
///
/// Unchanged items are counted, not listed.
///
/// <doc:WhatIsRemoved> explains which items a plan removes.
public struct SyncPlan<Item: SyncItem>: Sendable {
    /// An item that a pass would download, with its local counterpart and the reason.
    public struct Download: Sendable {
        /// The item of the remote list, in the version to download.
        public let item: Item
        /// The local item; `nil` for an addition.
        public let local: LocalEntry<Item>?
        /// The reason for the download.
        public let reason: DownloadReason
    }

    /// The difference between an item of the list and the local side that causes a download.
    public enum DownloadReason: Hashable, Sendable {
        /// The item does not exist locally.
        case missing
        /// The local item has another version than the item in the list.
        case changed
        /// The version of the local item is unknown.
        case unknownVersion
        /// The item was edited locally, and edits are overwritten.
        case editedLocally
    }

    /// A local item that a pass would remove, and the reason.
    public struct Removal: Sendable {
        /// The local item with the version that the plan has seen.
        public let local: LocalEntry<Item>
        /// The reason for the removal.
        public let reason: RemovalReason
    }

    /// The state of a local item that causes its removal.
    public enum RemovalReason: Hashable, Sendable {
        /// The source no longer has the item.
        case notInSource
        /// The source no longer has the item, which was edited locally; edits are overwritten.
        case editedLocally
    }

    /// An item with content that exists locally under another key, so that it needs no download.
    ///
    /// The item may have been renamed, or have traded its content with another one. A move counts neither as a download nor as a removal.
    public struct Move: Sendable {
        /// The download that the move replaces: the item under its new key, with the local item that it replaces.
        public let download: Download
        /// The local item that has the content, under its old key.
        public let from: LocalEntry<Item>
        /// The removal of the old item, which is part of the move; `nil` if the source gives its key another content.
        var removal: Removal?

        /// The item of the remote list, under its new key.
        public var item: Item { download.item }
        /// The local item that has the new key and is replaced; `nil` if the key is new.
        public var local: LocalEntry<Item>? { download.local }

        /// Creates a move.
        ///
        /// - Parameters:
        ///   - download: A download of the plan.
        ///   - from: A local item with the same content, which the plan removes or replaces.
        public init(_ download: Download, from: LocalEntry<Item>) {
            self.download = download
            self.from = from
        }
    }

    /// A change that needs no download, such as one of a time or of permissions; the limits of the safety gate do not count it.
    public struct MetadataChange: Sendable {
        /// The key of the item.
        public let key: Item.Key
        /// The item of the list; `nil` if the list no longer has it.
        public let item: Item?
        /// The change in words, such as `mode 0644 → 0755`.
        public let summary: String

        /// Creates a change of the item with a key.
        public init(_ key: Item.Key, item: Item?, summary: String) {
            self.key = key
            self.item = item
            self.summary = summary
        }
    }

    /// Items that do not exist locally, in the source's order.
    public internal(set) var additions: [Download] = []
    /// Items to replace, in the source's order.
    public internal(set) var updates: [Download] = []
    /// Local items that the source no longer has.
    public internal(set) var removals: [Removal] = []
    /// Items with content that exists locally under another key; they are neither downloads nor removals.
    public internal(set) var moves: [Move] = []
    /// Changes that need no download, such as those of times and permissions.
    public internal(set) var metadata: [MetadataChange] = []
    /// The additions and updates in download order, without those that the processor leaves out.
    public internal(set) var downloads: [Download] = []
    /// Items that `prepareDownload(_:)` left out of the downloads.
    public internal(set) var leftOut: [Item.Key] = []
    /// Whether `plan()` made the plan, so that it is shown and not carried out.
    public internal(set) var isDryRun = false
    /// The number of items that need no download: of the same version, or accepted as they are by `shouldUpdate(_:over:)`.
    public internal(set) var unchangedCount = 0
    /// Local edits that are kept, although the source has another version or none.
    public internal(set) var keptEdits: [Item.Key] = []
    /// Keys that occur more than once in the source; only one item of each is used.
    public internal(set) var duplicates: [Item.Key] = []
    /// Items that the processor cannot install, with its reasons; a pass reports them as failures.
    public internal(set) var refusals: [SyncRefusal<Item.Key>] = []
    /// Local files and directories that cannot be read, or not be removed as foreign; a pass leaves them alone.
    public internal(set) var skipped: [SyncRefusal<Item.Key>] = []
    /// The list's function to call after the pass.
    var whenApplied: (@Sendable () async throws -> Void)?
    /// Whether the removals free their space before the downloads.
    var removesFirst = false
    /// The number of refused items that exist locally in another version; they count as updates for the safety gate.
    var refusedUpdateCount = 0
    /// The number of refused items without content, for which no download is pending.
    var refusedMetadataCount = 0
    /// The number of items in the source, without duplicates.
    public internal(set) var sourceCount = 0
    /// The number of items in the source that the processor excludes.
    public internal(set) var excludedCount = 0
    /// The number of local items that belong to the sync, without foreign ones.
    public internal(set) var localCount = 0
    /// The number of items that the source lacks and no sync has installed, as far as is known; a pass leaves them alone.
    ///
    /// After the loss of a directory's journal, they include the files that an earlier pass has installed.
    public internal(set) var foreignCount = 0
    /// The safety gate's refusal of this plan; `nil` if it lets the plan pass.
    public internal(set) var gateRefusal: SyncError?

    /// Whether the plan contains no changes and no refusals.
    public var isEmpty: Bool {
        additions.isEmpty && updates.isEmpty && removals.isEmpty && moves.isEmpty && metadata.isEmpty && refusals.isEmpty
    }

    /// The size of all downloads in bytes; `nil` if the size of an item is unknown.
    public var downloadBytes: Int64? { Self.sum(downloads.lazy.map(\.item.byteCount)) }

    mutating func arrangeDownloads(by order: DownloadOrder) {
        downloads = additions + updates
        order.sort(&downloads)
    }

    /// Replaces the downloads with those that the processor chose, each once; ignores items that are not in the plan.
    mutating func choose(_ chosen: [Download]) {
        var open = Set(downloads.lazy.map(\.item.key))
        let known = Dictionary(downloads.lazy.map { ($0.item.key, $0) }, uniquingKeysWith: { first, _ in first })
        downloads = chosen.compactMap { open.remove($0.item.key) == nil ? nil : known[$0.item.key] }
        guard !open.isEmpty else { return }
        leftOut = (additions + updates).lazy.map(\.item.key).filter { open.contains($0) }
        additions.removeAll { open.contains($0.item.key) }
        updates.removeAll { open.contains($0.item.key) }
    }

    /// The size of all removals in bytes; `nil` if the size of an item is unknown.
    public var removalBytes: Int64? { Self.sum(removals.lazy.map(\.local.byteCount)) }

    /// Returns the sum of sizes, saturated because a list may announce any size.
    static func sum(_ sizes: some Sequence<Int64?>) -> Int64? {
        var total: Int64 = 0
        for size in sizes {
            guard let size else { return nil }
            total = total.saturatingAdd(max(0, size))
        }
        return total
    }
}
