import Foundation
import StoreCore
import StorePlatform
import Testing
import Trials
@testable import SyncEngine

/// S27: the times, permissions, directories and links of a list.
struct MetadataTests {
    private let bench: DirectoryBench
    /// A time of the year 2001.
    private let old: Int64 = 1_000_000_000

    init() throws { bench = try DirectoryBench(["a": "1", "d/b": "2", "z": "z"]) }

    private func file(_ path: String, _ text: String, mode: UInt16? = nil, modified: Int64? = nil) -> ListedFile {
        var file = ListedFile(path: path, sha256: digest(text), byteCount: Int64(text.utf8.count))
        file.metadata = FileMetadata(mode: mode, modified: modified)
        return file
    }

    private func link(_ path: String, _ text: String) -> ListedFile { ListedFile(path: path, kind: .link(to: text)) }

    private func directory(_ path: String) -> ListedFile { ListedFile(path: path, kind: .directory) }

    private func publish(_ files: [ListedFile]) {
        bench.origin.withLock { ($0.listed, $0.transfers) = (files, []) }
    }

    private func layers(_ options: MetadataOptions, _ patterns: [String] = []) -> MirrorLayers {
        MirrorLayers { ($0.metadata, $0.filter) = (options, FileFilter(patterns)) }
    }

    @discardableResult
    private func sync(
        _ files: [ListedFile], _ options: MetadataOptions = .all, keeping edits: LocalEdits = .overwrite
    ) async throws -> SyncReport {
        publish(files)
        return try await bench.sync(localEdits: edits, layers: layers(options))
    }

    private func plan(_ files: [ListedFile], _ options: MetadataOptions = .all) async throws -> SyncPlan<ListedFile> {
        publish(files)
        return try await OneWaySynchronizer(processor: bench.target(layers: layers(options))).plan()
    }

    private func url(_ path: String) -> URL { bench.url.appending(path: path, directoryHint: .notDirectory) }

    private func status(_ path: String) throws -> FileStatus? { try FileStatus.of(path: url(path).path(percentEncoded: false)) }

    /// The regular files with their content, without links to files.
    private var contents: [String: String] {
        get throws { try bench.files.filter { try status($0.key)?.kind == .regular } }
    }

    private func text(_ path: String) throws -> String? {
        guard try status(path)?.kind == .link else { return nil }
        return try FileManager.default.destinationOfSymbolicLink(atPath: url(path).path(percentEncoded: false))
    }

    private func makeLink(_ path: String, _ text: String) throws {
        try FileManager.default.createSymbolicLink(atPath: url(path).path(percentEncoded: false), withDestinationPath: text)
    }

    // MARK: Options

