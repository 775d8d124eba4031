internal import StorePlatform

/// The decision which downloads are moves: local content that the list has under another key.
///
/// A pure function. Each local file is the source of at most one move. Among files of the same content, one of the same name moves first.
enum MoveMatcher {
    /// A local file with content that may move.
    struct Origin {
        var key: PathKey
        var digest: SHA256.Digest
        var size: Int64
        /// Whether the list no longer has the key. Otherwise the file is about to be replaced by other content.
        var isGone: Bool
    }

    /// Returns the new key of each moved file, by its old key; a download may have an unknown size.
    ///
    /// Files that are gone move before those that are about to be replaced. Takes time of O(n log n) for all downloads and origins.
    static func moves(to wanted: [(key: PathKey, digest: SHA256.Digest, size: Int64?)], from origins: [Origin]) -> [PathKey: PathKey] {
        let contents = Set(wanted.lazy.map(\.digest))
        var named: [NamedContent: [Origin]] = [:]
        var others: [SHA256.Digest: [Origin]] = [:]
        // In reverse order, because the last element of an array is the cheapest to take.
        for origin in origins.sorted(by: isLater) where contents.contains(origin.digest) {
            named[NamedContent(digest: origin.digest, name: name(of: origin.key)), default: []].append(origin)
            others[origin.digest, default: []].append(origin)
        }
        var moves: [PathKey: PathKey] = [:]
        func take(_ file: (key: PathKey, digest: SHA256.Digest, size: Int64?), from candidates: inout [Origin]?) -> Bool {
            while let origin = candidates?.popLast() {
                let hasSize = file.size ?? origin.size == origin.size
                guard moves[origin.key] == nil, origin.key != file.key, hasSize else { continue }
                moves[origin.key] = file.key
                return true
            }
            return false
        }
        let sorted = wanted.sorted { $0.key < $1.key }
        let rest = sorted.filter { !take($0, from: &named[NamedContent(digest: $0.digest, name: name(of: $0.key))]) }
        for file in rest { _ = take(file, from: &others[file.digest]) }
        return moves
    }

    private struct NamedContent: Hashable {
        var digest: SHA256.Digest
        var name: PathKey
    }

    private static func name(of key: PathKey) -> PathKey { PathKey(key.parts.last ?? "") }

    private static func isLater(_ one: Origin, _ other: Origin) -> Bool {
        one.isGone == other.isGone ? other.key < one.key : other.isGone
    }
}
