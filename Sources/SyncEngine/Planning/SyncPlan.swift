/// What a pass would do, and why: what is new, what has changed, what is gone.
///
/// ```swift
/// let plan = try await synchronizer.plan()
/// for update in plan.updates { print("\(update.item.key): \(update.reason)") }
/// ```
///
/// Items that are as the source has them are counted, not listed.
public struct SyncPlan<Item: SyncItem>: Sendable {
    /// An item that is downloaded.
    public struct Download: Sendable {
        /// The item as the source has it.
        public let item: Item
        /// The item as it is here; `nil` where it is new.
        public let local: LocalEntry<Item>?
        /// Why it is downloaded.
        public let reason: DownloadReason
    }

    /// Why an item is downloaded.
    public enum DownloadReason: Hashable, Sendable {
        /// It is not here.
        case missing
        /// The source has another version.
        case changed
        /// It is here in a version that nobody knows.
        case unknownVersion
        /// Somebody has edited it here, and edits are overwritten.
        case editedLocally
    }

    /// A local item that is removed.
    public struct Removal: Sendable {
        /// The item as it is here.
        public let local: LocalEntry<Item>
        /// Why it is removed.
        public let reason: RemovalReason
    }

    /// Why an item is removed.
    public enum RemovalReason: Hashable, Sendable {
        /// The source no longer has it.
        case notInSource
        /// The source no longer has it; somebody has edited it here, and edits are overwritten.
        case editedLocally
    }

    /// Items that are new, in the source's order.
    public internal(set) var additions: [Download] = []
    /// Items that have changed, in the source's order.
    public internal(set) var updates: [Download] = []
    /// Items that are gone.
    public internal(set) var removals: [Removal] = []
    /// The additions and updates in the order in which they are downloaded, without those that the processor leaves out.
    public internal(set) var downloads: [Download] = []
    /// Items that `prepareDownload(_:)` has left out of the downloads.
    public internal(set) var leftOut: [Item.Key] = []
    /// Whether `plan()` made the plan, which is then shown and not carried out.
    public internal(set) var isDryRun = false
    /// How many items are as the source has them.
    public internal(set) var unchangedCount = 0
    /// Local edits that are kept, although the source has another version or none.
    public internal(set) var keptEdits: [Item.Key] = []
    /// Keys that the source has more than once; all but one item of each are left out.
    public internal(set) var duplicates: [Item.Key] = []
    /// Items that cannot be put in place here.
    public internal(set) var refusals: [SyncRefusal<Item.Key>] = []
    /// What the local side has and could not be looked at; it is left alone.
    public internal(set) var skipped: [SyncRefusal<Item.Key>] = []
    /// How many of the refused items are here in another version: they have changed all the same.
    var refusedUpdateCount = 0
    /// Items whose download began while the list was read, and those of them that are done.
    var begun: Set<Item.Key> = []
    var done: Set<Item.Key> = []
    /// How many items the source has, duplicates left out.
    public internal(set) var sourceCount = 0
    /// How many items are here.
    public internal(set) var localCount = 0
    /// Why the safety gate would not let this plan pass; `nil` where it would.
    public internal(set) var gateRefusal: SyncError?

    init() {}

    /// Whether there is nothing to do.
    public var isEmpty: Bool { additions.isEmpty && updates.isEmpty && removals.isEmpty && refusals.isEmpty }

    /// The bytes of all downloads; `nil` where an item's size is not known.
    public var downloadBytes: Int64? { Self.sum(downloads.lazy.map(\.item.byteCount)) }

    /// Puts additions and updates in order; those that began while the list was read are past ordering.
    mutating func arrangeDownloads(by order: DownloadOrder) {
        downloads = additions + updates
        if !begun.isEmpty { downloads.removeAll { begun.contains($0.item.key) } }
        order.sort(&downloads)
    }

    /// Takes the downloads that the processor has chosen, each once, and forgets any that the plan did not have.
    mutating func choose(_ chosen: [Download]) {
        var open = Set(downloads.lazy.map(\.item.key))
        let known = Dictionary(downloads.lazy.map { ($0.item.key, $0) }, uniquingKeysWith: { first, _ in first })
        downloads = chosen.compactMap { open.remove($0.item.key) == nil ? nil : known[$0.item.key] }
        guard !open.isEmpty else { return }
        leftOut = (additions + updates).lazy.map(\.item.key).filter { open.contains($0) }
        additions.removeAll { open.contains($0.item.key) }
        updates.removeAll { open.contains($0.item.key) }
    }

    /// How much is removed, in bytes; `nil` where an item's size is not known.
    public var removalBytes: Int64? { Self.sum(removals.lazy.map(\.local.byteCount)) }

    /// The sum of sizes; held at the largest number, for a list may announce anything.
    static func sum(_ sizes: some Sequence<Int64?>) -> Int64? {
        var total: Int64 = 0
        for size in sizes {
            guard let size else { return nil }
            let (sum, overflow) = total.addingReportingOverflow(max(0, size))
            total = overflow ? .max : sum
        }
        return total
    }
}
