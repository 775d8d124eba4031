import Foundation
import StoreCore
internal import StorePlatform
import SyncEngine
import Trials

/// Files, links and directories with other metadata, texts, names and kinds in each generation.
enum DescribedObjects {
    private static func content(_ number: Int) -> [UInt8] { Array("content \(number)".utf8) }

    private static func file(_ number: Int, in folder: String, generation: Int) -> ListedFile {
        let content = content(number)
        var file = ListedFile(path: "\(folder)/\(number)", sha256: SHA256.digest(of: content).hex, byteCount: Int64(content.count))
        file.metadata = FileMetadata(mode: generation % 2 == 0 ? 0o640 : 0o700, modified: 1_000_000_000 + Int64(generation))
        return file
    }

    private static func object(_ number: Int, generation: Int) -> ListedFile {
        switch number % 5 {
        case 0: return file(number, in: "files", generation: generation)
        case 1: return ListedFile(path: "links/\(number)", kind: .link(to: "../files/\(number + generation)"))
        case 2: return ListedFile(path: "directories-\(generation)/\(number)", kind: .directory)
        case 3: return ListedFile(path: "links-\(generation)/\(number)", kind: .link(to: "../files/0"))
        default: break
        }
        // A file becomes a link, a link a directory, and a directory a file.
        switch (number + generation) % 3 {
        case 0: return file(number, in: "shapes", generation: generation)
        case 1: return ListedFile(path: "shapes/\(number)", kind: .link(to: "\(generation)"))
        default: return ListedFile(path: "shapes/\(number)", kind: .directory)
        }
    }

    /// Runs a pass over the list of a generation, and prints the number of changes.
    static func synchronize(_ count: Int, generation: Int, in directory: URL, durability: Durability) async {
        var layers = MirrorLayers()
        layers.metadata = .all
        let target = DirectoryTarget(directory: directory, transfer: Transfer(), durability: durability, layers: layers) {
            ListedSource((0..<count).map { object($0, generation: generation) })
        }
        await SyncCrashWriter.synchronize(target) { $0.metadataCount }
    }

    private struct Transfer: FileTransfer {
        func transfer(_ file: ListedFile, into part: FilePart) async throws {
            try part.append(content(file.path.split(separator: "/").last.flatMap { Int($0) } ?? 0))
        }
    }
}
