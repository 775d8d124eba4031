import Foundation
import LoopbackOrigin
import StoreCore
import StorePlatform
import Testing
import Trials

@testable import RemoteRouting

@Suite(.timeLimit(.minutes(hangMinutes)))
struct DownloadTests {
    private let content = DownloadBench.content

    @Test(arguments: RealTransport.available, [DownloadBench.digest, DownloadBench.digest.uppercased()])
    func `H11: a file appears at its target when it is complete`(_ transport: RealTransport, _ digest: String) async throws {
        let bench = try DownloadBench(transport) { _ in .data(content).tagged() }
        let seen = WatchedState<[TransferProgress]>([])
        let response = try await bench.host.download(Route(path: "/f"), to: bench.place.target, sha256: digest) { progress in
            seen.update { $0.append(progress) }
        }
        #expect(try Data(contentsOf: bench.place.target) == content)
        #expect(try bench.place.names == ["film.bin"])
        #expect(response.value == bench.place.target)
        #expect(seen.current.first == TransferProgress(bytes: 0, total: 200_000))
        #expect(seen.current.last == TransferProgress(bytes: 200_000, total: 200_000))
    }

    @Test(
        arguments: RealTransport.available, [LoopbackOrigin.Misbehavior.truncate(afterBodyBytes: 150_000), .reset(afterBodyBytes: 150_000)])
    func `H11: an interrupted download resumes after the received bytes`(
        _ transport: RealTransport, _ way: LoopbackOrigin.Misbehavior
    ) async throws {
        let bench = try DownloadBench(transport) { request in
            let response = LoopbackOrigin.Response.data(content).tagged("v1").ranged(by: request)
            return request.headers["Range"] == nil ? response.misbehaving(way) : response
        }
        try await bench.expectDownload(sha256: DownloadBench.digest)
        let second = try #require(bench.origin.requests.last)
        #expect(bench.origin.requests.count == 2 && second.status == 206)
        #expect(second.headers["If-Range"] == "\"v1\"" && second.headers["Range"]?.hasPrefix("bytes=") == true)
        #expect(try bench.place.names == ["film.bin"])
    }

    private static let names = ["film.bin"] + [244, 245, 255].map { String(repeating: "n", count: $0) }

