/// One item of the remote list: a key that names it and a version that tells when it has changed.
///
/// ```swift
/// struct Photo: SyncItem {
///     var id: Int
///     var revision: Int
///     var size: Int64
///
///     var key: Int { id }
///     var version: Int { revision }
///     var byteCount: Int64? { size }
/// }
/// ```
public protocol SyncItem<Key, Version>: Sendable {
    /// What names an item; its order is that of sorted lists.
    associatedtype Key: Hashable & Comparable & Sendable
    /// What tells that an item has changed: a revision, an entity tag, a digest. Versions are only compared for equality.
    associatedtype Version: Hashable & Sendable

    /// What names this item.
    var key: Key { get }

    /// The version of this item at the origin.
    var version: Version { get }

    /// How much is downloaded for this item, in bytes; `nil` where that is not known.
    var byteCount: Int64? { get }
}

extension SyncItem {
    /// Not known.
    public var byteCount: Int64? { nil }
}
