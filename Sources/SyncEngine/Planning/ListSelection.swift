internal import StoreCore

/// The roles of an item in a pass.
public struct ItemRoles: OptionSet, Hashable, Sendable {
    /// One bit for each role.
    public let rawValue: Int

    /// Creates a set of roles from bits.
    public init(rawValue: Int) { self.rawValue = rawValue }

    /// The item is compared by its version, downloaded and removed.
    public static let content = ItemRoles(rawValue: 1 << 0)
    /// The item is given to `metadata(in:of:)`.
    public static let metadata = ItemRoles(rawValue: 1 << 1)
}

/// Leaves out what a processor excludes, on both sides, and counts it; sets aside the items with metadata.
final class ListSelection<Item: SyncItem>: Sendable {
    private let excludes: (@Sendable (Item.Key) -> Bool)?
    private let roles: (@Sendable (Item) -> ItemRoles)?
    private let excluded = Lock(0)
    private let withMetadata = Lock<[Item]>([])

    /// Creates a selection; `nil` if every item takes part with its content only.
    init?(excludes: (@Sendable (Item.Key) -> Bool)?, roles: (@Sendable (Item) -> ItemRoles)?) {
        guard excludes != nil || roles != nil else { return nil }
        self.excludes = excludes
        self.roles = roles
    }

    /// Returns the items of the source that are compared by their versions.
    func remaining(_ page: [Item]) -> [Item] {
        var rest = page
        if let excludes {
            rest = page.filter { !excludes($0.key) }
            if rest.count < page.count { excluded.withLock { $0 += page.count - rest.count } }
        }
        // Most lists have no metadata, and their pages are not copied.
        guard let roles, rest.contains(where: { roles($0) != .content }) else { return rest }
        let described = rest.filter { roles($0).contains(.metadata) }
        withMetadata.withLock { $0 += described }
        return rest.filter { roles($0).contains(.content) }
    }

    /// Returns the local entries that are not excluded.
    func remaining(_ page: [LocalEntry<Item>]) -> [LocalEntry<Item>] {
        guard let excludes else { return page }
        return page.filter { !excludes($0.key) }
    }

    /// The number of excluded items of the source.
    var excludedCount: Int { excluded.withLock { $0 } }

    /// The items of the source with the role `metadata`.
    var described: [Item] { withMetadata.withLock { $0 } }
}