    @Test(arguments: RealTransport.available, names)
    func `H11: a later call resumes an earlier download, to a long name too`(_ transport: RealTransport, _ name: String) async throws {
        let isUp = WatchedState(false)
        let bench = try DownloadBench(transport) { request in
            let response = LoopbackOrigin.Response.data(content).tagged("v1").ranged(by: request)
            return isUp.current ? response : response.misbehaving(.truncate(afterBodyBytes: 100_000))
        }
        let target = bench.place.file(name)
        try Data("old".utf8).write(to: target)
        let error = try await remoteError { try await bench.host.with { $0.retry = .never }.download(Route(path: "/f"), to: target) }
        #expect(error.code == .connectionLost)
        #expect(try Data(contentsOf: target) == Data("old".utf8))
        #expect(try bench.place.names.count == 3)
        if name == "film.bin" { #expect(try bench.place.names == [".film.bin.part", ".film.bin.part.state", "film.bin"]) }
        isUp.update { $0 = true }
        try await bench.host.download(Route(path: "/f"), to: target)
        #expect(try Data(contentsOf: target) == content)
        #expect(try bench.place.names == [name])
        #expect(bench.origin.requests.last?.headers["Range"] == "bytes=100000-")
    }

    @Test(arguments: RealTransport.available)
    func `H11: a download of a file that has changed starts over`(_ transport: RealTransport) async throws {
        let new = Data(content.reversed())
        let isNew = WatchedState(false)
        let bench = try DownloadBench(transport) { request in
            if isNew.current { return .data(new).tagged("v2").ranged(by: request) }
            return .data(content).tagged("v1").ranged(by: request).misbehaving(.truncate(afterBodyBytes: 100_000))
        }
        let impatient = bench.host.with { $0.retry = .never }
        _ = try await remoteError { try await impatient.download(Route(path: "/f"), to: bench.place.target) }
        isNew.update { $0 = true }
        try await bench.download(sha256: SHA256.digest(of: [UInt8](new)).hex)
        #expect(try Data(contentsOf: bench.place.target) == new)
        #expect(bench.origin.requests.last?.status == 200 && bench.origin.requests.last?.headers["If-Range"] == "\"v1\"")
    }

    @Test(arguments: RealTransport.available, ["W/\"v1\"", ""])
    func `H11: a download without a strong validator starts over`(_ transport: RealTransport, _ tag: String) async throws {
        let bench = try DownloadBench(transport) { request in
            var response = LoopbackOrigin.Response.data(content)
            if !tag.isEmpty { response = response.setting("ETag", to: tag) }
            return request.number == 1 ? response.misbehaving(.truncate(afterBodyBytes: 100_000)) : response
        }
        try await bench.expectDownload()
        #expect(bench.origin.requests.count == 2)
        #expect(bench.origin.requests.allSatisfy { $0.headers["Range"] == nil && $0.headers["If-Range"] == nil })
    }

    @Test(arguments: RealTransport.available)
    func `H11: a file with a wrong digest is discarded`(_ transport: RealTransport) async throws {
        let bench = try DownloadBench(transport) { _ in .data(content).tagged() }
        #expect(try await bench.failure(sha256: String(repeating: "0", count: 64)).code == .wrongDigest)
        #expect(!FileManager.default.fileExists(atPath: bench.place.target.path))
        #expect(try Data(contentsOf: bench.place.part).isEmpty)
    }

    @Test(arguments: RealTransport.available)
    func `H11: after a part that begins earlier than requested, a download starts over within the call`(_ transport: RealTransport)
        async throws
    {
        let bench = try DownloadBench(transport) { request in
            guard request.headers["Range"] != nil else { return .data(content).tagged("v1") }
            return .data(content.dropFirst(5), status: 206).tagged("v1").setting("Content-Range", to: "bytes 5-199999/200000")
        }
        try bench.leavePart()
        try await bench.expectDownload()
        #expect(bench.ranges == ["bytes=1000-", nil])
    }

    /// What an earlier download has left.
    struct Left: Sendable {
        var address = "/f"
        var validator = "\"v1\""
        var resumes = false
    }

    @Test(arguments: RealTransport.available)
    func `H11: a download that has started over after a 416 with another total resumes after an interruption`(
        _ transport: RealTransport
    ) async throws {
        let bench = try DownloadBench(transport) { request in
            if request.headers["Range"] == "bytes=1000-" { return .status(416).setting("Content-Range", to: "bytes */1000") }
            let response = LoopbackOrigin.Response.data(content).tagged("v2").ranged(by: request)
            return request.headers["Range"] == nil ? response.misbehaving(.truncate(afterBodyBytes: 100_000)) : response
        }
        try bench.leavePart(total: 200_000)
        try await bench.expectDownload()
        #expect(bench.ranges == ["bytes=1000-", nil, "bytes=100000-"])
    }

    @Test(
        arguments: RealTransport.available,
        [
            Left(validator: "\"a\r\nX: y\""), Left(validator: ""), Left(validator: "nonsense"), Left(validator: "W/\"v1\""),
            Left(validator: "\"a"), Left(address: "/other"), Left(address: "/f?signature=1&expires=2", resumes: true),
            Left(address: "/f?signature=1&expires=2", validator: "Sun, 06 Nov 1994 08:49:37 GMT"),
        ])
    func `H11: another signed address of a file resumes with the same strong tag, and another address or a damaged state does not`(
        _ transport: RealTransport, _ left: Left
    ) async throws {
        let bench = try DownloadBench(transport) { request in .data(content).tagged("v1").ranged(by: request) }
        // The content does not begin with zeros.
        let part = left.resumes ? content.prefix(1000) : Data(count: 1000)
        let address = bench.origin.url.absoluteString + left.address
        try bench.place.leavePart(part, from: address, validator: left.validator, total: 200_000)
        let route = left.address.contains("?") ? Route(path: "/f", query: ["signature": 3]) : Route(path: "/f")
        try await bench.host.download(route, to: bench.place.target)
        #expect(try Data(contentsOf: bench.place.target) == content)
        #expect(bench.ranges == [left.resumes ? "bytes=1000-" : nil])
    }

    @Test(arguments: RealTransport.available, [200_000, 150_000])
    func `H11: a download ends at 416 if the file is complete, and otherwise starts over`(
        _ transport: RealTransport, _ length: Int
    ) async throws {
        let new = Data(content.prefix(length))
        let bench = try DownloadBench(transport) { request in
            request.headers["Range"] == nil ? .data(new).tagged("v1") : .status(416).setting("Content-Range", to: "bytes */\(length)")
        }
        try bench.leavePart(length == 200_000 ? length : 175_000)
        try await bench.download()
        #expect(try Data(contentsOf: bench.place.target) == new)
        #expect(bench.origin.requests.count == (length == 200_000 ? 1 : 2))
    }

    @Test(arguments: RealTransport.available)
    func `H11: a second download of the same file is refused while the first is running`(_ transport: RealTransport) async throws {
        let bench = try DownloadBench(transport) { _ in .data(content).tagged().misbehaving(.stall(afterBodyBytes: 1000)) }
        let first = Task { try await bench.download() }
        try await bench.origin.waitForRequests(count: 1)
        #expect(try await bench.failure().code == .fileFailed)
        first.cancel()
        _ = try await remoteError { _ = try await first.value }
    }

    struct Row: Sendable {
        var status: Int
        var range: String?
        var tag: String? = "\"v1\""
        var coding: String?
        var modified: String?
        var known = "\"v1\""
        var offset: Int64? = 5
        var total: Int64? = 10
        var expected: String
    }

    private static let monday = "Mon, 07 Nov 1994 08:49:37 GMT"

    private static let rows: [Row] = [
        Row(status: 200, expected: "restart"), Row(status: 200, offset: nil, expected: "restart"),
        Row(status: 206, range: "bytes 5-9/10", expected: "append(end: 10, total: Optional(10))"),
        Row(status: 206, range: "bytes 5-9/*", expected: "append"),
        Row(status: 206, range: "bytes 5-8/*", expected: "append"), Row(status: 206, range: "bytes 5-10/*", expected: "refuse"),
        Row(status: 206, range: "bytes 5-8/*", total: nil, expected: "append"),
        Row(status: 206, range: "bytes 5-9/10", tag: nil, expected: "append"),
        Row(status: 206, range: "bytes 4-9/10", expected: "askAgain"), Row(status: 206, range: "bytes 6-9/10", expected: "refuse"),
        Row(status: 206, range: "bytes 5-8/10", expected: "append(end: 9, total: Optional(10))"),
        Row(status: 206, range: "bytes 5-11/12", expected: "refuse"), Row(status: 206, range: "bytes 5-10/12", expected: "refuse"),
        Row(status: 206, range: nil, expected: "refuse"), Row(status: 206, range: "bytes */10", expected: "refuse"),
        Row(status: 206, range: "bytes 5-9223372036854775807/*", total: nil, expected: "refuse"),
        Row(status: 206, range: "bytes 5-9223372036854775806/*", total: nil, expected: "append(end: 9223372036854775807"),
        Row(status: 206, range: "bytes 5-9/10", tag: "\"v2\"", expected: "refuse"),
        Row(status: 206, range: "bytes 5-9/10", tag: "W/\"v1\"", expected: "refuse"),
        Row(status: 206, range: "bytes 0-9/10", offset: nil, expected: "refuse"),
        Row(status: 416, range: "bytes */5", expected: "askAgain"), Row(status: 416, range: "bytes */4", expected: "askAgain"),
        Row(status: 416, range: "bytes */5", total: 5, expected: "complete"),
        Row(status: 416, range: "bytes */5", tag: "\"v2\"", total: 5, expected: "askAgain"),
        Row(status: 416, range: "bytes */5", total: nil, expected: "complete"),
        Row(status: 416, range: nil, total: 5, expected: "complete"), Row(status: 416, range: nil, total: nil, expected: "askAgain"),
        Row(status: 416, range: "bytes */5", offset: nil, expected: "refuse"), Row(status: 204, expected: "refuse"),
        Row(status: 206, range: "bytes 5-9/10", tag: nil, modified: "Sun, 06 Nov 1994 08:49:37 GMT", known: monday, expected: "refuse"),
        Row(status: 206, range: "bytes 5-9/10", tag: nil, modified: monday, known: monday, expected: "append"),
        Row(status: 206, range: "bytes 5-9/10", tag: nil, known: monday, expected: "append"),
    ]

    /// Only a content coding prevents a download from resuming.
    private static let codings = [
        ("aws-chunked", "append"), ("utf-8", "append"), ("none", "append"), ("identity", "append"), ("gzip", "refuse"), ("br", "refuse"),
        ("aws-chunked, GZIP", "refuse"),
    ]

    @Test(arguments: rows + codings.map { Row(status: 206, range: "bytes 5-9/10", coding: $0.0, expected: $0.1) })
    func `H11: the response to a download determines the action by this table`(_ row: Row) throws {
        var fields = HTTPFields()
        if let range = row.range { try fields.append("Content-Range", range) }
        if let tag = row.tag { try fields.append("ETag", tag) }
        if let coding = row.coding { try fields.append("Content-Encoding", coding) }
        if let modified = row.modified { try fields.append("Last-Modified", modified) }
        let known = DownloadState(address: "", validator: row.known, total: row.total)
        let decision = DownloadDecision.decide(
            status: row.status, fields: fields, offset: row.offset, known: row.offset == nil ? nil : known)
        #expect("\(decision)".hasPrefix(row.expected), "\(decision)")
    }

    @Test(
        arguments: [
            ("bytes 0-9/10", "0 9 10"), ("bytes 5-9/*", "5 9 nil"), ("bytes */10", "nil nil 10"), ("bytes 9-5/10", "none"),
            ("bytes 0-10/10", "none"), ("items 0-1/2", "none"), ("bytes -1-2/3", "none"), ("bytes 0-1", "none"), ("bytes a-b/c", "none"),
            ("", "none"), ("bytes 0-9/10/11", "none"), ("bytes 99999999999999999999-1/2", "none"),
            ("bytes 0-9223372036854775807/*", "none"), ("bytes 0-9/9223372036854775807", "none"),
            ("bytes 0-9/9223372036854775806", "0 9 9223372036854775806"),
        ] as [(String, String)])
    func `H11: Content-Range is parsed strictly`(_ field: String, _ expected: String) {
        func text(_ number: Int64?) -> String { number.map { "\($0)" } ?? "nil" }
        let range = ContentRange(field)
        #expect(range.map { "\(text($0.first)) \(text($0.last)) \(text($0.total))" } ?? "none" == expected)
    }

    @Test(
        arguments: [
            (["ETag": "\"a\""], "\"a\""), (["ETag": "W/\"a\""], nil), ([:], nil),
            (["Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT", "Date": "Sun, 06 Nov 1994 08:49:38 GMT"], nil),
            (["Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT", "Date": "Sun, 06 Nov 1994 09:49:38 GMT"], "Sun, 06 Nov 1994 08:49:37 GMT"),
            (["Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT"], nil), (["ETag": "\"a"], nil), (["ETag": "\"a\", \"b\""], nil),
            (["ETag": "\""], nil), (["ETag": "a"], nil), (["ETag": "*"], nil),
        ] as [([String: String], String?)])
    func `H11: only strong validators resume a download`(_ fields: [String: String], _ expected: String?) throws {
        let header = try RemoteRoutingTests.fields(fields.map { ($0.key, $0.value) })
        #expect(DownloadDecision.strongValidator(of: header, now: Date()) == expected)
    }
}

/// An origin, a host for it, and a target to download to.
struct DownloadBench: Sendable {
    static let content = Data((0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) })
    static let digest = SHA256.digest(of: [UInt8](content)).hex

