import Foundation
import LoopbackOrigin
import StoreCore
import StorePlatform
import Testing
import Trials
@testable import SyncEngine

#if os(macOS) || os(Linux)

/// The mirror in another process that is stopped and killed, and its requests.
@Suite(.serialized)
struct MirrorProcessTests {
    private static let count = 40
    private let bench: DirectoryBench
    private let origin: LoopbackOrigin
    /// The number of files served before the others have to wait.
    private let allowance = WatchedState(0)
    private let files: WatchedState<[String: Data]>

    init() throws {
        bench = try DirectoryBench()
        let contents = (0..<Self.count).map { ("/d\($0 % 3)/f\($0)", Data(repeating: UInt8($0), count: 2_000 + $0)) }
        let files = WatchedState(Dictionary(uniqueKeysWithValues: contents))
        self.files = files
        origin = try LoopbackOrigin { [allowance] request in
            let all = files.current
            if request.path == "/list" { return .json(all.map { ListedFile($0, $1) }.sorted { $0.path < $1.path }) }
            guard let data = all[request.path] else { return .notFound(for: request) }
            allowance.update { $0 -= 1 }
            // If the client disconnects, the wait is canceled, and the response is discarded.
            let hasWaited: Void? = try? await allowance.wait { $0 >= 0 ? () : nil }
            return hasWaited == nil ? .status(503) : .data(data).tagged().ranged(by: request)
        }
    }

    private func mirror(_ options: String...) throws -> ChildProcess {
        let arguments = [origin.url.appending(path: "list").absoluteString, bench.url.path(percentEncoded: false), "--plain"]
        return try ChildProcess("mirror", arguments + options)
    }

