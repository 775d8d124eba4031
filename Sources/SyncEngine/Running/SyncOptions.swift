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
    public var removalLimit = RemovalLimit.share(0.5)
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
    ///   - retry: How often transient failures are tried again.
    ///   - order: In which order items are downloaded.
    ///   - localEdits: What becomes of items that were edited locally.
    ///   - duplicates: What becomes of a list that has a key more than once.
    public init(
        concurrency: Int = 0, downloadsPreviews: Bool = false, downloadsContents: Bool = true, startsEarly: Bool = false,
        stopsOnError: Bool = true, removalTiming: RemovalTiming = .afterDownloads, removalLimit: RemovalLimit = .share(0.5),
        retry: RetryPolicy = .exponential(attempts: 3), order: DownloadOrder = .asListed, localEdits: LocalEdits = .overwrite,
        duplicates: DuplicateKeys = .refuse
    ) {
        self.concurrency = concurrency
        self.downloadsPreviews = downloadsPreviews
        self.downloadsContents = downloadsContents
        self.startsEarly = startsEarly
        self.stopsOnError = stopsOnError
        self.removalTiming = removalTiming
        self.removalLimit = removalLimit
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

/// In which order items are downloaded.
public enum DownloadOrder: Hashable, Sendable {
    /// As the source lists them, new ones before changed ones.
    case asListed
    /// By ascending key.
    case byKey
    /// Small items first; those of unknown size last.
    case smallestFirst
    /// Large items first; those of unknown size last.
    case largestFirst

    func sort<Item: SyncItem>(_ downloads: inout [SyncPlan<Item>.Download]) {
        switch self {
        case .asListed: break
        case .byKey: downloads.sort { $0.item.key < $1.item.key }
        case .smallestFirst: downloads.sort { ($0.item.byteCount ?? .max) < ($1.item.byteCount ?? .max) }
        case .largestFirst: downloads.sort { ($0.item.byteCount ?? .min) > ($1.item.byteCount ?? .min) }
        }
    }
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
