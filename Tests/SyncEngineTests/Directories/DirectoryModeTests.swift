import Foundation
import LoopbackOrigin
import StoreCore
import StorePlatform
import Testing
import Trials
@testable import SyncEngine

#if os(macOS) || os(Linux)

/// The permissions of the files and directories that a target creates.
struct DirectoryModeTests {
    private func mode(_ url: URL) throws -> Int {
        var path = url.path(percentEncoded: false)
        while path.count > 1, path.hasSuffix("/") { path.removeLast() }
        return Int(try #require(try FileStatus.of(path: path)).permissions)
    }

    // The umask belongs to a whole process, so each case runs in a process of its own.
    @Test(arguments: [("022", 0o644, 0o755), ("027", 0o640, 0o750), ("002", 0o664, 0o775), ("077", 0o600, 0o700)])
    func `S9: files and directories of a mirror get the umask's permissions, however they arrive`(
        umask: String, file: Int, directory: Int
    ) async throws {
        let contents = ["/small": Data("small".utf8), "/d/e/large": Data(repeating: 7, count: 270_000), "/d/small": Data("s".utf8)]
        let origin = try LoopbackOrigin { request in
            if request.path == "/list" { return .json(contents.map { ListedFile($0, $1) }.sorted { $0.path < $1.path }) }
            return contents[request.path].map { .data($0).tagged().ranged(by: request) } ?? .notFound(for: request)
        }
        defer { origin.stop() }
        let bench = try DirectoryBench()
        let root = bench.url.appending(path: "new/root", directoryHint: .isDirectory)
        let list = origin.url.appending(path: "list").absoluteString
        #expect(try await runMirror([list, root.path(percentEncoded: false), "--plain"], after: "umask \(umask);").code == 0)
        for path in contents.keys { #expect(try mode(root.appending(path: String(path.dropFirst()))) == file, "\(path)") }
        for path in ["new", "new/root", "new/root/d", "new/root/d/e"] { #expect(try mode(bench.url.appending(path: path)) == directory) }
    }

    @Test(arguments: [FileModes(files: 0o664, directories: 0o2775), FileModes(files: 0o400, directories: 0o700), FileModes(files: 0o4000)])
    func `S9: fixed modes apply exactly to the files and directories that a pass creates`(modes: FileModes) async throws {
        let bench = try DirectoryBench(["small": "s", "d/large": String(repeating: "x", count: 100_000), "d/e/working": "w"])
        let root = bench.url.appending(path: "root", directoryHint: .isDirectory)
        try FileManager.default.createDirectory(at: root.appending(path: "d"), withIntermediateDirectories: true)
        try FileManager.default.setAttributes([.posixPermissions: 0o711], ofItemAtPath: root.appending(path: "d").path)
        // Appends bytes, or writes a working file, depending on the path.
        let transfer = ClosureTransfer<ListedFile> { file, part in
            guard file.path.hasSuffix("working") else { return try await BenchTransfer(bench: bench).transfer(file, into: part) }
            try Data((bench[file.path] ?? "").utf8).write(to: try part.workingFile())
            part.adoptWorkingFile()
        }
        func sync(breaking: Int? = nil) async throws {
            bench.origin.withLock { $0.breaks["d/large"] = breaking }
            let target = DirectoryTarget(directory: root, transfer: transfer, durability: .crash, modes: modes) {
                ListedSource(bench.origin.withLock { $0.contents.map { ListedFile(path: $0, sha256: digest($1)) } })
            }
            try await OneWaySynchronizer(processor: target, options: SyncOptions(stopsOnError: false, retry: .never)).sync()
        }
        _ = await syncError { try await sync(breaking: 60_000) }
        try await sync()
        bench["small"] = "changed"
        try await sync()
        for path in ["small", "d/large", "d/e/working"] {
            #expect(try mode(root.appending(path: path)) == Int(try #require(modes.files)), "\(path)")
        }
        #expect(try mode(root.appending(path: "d")) == 0o711)
        guard let directories = modes.directories else { return }
        for path in ["d/e", ".storehouse", ".storehouse/parts"] { #expect(try mode(root.appending(path: path)) == Int(directories)) }
    }
}

#endif
