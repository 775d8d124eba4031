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
///
/// The list is as old as the beginning of its request. A change that the store accepts after that, such as an update, a removal or a
/// command that the origin has performed, is newer than the list. So is a change through a linked store, and one by another user of a
/// shared cacher once it has arrived. The pass leaves such keys alone and lists them in ``SyncReport/leftOut`` if the list would have
/// changed them; the next pass compares them. Complete items of the list do not replace content from a younger request either, including
/// that of a linked store, nor content that the origin has pushed. Only a removal while the pass fetches the key is no such change: the key
/// is wanted then, and fetched again, as after any `clear()`.
///
/// A pass compares accepted content only. Pending mutations and commands are applied on top of it, and the temporary keys of entities that
/// commands create are no local items.
///
/// <doc:GettingStarted> keeps a store equal to a list.
public struct StoreSyncProcessor<Source: SourceList, Content: Sendable>: SyncProcessor {
    /// An item of the remote list.
    public typealias Item = Source.Item

    private let list: Source
    private let store: Store<Item.Key, Content>
    private let version: @Sendable (Content) -> Item.Version?
    private let isEdited: @Sendable (Content) -> Bool
    /// Whether the items of the list are the content, so that no fetch is younger than the list.
    private let isComplete: Bool
    private let download: @Sendable (Item, ChangeWatch<Item.Key>?) async throws -> Void
    private let ages = ListAges<Item.Key>()
}

extension StoreSyncProcessor {
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
        self.init(list: list, store: store, version: version, isEdited: isEdited, isComplete: false) { item, watch in
            let content = try await store[item.key].requireData(from: .origin)
            if version(content) == item.version { return }
            // A change by a user ends the request with its own content, which another request would replace.
            if watch?.change(of: item.key) == .byUser { throw SyncError.changedLocally(.contents) }
            // The request may have joined an in-flight fetch that began before the origin had this version.
            _ = try await store[item.key].requireData(from: .origin)
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
        self.init(list: list, store: store, version: { $0.version }, isEdited: isEdited, isComplete: true) { item, watch in
            guard let watch else { return await store[item.key].update(item) }
            // Newer content that no user of this store has made stays, and the next pass compares it.
            if await !store.replace(item.key, by: item, unlessNewerThan: watch), watch.change(of: item.key) == .byUser {
                throw SyncError.changedLocally(.contents)
            }
        }
    }

    // MARK: The two sides

    /// Returns the list, and begins to note the keys that change from now on.
    public func sourceList() async throws -> Source {
        ages.begin(store.watchChanges())
        return list
    }

    /// Returns the change of a key since the list was requested; `nil` if there was none.
    private func change(of key: Item.Key) -> WatchedChange? { ages.current?.change(of: key) }

    /// Forgets which keys have changed since the list was requested.
    public func syncDidEnd(_ report: SyncReport) async { ages.end() }

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
        // Expired content counts, because the expiry concerns only the store.
        guard let content = try await store.acceptedContent(of: key) else { return nil }
        // The list cannot contain an item that was created after its request, so it must not remove the item either.
        let change = change(of: key)
        let isNewer = change == .byUser || change == .elsewhere
        return LocalEntry(key, version: version(content), isEdited: isEdited(content), isForeign: isNewer)
    }

    // MARK: Changing the store

    /// Leaves out the items that have changed since the list was requested.
    public func prepareDownload(_ plan: SyncPlan<Item>) async throws -> [SyncPlan<Item>.Download] {
        plan.downloads.filter { download in
            switch change(of: download.item.key) {
            case nil: return true
            case .fetched: return !isComplete
            // Without content here, the item has only values from linked stores.
            case .linked: return !isComplete || download.local == nil
            case .byUser, .elsewhere: return false
            }
        }
    }

    /// Fetches the content of an item through the store, or updates the store with the item.
    ///
    /// - Throws: The error of the store's fetcher.
    public func downloadContent(of item: Item) async throws {
        try await download(item, ages.current)
    }

    /// Clears keys of the store.
    ///
    /// - Throws: ``SyncError/Code/changedLocally`` if a user of the store has changed one of them since the list was requested;
    ///   `CancellationError` if the task is canceled.
    public func remove(_ keys: Set<Item.Key>) async throws {
        var isChanged = false
        for key in keys {
            try Task.checkCancellation()
            guard let watch = ages.current else {
                await store[key].clear()
                continue
            }
            if await store.replace(key, by: nil, unlessNewerThan: watch) { continue }
            // A removal by a user has nothing left to remove.
            if try await store.acceptedContent(of: key) != nil { isChanged = true }
        }
        if isChanged { throw SyncError.changedLocally(.removals) }
    }

    /// Returns whether the store's content is still as the plan recorded it.
    ///
    /// A change by a user of the store since the request of the list blocks an item. Content that has disappeared, because it was evicted
    /// for example, does not. For an item that was missing, neither does unedited content from an ordinary fetch.
    ///
    /// - Throws: `StoreError` if the cacher cannot read the record.
    public func isUnchanged(_ key: Item.Key, since entry: LocalEntry<Item>?) async throws -> Bool {
        let present = try await self.entry(of: key)
        // Last, because reading a record may wait for the cacher.
        if change(of: key) == .byUser { return false }
        guard let present else { return true }
        guard let entry else { return !present.isEdited }
        return present.version == entry.version && present.isEdited == entry.isEdited
    }
}

/// The changes of a store since each pass and each plan has requested its list.
private final class ListAges<Key: Hashable & Sendable>: Sendable {
    /// The watches of passes. A plan, which may be made beside a pass and beside other plans, keeps its own.
    private let watches = Lock<[Set<PassMark>: ChangeWatch<Key>]>([:])

    /// The changes since the calling pass or plan has requested its list; `nil` if it has not.
    var current: ChangeWatch<Key>? {
        guard let plan = DryRun.current else { return watches.withLock { $0[PassMark.all] } }
        return plan.kept.withLock { $0[ObjectIdentifier(self)] } as? ChangeWatch<Key>
    }

    func begin(_ watch: ChangeWatch<Key>) {
        guard let plan = DryRun.current else { return watches.withLock { $0[PassMark.all] = watch } }
        plan.kept.withLock { $0[ObjectIdentifier(self)] = watch }
    }

    func end() { watches.withLock { _ = $0.removeValue(forKey: PassMark.all) } }
}
