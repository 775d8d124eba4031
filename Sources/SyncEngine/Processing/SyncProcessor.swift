/// The app's part of a synchronization: it lists both sides, and downloads and removes items.
///
/// ```swift
/// struct PhotoProcessor: SyncProcessor {
///     let api: PhotoAPI
///     let album: PhotoAlbum
///
///     func sourceList() async throws -> ListedSource<Photo> {
///         ListedSource(try await api.photos())
///     }
///     func localInventory() async throws -> LocalInventory<Photo> {
///         LocalInventory(versions: await album.versions)
///     }
///     func downloadContent(of photo: Photo) async throws {
///         await album.add(try await api.image(of: photo), for: photo)
///     }
///     func remove(_ keys: Set<Photo.Key>) async throws {
///         await album.remove(keys)
///     }
/// }
/// ```
///
/// The stages of a pass run in the order of ``SyncStage``. Downloads run concurrently with each other, and so do moves and changes of
/// metadata, all with their calls of ``isUnchanged(_:since:)``. All other calls run one at a time. A canceled call should return soon,
/// because the pass ends only after all calls have returned.
///
/// <doc:GettingStarted> writes a processor with its four methods.
public protocol SyncProcessor<Item>: Sendable {
    /// An item of the remote list.
    associatedtype Item: SyncItem
    /// The type of the remote list, which is read once per pass.
    associatedtype Source: SourceList<Item>

    // MARK: Required

    /// The remote list; a pass reads all of it before it replaces or removes anything.
    ///
    /// - Throws: Any error of requesting the list; transient failures are retried.
    func sourceList() async throws -> Source

    /// The items that exist locally, with their versions.
    ///
    /// - Throws: Any error that prevents listing the items. Never return an empty inventory instead.
    func localInventory() async throws -> LocalInventory<Item>

    /// Downloads an item and installs it completely or not at all.
    ///
    /// - Parameter item: The item, new or changed.
    /// - Throws: Any error; its `FailureAdvising` kind decides whether it is retried, reported, or ends the pass.
    func downloadContent(of item: Item) async throws

    /// Removes items that the remote list no longer has; an item that does not exist counts as removed.
    ///
    /// - Parameter keys: The items' keys, a few hundred at most.
    /// - Throws: Any error; unless it is fatal, the keys are then retried one by one, so that the report can name those that cannot be
    ///   removed.
    func remove(_ keys: Set<Item.Key>) async throws

    // MARK: Optional

    /// Returns whether an item takes no part in a pass, by its key: it is neither downloaded nor removed. `nil` excludes nothing.
    ///
    /// The function is applied to the items of both sides. It must return the same result for a key during the whole pass.
    var excludes: (@Sendable (Item.Key) -> Bool)? { get }

    /// Returns whether an item is compared and downloaded, and whether it is given to `metadata(in:of:)`; `nil` if all items have only
    /// content.
    var roles: (@Sendable (Item) -> (hasContent: Bool, hasMetadata: Bool))? { get }

    /// Begins a pass, before any other call; `syncDidEnd(_:)` is always called afterward, even if this method throws.
    ///
    /// - Throws: An error that makes the pass fail before it reads anything.
    func syncWillBegin() async throws

    /// Ends the work of a pass without failures, after its last removal; not called after a failure or cancellation.
    ///
    /// Use it to detect that the local side differs from the report, for example because a disk was unmounted or cannot be flushed. A pass
    /// with failures throws ``SyncError/Code/incomplete`` without this call, because its error already states that the sides differ. Put
    /// work that every pass must do into ``syncDidEnd(_:)``.
    ///
    /// - Throws: An error that makes the pass fail in the stage ``SyncStage/end``.
    func syncWillEnd() async throws

    /// Ends a pass, once and after all other calls, even after a failure or cancellation; its own task is not canceled.
    ///
    /// - Parameter report: The result of the pass.
    func syncDidEnd(_ report: SyncReport) async

    /// Returns whether an item with a different or unknown version must be downloaded.
    ///
    /// - Parameters:
    ///   - item: The item in the list.
    ///   - local: The local item.
    /// - Returns: `false` to count the item as unchanged.
    /// - Throws: An error that prevents the decision; the pass then changes nothing.
    func shouldUpdate(_ item: Item, over local: LocalEntry<Item>) async throws -> Bool

