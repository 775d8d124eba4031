import Foundation
import StoreCore
import StorePlatform
import Testing
import Trials
@testable import SyncEngine

/// Names that a list may contain but a directory must not, and trees that are deeper than a list allows.
struct DirectoryNameTests {
    private let bench: DirectoryBench

    init() throws { bench = try DirectoryBench(["a": "one", "d/b": "two"]) }

    @Test(arguments: [
        "bell\u{7}", "esc\u{1B}[2J", "line\nend", "del\u{7F}", "c1\u{9B}2J", "x\u{202E}gpj.exe", "x\u{202A}y", "x\u{2066}y", "x\u{2069}y",
        "x\u{200E}y", "x\u{200F}y", "x\u{61C}y", "x\u{2028}y", "x\u{2029}y", "d\u{202E}/y",
        "../x", "/etc/x", "a/../../x", "", "a//b", "a/", "./a", "a/.", "..", "nul\0byte", ".storehouse/journal", ".Storehouse/x",
        String(repeating: "n", count: 300), String(repeating: "p/", count: 200) + "x", String(repeating: "p/", count: 900) + "x",
        String(repeating: "p/", count: 2000) + "x",
    ])
    func `S8: an unsafe name is refused and shown escaped, without effect on other items and passes`(name: String) async throws {
        bench[name] = "evil"
        let error = await syncError { try await bench.sync() }
        #expect(codes(error) == [.unsafeName])
        #expect(try bench.files == ["a": "one", "d/b": "two"])
        bench[name] = nil
        #expect(try await bench.sync().unchangedCount == 2)
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

    @Test func `S8: a name with letters of any script is accepted`() async throws {
        for name in ["пример", "例え", "مثال", "דוגמה", "e\u{301}", "👩\u{200D}👩\u{200D}👧", "a b", "%41", "back\\slash"] { bench[name] = name }
        try await bench.sync()
        #expect(try bench.files == bench.origin.withLock { $0.contents })
    }

    /// Creates a chain of directories with a file in the last one.
    private func makeDeep(_ depth: Int, name: String = "p") throws {
        var current = try #require(try DirectoryHandle(opening: Directory(path: bench.url.path(percentEncoded: false))))
        for _ in 0..<depth { current = try current.makeDirectory(name) }
        try Array("deep".utf8).withUnsafeBytes { try WritableFile("x", in: current).write($0, at: 0) }
    }

    #if os(macOS) || os(Linux)
    @Test func `S8: a process scans a tree that is deeper than the number of its file descriptors`() async throws {
        try makeDeep(200)
        let program = try ChildProcess.path(of: "SyncCrashWriter")
        let child = try ChildProcess(
            "/bin/sh", ["-c", #"ulimit -n 100; exec "$0" "$@""#, program, bench.url.path(percentEncoded: false), "1", "1", "crash"])
        #expect(child.lines.last == "done")
    }
    #endif

    /// By default, the path of the file is longer than the system allows, and most directories of the tree are opened twice.
    @Test(arguments: isWholeRun ? [(900, 1), (2_500, 1), (300, 20)] : [(300, 20)])
    func `S8: a deep tree that an earlier version left is removed with its directories`(depth: Int, length: Int) async throws {
        let name = String(repeating: "p", count: length)
        try makeDeep(depth, name: name)
        try await bench.sync(foreignFiles: .remove)
        #expect(bench.exists(name))
        let report = try await bench.sync(foreignFiles: .remove)
        #expect(report.removedCount == 1)
        #expect(!bench.exists(name))
        #expect(try bench.files == ["a": "one", "d/b": "two"])
    }

    // MARK: Normal forms

    private static let pairs = [("caf\u{E9}", "cafe\u{301}"), ("\u{AC00}", "\u{1100}\u{1161}"), ("d\u{212B}/x", "d\u{C5}/x")]

    /// Runs a pass over files with the bytes of their paths as content.
    @discardableResult
    private func sync(
        _ paths: [String], content: String = "", order: SourceOrder = .unsorted, folding: NameFolding? = nil,
        durability: Durability = .crash
    ) async throws -> SyncReport {
        @Sendable func text(_ path: String) -> String { content + Array(path.utf8).description }
        let items = paths.map { ListedFile(path: $0, sha256: digest(text($0)), byteCount: Int64(text($0).utf8.count)) }
        let transfer = ClosureTransfer<ListedFile> { file, part in try part.append(Array(text(file.path).utf8)) }
        let target = DirectoryTarget(
            directory: bench.url, transfer: transfer, durability: durability, foreignFiles: .keep, folding: folding
        ) { ListedSource(items.sorted { $0.key < $1.key }, order: order) }
        let options = SyncOptions(stopsOnError: false, removalLimit: .unlimited, updateLimit: .unlimited, retry: .never)
        return try await OneWaySynchronizer(processor: target, options: options).sync(overriding: .everythingChanged)
    }

    private func text(_ path: String) throws -> String {
        String(decoding: try Data(contentsOf: URL(filePath: bench.url.path(percentEncoded: false) + "/" + path)), as: UTF8.self)
    }

    #if os(Linux)
    @Test(arguments: pairs, [SourceOrder.unsorted, .sortedByKey])
    func `S8: names in two normal forms are two files on a disk that distinguishes them`(
        pair: (String, String), order: SourceOrder
    ) async throws {
        let both = [pair.0, pair.1]
        for (pass, durability) in [Durability.crash, .power, .crash].enumerated() {
            let report = try await sync(both + ["other"], order: order, durability: durability)
            #expect((report.addedCount, report.unchangedCount) == (pass == 0 ? (3, 0) : (0, 3)), "pass \(pass)")
        }
        for path in both { #expect(try text(path) == Array(path.utf8).description) }
        // An update, an edit and a removal of one file leave the other alone.
        #expect(try await sync(both + ["other"], content: "new ", order: order).updatedCount == 3)
        for path in both { #expect(try text(path) == "new " + Array(path.utf8).description) }
        try Data("edited".utf8).write(to: URL(filePath: bench.url.path(percentEncoded: false) + "/" + pair.1))
        let report = try await sync(both + ["other"], content: "new ", order: order)
        #expect((report.updatedCount, report.unchangedCount) == (1, 2))
        #expect(report.localEdits.map { $0.value(as: PathKey.self) } == [PathKey(pair.1)])
        #expect(try await sync([pair.1, "other"], content: "new ", order: order).removedCount == 1)
        #expect(try bench.keys == [PathKey(pair.1), "other"])
    }

    @Test func `S8: names in two normal forms survive the loss of the journal`() async throws {
        let both = ["caf\u{E9}", "cafe\u{301}"]
        try await sync(both)
        try FileManager.default.removeItem(at: bench.journal)
        #expect(try await sync(both).unchangedCount == 2)
        #expect(try await sync([both[1]]).removedCount == 1)
        #expect(try bench.keys == [PathKey(both[1])])
    }
    #endif

    @Test(arguments: pairs, [SourceOrder.unsorted, .sortedByKey])
    func `S8: a name in a second normal form is refused on a disk that treats both as equal`(
        pair: (String, String), order: SourceOrder
    ) async throws {
        let paths = [pair.0, pair.1].map { PathKey($0) }.sorted().map(\.path)
        for pass in 1...2 {
            let error = await syncError { try await sync(paths + ["other"], order: order, folding: .normalization) }
            #expect(error?.code == .incomplete, "pass \(pass)")
            #expect(codes(error) == [.nameClash], "pass \(pass)")
            #expect(try bench.keys.count == 2, "pass \(pass)")
        }
    }

    @Test func `S8: a file that the disk lists in another normal form counts as the installed file`() async throws {
        let root = bench.url.path(percentEncoded: false)
        try await sync(["caf\u{E9}", "other"], folding: .normalization)
        // HFS+ lists the name like this.
        try FileManager.default.moveItem(atPath: root + "/caf\u{E9}", toPath: root + "/cafe\u{301}")
        let report = try await sync(["caf\u{E9}", "other"], folding: .normalization)
        #expect((report.unchangedCount, report.localEdits.count) == (2, 0))
        // A disk that distinguishes the names has a different file there.
        let apart = try await sync(["caf\u{E9}", "other"], folding: [])
        #expect((apart.unchangedCount, apart.addedCount) == (1, 1))
    }

    @Test func `S8: keys of files are compared, hashed and sorted by their bytes`() {
        let sorted: [PathKey] = [
            "", "A", "a", "a/b", "a0", "cafe\u{301}", "caf\u{E9}", "\u{1100}\u{1161}", "\u{212B}", "\u{AC00}", "\u{FF5E}", "\u{1F600}",
        ]
        for (place, key) in sorted.enumerated() {
            for (other, second) in sorted.enumerated() {
                #expect((key == second) == (place == other) && (key < second) == (place < other), "\(key), \(second)")
            }
        }
        #expect(Set(sorted + sorted).count == sorted.count)
        #expect(sorted.shuffled().sorted() == sorted)
    }

    @Test func `S5: an item with a leading combining accent is found below an unreadable directory`() {
        let unreadable: [PathKey: any Error] = ["d": Trouble.lasting]
        #expect(unreadable.cause(of: "d/\u{301}e/x")?.path == "d")
        #expect(unreadable.cause(of: "d")?.path == "d")
        #expect(unreadable.cause(of: "e/d")?.path == nil)
    }
}
