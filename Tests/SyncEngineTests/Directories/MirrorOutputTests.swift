import Foundation
import LoopbackOrigin
import StoreCore
import StorePlatform
import Testing
import Trials
@testable import SyncEngine

#if os(macOS) || os(Linux)

/// The mirror's output for names from the list or the disk.
struct MirrorOutputTests {
    @Test(arguments: [[], ["--json"], ["--dry-run"], ["--dry-run", "--json"]])
    func `S8: the mirror escapes listed names that would control the terminal`(options: [String]) async throws {
        let digest = digest("x")
        let names = ["fine", "esc\u{1B}[2Jx", "x\u{202E}gpj.exe", "bell\u{7}"]
        let files = try JSONEncoder().encode(names.map { ListedFile(path: $0, sha256: digest, byteCount: nil) })
        let origin = try LoopbackOrigin { request in request.path == "/list" ? .data(files) : .data(Data("x".utf8)) }
        defer { origin.stop() }
        let bench = try DirectoryBench()
        let list = origin.url.appending(path: "list").absoluteString
        let (code, output) = try await bench.mirror(list, ["--retries", "0"] + options, joinsErrors: false)
        #expect(code == (options.contains("--dry-run") ? 0 : 1))
        #expect(!output.unicodeScalars.contains { $0 != "\n" && $0.actsOnDisplay }, "\(output.escapedForDisplay())")
        for sign in ["1B", "202E", "7"] { #expect(output.contains("u{\(sign)}"), "\(output)") }
        #expect(try bench.files == (options.contains("--dry-run") ? [:] : ["fine": "x"]))
        guard options == ["--dry-run", "--json"] else { return }
        let plan = try #require(try JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: Any])
        #expect((plan["refused"] as? [String])?.count == 3)
    }

    @Test func `S5: the mirror shows ten failures, and the number of the others by their reasons`() async throws {
        let files = try JSONEncoder().encode((0..<15).map { ListedFile(path: "f\($0)", version: "1") })
        let origin = try LoopbackOrigin { request in request.path == "/list" ? .data(files) : .notFound(for: request) }
        defer { origin.stop() }
        let bench = try DirectoryBench()
        let list = origin.url.appending(path: "list").absoluteString
        let (code, output) = try await bench.mirror(list, ["--retries", "0"], joinsErrors: false)
        let lines = output.split(separator: "\n")
        #expect(code == 1)
        #expect(lines.count { $0.hasPrefix("failed  ") } == 11)
        #expect(lines.contains("failed  and 5 more: 5 × badStatus; all with --json"), "\(lines)")
        #expect(lines.last?.contains("15 failed") == true)
    }

    @Test func `the help of the mirror fits 80 columns`() async throws {
        let (code, output) = try await runMirror(["--help"])
        let lines = output.split(separator: "\n")
        #expect(code == 0)
        #expect(lines.count > 20 && lines.allSatisfy { $0.count <= 80 })
    }

    @Test(arguments: [[], ["--json"]])
    func `S8: the mirror escapes the name of a removed file that would control the terminal`(options: [String]) async throws {
        let origin = try LoopbackOrigin { request in request.path == "/list" ? .data(Data("[]".utf8)) : .notFound(for: request) }
        defer { origin.stop() }
        let bench = try DirectoryBench()
        let name = "old\u{202E}x"
        try bench.write("x", name)
        // An earlier version has recorded the name.
        let own = bench.url.appending(path: ".storehouse")
        try FileManager.default.createDirectory(at: own, withIntermediateDirectories: true)
        let status = try #require(try FileStatus.of(path: bench.url.appending(path: name).path(percentEncoded: false)))
        let record = FileRecord(version: "1", digest: SHA256.digest(of: [1]), stamp: FileStamp(status))
        try TargetJournal.write([.put(PathKey(name), record), .synchronized], to: own.appending(path: "journal"))
        let (list, all) = (origin.url.appending(path: "list").absoluteString, ["--allow-empty"] + options)
        let (_, output) = try await bench.mirror(list, all + ["--dry-run"], joinsErrors: false)
        #expect(!output.unicodeScalars.contains("\u{202E}"))
        #expect(output.contains(options.isEmpty ? "old\\u{202E}x" : "old\\u202ex"))
        _ = try await bench.mirror(list, all)
        #expect(try bench.files.isEmpty)
    }
}

#endif
