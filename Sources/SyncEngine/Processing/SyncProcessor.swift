/// What a synchronizer does its work with: where the list comes from, what is there locally, and how one item is got or removed.
///
/// ```swift
/// struct PhotoProcessor: SyncProcessor {
///     let api: PhotoAPI
///     let album: PhotoAlbum
///
///     func sourceList() async throws -> ListedSource<Photo> { ListedSource(try await api.photos()) }
///     func localInventory() async throws -> LocalInventory<Photo> { LocalInventory(versions: await album.versions) }
///     func downloadContent(of photo: Photo) async throws { await album.add(try await api.image(of: photo), for: photo) }
///     func remove(_ keys: Set<Photo.Key>) async throws { await album.remove(keys) }
/// }
/// ```
///
/// The stages of a pass come in the order of ``SyncStage``. Downloads run side by side, everything else one at a time; with
/// ``SyncOptions/startsEarly`` downloads run beside the reading of the list too. A call that is
/// cancelled should return soon; until all calls have returned, the pass has not ended.
public protocol SyncProcessor<Item>: Sendable {
    /// An item of the remote list.
    associatedtype Item: SyncItem
    /// The remote list.
    associatedtype Source: SourceList<Item>

    // MARK: Required

    /// The remote list; it is read to its end before anything is changed.
    ///
    /// - Throws: Whatever the list cannot be had for; transient failures are tried again.
    func sourceList() async throws -> Source

    /// What is there locally.
    ///
    /// - Throws: Whatever it cannot be told for. Never return an empty inventory instead.
    func localInventory() async throws -> LocalInventory<Item>

    /// Downloads an item and puts it in place, whole or not at all.
    ///
    /// - Parameter item: The item, new or changed.
    /// - Throws: What went wrong; an error that conforms to `FailureAdvising` decides by its kind what happens next.
    func downloadContent(of item: Item) async throws

    /// Removes items that the remote list no longer has; one that is gone already is removed.
    ///
    /// - Parameter keys: The items' keys, a few hundred at most.
    /// - Throws: What went wrong; the keys are then tried again one by one, so that the report can name the one that cannot be removed.
    func remove(_ keys: Set<Item.Key>) async throws

    // MARK: Optional

    /// Called before anything else, and always followed by one call of `syncDidEnd(_:)`, even if it throws.
    ///
    /// - Throws: What the pass cannot begin for.
    func syncWillBegin() async throws

    /// Called after the last removal of a pass in which nothing failed; not after a failure or cancellation.
    ///
    /// The last chance to find that the local side is not as the report will say, such as a disk that was taken away or cannot be flushed.
    /// A pass with failures throws ``SyncError/Code/incomplete`` without this call: its error already says that the local side is not as the
    /// source has it. Work that every pass must do belongs in ``syncDidEnd(_:)``.
    ///
    /// - Throws: An error that makes the pass fail in the stage ``SyncStage/end``.
    func syncWillEnd() async throws

    /// Called once after everything else, also after a failure and after cancellation; its own task is not cancelled.
    ///
    /// - Parameter report: How the pass went.
    func syncDidEnd(_ report: SyncReport) async

    /// Whether an item whose version is another one, or not known, must really be downloaded.
    ///
    /// - Parameters:
    ///   - item: The item as the list has it.
    ///   - local: The item as it is here.
    /// - Returns: `false` counts it as unchanged.
    /// - Throws: What it cannot be told for; the pass then changes nothing.
    func shouldUpdate(_ item: Item, over local: LocalEntry<Item>) async throws -> Bool

    /// Names the items that cannot be put in place here, before they are downloaded; asked page by page too where downloads start early.
    ///
    /// - Parameter items: The items that the plan would download.
    /// - Returns: Those that are refused, each with the reason; the report names them.
    /// - Throws: What it cannot be told for; the pass then changes nothing.
    func refusals(among items: [Item]) async throws -> [SyncRefusal<Item.Key>]

    /// Chooses the downloads and their order, after the safety gate and before the first download that does not start early.
    ///
    /// ``OneWaySynchronizer/plan()`` calls it too, so that it shows what a pass does; ``SyncPlan/isDryRun`` is then true, no pass may have
    /// begun, and the processor changes nothing.
    ///
    /// - Parameter plan: Everything that the pass would download and remove.
    /// - Returns: The downloads of ``SyncPlan/downloads`` in the order in which they begin. One that is left out is neither removed nor a
    ///   failure; the next pass plans it again. A method of this name that returns nothing is another method, and is never called; the
    ///   compiler points it out where the conformance is declared in an extension.
    /// - Throws: An error that ends the pass.
    func prepareDownload(_ plan: SyncPlan<Item>) async throws -> [SyncPlan<Item>.Download]

    /// Downloads what can be shown before the content is there; all previews end before the first content begins.
    ///
    /// - Parameter item: The item, new or changed.
    /// - Throws: What went wrong.
    func downloadPreview(of item: Item) async throws

    /// Puts in place the downloads that the processor has held back, after the last download of the pass has ended.
    ///
    /// A processor that has to see several downloads before it puts one in place keeps them beside their places until this call.
    /// If the pass was cancelled, the task of this call is cancelled too, and the processor returns all that it holds back.
    ///
    /// - Parameter overrides: The refusals that are overridden for this run.
    /// - Returns: The items that did not get their place, each with the reason. If the reason is a ``SyncError`` with the code
    ///   ``SyncError/Code/sharedContent``, the pass fails with it; any other is a failure of its item.
    /// - Throws: An error that ends the pass.
    func installDownloads(overriding overrides: SyncOverrides) async throws -> [SyncRefusal<Item.Key>]

    /// Whether a local item is still as the plan has seen it; asked just before the item is replaced or removed.
    ///
    /// - Parameters:
    ///   - key: What names the item.
    ///   - entry: The item as the plan has seen it; `nil` where it was not there.
    /// - Returns: `false` leaves the item alone and reports it.
    /// - Throws: What it cannot be told for; the item is left alone.
    func isUnchanged(_ key: Item.Key, since entry: LocalEntry<Item>?) async throws -> Bool
}

extension SyncProcessor {
    /// Does nothing.
    public func syncWillBegin() async throws {}
    /// Does nothing.
    public func syncWillEnd() async throws {}
    /// Does nothing.
    public func syncDidEnd(_ report: SyncReport) async {}
    /// Another version must be downloaded.
    public func shouldUpdate(_ item: Item, over local: LocalEntry<Item>) async throws -> Bool { true }
    /// Nothing is refused.
    public func refusals(among items: [Item]) async throws -> [SyncRefusal<Item.Key>] { [] }
    /// All downloads, in the order of the options.
    public func prepareDownload(_ plan: SyncPlan<Item>) async throws -> [SyncPlan<Item>.Download] { plan.downloads }
    /// Nothing is held back.
    public func installDownloads(overriding overrides: SyncOverrides) async throws -> [SyncRefusal<Item.Key>] { [] }
    /// There are no previews.
    public func downloadPreview(of item: Item) async throws {}
    /// Nobody else changes the local side.
    public func isUnchanged(_ key: Item.Key, since entry: LocalEntry<Item>?) async throws -> Bool { true }
}

/// An item that cannot be put in place, and why.
public struct SyncRefusal<Key: Hashable & Sendable>: Sendable {
    /// What names the item.
    public var key: Key
    /// Why it is refused.
    public var error: any Error

    /// Makes a refusal.
    ///
    /// - Parameters:
    ///   - key: What names the item.
    ///   - error: Why it is refused.
    public init(_ key: Key, because error: any Error) {
        self.key = key
        self.error = error
    }
}
