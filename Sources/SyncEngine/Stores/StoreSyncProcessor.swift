public import StoreCore

/// Keeps a store equal to a remote list: whoever observes a key of the store sees what a pass does to it.
///
/// ```swift
/// let processor = StoreSyncProcessor(list: OriginSource(photoListFetcher, param: album), store: photos, version: { $0.revision })
/// try await OneWaySynchronizer(processor: processor).sync()
/// ```
///
/// What is there, and in which version, is read from the store itself, so nothing else has to be kept and nothing can disagree with it.
/// Each pass therefore reads every record once, which a cacher on disk should be small enough for, and the cacher must list its keys.
///
/// All of it goes through the store: a download is published, saved in order and shared with whoever fetches the same key; a removal is
/// `clear()`, and a removed key that is still observed is fetched again, as after any `clear()`. A record that the cacher fails to save
/// is an event of the store; the next pass that does not find it downloads it again.
public struct StoreSyncProcessor<Source: SourceList, Content: Sendable>: SyncProcessor {
    /// An item of the remote list.
    public typealias Item = Source.Item

    private let list: Source
    private let store: Store<Item.Key, Content>
    private let version: @Sendable (Content) -> Item.Version?
    private let isEdited: @Sendable (Content) -> Bool
    private let download: @Sendable (Item) async throws -> Void

    /// Makes a processor that lets the store fetch the content of each item.
    ///
    /// - Parameters:
    ///   - list: The remote list; ``OriginSource`` makes one of a `Fetcher` or a `PaginationFetcher`.
    ///   - store: What is made equal to the list; its fetcher is asked for the content of each key.
    ///   - version: The version of a content; `nil` where it is not known, and then the item counts as changed.
    ///   - isEdited: Whether somebody has changed a content here since it was downloaded; by default nobody ever has.
    public init(
        list: Source, store: Store<Item.Key, Content>, version: @escaping @Sendable (_ content: Content) -> Item.Version?,
        isEdited: @escaping @Sendable (_ content: Content) -> Bool = { _ in false }
    ) {
        self.init(list: list, store: store, version: version, isEdited: isEdited) { item in
            let content = try await store[item.key].requireData(from: .origin)
            // A fetch that was running was joined, and may have begun before the origin had this version.
            if version(content) != item.version { _ = try await store[item.key].requireData(from: .origin) }
        }
    }

    /// Makes a processor of a list whose items are the content: nothing is fetched but the list.
    ///
    /// - Parameters:
    ///   - list: The remote list; ``OriginSource`` makes one of a `Fetcher` or a `PaginationFetcher`.
    ///   - store: What is made equal to the list.
    ///   - isEdited: Whether somebody has changed a content here since it was downloaded; by default nobody ever has.
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

    /// What the store has, by ascending key; records are read a few hundred at a time.
    ///
    /// - Throws: `StoreError` where the cacher cannot list its keys or cannot read a record.
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

    /// What is there for a key, valid or not: how long content may be shown is the store's affair.
    private func content(of key: Item.Key) async throws -> Content? {
        do {
            return try await store[key].requireData(from: .cache)
        } catch let error as StoreError where error.code == .noValidCache {
            return error.staleContent as? Content
        }
    }

    // MARK: Changing the store

    /// Fetches the content of an item through the store, or puts the item itself there.
    ///
    /// - Throws: What the store's fetcher threw.
    public func downloadContent(of item: Item) async throws {
        try await download(item)
    }

    /// Clears keys of the store.
    ///
    /// - Throws: `CancellationError`.
    public func remove(_ keys: Set<Item.Key>) async throws {
        for key in keys {
            try Task.checkCancellation()
            await store[key].clear()
        }
    }

    /// Whether the store still has what the plan has seen; content that is gone, or has come by an ordinary fetch, is in nobody's way.
    ///
    /// - Throws: `StoreError` where the cacher cannot read the record.
    public func isUnchanged(_ key: Item.Key, since entry: LocalEntry<Item>?) async throws -> Bool {
        guard let present = try await self.entry(of: key) else { return true }
        guard let entry else { return !present.isEdited }
        return present.version == entry.version && present.isEdited == entry.isEdited
    }
}
