internal import Foundation
internal import StoreCore

/// Which names a disk takes for one.
struct NameFolding: OptionSet, Hashable, Sendable {
    let rawValue: Int

    /// Upper and lower case are the same.
    static let letterCase = NameFolding(rawValue: 1 << 0)
    /// Composed and decomposed characters are the same.
    static let normalization = NameFolding(rawValue: 1 << 1)
    static let all: NameFolding = [.letterCase, .normalization]

    /// A spelling that all names have in common that the disk takes for one.
    func fold(_ name: String) -> String {
        if isEmpty || name.utf8.allSatisfy({ $0 < 0x80 && !(0x41...0x5A).contains($0) }) { return name }
        // Case first: lower-casing may leave characters that compose.
        let cased = contains(.letterCase) ? name.folding(options: .caseInsensitive, locale: nil) : name
        return contains(.normalization) ? cased.precomposedStringWithCanonicalMapping : cased
    }

    /// The same of a path.
    func fold(_ path: PathKey) -> PathKey { PathKey(fold(path.path)) }

    /// A name that is made to find out, and another spelling under which a disk that folds finds it too.
    private static let probes = [("probe-k", "PROBE-K", letterCase), ("probe-\u{E9}", "probe-e\u{301}", normalization)]

    /// Finds out by trying, in a directory that is the caller's own; what was made for it stays there, for those who only look.
    static func probe(_ directory: DirectoryHandle) throws(StoreError) -> NameFolding {
        for (made, _, _) in probes { _ = try WritableFile(made, in: directory) }
        return try observe(directory)
    }

    /// Finds out without writing anything; where nobody has tried yet, no names count as one.
    static func observe(_ directory: DirectoryHandle) throws(StoreError) -> NameFolding {
        var folding: NameFolding = []
        for (made, other, kind) in probes where try directory.status(of: made) != nil {
            if try directory.status(of: other) != nil { folding.insert(kind) }
        }
        return folding
    }
}

/// Keys that a disk would take for one.
struct NameClashes {
    private let folding: NameFolding
    /// The spelling that came first, by folded name; directories too.
    private var spellings: [PathKey: PathKey] = [:]

    init(_ folding: NameFolding) {
        self.folding = folding
    }

    /// Whether the disk takes any two names for one.
    var isNeeded: Bool { !folding.isEmpty }

    /// Takes a path that is there, or will be.
    ///
    /// - Returns: The path that it clashes with; it is then not taken.
    mutating func insert(_ path: RelativePath) -> PathKey? {
        guard !folding.isEmpty else { return nil }
        var places: [(PathKey, PathKey)] = []
        for spelled in path.ancestors + [path.key] {
            let folded = folding.fold(spelled)
            if let other = spellings[folded], other != spelled { return other }
            places.append((folded, spelled))
        }
        for (folded, spelled) in places { spellings[folded] = spelled }
        return nil
    }

    /// The other spelling by which a path is there; `nil` where it is not there, or by this one.
    func otherSpelling(of path: PathKey) -> PathKey? {
        guard !folding.isEmpty, let other = spellings[folding.fold(path)], other != path else { return nil }
        return other
    }

    /// Takes names that are there.
    mutating func insert(_ paths: some Sequence<PathKey>) {
        guard isNeeded else { return }
        for path in paths.sorted() {
            // A local file whose name is no path of ours is nobody's business here.
            if let path = try? RelativePath(existing: path) { _ = insert(path) }
        }
    }

    /// Forgets a file that was removed; its directories stay known.
    mutating func remove(_ path: PathKey) {
        guard !folding.isEmpty else { return }
        spellings[folding.fold(path)] = nil
    }
}
