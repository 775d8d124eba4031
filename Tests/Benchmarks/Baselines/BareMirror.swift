internal import Foundation
internal import RemoteRouting
internal import StoreCore
import StorePlatform
internal import SyncEngine

/// Distinct files of 4 KB with an origin's list of them; the digests are computed once.
struct ListedFiles: Sendable {
    static let size = 4_096

    let files: [ListedFile]
    let contents: [String: Data]

    init(count: Int) {
        var (files, contents): ([ListedFile], [String: Data]) = ([], [:])
        for number in 0..<count {
            let (path, bytes) = Self.file(number)
            files.append(ListedFile(path: path, sha256: SHA256.digest(of: bytes).hex, byteCount: Int64(bytes.count)))
            contents["/" + path] = Data(bytes)
        }
        self.files = files
        self.contents = contents
    }

    /// The list with other names for the first files.
    func renamed(_ count: Int) -> [ListedFile] {
        files.prefix(count).map { ListedFile(path: "renamed/" + $0.path, version: $0.version, byteCount: $0.byteCount, sha256: $0.sha256) }
            + files.dropFirst(count)
    }

    private static func file(_ number: Int) -> (path: String, bytes: [UInt8]) {
        let line = Array("file \(number)\n".utf8)
        // A hundred files per directory, like a collection of pictures.
        return ("d\(number / 100)/f\(number)", (0..<size).map { line[$0 % line.count] })
    }

    /// Writes the first files into a directory.
    static func write(_ count: Int, into directory: String) throws {
        for number in 0..<count {
            let (path, bytes) = file(number)
            let url = URL(filePath: directory, directoryHint: .isDirectory).appending(path: path)
            if number % 100 == 0 {
                try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
            }
            try Data(bytes).write(to: url)
        }
    }
}

/// A handwritten fetch of a list of files: several at a time, each written under its final name at once.
struct BareMirror: Sendable {
    let session: BareSession
    let origin: URL

    func run(into directory: String, width: Int) async throws {
        let list = try JSONDecoder().decode([ListedFile].self, from: try await session.data(from: origin.appending(path: "list.json")))
        for parent in Set(list.map { $0.path.split(separator: "/").dropLast().joined(separator: "/") }) {
            try FileManager.default.createDirectory(atPath: directory + "/" + parent, withIntermediateDirectories: true)
        }
        let tasks = (0..<width).map { worker in
            Task {
                for index in stride(from: worker, to: list.count, by: width) {
                    let data = try await session.data(from: origin.appending(path: list[index].path))
                    try data.withUnsafeBytes { try writeByHand($0, directory + "/" + list[index].path) }
                }
            }
        }
        for task in tasks { try await task.value }
    }
}

/// The file transfer of the mirror: small files arrive in one piece, and large downloads resume after an interruption.
struct HostTransfer: FileTransfer {
    let host: RemoteHost

    func transfer(_ file: ListedFile, into part: FilePart) async throws {
        let path: RoutePath = "/\(segments: file.path.split(separator: "/").map(String.init))"
        if let size = file.byteCount, size <= 262_144 {
            try part.append(try await host.data(for: Route(path: path)))
        } else {
            try await host.download(Route(path: path), to: try part.workingFile())
            part.adoptWorkingFile()
        }
    }
}
