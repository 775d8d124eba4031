import Foundation
import LoopbackOrigin
import StoreCore
import StoreFiles
import StorePlatform
import Testing
import Trials

@testable import RemoteRouting

/// The digest of a download, which is computed while the bytes arrive.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct DownloadDigestTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    @Test(arguments: part(of: seeds(40), each: 9))
    func `H11: a digest covers every byte of the file, in any number of attempts`(seed: Int) throws {
        var random = SplitMix(seed: UInt64(seed))
        var content: [UInt8] = []
        var file = try directory.openPart()
        for _ in 0..<60 {
            switch Int.random(in: 0..<9, using: &random) {
            case 0:
                try file.restart()
                content = []
            case 1: #expect(try file.digest() == SHA256.digest(of: content))
            case 2:
                // Simulates a new process.
                file.file.unlock()
                file = try directory.openPart()
                #expect(file.length == content.count)
            default:
                let bytes = pseudorandomBytes(Int.random(in: 0..<5_000, using: &random), seed: content.count)
                try file.append(bytes)
                content += bytes
            }
        }
        #expect(try file.digest() == SHA256.digest(of: content))
        #expect(try Data(contentsOf: directory.part) == Data(content))
    }

    @Test func `H11: bytes are hashed as they arrive, and are not read again`() throws {
        var file = try directory.openPart()
        try file.append([1, 2, 3])
        let other = try FileHandle(forWritingTo: directory.part)
        try other.write(contentsOf: [7])
        try other.close()
        try file.append([4])
        #expect(try file.digest() == SHA256.digest(of: [1, 2, 3, 4]))
    }

    @Test func `H11: a file that is not hashed while it is written has the digest of its whole content`() throws {
        var file = try directory.openPart(isHashed: false)
        try file.append([1, 2, 3])
        file.file.unlock()
        file = try directory.openPart(isHashed: false)
        try file.append([4])
        #expect(try file.digest() == SHA256.digest(of: [1, 2, 3, 4]))
    }

    @Test(arguments: [true, false])
    func `H11: a resumed download reports the digest of the whole file`(isExpected: Bool) async throws {
        let content = Data(pseudorandomBytes(300_000, seed: 1))
        let digest = SHA256.digest(of: [UInt8](content)).hex
        let breaks = WatchedState(true)
        let origin = try LoopbackOrigin { request in
            let response = LoopbackOrigin.Response.data(content).tagged("v1").ranged(by: request)
            return breaks.current ? response.misbehaving(.truncate(afterBodyBytes: 150_000)) : response
        }
        let host = RemoteHost(origin.port, over: URLSessionTransport()).with { $0.retry = .never }
        let found = WatchedState<[String]>([])
        func download() async throws {
            try await host.download(Route(path: "/f"), to: directory.target, sha256: isExpected ? digest : nil) { _ in
            } onDigest: { text in
                found.update { $0.append(text) }
            }
        }
        _ = try await remoteError { try await download() }
        #expect(found.current.isEmpty)
        breaks.update { $0 = false }
        try await download()
        #expect(found.current == [digest] && origin.requests.last?.status == 206)
        #expect(try Data(contentsOf: directory.target) == content)
    }

    @Test func `H11: a partial file with another hard link is replaced, not overwritten`() throws {
        try Data("old".utf8).write(to: directory.part)
        let backup = directory.file("backup")
        try FileManager.default.linkItem(at: directory.part, to: backup)
        var file = try directory.openPart()
        #expect(file.length == 0)
        try file.append([1, 2, 3, 4])
        #expect(try Data(contentsOf: backup) == Data("old".utf8))
    }
}

extension PartialFile {
    mutating func append(_ bytes: [UInt8]) throws { try bytes.withUnsafeBytes { try append($0) } }
}

extension TemporaryDirectory {
    func openPart(isHashed: Bool = true) throws -> PartialFile {
        let folder = try #require(try DirectoryHandle(opening: directory))
        return try PartialFile.locked(partName, note: partName + ".state", in: folder, isHashed: isHashed)
    }
}
