import Foundation
import LoopbackOrigin
import StoreCore
import StorePlatform
import Testing
import Trials

@testable import RemoteRouting

/// Complete and resumed downloads.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct DownloadTests {
    private static let content = Data((0..<400_000).map { UInt8(truncatingIfNeeded: $0 &* 17 >> 4) })

    private var content: Data { Self.content }

    private func host(_ origin: LoopbackOrigin, _ transport: RealTransport) throws -> RemoteHost {
        try transport.host(origin.port) { $0.random = { 0 } }
    }

    /// An origin of the content that ends each response after 100 000 bytes until it is up.
    private func truncatingOrigin(until isUp: WatchedState<Bool>) throws -> LoopbackOrigin {
        return try LoopbackOrigin { request in
            let response = LoopbackOrigin.Response.data(content).tagged("v1").ranged(by: request)
            return isUp.current ? response : response.misbehaving(.truncate(afterBodyBytes: 100_000))
        }
    }

    private func hex(_ data: Data) -> String { SHA256.digest(of: [UInt8](data)).hex }

    @Test(arguments: RealTransport.available)
    func `H11: a file appears at its target when it is complete`(_ transport: RealTransport) async throws {
        let place = try TemporaryDirectory()
        let origin = try LoopbackOrigin { _ in .data(content).tagged() }
        let seen = WatchedState<[TransferProgress]>([])
        let response = try await host(origin, transport).download(Route(path: "/f"), to: place.target, sha256: hex(content)) { progress in
            seen.update { $0.append(progress) }
        }
        #expect(try Data(contentsOf: place.target) == content)
        #expect(try place.names == ["film.bin"])
        #expect(response.value == place.target)
        #expect(seen.current.first == TransferProgress(bytes: 0, total: 400_000))
        #expect(seen.current.last == TransferProgress(bytes: 400_000, total: 400_000))
    }

    @Test(
        arguments: RealTransport.available, [LoopbackOrigin.Misbehavior.truncate(afterBodyBytes: 150_000), .reset(afterBodyBytes: 150_000)])
    func `H11: an interrupted download resumes after the received bytes`(
        _ transport: RealTransport, _ way: LoopbackOrigin.Misbehavior
    ) async throws {
        let place = try TemporaryDirectory()
        let origin = try LoopbackOrigin { request in
            let response = LoopbackOrigin.Response.data(content).tagged("v1").ranged(by: request)
            return request.headers["Range"] == nil ? response.misbehaving(way) : response
        }
        try await host(origin, transport).download(Route(path: "/f"), to: place.target, sha256: hex(content))
        #expect(try Data(contentsOf: place.target) == content)
        let second = try #require(origin.requests.last)
        #expect(origin.requests.count == 2)
        #expect(second.headers["If-Range"] == "\"v1\"")
        #expect(second.headers["Range"]?.hasPrefix("bytes=") == true)
        #expect(second.status == 206)
        #expect(try place.names == ["film.bin"])
    }

    @Test(arguments: RealTransport.available)
    func `H11: a later call resumes an earlier download`(_ transport: RealTransport) async throws {
        let place = try TemporaryDirectory()
        let isUp = WatchedState(false)
        let origin = try truncatingOrigin(until: isUp)
        let host = try host(origin, transport)
        try Data("old".utf8).write(to: place.target)
        let error = try await remoteError { try await host.with { $0.retry = .never }.download(Route(path: "/f"), to: place.target) }
        #expect(error.code == .connectionLost)
        #expect(try Data(contentsOf: place.target) == Data("old".utf8))
        #expect(try place.names == [".film.bin.part", ".film.bin.part.state", "film.bin"])
        isUp.update { $0 = true }
        try await host.download(Route(path: "/f"), to: place.target)
        #expect(try Data(contentsOf: place.target) == content)
        #expect(origin.requests.last?.headers["Range"] == "bytes=100000-")
    }

    @Test(arguments: RealTransport.available, [244, 245, 255])
    func `H11: a download to a long name resumes too`(_ transport: RealTransport, _ length: Int) async throws {
        let place = try TemporaryDirectory()
        let target = place.file(String(repeating: "n", count: length))
        let isUp = WatchedState(false)
        let origin = try truncatingOrigin(until: isUp)
        let host = try host(origin, transport)
        _ = try await remoteError { try await host.with { $0.retry = .never }.download(Route(path: "/f"), to: target) }
        #expect(try place.names.count == 2)
        isUp.update { $0 = true }
        try await host.download(Route(path: "/f"), to: target)
        #expect(try Data(contentsOf: target) == content)
        #expect(try place.names == [target.lastPathComponent])
        #expect(origin.requests.last?.headers["Range"] == "bytes=100000-")
    }

    @Test(arguments: RealTransport.available)
    func `H11: a download of a file that has changed starts over`(_ transport: RealTransport) async throws {
        let place = try TemporaryDirectory()
        let new = Data(content.reversed())
        let isNew = WatchedState(false)
        let origin = try LoopbackOrigin { request in
            if isNew.current { return .data(new).tagged("v2").ranged(by: request) }
            return .data(content).tagged("v1").ranged(by: request).misbehaving(.truncate(afterBodyBytes: 100_000))
        }
        let host = try host(origin, transport)
        _ = try await remoteError { try await host.with { $0.retry = .never }.download(Route(path: "/f"), to: place.target) }
        isNew.update { $0 = true }
        try await host.download(Route(path: "/f"), to: place.target, sha256: hex(new))
        #expect(try Data(contentsOf: place.target) == new)
        #expect(origin.requests.last?.status == 200)
        #expect(origin.requests.last?.headers["If-Range"] == "\"v1\"")
    }

    @Test(arguments: RealTransport.available, ["W/\"v1\"", ""])
    func `H11: a download without a strong validator starts over`(_ transport: RealTransport, _ tag: String) async throws {
        let place = try TemporaryDirectory()
        let count = WatchedState(0)
        let origin = try LoopbackOrigin { request in
            count.update { $0 += 1 }
            var response = LoopbackOrigin.Response.data(content)
            if !tag.isEmpty { response = response.setting("ETag", to: tag) }
            return count.current == 1 ? response.misbehaving(.truncate(afterBodyBytes: 100_000)) : response
        }
        try await host(origin, transport).download(Route(path: "/f"), to: place.target)
        #expect(try Data(contentsOf: place.target) == content)
        #expect(origin.requests.count == 2)
        #expect(origin.requests.allSatisfy { $0.headers["Range"] == nil && $0.headers["If-Range"] == nil })
    }

    @Test(arguments: RealTransport.available)
    func `H11: a file with a wrong digest is discarded`(_ transport: RealTransport) async throws {
        let place = try TemporaryDirectory()
        let origin = try LoopbackOrigin { _ in .data(content).tagged() }
        let error = try await remoteError {
            try await host(origin, transport).download(Route(path: "/f"), to: place.target, sha256: String(repeating: "0", count: 64))
        }
        #expect(error.code == .wrongDigest)
        #expect(!FileManager.default.fileExists(atPath: place.target.path))
        #expect(try Data(contentsOf: place.part).isEmpty)
    }

    @Test(arguments: RealTransport.available)
    func `H11: a part that begins earlier than requested starts over within the call`(_ transport: RealTransport) async throws {
        let place = try TemporaryDirectory()
        let origin = try LoopbackOrigin { request in
            guard request.headers["Range"] != nil else { return .data(content).tagged("v1") }
            return .data(content.dropFirst(5), status: 206).tagged("v1").setting("Content-Range", to: "bytes 5-399999/400000")
        }
        try place.leavePart(content.prefix(1000), from: origin.url.absoluteString + "/f", validator: "\"v1\"")
        try await host(origin, transport).download(Route(path: "/f"), to: place.target)
        #expect(try Data(contentsOf: place.target) == content)
        #expect(origin.requests.map { $0.headers["Range"] } == ["bytes=1000-", nil])
    }

    @Test(arguments: RealTransport.available)
    func `H11: a part that is shorter than requested is followed by a request for the rest`(_ transport: RealTransport) async throws {
        let place = try TemporaryDirectory()
        let origin = try LoopbackOrigin { request in
            guard let start = request.headers["Range"].flatMap({ Int($0.dropFirst("bytes=".count).dropLast()) }) else {
                return .data(content).tagged("v1")
            }
            let end = min(start + 150_000, content.count)
            return .data(content[start..<end], status: 206).tagged("v1").setting("Content-Range", to: "bytes \(start)-\(end - 1)/400000")
        }
        try place.leavePart(content.prefix(1000), from: origin.url.absoluteString + "/f", validator: "\"v1\"")
        try await host(origin, transport).download(Route(path: "/f"), to: place.target)
        #expect(try Data(contentsOf: place.target) == content)
        #expect(origin.requests.map { $0.headers["Range"] } == ["bytes=1000-", "bytes=151000-", "bytes=301000-"])
    }

    @Test(arguments: RealTransport.available)
    func `H11: a 416 with another total never commits a short file`(_ transport: RealTransport) async throws {
        let place = try TemporaryDirectory()
        let origin = try LoopbackOrigin { request in
            guard request.headers["Range"] != nil else { return .data(content).tagged("v2") }
            return .status(416).setting("Content-Range", to: "bytes */1000")
        }
        try place.leavePart(content.prefix(1000), from: origin.url.absoluteString + "/f", validator: "\"v1\"", total: 400_000)
        try await host(origin, transport).download(Route(path: "/f"), to: place.target)
        #expect(try Data(contentsOf: place.target) == content)
    }

    @Test(arguments: RealTransport.available)
    func `H11: a download that has started over resumes after an interruption`(_ transport: RealTransport) async throws {
        let place = try TemporaryDirectory()
        let origin = try LoopbackOrigin { request in
            if request.headers["Range"] == "bytes=1000-" { return .status(416).setting("Content-Range", to: "bytes */1000") }
            let response = LoopbackOrigin.Response.data(content).tagged("v2").ranged(by: request)
            return request.headers["Range"] == nil ? response.misbehaving(.truncate(afterBodyBytes: 100_000)) : response
        }
        try place.leavePart(content.prefix(1000), from: origin.url.absoluteString + "/f", validator: "\"v1\"", total: 400_000)
        try await host(origin, transport).download(Route(path: "/f"), to: place.target)
        #expect(try Data(contentsOf: place.target) == content)
        #expect(origin.requests.map { $0.headers["Range"] } == ["bytes=1000-", nil, "bytes=100000-"])
    }

    @Test(arguments: RealTransport.available, ["\"v1\"", "Sun, 06 Nov 1994 08:49:37 GMT"])
    func `H11: another signed address of the same file resumes with the same strong tag only`(
        _ transport: RealTransport, _ validator: String
    ) async throws {
        let place = try TemporaryDirectory()
        let origin = try LoopbackOrigin { request in .data(content).tagged("v1").ranged(by: request) }
        try place.leavePart(
            content.prefix(1000), from: origin.url.absoluteString + "/f?signature=1&expires=2", validator: validator, total: 400_000)
        try await host(origin, transport).download(Route(path: "/f", query: ["signature": 3]), to: place.target)
        #expect(try Data(contentsOf: place.target) == content)
        #expect(origin.requests.map { $0.headers["Range"] } == [validator == "\"v1\"" ? "bytes=1000-" : nil])
    }

    @Test(arguments: RealTransport.available)
    func `H11: a part with a range other than the requested one is refused`(_ transport: RealTransport) async throws {
        let place = try TemporaryDirectory()
        let origin = try LoopbackOrigin { request in
            guard request.headers["Range"] != nil else {
                return .data(content).tagged("v1").misbehaving(.truncate(afterBodyBytes: 100_000))
            }
            return .data(content.dropFirst(200_000), status: 206).tagged("v1").setting("Content-Range", to: "bytes 200000-399999/400000")
        }
        let error = try await remoteError { try await host(origin, transport).download(Route(path: "/f"), to: place.target) }
        #expect(error.code == .wrongRange)
        #expect(!FileManager.default.fileExists(atPath: place.target.path))
    }

    @Test(arguments: RealTransport.available)
    func `H11: a download ends at 416 if the file is complete, and otherwise starts over`(_ transport: RealTransport) async throws {
        for length in [400_000, 300_000] {
            let place = try TemporaryDirectory()
            let part = content.prefix(length == 400_000 ? 400_000 : 350_000)
            let new = Data(content.prefix(length))
            try part.write(to: place.part)
            let origin = try LoopbackOrigin { request in
                request.headers["Range"] == nil
                    ? .data(new).tagged("v1") : .status(416).setting("Content-Range", to: "bytes */\(length)")
            }
            let state = DownloadState(address: origin.url.absoluteString + "/f", validator: "\"v1\"", total: nil)
            try place.write(state)
            try await host(origin, transport).download(Route(path: "/f"), to: place.target)
            #expect(try Data(contentsOf: place.target) == new)
            #expect(origin.requests.count == (length == 400_000 ? 1 : 2))
        }
    }

    @Test(arguments: RealTransport.available)
    func `H11: a second download of the same file is refused while the first is running`(_ transport: RealTransport) async throws {
        let place = try TemporaryDirectory()
        let origin = try LoopbackOrigin { _ in .data(content).tagged().misbehaving(.stall(afterBodyBytes: 1000)) }
        let host = try host(origin, transport)
        let first = Task { try await host.download(Route(path: "/f"), to: place.target) }
        try await origin.waitForRequests(count: 1)
        #expect(try await remoteError { try await host.download(Route(path: "/f"), to: place.target) }.code == .fileFailed)
        first.cancel()
        _ = try await remoteError { _ = try await first.value }
    }

    struct Row: Sendable {
        var status: Int
        var range: String?
        var tag: String? = "\"v1\""
        var offset: Int64? = 5
        var total: Int64? = 10
        var expected: String
    }

    @Test(arguments: [
        Row(status: 200, expected: "restart"), Row(status: 200, offset: nil, expected: "restart"),
        Row(status: 206, range: "bytes 5-9/10", expected: "append"), Row(status: 206, range: "bytes 5-9/*", expected: "append"),
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
        Row(status: 416, range: "bytes */5", total: nil, expected: "complete"),
        Row(status: 416, range: nil, total: 5, expected: "complete"), Row(status: 416, range: nil, total: nil, expected: "askAgain"),
        Row(status: 416, range: "bytes */5", offset: nil, expected: "refuse"), Row(status: 204, expected: "refuse"),
    ])
    func `H11: the response to a download determines the action by this table`(_ row: Row) throws {
        var fields = HTTPFields()
        if let range = row.range { try fields.append("Content-Range", range) }
        if let tag = row.tag { try fields.append("ETag", tag) }
        let known = DownloadState(address: "", validator: "\"v1\"", total: row.total)
        let decision = DownloadDecision.decide(
            status: row.status, fields: fields, offset: row.offset, known: row.offset == nil ? nil : known)
        #expect("\(decision)".hasPrefix(row.expected), "\(decision)")
    }

    @Test(arguments: [
        ("aws-chunked", false), ("utf-8", false), ("none", false), ("identity", false), ("gzip", true), ("br", true),
        ("aws-chunked, GZIP", true),
    ])
    func `H11: only a content coding prevents a download from resuming`(_ field: String, _ isPacked: Bool) throws {
        let header = try fields(["Content-Encoding": field, "Content-Range": "bytes 5-9/10"])
        let known = DownloadState(address: "", validator: "\"v1\"", total: 10)
        let decision = DownloadDecision.decide(status: 206, fields: header, offset: 5, known: known)
        #expect("\(decision)".hasPrefix(isPacked ? "refuse" : "append"), "\(decision)")
    }

    @Test(arguments: [
        ("bytes 0-9/10", "0 9 10"), ("bytes 5-9/*", "5 9 nil"), ("bytes */10", "nil nil 10"), ("bytes 9-5/10", "none"),
        ("bytes 0-10/10", "none"),
        ("items 0-1/2", "none"), ("bytes -1-2/3", "none"), ("bytes 0-1", "none"), ("bytes a-b/c", "none"), ("", "none"),
        ("bytes 0-9/10/11", "none"), ("bytes 99999999999999999999-1/2", "none"), ("bytes 0-9223372036854775807/*", "none"),
        ("bytes 0-9/9223372036854775807", "none"), ("bytes 0-9/9223372036854775806", "0 9 9223372036854775806"),
    ])
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
            (["Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT"], nil),
        ] as [([String: String], String?)])
    func `H11: only strong validators resume a download`(_ fields: [String: String], _ expected: String?) throws {
        var header = HTTPFields()
        for (name, value) in fields { try header.append(name, value) }
        #expect(DownloadDecision.strongValidator(of: header, now: Date()) == expected)
    }
}

extension TemporaryDirectory {
    /// A file to download to, and the part that a broken download leaves.
    var target: URL { file("film.bin") }
    var part: URL { file(partName) }
    var partName: String { ".film.bin.part" }
}
