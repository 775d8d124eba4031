import Foundation
import StoreCore
import StorePlatform
import SyncEngine

/// `mirror make`: writes the manifest of a directory.
enum Make {
    /// Writes one line for each file, sorted by path, and the end marker.
    static func run(_ directory: URL, _ options: Options) throws {
        let root = directory.resolvingSymlinksInPath().path(percentEncoded: false)
        let output = options.output?.resolvingSymlinksInPath().path(percentEncoded: false)
        let filter = FileFilter(options.patterns)
        var isDirectory: ObjCBool = false
        guard FileManager.default.fileExists(atPath: root, isDirectory: &isDirectory), isDirectory.boolValue else {
            throw Options.Mistake(description: "\(directory.path(percentEncoded: false)) is not a directory")
        }
        var files: [ListedFile] = []
        let paths = try FileManager.default.subpathsOfDirectory(atPath: root)
        for path in paths.sorted(by: { $0.utf8.lexicographicallyPrecedes($1.utf8) }) {
            guard path != ".storehouse", !path.hasPrefix(".storehouse/"), !filter.excludes(path) else { continue }
            let file = (root.hasSuffix("/") ? root : root + "/") + path
            // The manifest cannot contain its own digest.
            guard file != output, try FileManager.default.attributesOfItem(atPath: file)[.type] as? FileAttributeType == .typeRegular else {
                continue
            }
            let (digest, size) = try content(of: file)
            files.append(ListedFile(path: path, sha256: digest, byteCount: size))
        }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        var text = Data()
        for file in files { text += try encoder.encode(file) + Data("\n".utf8) }
        text += Data("{\"count\":\(files.count)}\n".utf8)
        guard let url = options.output else { return FileHandle.standardOutput.write(text) }
        // In one step, so that a client reads the old manifest or the new one.
        try text.write(to: url, options: .atomic)
        let bytes = files.reduce(0) { $0 + ($1.byteCount ?? 0) }
        Show(options).line("\(files.count) files, \(Show.bytes(bytes)); the manifest is \(url.path(percentEncoded: false))")
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
