internal import Foundation
internal import RemoteRouting
internal import StoreCore
internal import SyncEngine

/// So many files of 4 KB, all different, as an origin has them; their digests are made once.
struct ListedFiles: Sendable {
    static let size = 4_096

    let files: [ListedFile]
    let contents: [String: Data]

    init(count: Int) {
        var (files, contents): ([ListedFile], [String: Data]) = ([], [:])
        for number in 0..<count {
            let line = Array("file \(number)\n".utf8)
            let bytes = (0..<Self.size).map { line[$0 % line.count] }
            // A hundred in a directory, as a collection of pictures may be.
            let path = "d\(number / 100)/f\(number)"
            files.append(ListedFile(path: path, sha256: SHA256.digest(of: bytes).hex, byteCount: Int64(bytes.count)))
            contents["/" + path] = Data(bytes)
        }
        self.files = files
        self.contents = contents
    }
}

/// What one would write by hand to fetch a list of files: sixteen at a time, each written under its name as soon as it is there.
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

/// The mirror's way to a file: what is small comes in one piece, what is large goes on where it broke off.
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

    func list() async throws -> ListedSource<ListedFile> { ListedSource(try await host.send("/list.json")) }
}
