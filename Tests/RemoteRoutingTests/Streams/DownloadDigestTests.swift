import Foundation
import LoopbackOrigin
import StoreCore
import StorePlatform
import Testing
import Trials

@testable import RemoteRouting

/// The digest of a download, which is computed while the bytes arrive.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct DownloadDigestTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func write(_ bytes: [UInt8], _ offset: Int, to file: PartialFile) throws {
        try bytes.withUnsafeBytes { try file.write($0, at: Int64(offset)) }
    }

    @Test(arguments: part(of: seeds(40), each: 9))
    func `H11: a digest covers every byte of the file, in any order of writes`(seed: Int) throws {
        var random = SplitMix(seed: UInt64(seed))
        var content: [UInt8] = []
        var opened: PartialFile? = try PartialFile(directory.partName, in: directory.directory, isHashed: true)
        for _ in 0..<60 {
            if Int.random(in: 0..<10, using: &random) == 0 {
                // Simulates a new process: releasing the file ends its lock.
                opened = nil
                opened = try PartialFile(directory.partName, in: directory.directory, isHashed: true)
            }
            let file = try #require(opened)
            switch Int.random(in: 0..<9, using: &random) {
            case 0:
                try file.empty()
                content = []
            case 1: #expect(try file.digest() == SHA256.digest(of: content))
            case 2 where !content.isEmpty:
                let offset = Int.random(in: 0..<content.count, using: &random)
                let bytes = [UInt8](repeating: 9, count: Int.random(in: 0..<300, using: &random))
                try write(bytes, offset, to: file)
                content.replaceSubrange(offset..<min(content.count, offset + bytes.count), with: bytes)
            default:
                let bytes = pseudorandomBytes(Int.random(in: 0..<5_000, using: &random), seed: content.count)
                try write(bytes, content.count, to: file)
                content += bytes
            }
        }
        #expect(try opened?.digest() == SHA256.digest(of: content))
        #expect(try Data(contentsOf: directory.part) == Data(content))
    }

    @Test func `H11: bytes are hashed as they arrive, and are not read again`() throws {
        let file = try PartialFile(directory.partName, in: directory.directory, isHashed: true)
        try write([1, 2, 3], 0, to: file)
        let other = try FileHandle(forWritingTo: directory.part)
        try other.write(contentsOf: [7])
        try other.close()
        try write([4], 3, to: file)
        #expect(try file.digest() == SHA256.digest(of: [1, 2, 3, 4]))
    }

    @Test func `H11: a file that is not hashed while it is written has the digest of its whole content`() throws {
        try write([1, 2, 3], 0, to: PartialFile(directory.partName, in: directory.directory))
        let file = try PartialFile(directory.partName, in: directory.directory)
        try write([4], 3, to: file)
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
        let host = RemoteHost(HostConfiguration("127.0.0.1", scheme: .http, port: Int(origin.port)), transport: URLSessionTransport())
            .with {
                $0.retry = .never
                $0.timeouts = .untilHang
            }
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
        #expect(found.current == [digest])
        #expect(origin.requests.last?.status == 206)
        #expect(try Data(contentsOf: directory.target) == content)
    }

    @Test func `H11: a partial file with another hard link is replaced, not overwritten`() throws {
        try Data("old".utf8).write(to: directory.part)
        let backup = directory.file("backup")
        try FileManager.default.linkItem(at: directory.part, to: backup)
        let file = try PartialFile(directory.partName, in: directory.directory)
        #expect(try file.length() == 0)
        try write([1, 2, 3, 4], 0, to: file)
        #expect(try Data(contentsOf: backup) == Data("old".utf8))
    }
}