    private func expectEqual() throws {
        let found = try bench.files
        #expect(found.count == files.current.count)
        for (path, data) in files.current { #expect(found[String(path.dropFirst())] == String(decoding: data, as: UTF8.self), "\(path)") }
    }

    @Test(arguments: [SIGINT, SIGKILL])
    func `S7, S9: a mirror stopped or killed halfway resumes with the missing files only`(signal: Int32) async throws {
        allowance.update { $0 = 20 }
        let first = try mirror()
        try await origin.waitUntil { record in
            record.requests.count { $0.path != "/list" && $0.ending == .complete } == 20
                && record.requests.count { $0.path != "/list" } > 20
        }
        first.send(signal)
        let ending = try await first.ending()
        #expect(ending == (signal == SIGINT ? 130 : SIGKILL))
        if signal == SIGINT { #expect(first.rest.contains("not downloaded")) }
        try await origin.waitUntil { $0.openConnections == 0 }
        let there = try bench.files
        for (path, text) in there { #expect(files.current["/" + path].map { String(decoding: $0, as: UTF8.self) } == text, "torn") }
        origin.forget()
        allowance.update { $0 = .max / 2 }
        let second = try mirror()
        #expect(try await second.ending() == 0)
        try expectEqual()
        let asked = origin.requests.filter { $0.path != "/list" }.map { String($0.path.dropFirst()) }
        #expect(Set(asked).count == asked.count, "each file is requested once")
        #expect(Set(asked).isDisjoint(with: there.keys), "installed files are not requested again")
        // Each of the eight workers may have one file that was served, but not installed when the process ended.
        #expect(asked.count <= Self.count - 20 + 8)
        origin.forget()
        #expect(try await mirror().ending() == 0)
        #expect(origin.requests.map(\.path) == ["/list"])
    }

    @Test(arguments: ["same", "changed", "silently changed"])
    func `S10: an interrupted large file resumes where it stopped unless it has changed`(what: String) async throws {
        let size = 600_000
        let (large, other) = (Data(pseudorandomBytes(size, seed: 1)), Data(pseudorandomBytes(size, seed: 2)))
        files.update { $0 = ["/film": large] }
        let breaks = WatchedState(true)
        let (tag, body) = (WatchedState("one"), WatchedState(large))
        origin.on(.get, "/film") { request in
            let response = LoopbackOrigin.Response.data(body.current).tagged(tag.current).ranged(by: request)
            return breaks.current ? response.misbehaving(.truncate(afterBodyBytes: size * 8 / 15)) : response
        }
        #expect(try await mirror("--retries", "0").ending() == 1)
        #expect(!bench.exists("film"))
        let (given, firstCount) = (origin.requests(to: "/film").map(\.bodyBytesSent).reduce(0, +), origin.requests(to: "/film").count)
        #expect(given >= size * 8 / 15)
        origin.forget()
        breaks.update { $0 = false }
        if what != "same" {
            tag.update { $0 = "two" }
            body.update { $0 = other }
            if what == "changed" { files.update { $0 = ["/film": other] } }
        }
        let code = try await mirror("--retries", "0").ending()
        let asked = origin.requests(to: "/film")
        #expect(firstCount == 1 && asked.count >= 1)
        let start = asked.first?.headers["Range"].flatMap { Int($0.dropFirst("bytes=".count).dropLast()) } ?? 0
        #expect(start > 0, "the request has a range")
        #expect(asked.first?.headers["If-Range"] == "\"one\"")
        switch what {
        case "same":
            #expect(code == 0)
            #expect(asked.map(\.status) == [206])
            #expect(asked.first?.bodyBytesSent == large.count - start)
            #expect(try Data(contentsOf: bench.url.appending(path: "film")) == large)
        case "changed":
            #expect(code == 0)
            #expect(asked.map(\.status) == [200])
            #expect(asked.first?.bodyBytesSent == other.count)
            #expect(try Data(contentsOf: bench.url.appending(path: "film")) == other)
        default:
            // The list still has the old digest, so the new content does not match and is not installed.
            #expect(code == 1)
            #expect(!bench.exists("film"))
        }
    }

    @Test func `S10: a file that has changed is requested as a whole if the server ignores If-Range`() async throws {
        let size = 600_000
        let (old, new) = (Data(pseudorandomBytes(size, seed: 1)), Data(pseudorandomBytes(size, seed: 2)))
        let isChanged = WatchedState(false)
        // The list has no digest, so only the tag shows the change.
        origin.on(.get, "/list") { _ in .data(Data("{\"path\":\"film\",\"version\":\"1\",\"size\":\(size)}\n".utf8)) }
        origin.on(.get, "/film") { request in
            guard isChanged.current else { return .data(old).tagged("one").misbehaving(.truncate(afterBodyBytes: size / 2)) }
            let start = request.headers["Range"].flatMap { Int($0.dropFirst("bytes=".count).dropLast()) } ?? 0
            let rest = LoopbackOrigin.Response.data(Data(new.dropFirst(start))).tagged("two")
            return start == 0 ? rest : rest.with(status: 206).setting("Content-Range", to: "bytes \(start)-\(size - 1)/\(size)")
        }
        #expect(try await mirror("--retries", "0", "--limit-rate", "1G").ending() == 1)
        origin.forget()
        isChanged.update { $0 = true }
        #expect(try await mirror("--retries", "0", "--limit-rate", "1G").ending() == 0)
        #expect(origin.requests(to: "/film").count == 2, "the first request has a range")
        #expect(try Data(contentsOf: bench.url.appending(path: "film")) == new)
    }

    @Test func `an empty list, a cut list and invalid arguments have the documented exit codes`() async throws {
        allowance.update { $0 = .max / 2 }
        #expect(try await mirror().ending() == 0)
        let all = files.current
        files.update { $0 = [:] }
        #expect(try await mirror().ending() == 2)
        files.update { $0 = all }
        try expectEqual()
        #expect(try await mirror("--concurrency", "0").ending() == 64)
        origin.on(.get, "/list") { _ in .json(literal: #"{"path": "a", "size": 1, "version": "1"}"#) }
        #expect(try await mirror().ending() == 3)
        try expectEqual()
    }
}

#endif
