internal import StoreCore

/// Leaves out what a processor excludes, on both sides, and counts it.
final class Exclusion<Item: SyncItem>: Sendable {
    private let excludes: @Sendable (Item.Key) -> Bool
    private let excluded = Lock(0)

    init(_ excludes: @escaping @Sendable (Item.Key) -> Bool) {
        self.excludes = excludes
    }

    /// Returns the items of the source that are not excluded.
    func remaining(_ page: [Item]) -> [Item] {
        let rest = page.filter { !excludes($0.key) }
        if rest.count < page.count { excluded.withLock { $0 += page.count - rest.count } }
        return rest
    }

    /// Returns the local entries that are not excluded.
    func remaining(_ page: [LocalEntry<Item>]) -> [LocalEntry<Item>] {
        page.filter { !excludes($0.key) }
    }

    /// The number of excluded items of the source.
    var count: Int { excluded.withLock { $0 } }
}
