/// Compares two sides in any order; keeps the keys of both in memory.
struct HashedDiff<Item: SyncItem>: Sendable {
    private var builder: PlanBuilder<Item>
    private let duplicates: DuplicateKeys
    private var entries: [LocalEntry<Item>] = []
    private var places: [Item.Key: Int] = [:]
    /// The items seen so far, by key, and the order in which their keys came first.
    private var items: [Item.Key: Int] = [:]
    private var ordered: [Item] = []

    init(localEdits: LocalEdits, duplicates: DuplicateKeys) {
        builder = PlanBuilder(localEdits: localEdits, duplicates: duplicates)
        self.duplicates = duplicates
    }

    /// Takes entries of the local side.
    mutating func take(local page: [LocalEntry<Item>]) throws(SyncError) {
        for entry in page {
            guard places.updateValue(entries.count, forKey: entry.key) == nil else { throw .duplicated(entry.key) }
            entries.append(entry)
        }
    }

    /// Takes items of the source.
    mutating func take(source page: [Item]) {
        for item in page {
            if let place = items[item.key] {
                builder.duplicated(item.key)
                if duplicates == .keepLast { ordered[place] = item }
            } else {
                items[item.key] = ordered.count
                ordered.append(item)
            }
        }
    }

    /// The plan.
    consuming func finish() throws(SyncError) -> SyncPlan<Item> {
        for item in ordered {
            if let place = places[item.key] {
                builder.paired(item, entries[place])
            } else {
                builder.added(item)
            }
        }
        for entry in entries where items[entry.key] == nil { builder.gone(entry) }
        return try builder.finish()
    }
}

extension SyncError {
    /// The local side lists one key twice.
    static func duplicated(_ key: some Hashable) -> SyncError {
        SyncError(
            .duplicateKeys, "listing the local side: the key “\(key)” came twice; a local inventory has each key once",
            stage: .localInventory)
    }
}
