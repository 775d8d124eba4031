public import StoreCore

/// What a synchronizer does of its own accord; the defaults are in this one table.
///
/// ```swift
/// var options = SyncOptions()
/// options.downloadsPreviews = true
/// options.stopsOnError = false
/// ```
public struct SyncOptions: Sendable {
    /// How many items are downloaded at a time, 1 024 at most; 0 lets the synchronizer choose (twice the processor's cores, from 4 to 16).
    public var concurrency = 0
    /// Whether previews are downloaded, all of them before the first content.
    public var downloadsPreviews = false
    /// Whether contents are downloaded.
    public var downloadsContents = true
    /// Whether the download of new items begins while the remote list still arrives.
    ///
    /// Only what the local side does not have is begun early, in the list's order; replacing and removing always wait for the whole list and
    /// for the safety gate. A list that turns out to be cut, refused or wrong fails the pass as ever, and what has arrived by then stays,
    /// until a pass with a whole list says otherwise. Without effect together with previews, with removals before downloads, and where of
    /// items with one key the last one counts: these need the whole list first. The local side is then read before the list.
    public var startsEarly = false
    /// Whether the first item that fails ends the pass, in every stage; otherwise failures are collected and the rest is done.
    public var stopsOnError = true
    /// When items are removed that the source no longer has.
    public var removalTiming = RemovalTiming.afterDownloads
    /// How much one pass may remove.
    public var removalLimit = ChangeLimit.share(0.5)
    /// How much of the local side one pass may replace.
    public var updateLimit = ChangeLimit.share(0.5)
    /// How often transient failures are tried again, and when.
    public var retry = RetryPolicy.exponential(attempts: 3)
    /// In which order items are downloaded.
    public var order = DownloadOrder.asListed
    /// What becomes of items that were edited locally.
    public var localEdits = LocalEdits.overwrite
    /// What becomes of a list that has a key more than once.
    public var duplicates = DuplicateKeys.refuse
    /// How often progress is published at most, apart from changes of the stage.
    public var progressInterval = Duration.milliseconds(100)

    /// Makes options.
    ///
    /// - Parameters:
    ///   - concurrency: How many items are downloaded at a time; 0 lets the synchronizer choose. Files that have arrived in a
    ///     ``DirectoryTarget`` and only wait for the disk do not count.
    ///   - downloadsPreviews: Whether previews are downloaded.
    ///   - downloadsContents: Whether contents are downloaded.
    ///   - startsEarly: Whether the download of new items begins while the remote list still arrives.
    ///   - stopsOnError: Whether the first item that fails ends the pass.
    ///   - removalTiming: When items are removed.
    ///   - removalLimit: How much one pass may remove.
    ///   - updateLimit: How much of the local side one pass may replace.
    ///   - retry: How often transient failures are tried again.
    ///   - order: In which order items are downloaded.
    ///   - localEdits: What becomes of items that were edited locally.
    ///   - duplicates: What becomes of a list that has a key more than once.
    public init(
        concurrency: Int = 0, downloadsPreviews: Bool = false, downloadsContents: Bool = true, startsEarly: Bool = false,
        stopsOnError: Bool = true, removalTiming: RemovalTiming = .afterDownloads, removalLimit: ChangeLimit = .share(0.5),
        updateLimit: ChangeLimit = .share(0.5), retry: RetryPolicy = .exponential(attempts: 3), order: DownloadOrder = .asListed,
        localEdits: LocalEdits = .overwrite,
        duplicates: DuplicateKeys = .refuse
    ) {
        self.concurrency = concurrency
        self.downloadsPreviews = downloadsPreviews
        self.downloadsContents = downloadsContents
        self.startsEarly = startsEarly
        self.stopsOnError = stopsOnError
        self.removalTiming = removalTiming
        self.removalLimit = removalLimit
        self.updateLimit = updateLimit
        self.retry = retry
        self.order = order
        self.localEdits = localEdits
        self.duplicates = duplicates
    }

    /// Whether anything can begin before the list has ended.
    var canStartEarly: Bool {
        startsEarly && downloadsContents && !downloadsPreviews && removalTiming == .afterDownloads && duplicates != .keepLast
    }
}

