/// An item of the local side with its key and version.
public struct LocalEntry<Item: SyncItem>: Sendable {
    /// The key by which the item is compared with the items of the list.
    public var key: Item.Key

    /// The downloaded version; `nil` if it is unknown, so that the item counts as changed.
    public var version: Item.Version?

    /// The local size in bytes; `nil` if it is unknown.
    public var byteCount: Int64?

    /// Whether the item was edited locally since its download; `localEdits` decides what happens to it.
    public var isEdited: Bool

    /// Whether no sync has installed the item. It is replaced only if the source has an item with its key, and never removed.
    ///
    /// ``ForeignFiles/remove`` is the exception.
    public var isForeign: Bool

    /// Whether the item is removed if the source lacks it, although it is foreign.
    var isRemovable = false

    /// Creates an entry; each parameter sets the property of its name.
    public init(_ key: Item.Key, version: Item.Version?, byteCount: Int64? = nil, isEdited: Bool = false, isForeign: Bool = false) {
        self.key = key
        self.version = version
        self.byteCount = byteCount
        self.isEdited = isEdited
        self.isForeign = isForeign
    }
}

/// All items of the local side, as an array or as a stream of pages.
///
/// ```swift
/// LocalInventory(versions: [1: 7, 2: 4])
/// ```
public struct LocalInventory<Item: SyncItem>: Sendable {
    /// A function that returns the next page of a stream, and `nil` at its end.
    public typealias Pages = () async throws -> [LocalEntry<Item>]?

    let order: SourceOrder
    let makePages: @Sendable () -> Pages

    /// Local items that are missing in the inventory, because they cannot be read for example, with their reasons; reports name them.
    public var skipped: [SyncRefusal<Item.Key>] = []

    /// Creates an inventory from entries.
    ///
    /// - Parameters:
    ///   - entries: The entries, each key once.
    ///   - order: The order of the entries.
    public init(_ entries: [LocalEntry<Item>], order: SourceOrder = .unsorted) {
        self.init(order: order) {
            var rest: [LocalEntry<Item>]? = entries
            return { rest.take() }
        }
    }

    /// Creates an inventory from keys and versions.
    ///
    /// - Parameter versions: The versions of the local items.
    public init(versions: [Item.Key: Item.Version]) {
        self.init(versions.map { LocalEntry($0.key, version: $0.value) })
    }

    /// Creates an inventory that is read page by page, so that it is never in memory as a whole.
    ///
    /// - Parameters:
    ///   - order: The order of the entries across all pages. Both sides must be sorted to be compared as streams.
    ///   - makePages: Called each time the inventory is read; returns a function that returns the pages in turn, and `nil` at the end.
    public init(order: SourceOrder, makePages: @escaping @Sendable () -> Pages) {
        self.order = order
        self.makePages = makePages
    }
}
