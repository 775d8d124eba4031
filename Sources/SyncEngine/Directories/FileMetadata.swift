#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif
internal import StorePlatform

/// The time and the permissions of a file in a list, or the kind of an object without content.
///
/// <doc:TimesModesAndLinks> explains how a ``DirectoryTarget`` applies it.
public struct FileMetadata: Hashable, Sendable {
    /// The kind of an object in a directory.
    public enum Kind: Hashable, Sendable {
        /// A file with content.
        case file
        /// A directory, which exists even if it is empty.
        case directory
        /// A symbolic link with its text: a path relative to the link's own directory.
        case link(to: String)
    }

    /// The kind of the object.
    public var kind: Kind
    /// The permission bits of a file; `nil` if the list has none. Only the bits of 0777 apply, and the owner can always read and write.
    public var mode: UInt16?
    /// The modification time of a file in seconds since 1970; `nil` if the list has none. A time before 1970 or in the future is ignored.
    public var modified: Int64?

    /// Creates the metadata of an object.
    public init(kind: Kind = .file, mode: UInt16? = nil, modified: Int64? = nil) {
        (self.kind, self.mode, self.modified) = (kind, mode, modified)
    }

    /// Returns whether a target accepts a link: its text is relative, and leads to a path in the same tree.
    ///
    /// - Parameters:
    ///   - text: The text of the link.
    ///   - path: The path of the link in the tree.
    public static func isInside(_ text: String, at path: String) -> Bool {
        (try? RelativePath(PathKey(path)).target(ofLink: text)) != nil
    }

    /// The permissions that a file gets; `nil` if the list or the options have none.
    func boundedMode(_ options: MetadataOptions) -> UInt16? {
        options.contains(.modes) && kind == .file ? mode.map { $0 & 0o777 | 0o600 } : nil
    }

    /// The time that a file gets; `nil` if the list or the options have none.
    func boundedTime(_ options: MetadataOptions) -> Int64? {
        guard options.contains(.times), kind == .file, let modified else { return nil }
        // With a time in the future, a later edit would look older than the file.
        return modified >= 0 && modified <= FileStatus.now() / 1_000_000_000 ? modified : nil
    }

    /// Returns the differences from an existing file in words.
    func differences(from status: FileStatus, _ options: MetadataOptions) -> [String] {
        var words: [String] = []
        func octal(_ mode: UInt16) -> String { "0" + String(mode, radix: 8) }
        if let mode = boundedMode(options), mode != status.permissions {
            words.append("mode \(octal(status.permissions)) → \(octal(mode))")
        }
        if let modified = boundedTime(options), modified != status.modifiedSecond {
            words.append("time \(Date(timeIntervalSince1970: Double(modified)).formatted(.iso8601))")
        }
        return words
    }
}

/// The metadata that a pass takes from the list; each kind is off by default.
public struct MetadataOptions: OptionSet, Hashable, Sendable {
    /// One bit for each kind of metadata.
    public let rawValue: Int

    /// Creates a set of options from bits.
    public init(rawValue: Int) { self.rawValue = rawValue }

    /// Files get the times of the list.
    public static let times = MetadataOptions(rawValue: 1 << 0)
    /// Files get the permissions of the list, in place of the usual ones.
    public static let modes = MetadataOptions(rawValue: 1 << 1)
    /// Directories of the list are made, and stay even if they are empty.
    public static let directories = MetadataOptions(rawValue: 1 << 2)
    /// Symbolic links of the list are made.
    public static let links = MetadataOptions(rawValue: 1 << 3)
    /// All kinds of metadata.
    public static let all: MetadataOptions = [.times, .modes, .directories, .links]
}

extension Collection<String?> {
    /// Returns whether one of these texts of links has the same bytes; `nil` stands for a directory.
    func hasText(_ text: String?) -> Bool { contains { $0.map { PathKey($0) } == text.map { PathKey($0) } } }
}

extension FileStatus {
    /// The whole second of the last change, rounded down, in seconds since 1970.
    var modifiedSecond: Int64 { modified >= 0 ? modified / 1_000_000_000 : (modified + 1) / 1_000_000_000 - 1 }
}

extension RelativePath {
    /// Returns the names of the path to which a link at this path leads; none for the target itself.
    ///
    /// The text alone decides. It may climb only before it names anything: behind another link, `..` would lead elsewhere. The names may
    /// belong to links too, and each of them obeys the same rule.
    ///
    /// - Throws: ``SyncError/Code/unsafeName`` if the link would lead out of the target, or into the target's own directory.
    func target(ofLink text: String) throws(SyncError) -> [String] {
        var names: [String] = []
        var above = parts.dropLast()
        var isSafe = !text.isEmpty && text.utf8.count <= Self.longestPath && text.utf8.first != UInt8(ascii: "/")
        for part in text.utf8.split(separator: UInt8(ascii: "/")) where !part.elementsEqual(".".utf8) {
            if part.elementsEqual("..".utf8) {
                isSafe = isSafe && names.isEmpty && above.popLast() != nil
            } else {
                let name = String(decoding: part, as: UTF8.self)
                // Behind a link to the root, the name leads to the target's own directory at any depth.
                isSafe = isSafe && NameFolding.all.fold(name) != Self.reserved
                names.append(name)
            }
        }
        let all = Array(above) + names
        if isSafe, all.isEmpty || (try? RelativePath(PathKey(all.joined(separator: "/")))) != nil { return all }
        let reason = "“\(text.shownSafely)” is no relative path that stays in the directory"
        throw SyncError(.unsafeName, "cannot make the link “\(key.shownSafely)”: \(reason); correct the list")
    }
}
