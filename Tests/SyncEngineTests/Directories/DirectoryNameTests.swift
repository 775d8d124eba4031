import Foundation
import StoreCore
import Testing
import Trials
@testable import SyncEngine

/// Names that a list may have and a directory must not, and trees that are deeper than any list may ask for.
struct DirectoryNameTests {
    private let bench: DirectoryBench

    init() throws {
        bench = try DirectoryBench(["a": "one", "d/b": "two"])
    }

    private func codes(_ error: SyncError?) -> [SyncError.Code?] { error?.report?.failures.map { ($0.error as? SyncError)?.code } ?? [] }

    @Test(arguments: [
        "bell\u{7}", "esc\u{1B}[2J", "line\nend", "del\u{7F}", "c1\u{9B}2J", "x\u{202E}gpj.exe", "x\u{202A}y", "x\u{2066}y", "x\u{2069}y",
        "x\u{200E}y", "x\u{200F}y", "x\u{61C}y", "x\u{2028}y", "x\u{2029}y", "d\u{202E}/y",
    ])
    func `S8: a name with a control character is refused, shown escaped, and spoils no other`(name: String) async throws {
        bench[name] = "evil"
        let error = await syncError { try await bench.sync() }
        #expect(codes(error) == [.unsafeName])
        #expect(try bench.files == ["a": "one", "d/b": "two"])
        let texts = [error?.description, error?.report?.failures.first?.description, error?.report?.failures.first?.key.description]
        let signs = name.unicodeScalars.filter { !$0.isASCII || $0.value < 0x20 || $0.value == 0x7F }
        for text in texts {
            let text = try #require(text)
            for sign in signs {
                #expect(!text.unicodeScalars.contains(sign))
                #expect(text.contains("\\u{\(String(sign.value, radix: 16, uppercase: true))}"))
            }
        }
    }

    @Test func `S8: a name with letters of any script is no name with a control character`() async throws {
        for name in ["пример", "例え", "مثال", "דוגמה", "e\u{301}", "👩\u{200D}👩\u{200D}👧", "a b", "%41", "back\\slash"] { bench[name] = name }
        try await bench.sync()
        #expect(try bench.files == bench.origin.withLock { $0.contents })
    }

    @Test(arguments: [200, 900])
    func `S8: a path that is too deep is refused, spoils no other, and blocks no later pass`(depth: Int) async throws {
        bench[String(repeating: "p/", count: depth) + "x"] = "deep"
        let error = await syncError { try await bench.sync() }
        #expect(codes(error) == [.unsafeName])
        #expect(try bench.files == ["a": "one", "d/b": "two"])
        bench.origin.withLock { $0.contents = ["a": "one", "d/b": "two"] }
        #expect(try await bench.sync().unchangedCount == 2)
    }

    /// Makes a chain of directories deeper than a path may be long, with a file in the last one.
    private func makeDeep(_ depth: Int) throws {
        var current = try #require(try DirectoryHandle(opening: Directory(path: bench.url.path(percentEncoded: false))))
        for _ in 0..<depth { current = try current.makeDirectory("p") }
        try Array("deep".utf8).withUnsafeBytes { try WritableFile("x", in: current).write($0, at: 0) }
    }

    #if os(macOS) || os(Linux)
    @Test func `S8: a tree of 900 directories is scanned by a process that may open few files`() async throws {
        try makeDeep(900)
        let program = try ChildProcess.path(of: "SyncCrashWriter")
        let child = try ChildProcess(
            "/bin/sh",
            ["-c", #"ulimit -n 100; exec "$0" "$@""#, program, bench.url.path(percentEncoded: false), "1", "20", "crash"])
        let last = child.rest.split(separator: "\n").last.map(String.init)
        child.wait()
        #expect(last == "done")
    }
    #endif

    @Test(arguments: [900, 2_500])
    func `S8: a deep tree of an earlier version is removed with its directories`(depth: Int) async throws {
        try makeDeep(depth)
        try await bench.sync(foreignFiles: .remove)
        #expect(bench.exists("p"))
        let report = try await bench.sync(foreignFiles: .remove)
        #expect(report.removedCount == 1)
        #expect(!bench.exists("p"))
        #expect(try bench.files == ["a": "one", "d/b": "two"])
    }

    @Test(arguments: [SourceOrder.unsorted, .sortedByKey])
    func `S8: a name in a second normal form is refused, and the rest of the list is done`(order: SourceOrder) async throws {
        let paths = ["caf\u{E9}", "cafe\u{301}", "other"]
        for path in paths { bench[path] = "drink" }
        let items = paths.map { ListedFile(path: $0, sha256: digest("drink"), byteCount: 5) }
        let target = DirectoryTarget(directory: bench.url, transfer: BenchTransfer(bench: bench)) { ListedSource(items, order: order) }
        for pass in 1...2 {
            let error = await syncError {
                try await OneWaySynchronizer(processor: target, options: SyncOptions(stopsOnError: false, retry: .never)).sync()
            }
            #expect(error?.code == .incomplete, "pass \(pass)")
            #expect(codes(error) == [.nameClash], "pass \(pass)")
            #expect(try bench.files == ["caf\u{E9}": "drink", "other": "drink"], "pass \(pass)")
        }
        #expect(bench.origin.withLock { $0.transfers.count } == 2)
    }
}