    /// Returns the items that cannot be installed, before they are downloaded.
    ///
    /// - Parameter items: The items that the plan would download.
    /// - Returns: The refused items with their reasons; the report names them.
    /// - Throws: An error that prevents the decision; the pass then changes nothing.
    func refusals(among items: [Item]) async throws -> [SyncRefusal<Item.Key>]

    /// Returns the downloads whose content exists locally under another key, in the plan's removals or updates.
    ///
    /// Called for a pass and for a dry run, which must not change anything.
    ///
    /// - Parameter plan: The additions, updates and removals.
    /// - Returns: The moves; each download and each local item is used at most once, and any other move is ignored.
    /// - Throws: An error that prevents the decision; the pass then changes nothing.
    func moves(in plan: SyncPlan<Item>) async throws -> [SyncPlan<Item>.Move]

    /// Holds the content of a move, so that it survives the replacement of the old item; all contents are held before the first move.
    ///
    /// - Parameter move: A move of `moves(in:)`; its old item is unchanged.
    /// - Returns: `false` if the content cannot be held; the item is then downloaded, and the old one removed.
    /// - Throws: An error, which counts as `false` unless its kind is fatal.
    func holdContent(of move: SyncPlan<Item>.Move) async throws -> Bool

    /// Installs a held content under its new key, completely or not at all; `remove(_:)` removes the old item later.
    ///
    /// - Parameter move: A move with held content.
    /// - Throws: Any error; its `FailureAdvising` kind decides whether it is retried, reported, or ends the pass.
    func move(_ move: SyncPlan<Item>.Move) async throws

    /// Returns the changes that need no download, such as those of times and permissions; a dry run must not change anything.
    ///
    /// - Parameters:
    ///   - plan: The additions, updates, removals and moves, which are made before these changes.
    ///   - items: The items of the list with metadata, each key once.
    /// - Returns: The changes, and the items that cannot be installed with their reasons.
    /// - Throws: An error that prevents the decision; the pass then changes nothing.
    func metadata(
        in plan: SyncPlan<Item>, of items: [Item]
    ) async throws -> (changes: [SyncPlan<Item>.MetadataChange], refusals: [SyncRefusal<Item.Key>])

    /// Makes a change of `metadata(in:of:)`: before the moves if the list no longer has the item, otherwise after the removals.
    ///
    /// - Parameter change: The change.
    /// - Throws: Any error; its `FailureAdvising` kind decides whether it is retried, reported, or ends the pass.
    func apply(_ change: SyncPlan<Item>.MetadataChange) async throws

    /// Returns a reason why a plan must not be carried out, in addition to the rules of the safety gate; `nil` lets the plan pass.
    ///
    /// - Parameter plan: The plan of a pass or of a dry run.
    /// - Throws: An error that prevents the decision; the pass then changes nothing.
    func refusal(of plan: SyncPlan<Item>) async throws -> SyncError?

    /// Chooses the downloads and their order, after the safety gate and before all downloads.
    ///
    /// A method of this name without a return value does not implement this requirement, and is never called.
    ///
    /// ``OneWaySynchronizer/plan()`` calls it too, so that it shows what a pass would do. ``SyncPlan/isDryRun`` is then true, a pass may
    /// not have begun, and the processor must not change anything.
    ///
    /// - Parameter plan: All downloads and removals of the pass.
    /// - Returns: The downloads of ``SyncPlan/downloads`` in the order in which they begin. An omitted download is not a failure and its
    ///   item is not removed; the next pass plans it again.
    /// - Throws: An error that aborts the pass.
    func prepareDownload(_ plan: SyncPlan<Item>) async throws -> [SyncPlan<Item>.Download]

    /// Downloads a preview to show before the content; all previews end before the first content begins.
    ///
    /// - Parameter item: The item, new or changed.
    /// - Throws: Any error; its `FailureAdvising` kind decides whether it is retried, reported, or ends the pass.
    func downloadPreview(of item: Item) async throws

