internal import StoreCore

/// A comparison of two sides in any order; keeps the source and the differing local entries in memory.
///
/// The complete source comes first, then the local side.
struct HashedDiff<Item: SyncItem>: Sendable {
    /// The relation between an item and its local entry.
    private enum Match: UInt8 {
        case missing, same, different
    }

    private var builder: PlanBuilder<Item>
    /// The items in the order in which their keys first occurred, and the index of their keys.
    private var items: [Item] = []
    private var index = HashIndex()
    private var matches: [Match] = []
    private var partners: [Int: LocalEntry<Item>] = [:]
    private var gone: [LocalEntry<Item>] = []
    private var goneKeys: Set<Item.Key> = []

    init(localEdits: LocalEdits, duplicates: DuplicateKeys) {
        builder = PlanBuilder(localEdits: localEdits, duplicates: duplicates)
    }

    mutating func take(source page: [Item]) {
        for item in page {
            let key = item.key
            let hash = HashIndex.hash(key)
            if let place = place(of: key, hash: hash) {
                builder.duplicated(key)
                if builder.duplicates == .keepLast { items[place] = item }
            } else {
                index.insert(hash, at: items.count)
                items.append(item)
                matches.append(.missing)
            }
        }
    }

    private func place(of key: Item.Key, hash: UInt32) -> Int? {
        let place = index.position(hash) { items[$0].key == key }
        return place < 0 ? nil : place
    }

    mutating func take(local page: [LocalEntry<Item>]) throws(SyncError) {
        for entry in page {
            guard let place = place(of: entry.key, hash: HashIndex.hash(entry.key)) else {
                guard goneKeys.insert(entry.key).inserted else { throw .duplicated(entry.key) }
                gone.append(entry)
                continue
            }
            guard matches[place] == .missing else { throw .duplicated(entry.key) }
            if entry.isSame(as: items[place]) {
                matches[place] = .same
            } else {
                matches[place] = .different
                partners[place] = entry
            }
        }
    }

    consuming func finish() -> SyncPlan<Item> {
        for place in items.indices {
            switch matches[place] {
            case .same: builder.same()
            case .missing: builder.added(items[place])
            case .different:
                if let entry = partners[place] { builder.paired(items[place], entry) }
            }
        }
        for entry in gone { builder.gone(entry) }
        return builder.plan
    }
}

extension SyncError {
    /// Reports a key that the local inventory contains twice.
    static func duplicated(_ key: some Hashable) -> SyncError {
        SyncError(
            .duplicateKeys, "cannot read the local inventory: it contains the key “\(key)” twice; return each key once",
            stage: .localInventory)
    }
}
