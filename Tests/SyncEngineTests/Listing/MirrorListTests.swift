import Foundation
import LoopbackOrigin
import StoreCore
import StorePlatform
import Testing
import Trials
@testable import SyncEngine

#if os(macOS) || os(Linux)

/// Manifests that `mirror` reads over real connections: cut, marked, long and invalid.
@Suite(.serialized)
struct MirrorListTests {
    private static let count = 60
    private let bench: DirectoryBench
    private let origin: LoopbackOrigin
    private let list = WatchedState(LoopbackOrigin.Response.status(404))
    private let files: WatchedState<[String: Data]>
    /// The content of every path if the origin serves one page for everything.
    private let page = WatchedState<Data?>(nil)

    init() throws {
        bench = try DirectoryBench()
        let files = WatchedState(Dictionary(uniqueKeysWithValues: (0..<Self.count).map { ("/f\($0)", Data("content of \($0)".utf8)) }))
        self.files = files
        origin = try LoopbackOrigin { [list, page] request in
            if request.path == "/list" { return list.current }
            guard let data = files.current[request.path] else { return .notFound(for: request) }
            return .data(page.current ?? data)
        }
    }

    /// Returns one object per line, in ascending order of the paths.
    private func lines(version: String? = nil, extra: String = "") -> [String] {
        files.current.sorted { $0.key < $1.key }.map { path, data in
            let content =
                version.map { "\"version\":\"\($0)\"" } ?? "\"sha256\":\"\(SHA256.digest(of: Array(data)).hex)\",\"size\":\(data.count)"
            return "{\"path\":\"\(path.dropFirst())\",\(content)\(extra)}\n"
        }
    }

    private func serve(_ text: String, _ framing: LoopbackOrigin.Response.Framing = .length) {
        list.update { $0 = .init(headers: ["Content-Type": "application/x-ndjson"], body: Data(text.utf8), framing: framing) }
    }

    private func mirror(_ options: String...) async throws -> (code: Int32, output: String) {
        try await bench.mirror(origin.url.appending(path: "list").absoluteString, options)
    }

    @Test(arguments: [LoopbackOrigin.Response.Framing.chunked(bytes: 700), .untilClosed])
    func `S2: mirror removes nothing if a list without a length is cut after a line`(framing: LoopbackOrigin.Response.Framing) async throws
    {
        serve(lines().joined(), .length)
        #expect(try await mirror().code == 0)
        #expect(try bench.files.count == Self.count)
        for cut in [1, Self.count / 2 + 5, Self.count] {
            serve(lines().prefix(cut).joined(), framing)
            #expect(try await mirror().code == 3, "\(cut) lines")
            #expect(try bench.files.count == Self.count)
        }
        serve(lines().prefix(50).joined() + "{\"count\": 50}\n", framing)
        #expect(try await mirror().code == 0)
        #expect(try bench.files.count == 50)
    }

    #if os(Linux)
    @Test func `S8: mirror downloads files with names that differ only in their normal form`() async throws {
        let paths = ["d/caf\u{E9}", "d/cafe\u{301}"]
        let content = paths.map { Array($0.utf8).description }
        let lines = zip(paths, content).map { #"{"path":"\#($0)","sha256":"\#(digest($1))"}"# + "\n" }.joined() + #"{"count":2}"# + "\n"
        let origin = try LoopbackOrigin { request in
            if request.path == "/list" { return .init(body: Data(lines.utf8)) }
            let number = paths.firstIndex { "/\($0)".addingPercentEncoding(withAllowedCharacters: .urlPathAllowed) == request.path }
            return number.map { .data(Data(content[$0].utf8)) } ?? .notFound(for: request)
        }
        defer { origin.stop() }
        for added in [2, 0] {
            let (code, output) = try await bench.mirror(origin.url.appending(path: "list").absoluteString)
            #expect(code == 0 && output.contains("\(added) added, 0 updated, 0 removed, \(2 - added) unchanged"), "\(output)")
        }
        #expect(try bench.keys == Set(paths.map { PathKey($0) }))
    }
    #endif

    @Test(.disabled(if: isSanitized, "the large manifest takes minutes"))
    func `S17: mirror reads a manifest of more than 16 MiB`() async throws {
        let padding = ",\"note\":\"" + String(repeating: "x", count: 280_000) + "\""
        let text = lines(extra: padding).joined()
        #expect(text.utf8.count > 16 << 20)
        serve(text)
        #expect(try await mirror().code == 0)
        #expect(try bench.files.count == Self.count)
    }

    @Test func `S3: mirror replaces nothing if an origin serves one page for every versioned file`() async throws {
        serve(lines(version: "1").joined())
        #expect(try await mirror().code == 0)
        let before = try bench.files
        page.update { $0 = Data("<html>sign in</html>".utf8) }
        // One file keeps its version, so that the gate does not refuse the plan.
        serve(([lines(version: "1")[0]] + lines(version: "2").dropFirst()).joined())
        #expect(try await mirror().code == 2)
        #expect(try bench.files == before)
    }

    @Test(arguments: [true, false])
    func `S15: mirror keeps edited files with --keep-local and overwrites them otherwise`(keepsLocal: Bool) async throws {
        serve(lines().joined())
        #expect(try await mirror().code == 0)
        try Data("edited here".utf8).write(to: bench.url.appending(path: "f7"))
        try Data("edited and gone from the list".utf8).write(to: bench.url.appending(path: "f8"))
        files.update { files in
            files["/f7"] = Data("new at the origin".utf8)
            files["/f8"] = nil
            files["/f9"] = Data("changed at the origin only".utf8)
        }
        serve(lines().joined())
        let (code, output) = keepsLocal ? try await mirror("--keep-local") : try await mirror()
        #expect(code == 0)
        #expect(try bench.files["f7"] == (keepsLocal ? "edited here" : "new at the origin"))
        #expect(try bench.files["f8"] == (keepsLocal ? "edited and gone from the list" : nil))
        #expect(try bench.files["f9"] == "changed at the origin only")
        #expect(output.contains("2 edited locally"), "\(output)")
    }

    @Test func `S2: mirror reports an HTML page served in place of a list`() async throws {
        list.update { $0 = .html("<!DOCTYPE html>\n<html><body>sign in</body></html>\n") }
        let (code, output) = try await mirror()
        #expect(code == 3)
        #expect(output.contains("<!DOCTYPE html>") && output.contains("not a list"), "\(output)")
    }

    @Test func `S10: a stale list entry is downloaded once`() async throws {
        files.update { $0 = ["/film": Data(repeating: 7, count: 300_000)] }
        let stale = SHA256.digest(of: [UInt8](repeating: 8, count: 300_000)).hex
        serve("{\"path\":\"film\",\"sha256\":\"\(stale)\",\"size\":300000}\n")
        #expect(try await mirror().code == 1)
        #expect(origin.requests(to: "/film").count == 1)
    }
}

#endif
