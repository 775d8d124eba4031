import Foundation
import LoopbackOrigin
import StoreCore
import Testing
import Trials
@testable import SyncEngine

#if os(macOS) || os(Linux)

/// S19: links and directories that another program puts in the place of a target's own directories.
struct InsideTargetTests {
    /// Makes a target with a transfer that writes a working file, after another program has exchanged the working directory.
    private func target(
        _ bench: DirectoryBench, exchange: @escaping @Sendable (URL) throws -> Void
    ) -> DirectoryTarget<ListedSource<ListedFile>, ClosureTransfer<ListedFile>> {
        let transfer = ClosureTransfer<ListedFile> { _, part in
            let place = try part.workingFile()
            try exchange(place)
            try Data("content".utf8).write(to: place)
            try Data("state".utf8).write(to: place.deletingLastPathComponent().appending(path: "state"))
            part.adoptWorkingFile()
        }
        return DirectoryTarget(directory: bench.url, transfer: transfer, durability: .crash) {
            ListedSource([ListedFile(path: "a", sha256: digest("content"))])
        }
    }

    /// The real path of the working directory of `a`.
    private func workingDirectory(_ bench: DirectoryBench) -> URL {
        bench.url.appending(path: ".storehouse/parts/\(PartNames(path: "a").directory)")
    }

    private func content(of directory: URL) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: directory.path(percentEncoded: false))
    }

    @Test(arguments: ["working", "parts", "own"])
    func `S19: a transfer that writes a working file stays in the target if a link takes the place of a directory`(which: String)
        async throws
    {
        let bench = try DirectoryBench()
        let outside = try TemporaryDirectory()
        let exchanged =
            switch which {
            case "working": workingDirectory(bench)
            case "parts": bench.url.appending(path: ".storehouse/parts")
            default: bench.url.appending(path: ".storehouse")
            }
        let working = workingDirectory(bench).path(percentEncoded: false).dropFirst(exchanged.path(percentEncoded: false).count)
        try FileManager.default.createDirectory(at: outside.url.appending(path: String(working)), withIntermediateDirectories: true)
        let target = target(bench) { [outside = outside.url, moved = bench.url.appending(path: "moved")] _ in
            try FileManager.default.moveItem(at: exchanged, to: moved)
            try FileManager.default.createSymbolicLink(at: exchanged, withDestinationURL: outside)
        }
        _ = await syncError { try await OneWaySynchronizer(processor: target, options: SyncOptions(retry: .never)).sync() }
        #expect(try content(of: outside.url.appending(path: String(working))) == [])
    }

    @Test func `S19: a transfer writes into the directory that was made for it, and its file is installed`() async throws {
        let bench = try DirectoryBench()
        let report = try await OneWaySynchronizer(processor: target(bench) { _ in }).sync()
        #expect(report.addedCount == 1)
        #expect(try bench.files == ["a": "content"])
        #expect(try content(of: bench.url.appending(path: ".storehouse/parts")) == [])
    }

    #if os(Linux)
    @Test func `S19: the path of a working file works in a child process, too`() async throws {
        let bench = try DirectoryBench()
        let target = target(bench) { place in
            let directory = place.deletingLastPathComponent().path(percentEncoded: false)
            _ = try ChildProcess.output(of: "/usr/bin/env", ["sh", "-c", "printf content > '\(directory)/by-child'"])
        }
        try await OneWaySynchronizer(processor: target).sync()
        #expect(try bench.files == ["a": "content"])
    }

    @Test(arguments: [1, 2, 3])
    func `S19: a download of mirror stays in the target if a link takes the place of its directory`(round: Int) async throws {
        let bench = try DirectoryBench()
        let outside = try TemporaryDirectory()
        let large = Data(pseudorandomBytes(600_000, seed: round))
        let directory = bench.url.appending(path: ".storehouse/parts/\(PartNames(path: "film").directory)")
        let manifest = #"[{"path":"film","size":600000,"version":"1"}]"#
        let origin = try LoopbackOrigin { [outside = outside.url, moved = bench.url.appending(path: "moved")] request in
            if request.path == "/list" { return .json(literal: manifest) }
            // The working directory exists by now, because the request for its file has arrived.
            try? FileManager.default.moveItem(at: directory, to: moved)
            try? FileManager.default.createSymbolicLink(at: directory, withDestinationURL: outside)
            return .data(large).tagged()
        }
        defer { origin.stop() }
        _ = try await bench.mirror(origin.url.appending(path: "list").absoluteString, ["--retries", "0"])
        #expect(try content(of: outside.url) == [])
        #expect(bench.exists("moved"), "the directory was exchanged")
    }
    #endif

    @Test(.enabled(if: isRoot(), "only root can give a directory to another user"), arguments: [".storehouse", ".storehouse/parts"])
    func `S19: a directory of the target that belongs to another user is refused`(name: String) async throws {
        let bench = try await DirectoryBench(["a": "one", "b": "two"]).synced()
        bench["a"] = "three"
        let path = bench.url.appending(path: name).path(percentEncoded: false)
        try FileManager.default.setAttributes([.ownerAccountID: 65534], ofItemAtPath: path)
        let error = await syncError { try await bench.sync() }
        #expect((error?.code, error?.failureKind) == (.foreignOwner, .fatal))
        #expect(error?.message.contains("65534") == true)
        #expect(try bench.files == ["a": "one", "b": "two"])
        try FileManager.default.setAttributes([.ownerAccountID: 0], ofItemAtPath: path)
        try await bench.sync()
        #expect(try bench.files == ["a": "three", "b": "two"])
    }

    @Test(.enabled(if: isRoot(), "only root can give a directory to another user"))
    func `S19: a working directory that belongs to another user is refused`() async throws {
        let bench = try DirectoryBench()
        let working = workingDirectory(bench)
        let target = target(bench) { _ in
            try FileManager.default.setAttributes([.ownerAccountID: 65534], ofItemAtPath: working.path(percentEncoded: false))
            throw Trouble.passing
        }
        let options = SyncOptions(stopsOnError: false, retry: RetryPolicy(attempts: 2, base: .zero))
        let error = await syncError { try await OneWaySynchronizer(processor: target, options: options).sync() }
        #expect((error?.report?.failures.first?.error as? SyncError)?.code == .foreignOwner)
    }
}

#endif
