import Foundation
import LoopbackOrigin
import RemoteRoutingTesting
import StoreCore
import StoreCoreTesting
import StoreFiles
import StorePlatform
import Testing
import Trials

@testable import RemoteRouting

/// Downloads from misleading servers, and into missing, damaged or occupied places.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct DownloadFaultTests {
    private let content = DownloadBench.content

    @Test(
        arguments: RealTransport.available,
        ["", "abc", String(repeating: "g", count: 64), String(repeating: "0", count: 63), String(repeating: "0", count: 65)])
    func `H11: a malformed digest is refused before anything is sent`(_ transport: RealTransport, _ digest: String) async throws {
        let bench = try DownloadBench(transport) { _ in .text("x") }
        let error = try await bench.failure(sha256: digest)
        #expect(error.stage == .build && (error.underlyingError as? RouteFault)?.code == .invalidOption, "\(error)")
        #expect(bench.origin.requests.isEmpty)
    }

    @Test(arguments: RealTransport.available)
    func `H11: a part of another build of the framework is discarded with an error, and the next call starts over`(
        _ transport: RealTransport
    ) async throws {
        let bench = try DownloadBench(transport) { _ in .data(content).tagged("v1") }
        try content.prefix(1000).write(to: bench.place.part)
        let state = SealedFile("SHpartof", version: 2, temporaryKind: "part").encode([1, 2, 3])
        try Data(state).write(to: bench.place.file(".film.bin.part.state"))
        let error = try await bench.failure()
        #expect(error.code == .fileFailed && error.description.contains("version 2"), "\(error)")
        #expect(bench.origin.requests.isEmpty)
        try await bench.expectDownload()
    }

    @Test(
        arguments: RealTransport.available,
        [("bytes 2000-199999/200000", false), ("bytes 1000-1999/200000", false), ("bytes 1000-1999/200000", true)])
    func `H11: a download starts over after the server sent a wrong range, or a part that is too long, even if it breaks off`(
        _ transport: RealTransport, _ way: (range: String, breaks: Bool)
    ) async throws {
        let bench = try DownloadBench(transport) { request in
            guard request.headers["Range"] != nil else { return .data(content).tagged("v1") }
            let part = LoopbackOrigin.Response.data(content.dropFirst(2000), status: 206).tagged("v1")
                .setting("Content-Range", to: way.range)
            return way.breaks ? part.misbehaving(.truncate(afterBodyBytes: 100_000)) : part
        }
        try bench.leavePart()
        #expect(try await bench.failure().code == .wrongRange)
        #expect(!FileManager.default.fileExists(atPath: bench.place.target.path))
        try await bench.expectDownload()
        #expect(bench.ranges == ["bytes=1000-", nil])
    }

    /// How a server without the total refuses the range after the last byte, and what a download asks it then.
    struct Ending: Sendable {
        var total = "*"
        var field: String?
        var isDigestKnown = false
        var ranges: [String?] = []
    }

    @Test(
        arguments: RealTransport.available,
        [
            Ending(field: "bytes */200000", ranges: ["bytes=200000-"]), Ending(ranges: ["bytes=200000-", nil]),
            Ending(isDigestKnown: true), Ending(total: "200000"),
        ])
    func `H11: a part ends the file only if its total, the server or the digest says so, and otherwise the rest is requested`(
        _ transport: RealTransport, _ ending: Ending
    ) async throws {
        let bench = try DownloadBench(transport) { request in
            guard let start = request.headers["Range"].flatMap({ Int($0.dropFirst("bytes=".count).dropLast()) }) else {
                return .data(content).tagged("v1")
            }
            guard start < content.count else {
                return ending.field.map { .status(416).setting("Content-Range", to: $0) } ?? .status(416)
            }
            let end = min(start + 60_000, content.count)
            return .data(content[start..<end], status: 206).tagged("v1").setting(
                "Content-Range", to: "bytes \(start)-\(end - 1)/\(ending.total)")
        }
        try bench.leavePart()
        try await bench.expectDownload(sha256: ending.isDigestKnown ? DownloadBench.digest : nil)
        let parts: [String?] = ["bytes=1000-", "bytes=61000-", "bytes=121000-", "bytes=181000-"]
        #expect(bench.ranges == parts + ending.ranges)
    }

    @Test(arguments: RealTransport.available)
    func `H11: a download fails after 100 parts of one byte, and keeps them for the next call`(_ transport: RealTransport) async throws {
        let bench = try DownloadBench(transport) { request in
            guard let start = request.headers["Range"].flatMap({ Int($0.dropFirst("bytes=".count).dropLast()) }), start < 2_000 else {
                return .data(content).tagged("v1")
            }
            return .data(content[start...start], status: 206).tagged("v1").setting("Content-Range", to: "bytes \(start)-\(start)/*")
        }
        try bench.leavePart()
        #expect(try await bench.failure().code == .wrongRange)
        #expect(try Data(contentsOf: bench.place.part) == content.prefix(1_100))
    }

    @Test(arguments: RealTransport.available, [2, Int.max])
    func `H7: a download is retried as often as other calls, and reports its attempts`(
        _ transport: RealTransport, _ failures: Int
    ) async throws {
        let bench = try DownloadBench(transport) { request in request.number > failures ? .data(content) : .status(503) }
        if failures == 2 {
            #expect(try await bench.download().attempts == 3)
        } else {
            let error = try await bench.failure()
            #expect(error.status == 503 && error.attempts == 3, "\(error)")
        }
        #expect(bench.origin.requests.count == 3)
    }

    @Test(arguments: RealTransport.available)
    func `H7: a download does not wait beyond the overall deadline for Retry-After`(_ transport: RealTransport) async throws {
        let bench = try DownloadBench(transport) { _ in .status(503).setting("Retry-After", to: "3600") }
        #expect(try await bench.failure().retryAfter == .seconds(3600))
        #expect(bench.origin.requests.count == 1)
    }

    @Test(arguments: RealTransport.available)
    func `H6: each attempt of a long download has its own overall deadline`(_ transport: RealTransport) async throws {
        let bench = try DownloadBench(transport) { request in
            let response = LoopbackOrigin.Response.data(content).tagged("v1").ranged(by: request)
            return request.headers["Range"] == nil ? response.misbehaving(.truncate(afterBodyBytes: 100_000)) : response
        }
        let time = ManualTime()
        let host = bench.host.with {
            $0.time = time
            $0.timeouts = .init(overall: .seconds(10))
        }
        try await host.download(Route(path: "/f"), to: bench.place.target) { progress in
            if progress.bytes == 0 { time.advance(by: .seconds(20)) }
        }
        #expect(try Data(contentsOf: bench.place.target) == content)
        #expect(bench.origin.requests.count == 2)
    }

    @Test(arguments: RealTransport.available)
    func `H11: a download into a missing directory or onto a directory fails with fileFailed`(_ transport: RealTransport) async throws {
        let bench = try DownloadBench(transport) { _ in .text("x") }
        let missing = bench.place.file("missing/film.bin")
        let error = try await remoteError { try await bench.host.download(Route(path: "/f"), to: missing) }
        #expect(error.code == .fileFailed && error.message.contains("missing"))
        #expect(bench.origin.requests.isEmpty)
        try FileManager.default.createDirectory(at: bench.place.target, withIntermediateDirectories: true)
        #expect(try await bench.failure().code == .fileFailed)
    }

    #if os(macOS) || os(Linux)
    @Test(.enabled(if: canMountSmallDisks(), "this process may not mount a small disk"))
    func `H11: a full disk is reported in the error`() async throws {
        let place = try TemporaryDirectory()
        let origin = try LoopbackOrigin { _ in .data(content) }
        let path = place.url.path(percentEncoded: false)
        let process = try ChildProcess(onDisk: "size=64k,mode=700", at: path, "HostileClient", ["download", "\(origin.port)", path])
        try await until("the client ends") { !process.isRunning }
        let output = process.rest
        #expect(output.hasPrefix("fileFailed") && output.contains(".film.bin.part") && output.lowercased().contains("space"), "\(output)")
    }
    #endif

    /// The first page of a process is not mapped, so reading it fails.
    @Test(.enabled(if: FileManager.default.isWritableFile(atPath: "/proc/self/mem")))
    func `H11: an unreadable partial file is reported in the error`() throws {
        let folder = try #require(try DirectoryHandle(opening: Directory(path: "/proc/self")))
        var file = PartialFile(try WritableFile("mem", in: folder), length: 1, note: "none", in: folder)
        let error = #expect(throws: StoreError.self) { _ = try file.digest() }
        #expect(error?.message.contains("/proc/self/mem") == true)
    }

    @Test(arguments: RealTransport.available)
    func `H11: a target that appears during the download is replaced`(_ transport: RealTransport) async throws {
        let place = try TemporaryDirectory()
        let target = place.target
        let origin = try LoopbackOrigin { _ in
            _ = FileManager.default.createFile(atPath: target.path, contents: Data("meanwhile".utf8))
            return .data(content)
        }
        try await transport.host(origin.port).download(Route(path: "/f"), to: target)
        #expect(try Data(contentsOf: target) == content)
    }

    @Test func `H11: a file that another download has just finished is not opened as a partial file`() throws {
        let place = try TemporaryDirectory()
        try Data("whole".utf8).write(to: place.part)
        let folder = try #require(try DirectoryHandle(opening: place.directory))
        let opened = try WritableFile(place.partName, in: folder)
        #expect(opened.isNamed)
        // The file is open and not yet locked when the other download renames it.
        try FileManager.default.moveItem(at: place.part, to: place.target)
        #expect(!opened.isNamed)
        var next = try place.openPart()
        #expect(!opened.isNamed)
        try next.restart()
        #expect(try Data(contentsOf: place.target) == Data("whole".utf8))
    }

    @Test func `H11: a download to no file, or of no GET route, is refused before anything is sent`() async throws {
        let transport = MemoryTransport { _ in .status(200) }
        let host = RemoteHost("a.example", transport: transport)
        let address = try #require(URL(string: "https://b.example/nowhere/film.bin"))
        let (route, place) = (Route(path: "/f"), try TemporaryDirectory())
        let errors = [
            try await remoteError { try await host.download(route, to: address) },
            try await remoteError { try await host.download(Route(path: "/f", method: .post), to: place.target) },
        ]
        for error in errors { #expect(error.stage == .build && error.code == .unsupported, "\(error)") }
        #expect(transport.requests.isEmpty)
    }
}

extension TemporaryDirectory {
    func leavePart(_ bytes: Data, from address: String, validator: String, total: Int64? = nil) throws {
        try bytes.write(to: part)
        let state = DownloadState(address: address, validator: validator, total: total)
        try write(state)
    }

    func write(_ state: DownloadState) throws {
        try Data(SealedFile.part.encode(Array(JSONEncoder().encode(state)))).write(to: file(".film.bin.part.state"))
    }
}

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

    @Test func `H11: a partial file in a directory that was renamed meanwhile is an error`() throws {
        let (old, new) = (directory.file("old"), directory.file("new"))
        try FileManager.default.createDirectory(at: old, withIntermediateDirectories: true)
        let folder = try #require(try DirectoryHandle(opening: Directory(path: old.path)))
        try FileManager.default.moveItem(at: old, to: new)
        #expect(throws: StoreError.self) { try PartialFile.locked("part", note: "note", in: folder, isHashed: false) }
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