    @Test(arguments: [[], .times, .modes, .directories, .links, .all] as [MetadataOptions])
    func `S27: each kind of metadata is taken from the list by option, and none by default`(options: MetadataOptions) async throws {
        let files = [file("a", "1", mode: 0o640, modified: old), file("d/b", "2"), directory("e/f"), link("l", "d/b"), file("z", "z")]
        for isFirst in [true, false] {
            let plan = try await plan(files, options)
            let report = try await sync(files, options)
            let count = isFirst ? [MetadataOptions.directories, .links].count { options.contains($0) } : 0
            #expect((plan.metadata.count, report.metadataCount, report.planned.metadata) == (count, count, count))
            #expect((report.addedCount, report.unchangedCount) == (isFirst ? 3 : 0, isFirst ? 0 : 3))
            let found = try #require(try status("a"))
            #expect((found.modified == old * 1_000_000_000) == options.contains(.times))
            if options.contains(.modes) { #expect(found.permissions == 0o640) }
            #expect(try (status("e/f")?.kind == .directory) == options.contains(.directories))
            #expect(try text("l") == (options.contains(.links) ? "d/b" : nil))
        }
    }

    @Test func `S3, S27: changed metadata is no download, no removal and no update, and a plan shows it`() async throws {
        let files = (0..<30).map { file("\($0)", "content \($0)") }
        bench.origin.withLock { $0.contents = Dictionary(uniqueKeysWithValues: (0..<30).map { ("\($0)", "content \($0)") }) }
        try await sync(files + [link("l", "0"), directory("e")])
        let changed = (0..<30).map { file("\($0)", "content \($0)", mode: 0o755, modified: old) }
        let shown = try await plan(changed)
        #expect(shown.gateRefusal == nil && shown.downloads.isEmpty && shown.removals.isEmpty && shown.unchangedCount == 30)
        #expect(shown.metadata.map(\.key.path).sorted() == (changed.map(\.path) + ["l", "e"]).sorted())
        #expect(shown.metadata.contains { $0.summary.contains("→ 0755, time 2001-09-09T01:46:40Z") })
        #expect(try status("7")?.permissions != 0o755, "a plan changes nothing")
        let synchronizer = OneWaySynchronizer(processor: bench.target(layers: layers(.all)))
        let report = try await synchronizer.sync()
        #expect((report.metadataCount, report.removedCount, report.updatedCount, report.unchangedCount) == (32, 0, 0, 30))
        #expect(bench.origin.withLock { $0.transfers } == [])
        #expect(report.summary.contains("32 with new metadata"))
        for number in 0..<30 {
            let found = try #require(try status("\(number)"))
            #expect((found.permissions, found.modified) == (0o755, old * 1_000_000_000))
        }
        // The journal has the new times.
        #expect(try await plan(changed).isEmpty)
        bench.onStep { if case .reads = $0 { Issue.record("a file with its recorded time is not read") } }
        #expect(try await sync(changed).metadataCount == 0)
    }

    @Test(arguments: [(0o6777, 0o777), (0, 0o600), (0o1044, 0o644), (0o4011, 0o611)] as [(UInt16, UInt16)], [false, true])
    func `S27: permissions are bounded, for new and for existing files`(modes: (UInt16, UInt16), exists: Bool) async throws {
        let (listed, expected) = modes
        if exists { try await sync([file("a", "1"), file("z", "z")]) }
        try await sync([file("a", "1", mode: listed), file("z", "z")])
        #expect(try status("a")?.permissions == expected)
        #expect(try await plan([file("a", "1", mode: listed), file("z", "z")]).isEmpty)
    }

    @Test(arguments: [-1, .min, .max, 99_999_999_999] as [Int64])
    func `S27: a time before 1970 or in the future is ignored`(time: Int64) async throws {
        let begin = FileStatus.now() / 1_000_000_000 - 1
        for _ in 0..<2 { try await sync([file("a", "1", modified: time)]) }
        let found = try #require(try status("a")).modified / 1_000_000_000
        #expect(found >= begin && found <= FileStatus.now() / 1_000_000_000)
        #expect(try await plan([file("a", "1", modified: time)]).isEmpty)
    }

    @Test func `S15, S27: an edit of a file with an old time is an edit`() async throws {
        let files = [file("a", "1", modified: old), file("z", "z", modified: old)]
        try await sync(files)
        try Data("2".utf8).write(to: url("a"))
        #expect(try await sync(files, keeping: .keepLocal).localEdits.map(\.description) == ["a"])
        #expect(try String(contentsOf: url("a"), encoding: .utf8) == "2")
        let edited = try #require(try status("a"))
        #expect(edited.modified > old * 1_000_000_000, "an edit keeps its time")
        #expect(try await sync(files).updatedCount == 1)
        #expect(try status("a")?.modified == old * 1_000_000_000)
    }

    @Test func `S4, S27: a file saved just before its change keeps its own metadata`() async throws {
        try await sync([file("a", "1", mode: 0o600), file("z", "z")])
        let place = url("a")
        bench.onStep { if $0 == .describes("a") { try Data("saved".utf8).write(to: place) } }
        let error = await syncError { try await sync([file("a", "1", mode: 0o755, modified: old), file("z", "z")]) }
        #expect(codes(error) == [.changedLocally])
        let found = try #require(try status("a"))
        #expect(found.permissions == 0o600 && found.modified > old * 1_000_000_000)
    }

    @Test func `S3, S27: a staged update with the content of its file gives it its metadata`() async throws {
        for (version, mode) in [("1", nil), ("2", 0o700)] as [(String, UInt16?)] {
            var listed = ListedFile(path: "a", version: version)
            listed.metadata = FileMetadata(mode: mode)
            try await sync([listed, file("z", "z")])
        }
        #expect(try status("a")?.permissions == 0o700)
    }

    @Test func `S20, S27: a moved file gets the metadata of its new path`() async throws {
        try await sync([file("a", "1"), file("z", "z")])
        let files = [file("d/c", "1", mode: 0o700, modified: old), file("z", "z")]
        #expect(try await plan(files).metadata.map(\.key.path) == ["d/c"])
        let report = try await sync(files)
        #expect((report.movedCount, report.metadataCount) == (1, 1))
        let found = try #require(try status("d/c"))
        #expect((found.permissions, found.modified) == (0o700, old * 1_000_000_000))
        #expect(bench.origin.withLock { $0.transfers } == [])
    }

    @Test(arguments: [DuplicateKeys.keepFirst, .keepLast])
    func `S8, S27: a file that the list has twice gets the metadata of the item that counts`(duplicates: DuplicateKeys) async throws {
        let plain = ListedFile(path: "z", sha256: digest("z"), byteCount: 1)
        try await sync([file("a", "1"), plain])
        let before = try status("z")?.permissions
        publish([file("a", "1", mode: 0o700), plain, file("a", "1", mode: 0o750), file("z", "z", mode: 0o700)])
        let options = SyncOptions(retry: .never, duplicates: duplicates)
        for count in [duplicates == .keepFirst ? 1 : 2, 0] {
            let report = try await OneWaySynchronizer(processor: bench.target(layers: layers(.modes)), options: options).sync()
            #expect((report.metadataCount, report.unchangedCount) == (count, 2))
            #expect(try status("a")?.permissions == (duplicates == .keepFirst ? 0o700 : 0o750))
            #expect(try status("z")?.permissions == (duplicates == .keepFirst ? before : 0o700))
        }
    }

    @Test(arguments: [DuplicateKeys.refuse, .keepFirst, .keepLast])
    func `S8, S27: links and directories that the list has twice are refused or resolved by a rule, and reported`(
        duplicates: DuplicateKeys
    ) async throws {
        publish([file("z", "z"), link("l", "a"), directory("e"), link("l", "b"), directory("e")])
        let options = SyncOptions(retry: .never, duplicates: duplicates)
        let synchronizer = OneWaySynchronizer(processor: bench.target(layers: layers(.all)), options: options)
        guard duplicates != .refuse else {
            #expect(await syncError { try await synchronizer.sync() }?.code == .duplicateKeys)
            #expect(try status("z") == nil)
            return
        }
        #expect(try await synchronizer.sync().duplicates.map(\.description).sorted() == ["e", "l"])
        #expect(try text("l") == (duplicates == .keepFirst ? "a" : "b"))
    }

    // MARK: Links

    @Test(arguments: [
        "/etc/passwd", "../../x", "../..", "x/../../../y", "x/..", "", "../.storehouse/journal", "../.STOREHOUSE", "x\u{0}y", "x\u{1B}",
        "//x", String(repeating: "x", count: 256), "x/.storehouse", String(repeating: "./", count: 1_600) + "x",
    ])
    func `S27: a link that could lead out of the directory is refused, and a plan shows it`(text: String) async throws {
        let files = [file("z", "z"), link("d/l", text)]
        let shown = try await plan(files)
        #expect(shown.metadata.isEmpty)
        #expect(shown.refusals.map { ($0.error as? SyncError)?.code } == [.unsafeName])
        let error = await syncError { try await sync(files) }
        #expect(codes(error) == [.unsafeName])
        #expect(error?.report?.pendingDownloadCount == 0)
        #expect(try status("d/l") == nil)
        #expect(try contents == ["z": "z"])
        #expect(!FileMetadata.isInside(text, at: "d/l"))
    }

    @Test(arguments: ["x", "./x", "..", "../z", "../d/b/", "e//f", ".", "../x/y"])
    func `S27: a link inside of the directory is made with its text, even if it leads nowhere`(text: String) async throws {
        #expect(try await sync([file("z", "z"), link("d/l", text)]).metadataCount == 1)
        #expect(try self.text("d/l") == text)
        #expect(FileMetadata.isInside(text, at: "d/l"))
    }

    @Test func `S19, S27: no download follows a link of the list, and none makes a link lead out`() async throws {
        bench["y/x"] = "x"
        try await sync([file("d/b", "2"), link("y", "d")])
        // With both a link and a file below it, the link stays and the file fails.
        let both = [file("d/b", "2"), link("y", "d"), file("y/x", "x")]
        #expect(codes(await syncError { try await sync(both) }) == [.nameTaken])
        #expect(try contents == ["d/b": "2"])
        #expect(try text("y") == "d")
        #expect(try await sync([file("d/b", "2"), file("y/x", "x")]).addedCount == 1)
        #expect(try status("y")?.kind == .directory)
        #expect(try contents == ["d/b": "2", "y/x": "x"])
    }

    @Test func `S27: a link through a link that no sync has made is refused`() async throws {
        let other = try TemporaryDirectory()
        try await sync([file("z", "z")])
        try makeLink("out", other.url.path(percentEncoded: false))
        let error = await syncError { try await sync([file("z", "z"), link("l", "out/secret"), link("m", "out")]) }
        #expect(codes(error) == [.unsafeName, .unsafeName])
        #expect(try text("l") == nil && text("m") == nil)
        let shown = try await plan([file("z", "z"), link("l", "out/secret")])
        #expect(shown.metadata.isEmpty && shown.refusals.map(\.key.path) == ["l"])
        #expect(try await sync([file("z", "z"), link("in", "d"), link("l", "in/b")]).metadataCount == 2)
        // A link that is as listed belongs to the list.
        try makeLink("as-listed", "d")
        #expect(try await sync([file("z", "z"), link("a", "as-listed/b"), link("as-listed", "d")]).metadataCount == 3)
    }

    @Test(arguments: ["a file", "a link", "a directory"])
    func `S15, S27: an object of the user under the name of a link stays`(what: String) async throws {
        try await sync([file("z", "z")])
        switch what {
        case "a file": try bench.write("mine", "l")
        case "a link": try makeLink("l", "mine")
        default: try bench.write("mine", "l/x")
        }
        let error = await syncError { try await sync([file("z", "z"), link("l", "z")]) }
        #expect(codes(error).first == .nameTaken)
        #expect(error?.message.contains("“l”") == true)
        #expect(try status("l")?.kind == (what == "a file" ? .regular : what == "a link" ? .link : .directory))
        // An edited link stays, too.
        try await sync([file("z", "z"), link("k", "z")])
        try FileManager.default.removeItem(at: url("k"))
        try makeLink("k", "mine")
        #expect(codes(await syncError { try await sync([file("z", "z"), link("k", "a")]) }) == [.nameTaken])
        try await sync([file("z", "z")])
        #expect(try text("k") == "mine")
    }

    // MARK: Names

    private func object(_ kind: String) -> [ListedFile] {
        switch kind {
        case "file": [file("x", "f")]
        case "link": [link("x", "z")]
        case "directory": [directory("x")]
        case "filled": [file("x/y", "y")]
        default: []
        }
    }

    @Test(arguments: ["none", "file", "link", "directory", "filled"], ["none", "file", "link", "directory", "filled"])
    func `S27: files, links and directories take each other's names, and what leaves the list is removed`(
        before: String, after: String
    ) async throws {
        bench.origin.withLock { ($0.contents["x"], $0.contents["x/y"]) = ("f", "y") }
        try await sync([file("z", "z")] + object(before))
        for isFirst in [true, false] {
            let report = try await sync([file("z", "z")] + object(after))
            if !isFirst { #expect((report.metadataCount, report.addedCount, report.removedCount) == (0, 0, 0)) }
            let kinds: [String: FileKind] = ["file": .regular, "link": .link, "directory": .directory, "filled": .directory]
            #expect(try status("x")?.kind == kinds[after])
            #expect(try contents["x"] == (after == "file" ? "f" : nil))
            #expect(try contents["x/y"] == (after == "filled" ? "y" : nil))
            #expect(try contents["z"] == "z")
        }
    }

    @Test func `S27: a link gets a new text, and a directory with other files or without its option stays`() async throws {
        let first = [file("z", "z"), link("d/l", "../z"), directory("e"), directory("f")]
        try await sync(first)
        try await sync([file("z", "z"), link("d/l", "b"), directory("e"), directory("f")])
        #expect(try text("d/l") == "b")
        try bench.write("mine", "e/mine")
        try await sync([file("z", "z")], .links)
        #expect(try status("d") == nil && status("f") != nil)
        try await sync([file("z", "z")])
        #expect(try status("f") == nil)
        #expect(try contents == ["z": "z", "e/mine": "mine"])
    }

    @Test func `S27: texts of links with different bytes differ, even if they are canonically equivalent`() async throws {
        let (composed, decomposed) = ("caf\u{E9}", "cafe\u{301}")
        try await sync([file("a", "1"), link("l", decomposed), link("m", composed)])
        // A user's link takes the place of one of the list.
        try FileManager.default.removeItem(at: url("m"))
        try makeLink("m", decomposed)
        #expect(try await sync([file("a", "1"), link("l", composed)]).metadataCount == 1)
        #expect(try text("l")?.utf8.elementsEqual(composed.utf8) == true)
        #expect(try text("m")?.utf8.elementsEqual(decomposed.utf8) == true)
    }

    @Test func `S27: a listed directory stays when its last file leaves the list`() async throws {
        try await sync([file("d/b", "2"), file("z", "z")])
        #expect(try await sync([directory("d"), file("z", "z")]).removedCount == 1)
        #expect(try status("d")?.kind == .directory)
        // Without the option, it stays after it left the list, too.
        try await sync([file("d/b", "2"), file("z", "z")], [])
        #expect(try await sync([file("z", "z")], []).removedCount == 1)
        #expect(try status("d")?.kind == .directory)
        try await sync([file("z", "z")])
        #expect(try status("d") == nil)
    }

    @Test(.enabled(if: !isRoot()))
    func `S27: a link in a directory that cannot be read is removed once it can be read`() async throws {
        try await sync([file("d/b", "2"), link("d/l", "b"), file("z", "z")])
        try FileManager.default.setAttributes([.posixPermissions: 0], ofItemAtPath: url("d").path(percentEncoded: false))
        let error = await syncError { try await sync([file("d/b", "2"), file("z", "z")]) }
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: url("d").path(percentEncoded: false))
        #expect(codes(error) == [.unreadable])
        #expect(try await sync([file("d/b", "2"), file("z", "z")]).metadataCount == 1)
        #expect(try text("d/l") == nil)
    }

    @Test func `S3, S27: a list of links and directories alone is an empty list`() async throws {
        try await sync([file("z", "z")])
        #expect(await syncError { try await sync([link("l", "z"), directory("e")]) }?.code == .emptySource)
        #expect(try contents == ["z": "z"])
    }

    @Test func `S21, S27: excluded links and directories take no part`() async throws {
        try await sync([file("z", "z"), link("old.l", "z"), directory("cache")])
        publish([file("z", "z"), link("new.l", "z"), directory("tmp")])
        let report = try await bench.sync(layers: layers(.all, ["*.l", "tmp/", "cache/"]))
        #expect(report.metadataCount == 0)
        #expect(try text("old.l") == "z" && text("new.l") == nil)
        #expect(try status("cache")?.kind == .directory && status("tmp") == nil)
    }

    @Test func `S4, S27: a directory that stays is not emptied for a file of its name`() async throws {
        try await sync([file("d/b", "2"), directory("d"), file("z", "z")])
        bench.origin.withLock { $0.contents["d"] = "file" }
        let files = [file("d", "file"), file("z", "z")]
        // Without the option, the directory that the first pass has made stays.
        for _ in 0..<2 {
            let error = await syncError { try await sync(files, []) }
            #expect(codes(error) == [.nameTaken] && error?.report?.pendingRemovals.count == 1)
            #expect(try contents == ["d/b": "2", "z": "z"])
        }
        #expect(try await sync(files).addedCount == 1)
        #expect(try contents == ["d": "file", "z": "z"])
    }

    @Test func `S21, S27: a directory that a pattern excludes without a slash stays, even if its last file leaves the list`() async throws {
        try await sync([file("d/b", "2"), directory("d"), directory("inbox"), file("z", "z")])
        publish([file("z", "z"), directory("inbox")])
        let report = try await bench.sync(layers: layers(.all, ["*", "!*/", "!b", "!z"]))
        #expect((report.removedCount, report.metadataCount) == (1, 0))
        for path in ["d", "inbox"] { #expect(try status(path)?.kind == .directory) }
    }

    @Test func `S27: a link replaces a directory with nothing but own links and directories`() async throws {
        try await sync([file("z", "z"), directory("d/e/f"), link("d/l", "z")])
        let files = [file("z", "z"), link("d", "z")]
        #expect(try await plan(files).refusals.isEmpty)
        #expect(try await sync(files).metadataCount == 3)
        #expect(try text("d") == "z")
    }

    @Test(arguments: [0, 0o200])
    func `S27: a file without read permission gets the permissions of the list`(mode: Int) async throws {
        let files = [file("a", "1", mode: 0o640)]
        try await sync(files)
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: url("a").path(percentEncoded: false))
        #expect(try await sync(files).metadataCount == 1)
        #expect(try status("a")?.permissions == 0o640)
    }

    @Test func `S15, S27: own links are no foreign objects`() async throws {
        publish([file("z", "z"), link("l", "z"), directory("e")])
        for _ in 0..<2 { #expect(try await bench.sync(foreignFiles: .remove, layers: layers(.all)).skipped.isEmpty) }
        #expect(try text("l") == "z")
    }

    @Test func `S5, S27: links wait until every download has succeeded`() async throws {
        bench.origin.withLock { $0.onTransfer = { path in if path == "a" { throw Trouble.lasting } } }
        let files = [file("a", "1"), file("z", "z"), link("l", "z")]
        #expect(await syncError { try await sync(files) }?.code == .incomplete)
        #expect(try text("l") == nil)
        bench.origin.withLock { $0.onTransfer = nil }
        #expect(try await sync(files).metadataCount == 1)
        #expect(try text("l") == "z")
    }

    @Test func `S5, S27: a file that cannot be moved fails once, without a second failure of its metadata`() async throws {
        try await sync([file("a", "1"), file("z", "z")])
        try makeLink("b", "z")
        publish([file("b", "1", mode: 0o700), file("z", "z", mode: 0o700)])
        let options = SyncOptions(stopsOnError: false, removalCondition: .despiteFailures, retry: .never)
        let synchronizer = OneWaySynchronizer(processor: bench.target(layers: layers(.modes)), options: options)
        let report = await syncError { try await synchronizer.sync() }?.report
        #expect(report?.failures.map(\.stage) == [.moves] && report?.metadataCount == 1)
        #expect(try contents == ["a": "1", "z": "z"] && status("z")?.permissions == 0o700)
    }

    @Test func `S5, S27: a disk that is full before a change ends the pass, and the next pass makes it`() async throws {
        bench.onStep { if $0 == .describes("l") { throw diskError(.ENOSPC) } }
        let files = [file("z", "z"), link("l", "z")]
        let error = await syncError { try await sync(files) }
        #expect(error?.report?.failures.map(\.stage) == [.metadata])
        #expect(try text("l") == nil)
        bench.probe.withLock { $0 = nil }
        #expect(try await sync(files).metadataCount == 1)
    }

    // MARK: Kills

    @Test func `S9, S27: a process killed between the journal and a link hinders no later pass`() async throws {
        let journal = url(".storehouse/journal")
        func append(_ change: TargetJournal.Change) throws {
            try TargetJournal.write(TargetJournal.changes(in: journal) + [change], to: journal)
        }
        try await sync([file("z", "z"), link("l", "z")])
        try append(.placed("m", link: "z"))
        try append(.placed("l", link: "a"))
        // The old link is still in place.
        try await sync([file("z", "z"), link("l", "d"), link("m", "z")])
        #expect(try text("l") == "d" && text("m") == "z")
        try append(.placed("n", link: "z"))
        #expect(try await sync([file("z", "z")]).metadataCount == 2)
        #expect(try text("l") == nil && text("m") == nil)
        // After the loss of the journal, a link with its text belongs to the list again.
        try await sync([file("z", "z"), link("l", "z")])
        try Data("damaged".utf8).write(to: journal)
        try await sync([file("z", "z"), link("l", "z")])
        try await sync([file("z", "z")])
        #expect(try text("l") == nil)
    }

    @Test func `S9, S27: a link is changed after two failures with different texts`() async throws {
        try await sync([file("z", "z"), link("l", "z")])
        let blocked = url(".storehouse/parts/\(PartNames(path: "l").bytes).link")
        bench.onStep { step in
            // The name of the new link is taken when the journal already has its text.
            if step == .describes("l") {
                try FileManager.default.createDirectory(at: blocked.appending(path: "x"), withIntermediateDirectories: true)
            }
        }
        for text in ["a", "b"] { #expect(await syncError { try await sync([file("z", "z"), link("l", text)]) } != nil) }
        #expect(try text("l") == "z")
        bench.probe.withLock { $0 = nil }
        try? FileManager.default.removeItem(at: blocked)
        #expect(try await sync([file("z", "z"), link("l", "d")]).metadataCount == 1)
        #expect(try text("l") == "d")
    }

    @Test func `S9, S27: a compacted journal has the same links and directories`() {
        var journal = TargetJournal()
        let changes: [TargetJournal.Change] = [
            .beginning, .placed("l", link: "a"), .placed("l", link: "b"), .placed("e", link: nil), .placed("m", link: "a"), .displaced("m"),
        ]
        for change in changes { journal.apply(change) }
        let expected: [PathKey: [String?]] = ["l": ["b", "a"], "e": [nil]]
        #expect(journal.placed == expected)
        var copy = TargetJournal()
        for change in journal.changes { copy.apply(change) }
        #expect(copy.placed == journal.placed)
    }
}
