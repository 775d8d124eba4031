import StoreCore
internal import StorePlatform

/// A manifest's position in the order of all manifests of its origin: first by epoch, then by revision.
struct Edition: Hashable, Comparable, Sendable {
    var epoch: UInt64 = 0
    var revision: UInt64 = 0

    /// The highest first revision that is no jump; the nanoseconds since 1970 stay below it until the year 2116.
    static let highestFirstRevision: UInt64 = (1 << 62) - 1

    static func < (lhs: Edition, rhs: Edition) -> Bool { (lhs.epoch, lhs.revision) < (rhs.epoch, rhs.revision) }
}

/// A text's position in the order of all its versions: first by the last rollback, then by version.
///
/// The epoch is the edition of the manifest that ordered the last rollback, or 0 without one. Within an epoch nothing goes backwards, and
/// only a new epoch leads to an older version.
struct Rank: Hashable, Comparable, Sendable {
    var epoch = Edition()
    /// The version; `nil` for an unversioned text, which is lower than every version.
    var version: SemanticVersion?

    static func < (lhs: Rank, rhs: Rank) -> Bool {
        if lhs.epoch != rhs.epoch { return lhs.epoch < rhs.epoch }
        switch (lhs.version, rhs.version) {
        case (_, nil): return false
        case (nil, _?): return true
        case (let left?, let right?): return left < right
        }
    }
}

/// The highest rank of a text that was ever active, with its digest.
struct Floor: Hashable, Sendable {
    var rank: Rank
    /// The highest version that a rollback has withdrawn. A bundle older than that rollback needs a higher version to count as newer.
    var withdrawn: SemanticVersion?
    /// The SHA-256 of the text that was active.
    var digest: SHA256.Digest

    /// Returns the rank of a bundled text. If the bundle's manifest is not older than the rollback, its versions are intended.
    func rankOfBundled(_ version: SemanticVersion?, edition: Edition?) -> Rank {
        guard let withdrawn else { return Rank(epoch: rank.epoch, version: version) }
        guard let version else { return Rank() }
        let isMeant = version > withdrawn || edition.map { $0 >= rank.epoch } ?? false
        return Rank(epoch: isMeant ? rank.epoch : Edition(), version: version)
    }

    /// Returns the rank of a manifest's entry.
    ///
    /// - Parameter fetched: The rank of a fetched text that is not active; an entry that repeats the rollback to its version keeps it.
    func rankOfOffered(_ entry: VersionManifest.Entry, edition: Edition?, fetched: Rank? = nil) -> Rank {
        let isOlder = rank.version.map { entry.version < $0 && !entry.shared.contains($0) } ?? false
        guard entry.isRollback, isOlder, let edition, edition > rank.epoch else { return Rank(epoch: rank.epoch, version: entry.version) }
        var order = edition
        if let fetched, fetched.version == entry.version, fetched.epoch > rank.epoch { order = min(order, fetched.epoch) }
        return Rank(epoch: order, version: entry.version)
    }
}

/// The choice among the sources of a text on the device.
enum Resolution {
    /// Returns the source with the newer text, or the cache if both are equal; `nil` if neither has the text.
    ///
    /// A newer text of the server is not a choice before it has been fetched into the cache.
    static func choice(cached: Rank?, bundled: Rank?) -> VersionedText.Origin? {
        guard let cached else { return bundled == nil ? nil : .bundle }
        return bundled.map { $0 > cached } ?? false ? .bundle : .cache
    }

    /// Returns whether a whole bundled set replaces a whole cached one: no bundled text is older, and at least one is newer.
    static func prefersBundledSet(_ pairs: [(cached: Rank, bundled: Rank?)]) -> Bool {
        let comparable = pairs.allSatisfy { pair in pair.bundled.map { $0 >= pair.cached } ?? false }
        return comparable && pairs.contains { pair in pair.bundled.map { $0 > pair.cached } ?? false }
    }
}
