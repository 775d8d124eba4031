internal import StoreCore

/// A file's path below a directory that cannot lead out of it.
struct RelativePath: Sendable {
    /// The names of the directories, from the top, and of the file.
    let parts: [String]

    /// The name of the directory in which a target keeps its own files.
    static let reserved = ".storehouse"
    /// How long a name may be, in UTF-8; what Linux and Apple's systems hold.
    static let longestName = 255
    /// How long a path may be, in UTF-8; with the directory's own path in front of it, it still fits.
    static let longestPath = 3072
    /// How many names a path may have: far more than people nest, and few enough for the recursive tools that will meet the tree.
    static let mostParts = 128

    /// Checks a path of a list.
    ///
    /// - Throws: ``SyncError/Code/unsafeName``, whose message has the reason.
    init(_ key: PathKey) throws(SyncError) {
        try self.init(existing: key)
        let path = key.path
        func refuse(_ reason: String) -> SyncError { Self.refusal(of: path, reason) }
        guard path.utf8.count <= Self.longestPath else { throw refuse("it has \(path.utf8.count) bytes, more than \(Self.longestPath)") }
        guard parts.count <= Self.mostParts else { throw refuse("it has \(parts.count) parts, more than \(Self.mostParts)") }
        if let part = parts.first(where: { $0.utf8.count > Self.longestName }) {
            throw refuse("a name in it has \(part.utf8.count) bytes, more than \(Self.longestName)")
        }
        if let scalar = path.unicodeScalars.first(where: \.actsOnDisplay) {
            throw refuse("it contains the control character U+\(String(scalar.value, radix: 16, uppercase: true))")
        }
    }

    /// Checks the path of a file that is in the directory already: it may be longer or deeper than one of a list, and never lead out.
    ///
    /// - Throws: ``SyncError/Code/unsafeName``, whose message has the reason.
    init(existing key: PathKey) throws(SyncError) {
        let path = key.path
        func refuse(_ reason: String) -> SyncError { Self.refusal(of: path, reason) }
        guard !path.isEmpty else { throw refuse("it is empty") }
        var parts: [String] = []
        for part in path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false) {
            guard !part.isEmpty else { throw refuse(parts.isEmpty ? "it is absolute" : "it has an empty part") }
            guard !part.contains(0) else { throw refuse("it contains a null character") }
            guard !part.elementsEqual(".".utf8), !part.elementsEqual("..".utf8) else {
                throw refuse("it contains “.” or “..”, which would lead elsewhere")
            }
            parts.append(String(decoding: part, as: UTF8.self))
        }
        // In any spelling, since a folding disk takes them for one.
        guard let first = parts.first, NameFolding.all.fold(first) != Self.reserved else {
            throw refuse("the name \(Self.reserved) is the target's own")
        }
        self.parts = parts
    }

    private static func refusal(of path: String, _ reason: String) -> SyncError {
        SyncError(.unsafeName, "reading the path “\(path.shownSafely)”: \(reason); it is not downloaded. Correct the list")
    }

    /// The path of a directory that a checked path has.
    init(trusting parts: [String]) {
        self.parts = parts
    }

    /// The path as a key.
    var key: PathKey { PathKey(parts.joined(separator: "/")) }

    /// The path of the directory that the first parts name; empty for the root.
    func directory(_ depth: Int) -> PathKey { PathKey(parts.prefix(depth).joined(separator: "/")) }

    /// The paths of the directories above, from the top.
    var ancestors: [PathKey] {
        var all: [PathKey] = []
        for part in parts.dropLast() { all.append(PathKey(all.last.map { $0.path + "/" + part } ?? part)) }
        return all
    }
}

extension PathKey {
    /// The path for a message: short, and without characters that would act on a terminal.
    var shownSafely: String { path.shownSafely }
}

extension String {
    /// The text for a message: short, and without characters that would act on a terminal.
    var shownSafely: String { escapedForDisplay(atMost: 120) }
}