/// When items are removed that the source no longer has.
public enum RemovalTiming: Hashable, Sendable {
    /// Last, and only if every download has succeeded.
    case afterDownloads
    /// Before the first download, to make room.
    case beforeDownloads
}

/// The order in which items are downloaded.
///
/// ```swift
/// options.order = .by { (photo: Photo) in photo.revision }
/// ```
public struct DownloadOrder: Sendable {
    private enum Rule: Sendable {
        case asListed, byKey, smallestFirst, largestFirst
        case by(any DownloadRanking)
    }

    private let rule: Rule

    /// As the source lists them, new ones before changed ones.
    public static let asListed = DownloadOrder(rule: .asListed)
    /// By ascending key.
    public static let byKey = DownloadOrder(rule: .byKey)
    /// Small items first; those of unknown size last.
    public static let smallestFirst = DownloadOrder(rule: .smallestFirst)
    /// Large items first; those of unknown size last.
    public static let largestFirst = DownloadOrder(rule: .largestFirst)

    /// By ascending rank; items of one rank keep the order of the source.
    ///
    /// - Parameter rank: The rank of an item; called once for each item that is downloaded. Its item must be that of the processor, which
    ///   the synchronizer checks as it is made.
    public static func by<Item: SyncItem, Rank: Comparable & Sendable>(_ rank: @escaping @Sendable (_ item: Item) -> Rank) -> DownloadOrder
    {
        DownloadOrder(rule: .by(Ranking(rank: rank)))
    }

    /// Whether items of this type can be put in this order.
    func canSort<Item: SyncItem>(_ type: Item.Type) -> Bool {
        guard case .by(let ranking) = rule else { return true }
        return ranking.ranks(type)
    }

    func sort<Item: SyncItem>(_ downloads: inout [SyncPlan<Item>.Download]) {
        switch rule {
        case .asListed: break
        case .byKey: downloads.sort { $0.item.key < $1.item.key }
        case .smallestFirst: downloads.sort { ($0.item.byteCount ?? .max) < ($1.item.byteCount ?? .max) }
        case .largestFirst: downloads.sort { ($0.item.byteCount ?? .min) > ($1.item.byteCount ?? .min) }
        case .by(let ranking): downloads = ranking.sorted(downloads)
        }
    }

    private struct Ranking<RankedItem: SyncItem, Rank: Comparable & Sendable>: DownloadRanking {
        let rank: @Sendable (RankedItem) -> Rank

        func ranks<Item: SyncItem>(_ type: Item.Type) -> Bool { type == RankedItem.self }

        func sorted<Item: SyncItem>(_ downloads: [SyncPlan<Item>.Download]) -> [SyncPlan<Item>.Download] {
            let ranks = downloads.compactMap { ($0.item as? RankedItem).map(rank) }
            // The synchronizer has checked the type: then each download has a rank.
            guard ranks.count == downloads.count else { return downloads }
            // The standard library's sort keeps the order of equal elements, but does not promise it.
            let places = downloads.indices.sorted { ranks[$0] == ranks[$1] ? $0 < $1 : ranks[$0] < ranks[$1] }
            return places.map { downloads[$0] }
        }
    }
}

/// A rank of items whose type is known where it was made, and checked where it is used.
private protocol DownloadRanking: Sendable {
    func ranks<Item: SyncItem>(_ type: Item.Type) -> Bool
    func sorted<Item: SyncItem>(_ downloads: [SyncPlan<Item>.Download]) -> [SyncPlan<Item>.Download]
}

/// What becomes of items that were edited locally; the report names them either way.
public enum LocalEdits: Hashable, Sendable {
    /// The source is right: edited items are downloaded again, or removed.
    case overwrite
    /// The edit is right: edited items are left alone.
    case keepLocal
}

/// What becomes of a remote list that has a key more than once; the duplicates are reported either way.
public enum DuplicateKeys: Hashable, Sendable {
    /// The list is refused.
    case refuse
    /// The first item of a key counts.
    case keepFirst
    /// The last item of a key counts.
    case keepLast
}
