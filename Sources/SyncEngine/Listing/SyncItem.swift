/// An item of the remote list, with a key and a version.
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
///
/// <doc:GettingStarted> shows how to make a collection of items equal to a list.
public protocol SyncItem<Key, Version>: Sendable {
    /// The type of the keys; its order is the order of sorted lists.
    associatedtype Key: Hashable & Comparable & Sendable
    /// The type of the versions: a revision, an entity tag, a digest. Versions are only compared for equality.
    associatedtype Version: Hashable & Sendable

    /// The key that identifies the item on both sides.
    var key: Key { get }

    /// The version of this item at the origin.
    var version: Version { get }

    /// The download size of this item in bytes; `nil` if it is unknown.
    var byteCount: Int64? { get }
}

extension SyncItem {
    /// The default: unknown, so the progress has no total of bytes.
    public var byteCount: Int64? { nil }
}
