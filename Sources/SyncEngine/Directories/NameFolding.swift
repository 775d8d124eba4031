internal import StoreCore
internal import StorePlatform

/// The name variants that a disk treats as equal.
struct NameFolding: OptionSet, Hashable, Sendable {
    let rawValue: Int

    /// Upper and lower case are equal.
    static let letterCase = NameFolding(rawValue: 1 << 0)
    /// Composed and decomposed characters are equal.
    static let normalization = NameFolding(rawValue: 1 << 1)
    static let all: NameFolding = [.letterCase, .normalization]

    /// Returns a spelling shared by all names that the disk treats as equal.
    func fold(_ name: String) -> String {
        if isEmpty || name.utf8.allSatisfy({ $0 < 0x80 && !(0x41...0x5A).contains($0) }) { return name }
        // Folds case first, because lowercasing may leave characters that compose.
        let cased = contains(.letterCase) ? name.caseFolded : name
        return contains(.normalization) ? cased.normalFormC : cased
    }

    func fold(_ path: PathKey) -> PathKey { PathKey(fold(path.path)) }

    /// Names of probe files, each with a second spelling that a folding disk finds too.
    private static let probes = [("probe-k", "PROBE-K", letterCase), ("probe-\u{E9}", "probe-e\u{301}", normalization)]

    /// Detects the folding with probe files in a private directory; they remain for `observe(_:)`.
    static func probe(_ directory: DirectoryHandle) throws(StoreError) -> NameFolding {
        for (made, _, _) in probes { _ = try WritableFile(made, in: directory) }
        return try observe(directory)
    }

    /// Detects the folding without writing; returns no folding if no probe files exist.
    static func observe(_ directory: DirectoryHandle) throws(StoreError) -> NameFolding {
        var folding: NameFolding = []
        for (made, other, kind) in probes where try directory.status(of: made) != nil {
            if try directory.status(of: other) != nil { folding.insert(kind) }
        }
        return folding
    }
}

/// A detector of keys that a disk would treat as equal.
struct NameClashes {
    private let folding: NameFolding
    /// The first spelling by folded name, for files and directories.
    private var spellings: [PathKey: PathKey] = [:]

    init(_ folding: NameFolding) {
        self.folding = folding
    }

    var isNeeded: Bool { !folding.isEmpty }

    /// Inserts a path that exists or will be created, or returns the path that it clashes with.
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

    /// Returns another spelling under which a path exists; `nil` if the path does not exist or exists under this spelling.
    func otherSpelling(of path: PathKey) -> PathKey? {
        guard !folding.isEmpty, let other = spellings[folding.fold(path)], other != path else { return nil }
        return other
    }

    mutating func insert(_ paths: some Sequence<PathKey>) {
        guard isNeeded else { return }
        for path in paths.sorted() {
            // Ignores local files with a name that cannot be a key.
            if let path = try? RelativePath(existing: path) { _ = insert(path) }
        }
    }

    /// Forgets a removed file; its directories stay known.
    mutating func remove(_ path: PathKey) {
        guard !folding.isEmpty else { return }
        spellings[folding.fold(path)] = nil
    }
}

extension String {
    /// The string without differences of case: full case folding (Unicode Standard, section 3.13.3), except that letters with accents remain
    /// composed.
    ///
    /// Foundation's `folding(options:locale:)` is not part of FoundationEssentials and knows fewer letters.
    fileprivate var caseFolded: String {
        var folded = UnicodeScalarView()
        for scalar in unicodeScalars {
            guard scalar.properties.changesWhenCaseFolded else { folded.append(scalar); continue }
            // Upper case first: both sigmas have one capital, and the capital of “ß” is “SS”. Cherokee folds to capitals.
            for capital in scalar.properties.lowercaseMapping.uppercased().unicodeScalars {
                if capital.properties.changesWhenCaseFolded {
                    folded.append(contentsOf: capital.properties.lowercaseMapping.unicodeScalars)
                } else {
                    folded.append(capital)
                }
            }
        }
        return String(folded)
    }
}