    let place: TemporaryDirectory
    let origin: LoopbackOrigin
    let host: RemoteHost

    init(_ transport: RealTransport, _ handler: @escaping LoopbackOrigin.Handler) throws {
        place = try TemporaryDirectory()
        origin = try LoopbackOrigin(handler: handler)
        host = try transport.host(origin.port) { $0.random = { 0 } }
    }

    var ranges: [String?] { origin.requests.map { $0.headers["Range"] } }

    /// Leaves the first bytes of the content, as a broken download does.
    func leavePart(_ count: Int = 1000, total: Int64? = nil) throws {
        let address = origin.url.absoluteString + "/f"
        try place.leavePart(DownloadBench.content.prefix(count), from: address, validator: "\"v1\"", total: total)
    }

    @discardableResult
    func download(sha256: String? = nil) async throws -> RemoteResponse<URL> {
        try await host.download(Route(path: "/f"), to: place.target, sha256: sha256)
    }

    func failure(sha256: String? = nil) async throws -> RemoteError {
        try await remoteError { try await download(sha256: sha256) }
    }

    func expectDownload(sha256: String? = nil, at location: SourceLocation = #_sourceLocation) async throws {
        try await download(sha256: sha256)
        #expect(try Data(contentsOf: place.target) == DownloadBench.content, sourceLocation: location)
    }
}

extension TemporaryDirectory {
    /// A file to download to, and the part that a broken download leaves.
    var target: URL { file("film.bin") }
    var part: URL { file(partName) }
    var partName: String { ".film.bin.part" }
}
