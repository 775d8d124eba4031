import Foundation
import StoreCore
import Testing
@testable import SyncEngine

/// The digest of a downloaded file, and the bytes that it covers.
struct DigestTests {
    private let bench: DirectoryBench

    init() throws { bench = try DirectoryBench() }

    private func sync(_ file: ListedFile, _ body: @escaping @Sendable (ListedFile, FilePart) async throws -> Void) async throws {
        let target = DirectoryTarget(directory: bench.url, transfer: ClosureTransfer(body), durability: .crash) { ListedSource([file]) }
        try await OneWaySynchronizer(processor: target, options: SyncOptions(stopsOnError: false, retry: .never)).sync()
    }

    @Test func `S16: the target does not read a file that the transfer has hashed`() async throws {
        try await sync(ListedFile(path: "a", sha256: digest("arrived"))) { _, part in
            // Writes other bytes than those of the digest; a target that read them would refuse them.
            try Data("changed".utf8).write(to: try part.workingFile())
            part.adoptWorkingFile(sha256: digest("arrived").uppercased())
        }
        #expect(try bench.files == ["a": "changed"])
    }

    @Test(arguments: ["another", "none", "nil"])
    func `S16: a file with a wrong or missing transfer digest is not installed`(given: String) async throws {
        let error = await syncError {
            try await sync(ListedFile(path: "a", sha256: digest("listed"))) { _, part in
                try Data("arrived".utf8).write(to: try part.workingFile())
                part.adoptWorkingFile(sha256: given == "another" ? digest("arrived") : given == "none" ? "no digest" : nil)
            }
        }
        #expect(codes(error) == [.wrongContent])
        #expect(try bench.files.isEmpty)
    }

    @Test(arguments: [nil, digest("listed")], [false, true])
    func `S9, S16: a working file that does not exist is not installed`(sha256: String?, hasPlace: Bool) async throws {
        let error = await syncError {
            try await sync(ListedFile(path: "a", version: "1", sha256: sha256)) { _, part in
                if hasPlace { _ = try part.workingFile() }
                part.adoptWorkingFile(sha256: digest("listed"))
            }
        }
        #expect(codes(error) == [.transferMisused])
        #expect(try bench.files.isEmpty)
    }

    @Test func `S16: bytes appended after the adoption of a working file are not installed`() async throws {
        try await sync(ListedFile(path: "a", sha256: digest("arrived"))) { _, part in
            try Data("arrived".utf8).write(to: try part.workingFile())
            part.adoptWorkingFile()
            try part.append(Array("more".utf8))
        }
        #expect(try bench.files == ["a": "arrived"])
    }

    @Test func `S10: a validator stored without bytes gives no resume point`() async throws {
        let parts = bench.url.appending(path: ".storehouse/parts")
        try FileManager.default.createDirectory(at: parts, withIntermediateDirectories: true)
        let memory = PartMemory(path: "a", version: digest("whole"), validator: "\"1\"")
        try JSONEncoder().encode(memory).write(to: parts.appending(path: PartNames(path: "a").memory))
        try await sync(ListedFile(path: "a", sha256: digest("whole"))) { _, part in
            #expect(part.resumePoint == nil)
            try part.append(Array("whole".utf8))
        }
        #expect(try bench.files == ["a": "whole"])
    }

    @Test func `S16: bytes of a partially failed write are not installed`() async throws {
        let names = PartNames(path: "a")
        try await sync(ListedFile(path: "a", sha256: digest("whole"))) { [url = bench.url] _, part in
            try part.append(Array("whole".utf8))
            let file = try FileHandle(forWritingTo: url.appending(path: ".storehouse/parts/\(names.bytes)"))
            try file.seekToEnd()
            try file.write(contentsOf: Data("half".utf8))
            try file.close()
        }
        #expect(try bench.files == ["a": "whole"])
    }

    @Test func `S16: a restarted transfer is hashed from its first byte`() async throws {
        try await sync(ListedFile(path: "a", sha256: digest("second"))) { _, part in
            try part.append(Array("first and longer".utf8))
            try part.begin(at: 0, validator: "\"2\"")
            try part.append(Array("sec".utf8))
            try part.append(Array("ond".utf8))
        }
        #expect(try bench.files == ["a": "second"])
    }
}
