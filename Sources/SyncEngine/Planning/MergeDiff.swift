/// A comparison of two sides sorted by key, as streams; keeps only the current pages and the changes.
///
/// The machine names the side that it needs next, and receives the next page of that side.
struct MergeDiff<Item: SyncItem>: Sendable {
    /// The input that the comparison needs next.
    enum Want: Hashable, Sendable {
        case source, local, nothing
    }

    private var builder: PlanBuilder<Item>
    private var source: [Item] = []
    private var sourceIndex = 0
    private var hasSourceEnded = false
    private var local: [LocalEntry<Item>] = []
    private var localIndex = 0
    private var hasLocalEnded = false
    private var lastLocalKey: Item.Key?

    init(localEdits: LocalEdits, duplicates: DuplicateKeys) {
        builder = PlanBuilder(localEdits: localEdits, duplicates: duplicates)
    }

    /// The number of items and entries held in addition to the changes.
    var heldCount: Int { source.count + local.count }

    /// Adds the next items of the source; `nil` marks its end.
    mutating func take(source page: [Item]?) throws(SyncError) {
        guard let page else {
            hasSourceEnded = true
            return
        }
        source.removeSubrange(..<sourceIndex)
        sourceIndex = 0
        var last = source.last?.key ?? lastSourceKey
        for item in page {
            if let last, !(last < item.key) {
                guard last == item.key else { throw .unsorted(.sourceList, last, item.key) }
                builder.duplicated(item.key)
                if builder.duplicates == .keepLast, !source.isEmpty { source[source.count - 1] = item }
                continue
            }
            source.append(item)
            last = item.key
        }
        lastSourceKey = last
    }

    private var lastSourceKey: Item.Key?

    /// Adds the next entries of the local side; `nil` marks its end.
    mutating func take(local page: [LocalEntry<Item>]?) throws(SyncError) {
        guard let page else {
            hasLocalEnded = true
            return
        }
        local = page
        localIndex = 0
        var last = lastLocalKey
        for entry in page {
            if let last, !(last < entry.key) {
                guard last == entry.key else { throw .unsorted(.localInventory, last, entry.key) }
                throw .duplicated(entry.key)
            }
            last = entry.key
        }
        lastLocalKey = last
    }

    /// Compares until one side runs out of entries.
    mutating func advance() -> Want {
        // Holds the last item back until the next page shows that no other item has its key.
        let usable = hasSourceEnded ? source.count : source.count - 1
        while true {
            if sourceIndex >= usable, !hasSourceEnded { return .source }
            if localIndex >= local.count, !hasLocalEnded { return .local }
            let hasItem = sourceIndex < usable
            let hasEntry = localIndex < local.count
            if hasItem, hasEntry, source[sourceIndex].key == local[localIndex].key {
                builder.paired(source[sourceIndex], local[localIndex])
                sourceIndex += 1
                localIndex += 1
            } else if hasItem, !hasEntry || source[sourceIndex].key < local[localIndex].key {
                builder.added(source[sourceIndex])
                sourceIndex += 1
            } else if hasEntry {
                builder.gone(local[localIndex])
                localIndex += 1
            } else {
                return .nothing
            }
        }
    }

    consuming func finish() -> SyncPlan<Item> { builder.plan }
}

extension SyncError {
    /// Reports a side that violates its declared order.
    fileprivate static func unsorted(_ stage: SyncStage, _ first: some Any, _ second: some Any) -> SyncError {
        SyncError(
            .unsortedList,
            "cannot read the \(stage): “\(second)” comes after “\(first)”, although the order is .sortedByKey; sort it, or use .unsorted",
            stage: stage)
    }
}
