public import StoreCore

/// The options of a synchronizer, with their defaults in one table.
///
/// ```swift
/// var options = SyncOptions()
/// options.downloadsPreviews = true
/// options.stopsOnError = false
/// ```
///
/// <doc:WhatIsRemoved> explains the limits, and <doc:ErrorsAndRetries> the retries.
public struct SyncOptions: Sendable {
    /// The largest number of concurrent downloads, at most 1 024; 0 selects twice the number of processor cores, from 4 to 16.
    ///
    /// Files of a ``DirectoryTarget`` that only wait for the disk do not count.
    public var concurrency = 0
    /// Whether previews are downloaded, all of them before the first content.
    public var downloadsPreviews = false
    /// Whether contents are downloaded; with `false`, a pass downloads at most previews.
    public var downloadsContents = true
    /// Whether the first failed item ends the pass, in every stage; otherwise failures are collected and the pass continues.
    public var stopsOnError = true
    /// The time at which items that the source no longer has are removed.
    public var removalTiming = RemovalTiming.afterDownloads
    /// The condition under which a pass with failed downloads removes items.
    public var removalCondition = RemovalCondition.afterSuccess
    /// The largest number of local items that one pass may remove.
    public var removalLimit = ChangeLimit.share(0.5)
    /// The largest number of local items that one pass may replace.
    public var updateLimit = ChangeLimit.share(0.5)
    /// The largest number of items and pages of the remote list; a longer list is refused. One million by default.
    ///
    /// An origin whose list never ends would otherwise fill the memory.
    public var listLimit = 1_000_000
    /// The policy for retries after transient failures.
    public var retry = RetryPolicy.exponential(attempts: 3)
    /// The order in which the downloads begin; additions before updates, in the order of the list, by default.
    public var order = DownloadOrder.asListed
    /// The treatment of items that were edited locally.
    public var localEdits = LocalEdits.overwrite
    /// The treatment of a list that contains a key more than once.
    public var duplicates = DuplicateKeys.refuse
    /// The minimum time between two publications of progress, apart from changes of the stage.
    public var progressInterval = Duration.milliseconds(100)

    /// Creates options; each parameter sets the property of its name.
    public init(
        concurrency: Int = 0, downloadsPreviews: Bool = false, downloadsContents: Bool = true, stopsOnError: Bool = true,
        removalTiming: RemovalTiming = .afterDownloads, removalCondition: RemovalCondition = .afterSuccess,
        removalLimit: ChangeLimit = .share(0.5), updateLimit: ChangeLimit = .share(0.5), listLimit: Int = 1_000_000,
        retry: RetryPolicy = .exponential(attempts: 3), order: DownloadOrder = .asListed, localEdits: LocalEdits = .overwrite,
        duplicates: DuplicateKeys = .refuse
    ) {
        self.concurrency = concurrency
        self.downloadsPreviews = downloadsPreviews
        self.downloadsContents = downloadsContents
        self.stopsOnError = stopsOnError
        self.removalTiming = removalTiming
        self.removalCondition = removalCondition
        self.removalLimit = removalLimit
        self.updateLimit = updateLimit
        self.listLimit = listLimit
        self.retry = retry
        self.order = order
        self.localEdits = localEdits
        self.duplicates = duplicates
    }
}

/// The condition under which a pass with failed downloads removes the items that the source no longer has.
public enum RemovalCondition: Hashable, Sendable {
    /// All downloads must have succeeded. Otherwise the removals stay pending, because a removed item may be an earlier form of a failed one.
    case afterSuccess
    /// Failed and refused downloads do not matter, so that one item that can never be downloaded does not hold up all removals.
    ///
    /// The removals must pass the safety gate as always. A failure that ends the pass still prevents them: a fatal one, or any with
    /// ``SyncOptions/stopsOnError``.
    case despiteFailures
}

/// The time at which items that the source no longer has are removed.
public enum RemovalTiming: Hashable, Sendable {
    /// After all downloads, and by default only if every download succeeded.
    ///
    /// ``SyncOptions/removalCondition`` is the option.
    case afterDownloads
    /// Before the first download, to free space.
    case beforeDownloads
}

/// The order of the downloads.
///
/// ```swift
/// options.order = .by { (photo: Photo) in photo.revision }
/// ```
public struct DownloadOrder: Sendable {
    private enum Rule: Sendable {
        case asListed, byKey, smallestFirst, largestFirst
        /// A `Ranking` of the type of the items.
        case by(any Sendable)
    }

    private struct Ranking<Item: SyncItem>: Sendable {
        let sort: @Sendable (inout [SyncPlan<Item>.Download]) -> Void
    }

    private let rule: Rule

    /// In the order of the source, additions before updates.
    public static let asListed = DownloadOrder(rule: .asListed)
    /// In ascending order of the keys.
    public static let byKey = DownloadOrder(rule: .byKey)
    /// Smallest items first; items of unknown size last.
    public static let smallestFirst = DownloadOrder(rule: .smallestFirst)
    /// Largest items first; items of unknown size last.
    public static let largestFirst = DownloadOrder(rule: .largestFirst)

    /// In ascending order of a rank; items with equal ranks keep the order of the source.
    ///
    /// - Parameter rank: Returns the rank of an item; called once per download. The item must be of the processor's type, which the
    ///   synchronizer checks when it is created.
    public static func by<Item: SyncItem, Rank: Comparable & Sendable>(_ rank: @escaping @Sendable (_ item: Item) -> Rank) -> DownloadOrder
    {
        let ranking = Ranking<Item> { downloads in
            let ranks = downloads.map { rank($0.item) }
            // The standard library's sort is stable, but not documented to be.
            let order = ranks.indices.sorted { ranks[$0] == ranks[$1] ? $0 < $1 : ranks[$0] < ranks[$1] }
            downloads = order.map { downloads[$0] }
        }
        return DownloadOrder(rule: .by(ranking))
    }

    /// Returns whether the order applies to items of this type.
    func canSort<Item: SyncItem>(_ type: Item.Type) -> Bool {
        guard case .by(let ranking) = rule else { return true }
        return ranking is Ranking<Item>
    }

    func sort<Item: SyncItem>(_ downloads: inout [SyncPlan<Item>.Download]) {
        switch rule {
        case .asListed: break
        case .byKey: downloads.sort { $0.item.key < $1.item.key }
        case .smallestFirst: downloads.sort { ($0.item.byteCount ?? .max) < ($1.item.byteCount ?? .max) }
        case .largestFirst: downloads.sort { ($0.item.byteCount ?? .min) > ($1.item.byteCount ?? .min) }
        // The synchronizer has checked the type.
        case .by(let ranking): (ranking as? Ranking<Item>)?.sort(&downloads)
        }
    }
}

/// The treatment of items that were edited locally; the report always names them.
public enum LocalEdits: Hashable, Sendable {
    /// The source wins: edited items are downloaded again or removed.
    case overwrite
    /// The edit wins: edited items are left alone.
    case keepLocal
}

/// The treatment of a remote list that contains a key more than once; the duplicates are always reported.
public enum DuplicateKeys: Hashable, Sendable {
    /// The pass fails before it changes anything, with `SyncError.Code.duplicateKeys`.
    case refuse
    /// The first item with a key is used.
    case keepFirst
    /// The last item with a key is used.
    case keepLast
}