    /// Installs the downloads that the processor has held back, after the last download of the pass.
    ///
    /// A processor that must examine several downloads before it installs any keeps them until this call. If the pass was canceled, the
    /// task of this call is canceled too, and the processor returns all items that it holds back.
    ///
    /// - Parameter overrides: The refusals that are overridden for this run.
    /// - Returns: The items that were not installed, with their reasons. If a reason is a ``SyncError`` with the code
    ///   ``SyncError/Code/sharedContent``, the pass fails with it. Any other reason is a failure of its item.
    /// - Throws: An error that aborts the pass.
    func installDownloads(overriding overrides: SyncOverrides) async throws -> [SyncRefusal<Item.Key>]

    /// Returns whether a local item is still as the plan recorded it; called just before the item is replaced or removed.
    ///
    /// - Parameters:
    ///   - key: The key of the item.
    ///   - entry: The item as the plan recorded it; `nil` if it did not exist.
    /// - Returns: `false` to leave the item alone and report it.
    /// - Throws: An error that prevents the decision; the item is left alone.
    func isUnchanged(_ key: Item.Key, since entry: LocalEntry<Item>?) async throws -> Bool
}

extension SyncProcessor {
    /// The default: excludes no item.
    public var excludes: (@Sendable (Item.Key) -> Bool)? { nil }
    /// The default: every item has content and nothing else.
    public var roles: (@Sendable (Item) -> (hasContent: Bool, hasMetadata: Bool))? { nil }
    /// The default: finds no changes.
    public func metadata(
        in plan: SyncPlan<Item>, of items: [Item]
    ) async throws -> (changes: [SyncPlan<Item>.MetadataChange], refusals: [SyncRefusal<Item.Key>]) { ([], []) }
    /// The default: does nothing.
    public func apply(_ change: SyncPlan<Item>.MetadataChange) async throws {}
    /// The default: does nothing before a pass.
    public func syncWillBegin() async throws {}
    /// The default: does nothing at the end of a pass without failures.
    public func syncWillEnd() async throws {}
    /// The default: does nothing with the report.
    public func syncDidEnd(_ report: SyncReport) async {}
    /// Returns `true`: a different or unknown version is downloaded.
    public func shouldUpdate(_ item: Item, over local: LocalEntry<Item>) async throws -> Bool { true }
    /// The default: refuses no item, so all of them are downloaded.
    public func refusals(among items: [Item]) async throws -> [SyncRefusal<Item.Key>] { [] }
    /// Returns all downloads in the order of the options.
    public func prepareDownload(_ plan: SyncPlan<Item>) async throws -> [SyncPlan<Item>.Download] { plan.downloads }
    /// The default: finds no moves, so every new or changed item is downloaded.
    public func moves(in plan: SyncPlan<Item>) async throws -> [SyncPlan<Item>.Move] { [] }
    /// Returns `false`: the item is downloaded.
    public func holdContent(of move: SyncPlan<Item>.Move) async throws -> Bool { false }
    /// The default: moves nothing, because no content is held.
    public func move(_ move: SyncPlan<Item>.Move) async throws {}
    /// Returns `nil`: the safety gate alone decides.
    public func refusal(of plan: SyncPlan<Item>) async throws -> SyncError? { nil }
    /// Installs nothing, because nothing is held back.
    public func installDownloads(overriding overrides: SyncOverrides) async throws -> [SyncRefusal<Item.Key>] { [] }
    /// The default: downloads nothing; called only if `SyncOptions.downloadsPreviews` is set.
    public func downloadPreview(of item: Item) async throws {}
    /// Returns `true`: nothing else changes the local side.
    public func isUnchanged(_ key: Item.Key, since entry: LocalEntry<Item>?) async throws -> Bool { true }
}

/// An item that cannot be installed, with the reason.
public struct SyncRefusal<Key: Hashable & Sendable>: Sendable {
    /// The key of the item that is not installed.
    public var key: Key
    /// The reason, which the report gives for the item.
    public var error: any Error

    /// Creates a refusal of an item, with the reason.
    public init(_ key: Key, because error: any Error) {
        self.key = key
        self.error = error
    }
}
