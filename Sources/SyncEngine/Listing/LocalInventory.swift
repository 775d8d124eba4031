/// One item of the local side: its key, and what is known of its version.
public struct LocalEntry<Item: SyncItem>: Sendable {
    /// What names the item.
    public var key: Item.Key

    /// The version that was downloaded; `nil` where it is not known, and then the item counts as changed.
    public var version: Item.Version?

    /// How many bytes it takes locally; `nil` where that is not known.
    public var byteCount: Int64?

    /// Whether somebody has changed it here since it was downloaded; `localEdits` decides what becomes of it.
    public var isEdited: Bool

    /// Whether no sync has put it here: it is never removed, and only replaced where the source has an item of this key.
    public var isForeign: Bool

    /// Makes an entry.
    ///
    /// - Parameters:
    ///   - key: What names the item.
    ///   - version: The version that was downloaded.
    ///   - byteCount: How many bytes it takes locally.
    ///   - isEdited: Whether somebody has changed it here.
    ///   - isForeign: Whether no sync has put it here.
    public init(_ key: Item.Key, version: Item.Version?, byteCount: Int64? = nil, isEdited: Bool = false, isForeign: Bool = false) {
        self.key = key
        self.version = version
        self.byteCount = byteCount
        self.isEdited = isEdited
        self.isForeign = isForeign
    }
}

/// Everything that is there locally, as an array or as a stream of pages.
///
/// ```swift
/// LocalInventory(versions: [1: 7, 2: 4])
/// ```
public struct LocalInventory<Item: SyncItem>: Sendable {
    /// One page of a stream; `nil` where it has ended.
    public typealias Pages = () async throws -> [LocalEntry<Item>]?

    let order: SourceOrder
    let makePages: @Sendable () -> Pages

    /// What the local side has and the inventory does not, because it cannot be looked at, each with the reason; reports name it.
    public var skipped: [SyncRefusal<Item.Key>] = []

    /// Makes an inventory of entries.
    ///
    /// - Parameters:
    ///   - entries: The entries, each key once.
    ///   - order: In which order they come.
    public init(_ entries: [LocalEntry<Item>], order: SourceOrder = .unsorted) {
        self.init(order: order) {
            var rest: [LocalEntry<Item>]? = entries
            return {
                defer { rest = nil }
                return rest
            }
        }
    }

    /// Makes an inventory of keys and versions.
    ///
    /// - Parameter versions: The version of each item that is there.
    public init(versions: [Item.Key: Item.Version]) {
        self.init(versions.map { LocalEntry($0.key, version: $0.value) })
    }

    /// Makes an inventory that is read page by page, so that it never has to be in memory as a whole.
    ///
    /// - Parameters:
    ///   - order: In which order the entries come, over all pages; only where both sides are sorted are they compared as streams.
    ///   - makePages: Called for each reading; returns what gives the pages one after another and `nil` at the end.
    public init(order: SourceOrder, makePages: @escaping @Sendable () -> Pages) {
        self.order = order
        self.makePages = makePages
    }
}
