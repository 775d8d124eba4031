import Console
import Foundation
import StoreCore
import StorePlatform
import SyncEngine

/// `mirror make`: writes the manifest of a directory.
enum Make {
    /// Writes one line for each file, and by option for each empty directory and link, sorted by path, and the end marker.
    static func run(_ directory: URL, _ options: Options) throws {
        let root = directory.resolvingSymlinksInPath().path(percentEncoded: false)
        let output = options.output?.resolvingSymlinksInPath().path(percentEncoded: false)
        let filter = FileFilter(options.patterns)
        var isDirectory: ObjCBool = false
        guard FileManager.default.fileExists(atPath: root, isDirectory: &isDirectory), isDirectory.boolValue else {
            throw Options.Mistake(description: "\(directory.path(percentEncoded: false)) is not a directory")
        }
        var files: [ListedFile] = []
        var directories: [String] = []
        let paths = try Self.paths(in: Directory(path: root), filter)
        for path in paths.sorted(by: { $0.utf8.lexicographicallyPrecedes($1.utf8) }) {
            let file = (root.hasSuffix("/") ? root : root + "/") + path
            // The manifest cannot contain its own digest.
            guard file != output, let status = try FileStatus.of(path: file) else { continue }
            switch status.kind {
            case .regular:
                let (digest, size) = try content(of: file)
                var listed = ListedFile(path: path, sha256: digest, byteCount: size)
                listed.metadata = metadata(of: status, options.metadata)
                files.append(listed)
            case .directory: directories.append(path)
            case .link where options.metadata.contains(.links):
                let text = try FileManager.default.destinationOfSymbolicLink(atPath: file)
                if FileMetadata.isInside(text, at: path) {
                    files.append(ListedFile(path: path, kind: .link(to: text)))
                } else {
                    Show.complain("left out \(path): the link is absolute, or could lead out of the directory")
                }
            default: continue
            }
        }
        if options.metadata.contains(.directories) {
            var filled = Set(files.flatMap { ancestors(of: $0.path) })
            // The innermost directories come first. A directory with another in it is not empty.
            for path in directories.reversed() where !filled.contains(path) && !filter.excludes(path + "/") {
                files.append(ListedFile(path: path, kind: .directory))
                filled.formUnion(ancestors(of: path))
            }
            files.sort { $0.path.utf8.lexicographicallyPrecedes($1.path.utf8) }
        }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        var text = Data()
        for file in files { text += try encoder.encode(file) + Data("\n".utf8) }
        text += Data("{\"count\":\(files.count)}\n".utf8)
        guard let url = options.output else { return try FileHandle.standardOutput.write(contentsOf: text) }
        // In one step, so that a client reads the old manifest or the new one.
        try text.write(toOutput: url)
        let bytes = files.reduce(0) { $0 + ($1.byteCount ?? 0) }
        let count = files.count { $0.sha256 != nil }
        Show(options).line("\(Show.files(count)), \(Show.bytes(bytes)); the manifest is \(url.path(percentEncoded: false))")
    }

    /// The paths in a directory that the filter does not exclude. An excluded directory is not read.
    private static func paths(in directory: Directory, below prefix: String = "", _ filter: FileFilter) throws -> [String] {
        var (paths, inner): ([String], [String]) = ([], [])
        do {
            guard var listing = try directory.list() else { return [] }
            while let entry = try listing.next() {
                let path = prefix + entry.name
                // A target refuses every spelling of the name of its own directory.
                guard path.uppercased() != ".STOREHOUSE" else { continue }
                guard entry.isUTF8 else {
                    Show.complain("left out \(path): its name is not UTF-8")
                    continue
                }
                if !filter.excludes(path) {
                    // A target refuses such a path, for a control character for example, and its passes would stay incomplete.
                    guard FileMetadata.isInside("x", at: path) else {
                        Show.complain("left out \(path): no list can contain its path")
                        continue
                    }
                    paths.append(path)
                }
                let kind = try entry.kind == .unknown ? listing.status(of: entry)?.kind : entry.kind
                if kind == .directory, !filter.excludes(path + "/") { inner.append(entry.name) }
            }
        }
        for name in inner { paths += try Self.paths(in: Directory(path: directory.path(of: name)), below: prefix + name + "/", filter) }
        return paths
    }

    /// The metadata that the options ask for; `nil` if they ask for none.
    private static func metadata(of status: FileStatus, _ options: MetadataOptions) -> FileMetadata? {
        guard !options.isDisjoint(with: [.times, .modes]) else { return nil }
        return FileMetadata(
            mode: options.contains(.modes) ? status.permissions & 0o777 : nil,
            // Rounded down without a `Double`, which would round the last nanoseconds of a second up.
            modified: options.contains(.times) ? (status.modified - (status.modified < 0 ? 999_999_999 : 0)) / 1_000_000_000 : nil)
    }

    /// The paths of the directories above a path.
    private static func ancestors(of path: String) -> [String] {
        path.utf8.indices.filter { path.utf8[$0] == UInt8(ascii: "/") }.map { String(path[..<$0]) }
    }

    private static func content(of path: String) throws -> (digest: String, size: Int64) {
        let file = try FileHandle(forReadingFrom: URL(filePath: path, directoryHint: .notDirectory))
        defer { try? file.close() }  // Nothing was written.
        var hash = SHA256()
        var size: Int64 = 0
        while let piece = try file.read(upToCount: 1 << 18), !piece.isEmpty {
            piece.withUnsafeBytes { hash.update($0) }
            size += Int64(piece.count)
        }
        return (hash.digest().hex, size)
    }
}
