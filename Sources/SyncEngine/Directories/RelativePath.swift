internal import StoreCore

/// The path of a file relative to a directory; it cannot lead out of the directory.
struct RelativePath: Sendable {
    /// The path as a key: the parts, joined by `/`.
    let key: PathKey
    /// The names of the directories, outermost first, and of the file.
    let parts: [String]

    /// The name of a target's own directory.
    static let reserved = ".storehouse"
    /// The longest name in bytes of UTF-8; the limit of Linux and Apple's systems.
    static let longestName = 255
    /// The longest path in bytes of UTF-8; leaves room for the path of the target's directory.
    static let longestPath = 3072
    /// The largest number of names in a path: more than real trees need, and few enough for recursive tools.
    static let mostParts = 128

    /// Checks a path of a list; the error gives the reason.
    init(_ key: PathKey) throws(SyncError) {
        try self.init(existing: key)
        let path = key.path
        func refuse(_ reason: String) -> SyncError { .ofItem(.unsafeName, key, reason) }
        guard path.utf8.count <= Self.longestPath else { throw refuse("it has \(path.utf8.count) bytes, more than \(Self.longestPath)") }
        guard parts.count <= Self.mostParts else { throw refuse("it has \(parts.count) parts, more than \(Self.mostParts)") }
        if let part = parts.first(where: { $0.utf8.count > Self.longestName }) {
            throw refuse("a name in it has \(part.utf8.count) bytes, more than \(Self.longestName)")
        }
        if let scalar = path.unicodeScalars.first(where: \.actsOnDisplay) {
            throw refuse("it contains the control character U+\(String(scalar.value, radix: 16, uppercase: true))")
        }
    }

    /// Checks the path of an existing file. It may be longer or deeper than a path of a list, but must not lead out of the directory.
    init(existing key: PathKey) throws(SyncError) {
        let path = key.path
        func refuse(_ reason: String) -> SyncError { .ofItem(.unsafeName, key, reason) }
        guard !path.isEmpty else { throw refuse("it is empty") }
        var parts: [String] = []
        for part in path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false) {
            guard !part.isEmpty else { throw refuse(parts.isEmpty ? "it is absolute" : "it has an empty part") }
            guard !part.contains(0) else { throw refuse("it contains a null character") }
            guard !part.elementsEqual(".".utf8), !part.elementsEqual("..".utf8) else {
                throw refuse("it contains “.” or “..”, which could lead out of the directory")
            }
            parts.append(String(decoding: part, as: UTF8.self))
        }
        // A folding disk treats all spellings of the reserved name as equal.
        guard let first = parts.first, NameFolding.all.fold(first) != Self.reserved else {
            throw refuse("the name \(Self.reserved) is reserved for the target")
        }
        (self.key, self.parts) = (key, parts)
    }

    /// Creates a path from the parts of a checked path.
    init(trusting parts: [String]) {
        (self.key, self.parts) = (PathKey(parts.joined(separator: "/")), parts)
    }

    /// Returns the path of the directory formed by the first parts; empty for the root.
    func directory(_ depth: Int) -> PathKey { PathKey(parts.prefix(depth).joined(separator: "/")) }

    /// The paths of the directories above, outermost first.
    var ancestors: [PathKey] {
        var all: [PathKey] = []
        for part in parts.dropLast() { all.append(PathKey(all.last.map { $0.path + "/" + part } ?? part)) }
        return all
    }
}

extension PathKey {
    /// The path for a message: shortened, and without characters that act on a terminal.
    var shownSafely: String { path.shownSafely }
}

extension String {
    /// The text for a message: shortened, and without characters that act on a terminal.
    var shownSafely: String { escapedForDisplay(atMost: 120) }
}
