/// Leaves out what a processor excludes, on both sides, and counts it; sets aside the items with metadata.
struct ListSelection<Item: SyncItem> {
    private let excludes: (@Sendable (Item.Key) -> Bool)?
    private let roles: (@Sendable (Item) -> (hasContent: Bool, hasMetadata: Bool))?
    /// The number of excluded items of the source.
    private(set) var excludedCount = 0
    private var described: [Item] = []

    /// Creates the selection of a processor; `nil` if every item takes part with its content only.
    init?(_ processor: some SyncProcessor<Item>) {
        excludes = processor.excludes
        roles = processor.roles
        if excludes == nil, roles == nil { return nil }
    }

    /// Returns the items of the source that are compared by their versions.
    mutating func remaining(_ page: [Item]) -> [Item] {
        var rest = page
        if let excludes {
            rest = page.filter { !excludes($0.key) }
            excludedCount += page.count - rest.count
        }
        // Most lists have no metadata, and their pages are not copied.
        guard let roles, rest.contains(where: { roles($0) != (true, false) }) else { return rest }
        described += rest.lazy.filter { roles($0).hasMetadata }
        return rest.filter { roles($0).hasContent }
    }

    /// Returns the items with metadata that count, each key once, and the repeated keys of items without content.
    func counting(_ rule: DuplicateKeys) -> (items: [Item], repeated: [Item.Key]) {
        var (seen, repeated): (Set<Item.Key>, [Item.Key]) = ([], [])
        let items = (rule == .keepLast ? described.reversed() : described).filter { item in
            if seen.insert(item.key).inserted { return true }
            // The comparison of the contents reports the others.
            if roles?(item).hasContent == false { repeated.append(item.key) }
            return false
        }
        return (items, repeated)
    }

    func remaining(_ page: [LocalEntry<Item>]) -> [LocalEntry<Item>] {
        guard let excludes else { return page }
        return page.filter { !excludes($0.key) }
    }
}
