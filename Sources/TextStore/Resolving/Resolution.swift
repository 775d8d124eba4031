import StoreCore

/// The position of a manifest among all manifests of its origin: first by epoch, then by revision.
struct Edition: Hashable, Comparable, Sendable {
    var epoch: UInt64 = 0
    var revision: UInt64 = 0

    static func < (lhs: Edition, rhs: Edition) -> Bool { (lhs.epoch, lhs.revision) < (rhs.epoch, rhs.revision) }
}

/// The position of a text among all its versions: first by the last rollback, then by version.
///
/// The epoch is the edition of the manifest that ordered the last rollback, 0 without one: within an epoch nothing goes backwards, and
/// a new epoch is the only way to an older version.
struct Rank: Hashable, Comparable, Sendable {
    var epoch = Edition()
    /// `nil` is unversioned, and lower than every version.
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

/// The newest that was ever active of one text, and what is known of it.
struct Floor: Hashable, Sendable {
    var rank: Rank
    /// The highest version that a rollback has taken back; a bundle that does not know the rollback must have a higher one to count as newer.
    var withdrawn: SemanticVersion?
    /// The SHA-256 of the text that was active.
    var digest: SHA256.Digest

    /// The rank of a bundled text.
    ///
    /// - Parameters:
    ///   - version: Its version in the bundle's manifest.
    ///   - edition: The edition of the bundle's manifest: one that is not older than the rollback lists versions that are meant.
    func rankOfBundled(_ version: SemanticVersion?, edition: Edition?) -> Rank {
        guard let withdrawn else { return Rank(epoch: rank.epoch, version: version) }
        guard let version else { return Rank() }
        let isMeant = version > withdrawn || edition.map { $0 >= rank.epoch } ?? false
        return Rank(epoch: isMeant ? rank.epoch : Edition(), version: version)
    }

    /// The rank of what a manifest offers.
    func rankOfOffered(_ entry: VersionManifest.Entry, edition: Edition?) -> Rank {
        let isOlder = rank.version.map { entry.version < $0 } ?? false
        if entry.isRollback, isOlder, let edition, edition > rank.epoch { return Rank(epoch: edition, version: entry.version) }
        return Rank(epoch: rank.epoch, version: entry.version)
    }
}

/// Which source of a text is asked first, second and third.
enum Resolution {
    /// Where a text can come from, the most local first.
    enum Origin: Int, Hashable, Sendable, CaseIterable {
        case cache, bundle, remote
    }

    /// A source that has, or says it has, the text.
    struct Candidate: Hashable, Sendable {
        var origin: Origin
        var rank: Rank
    }

    /// The newest first; among equals the most local.
    static func order(_ candidates: [Candidate]) -> [Origin] {
        candidates.sorted { left, right in
            left.rank == right.rank ? left.origin.rawValue < right.origin.rawValue : left.rank > right.rank
        }.map(\.origin)
    }

    /// Whether a whole bundled set is to be used instead of a whole cached one: nowhere older, and somewhere newer.
    static func prefersBundledSet(_ pairs: [(cached: Rank, bundled: Rank?)]) -> Bool {
        let comparable = pairs.allSatisfy { pair in pair.bundled.map { $0 >= pair.cached } ?? false }
        return comparable && pairs.contains { pair in pair.bundled.map { $0 > pair.cached } ?? false }
    }
}
