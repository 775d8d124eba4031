public import StoreCore

/// A processor that keeps a store equal to a remote list; observers of a key see its changes.
///
/// ```swift
/// let processor = StoreSyncProcessor(
///     list: OriginSource(photoListFetcher, param: album), store: photos,
///     version: { $0.revision })
/// try await OneWaySynchronizer(processor: processor).sync()
/// ```
///
/// The local items and their versions come from the store itself, so no second record can disagree with it. Each pass reads every record
/// once, so records on disk should be small. The cacher must list its keys.
///
/// All changes go through the store. A download is published, saved in order, and shared with other fetches of the same key. A removal is a
/// `clear()`; a removed key that is still observed is fetched again, as after any `clear()`. If the cacher fails to save a record, the
/// store reports an event, and the next pass downloads the item again.
public struct StoreSyncProcessor<Source: SourceList, Content: Sendable>: SyncProcessor {
    /// An item of the remote list.
    public typealias Item = Source.Item

    private let list: Source
    private let store: Store<Item.Key, Content>
    private let version: @Sendable (Content) -> Item.Version?
    private let isEdited: @Sendable (Content) -> Bool
    private let download: @Sendable (Item) async throws -> Void

    /// Creates a processor that lets the store fetch the content of each item.
    ///
    /// - Parameters:
    ///   - list: The remote list; ``OriginSource`` creates it from a `Fetcher` or a `PaginationFetcher`.
    ///   - store: The store to make equal to the list; its fetcher loads the content of each key.
    ///   - version: The version of a content; `nil` if it is unknown, so that the item counts as changed.
    ///   - isEdited: Returns whether a content was edited locally since its download; by default, no content was.
    public init(
        list: Source, store: Store<Item.Key, Content>, version: @escaping @Sendable (_ content: Content) -> Item.Version?,
        isEdited: @escaping @Sendable (_ content: Content) -> Bool = { _ in false }
    ) {
        self.init(list: list, store: store, version: version, isEdited: isEdited) { item in
            let content = try await store[item.key].requireData(from: .origin)
            // The request may have joined an in-flight fetch that began before the origin had this version.
            if version(content) != item.version { _ = try await store[item.key].requireData(from: .origin) }
        }
    }

    /// Creates a processor for a list of complete items, so that only the list is fetched.
    ///
    /// - Parameters:
    ///   - list: The remote list; ``OriginSource`` creates it from a `Fetcher` or a `PaginationFetcher`.
    ///   - store: The store to make equal to the list.
    ///   - isEdited: Returns whether a content was edited locally since its download; by default, no content was.
    public init(
        list: Source, store: Store<Item.Key, Content>, isEdited: @escaping @Sendable (_ content: Content) -> Bool = { _ in false }
    ) where Content == Source.Item {
        self.init(list: list, store: store, version: { $0.version }, isEdited: isEdited) { item in
            await store[item.key].update(item)
        }
    }

    private init(
        list: Source, store: Store<Item.Key, Content>, version: @escaping @Sendable (Content) -> Item.Version?,
        isEdited: @escaping @Sendable (Content) -> Bool, download: @escaping @Sendable (Item) async throws -> Void
    ) {
        self.list = list
        self.store = store
        self.version = version
        self.isEdited = isEdited
        self.download = download
    }

    // MARK: The two sides

    /// The remote list.
    public func sourceList() async throws -> Source { list }

    /// The items in the store, in ascending order of their keys; records are read a few hundred at a time.
    ///
    /// - Throws: `StoreError` if the cacher cannot list its keys or read a record.
    public func localInventory() async throws -> LocalInventory<Item> {
        let keys = try await store.keys().sorted()
        return LocalInventory(order: .sortedByKey) {
            var position = 0
            return {
                guard position < keys.count else { return nil }
                let page = keys[position..<min(position + Self.recordsInOnePage, keys.count)]
                position = page.endIndex
                var entries: [LocalEntry<Item>] = []
                for key in page {
                    if let entry = try await entry(of: key) { entries.append(entry) }
                }
                return entries
            }
        }
    }

    private static var recordsInOnePage: Int { 256 }

    private func entry(of key: Item.Key) async throws -> LocalEntry<Item>? {
        guard let content = try await content(of: key) else { return nil }
        return LocalEntry(key, version: version(content), isEdited: isEdited(content))
    }

    /// Returns the content of a key, even if it has expired, because the expiry concerns only the store.
    private func content(of key: Item.Key) async throws -> Content? {
        do {
            return try await store[key].requireData(from: .cache)
        } catch let error as StoreError where error.code == .noValidCache {
            return error.staleContent as? Content
        }
    }

    // MARK: Changing the store

    /// Fetches the content of an item through the store, or updates the store with the item.
    ///
    /// - Throws: The error of the store's fetcher.
    public func downloadContent(of item: Item) async throws {
        try await download(item)
    }

    /// Clears keys of the store.
    ///
    /// - Throws: `CancellationError` if the task is canceled.
    public func remove(_ keys: Set<Item.Key>) async throws {
        for key in keys {
            try Task.checkCancellation()
            await store[key].clear()
        }
    }

    /// Returns whether the store's content is still as the plan recorded it.
    ///
    /// Content that has disappeared does not block an item. For an item that was missing, neither does unedited content from an ordinary
    /// fetch.
    ///
    /// - Throws: `StoreError` if the cacher cannot read the record.
    public func isUnchanged(_ key: Item.Key, since entry: LocalEntry<Item>?) async throws -> Bool {
        guard let present = try await self.entry(of: key) else { return true }
        guard let entry else { return !present.isEdited }
        return present.version == entry.version && present.isEdited == entry.isEdited
    }
}
