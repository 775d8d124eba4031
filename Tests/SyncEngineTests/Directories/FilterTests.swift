import Foundation
import StoreCore
import StorePlatform
import Testing
import Trials
@testable import SyncEngine

/// S21: the patterns of filters, as a pure function.
struct FilePatternTests {
    // Patterns, and the paths that they exclude; every other path of the same row stays.
    @Test(
        arguments: [
            (["*.tmp"], ["a.tmp", "d/a.tmp", "a.tmp/b", ".tmp"], ["a.tmp2", "tmp", "d/a"]),
            (["/a"], ["a", "a/b"], ["d/a", "ab"]),
            (["a/b"], ["a/b", "a/b/c"], ["d/a/b", "a/bc"]),
            (["a/"], ["a/b", "d/a/b", "a/"], ["a", "d/a"]),
            (["/a/"], ["a/b"], ["a", "d/a/b"]),
            (["a/*"], ["a/b", "a/b/c", "a/b/"], ["a", "d/a/b", "a/"]),
            (["a/**"], ["a/b", "a/b/c"], ["a", "d/a/b", "a/"]),
            (["**/a"], ["a", "d/a", "d/e/a", "d/a/b"], ["ba", "d/ba"]),
            (["a/**/b"], ["a/b", "a/x/b", "a/x/y/b"], ["ab", "a/xb", "d/a/b"]),
            (["**"], ["a", "a/b"], []),
            (["*"], ["a", "a/b"], []),
            (["a?c"], ["abc", "d/a.c"], ["ac", "a/c", "abbc"]),
            (["a/?"], ["a/b"], ["a/bc", "d/a/b"]),
            (["[a-c]x"], ["ax", "bx"], ["dx", "x"]),
            (["[!a-c]x"], ["dx", "-x"], ["ax"]),
            (["[^a]"], ["b"], ["a"]),
            (["[]a]"], ["]", "a"], ["b"]),
            (["[a-]"], ["a", "-"], ["b"]),
            (["[[:digit:]x]"], ["1", "x"], ["a", ":"]),
            (["[a"], [], ["[a", "a"]),
            (["[[:nothing:]]"], [], ["n", "[[:nothing:]]"]),
            (["[[:a]"], ["[", ":", "a"], ["b"]),
            (["\\*"], ["*"], ["a"]),
            (["\\#a", "#b"], ["#a"], ["#b", "b"]),
            (["\\!a"], ["!a"], ["a"]),
            (["a\\"], [], ["a", "a\\"]),
            (["a  ", "b\\ "], ["a", "b "], ["a ", "b"]),
            (["*", "!a"], ["b"], ["a"]),
            (["d", "!d/a"], ["d/a", "d/b"], []),
            (["d/*", "!d/a"], ["d/b"], ["d/a"]),
            (["!a", "a"], ["a"], ["b"]),
            (["a**/b"], ["ax/b", "ax/y/b"], ["c/b"]),
            (["x/a**b"], ["x/ab", "x/a1b"], ["x/a/b"]),
            (["", "#", "!", "/", "//"], [], ["a", "a/b"]),
            (["é*"], ["é", "éa"], ["e"]),
            (["?"], ["a"], ["é"]),
        ] as [([String], [String], [String])])
    func `S21: patterns exclude as gitignore does`(patterns: [String], excluded: [String], others: [String]) {
        let filter = FileFilter(patterns)
        for path in excluded { #expect(filter.excludes(path), "\(path)") }
        for path in others { #expect(!filter.excludes(path), "\(path)") }
        #expect(FileFilter(gitignore: "\u{FEFF}" + patterns.joined(separator: "\r\n") + "\r\n") == filter)
    }

    /// Files and directories with names that patterns treat specially.
    private static let files: [String] = {
        let names = ["x", "xx", "x.c", "c]", "#y", "!y", "s ", "1", "-", "[a", "X"]
        let directories = ["", "a/", "b/", "ab/", "a/b/", "a/ab/", "b/a/", "a/b/a/", "ab/b/ab/"]
        return directories.flatMap { directory in names.map { directory + $0 } }
    }()

    private func pattern(_ chance: inout SplitMix) -> String {
        let pieces = [
            "a", "b", "x", "ab", "*", "*", "**", "?", "/", "/", "/**/", "**/", "/**", "[ab]", "[!x]", "[^a-b]", "[]x]", "[a-", "[a-b",
            "\\x", "\\",
            ".c", "!", "#", " ", "\\ ", "[[:alpha:]]", "[[:digit:][:upper:]]", "[[:no:]]", "[[:x]", "-", "]", "1", "[x-\\x]", "[[-a]",
            "***",
        ]
        let length = Int.random(in: 1...5, using: &chance)
        return (0..<length).map { _ in pieces.randomElement(using: &chance) ?? "" }.joined()
    }

    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/git")))
    func `S21: random patterns exclude what git check-ignore excludes`() throws {
        let directory = try TemporaryDirectory()
        let root = directory.url.path(percentEncoded: false)
        for file in Self.files {
            let url = directory.url.appending(path: file)
            try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data().write(to: url)
        }
        #expect(try ChildProcess("/usr/bin/git", ["init", "-q", root]).wait())
        let first = UInt64.random(in: 1...1_000_000)
        var excluded = 0
        for round in seeds(1_000 as UInt64, quick: 20, sanitized: 10) {
            var chance = SplitMix(seed: first + round)
            let patterns = (0..<Int.random(in: 1...4, using: &chance)).map { _ in pattern(&chance) }
            let text = patterns.joined(separator: "\n") + "\n"
            try Data(text.utf8).write(to: directory.url.appending(path: ".gitignore"))
            let git = try ChildProcess(
                "/usr/bin/git",
                ["-C", root, "-c", "core.excludesFile=/dev/null", "-c", "core.quotePath=false", "check-ignore", "--no-index", "--"]
                    + Self.files)
            let found = Set(git.rest.split(separator: "\n").map(String.init))
            git.wait()
            let filter = FileFilter(gitignore: text)
            for file in Self.files where filter.excludes(file) != found.contains(file) {
                Issue.record("\(patterns): \(file) is excluded: \(filter.excludes(file)); seed \(first + round)")
            }
            excluded += found.count
        }
        #expect(excluded > 0)
    }

    @Test func `S21: a pattern that makes a backtracking matcher exponential takes linear time`() {
        // Backtracking would take longer than the age of the universe.
        let text = String(repeating: "a", count: 400)
        #expect(!FileFilter([String(repeating: "*a", count: 40) + "b"]).excludes(text))
        let directories = String(repeating: "a/", count: 80)
        #expect(!FileFilter([String(repeating: "**/a/", count: 20) + "*b/c"]).excludes(directories + "c"))
        #expect(FileFilter([String(repeating: "**/a/", count: 20) + "*/c"]).excludes(directories + "c"))
    }
}

/// S21: the effect of filters on passes.
struct FilterTests {
    private let filtered = MirrorLayers { $0.filter = FileFilter(["*.log", "/cache/"]) }

    @Test func `S21: excluded files are neither downloaded nor removed, and directories with them stay`() async throws {
        let bench = try DirectoryBench(["a": "1", "d/a.log": "2", "cache/x": "3"])
        #expect(try await bench.sync().addedCount == 3)
        bench.origin.withLock { $0.contents = ["a": "1", "new.log": "4", "cache/y": "5", "b": "6"] }
        let plan = try await OneWaySynchronizer(processor: bench.target(layers: filtered)).plan()
        #expect((plan.additions.count, plan.removals.count, plan.unchangedCount, plan.excludedCount) == (1, 0, 1, 2))
        let report = try await bench.sync(layers: filtered)
        #expect((report.addedCount, report.removedCount, report.excludedCount) == (1, 0, 2))
        #expect(report.summary.contains("2 excluded"))
        #expect(try bench.files == ["a": "1", "b": "6", "d/a.log": "2", "cache/x": "3"])
        // Without the filter they are what the journal says.
        #expect(try await bench.sync().removedCount == 2)
        #expect(try bench.files == bench.origin.withLock { $0.contents })
    }

    @Test func `S21: excluded foreign files stay where foreign files are removed`() async throws {
        let bench = try await DirectoryBench(["a": "1"]).synced()
        for path in ["mine", "mine.log", "cache/mine"] { try bench.write("mine", path) }
        try await bench.sync(foreignFiles: .remove, layers: filtered)
        #expect(try bench.files == ["a": "1", "mine.log": "mine", "cache/mine": "mine"])
    }

    @Test func `S21: an excluded directory is not reported if it cannot be read, and stays if it is empty`() async throws {
        let bench = try await DirectoryBench(["a": "1", "cache/x": "2"]).synced()
        bench.onStep { if $0 == .lists("cache") { throw diskError(.EACCES) } }
        #expect(try await bench.sync(layers: filtered).skipped.isEmpty)
        bench.probe.withLock { $0 = nil }
        try FileManager.default.removeItem(at: bench.url.appending(path: "cache/x"))
        try await bench.sync(layers: filtered)
        #expect(bench.exists("cache"))
    }

    @Test func `S20, S21: no file moves across a filter`() async throws {
        let bench = try await DirectoryBench(["a": "1", "b.log": "2", "z": "z"]).synced()
        bench.publish(["a.log": "1", "b": "2", "z": "z"])
        let report = try await bench.sync(layers: filtered)
        #expect((report.movedCount, report.addedCount, report.removedCount) == (0, 1, 1))
        #expect(bench.origin.withLock { $0.transfers } == ["b"])
        #expect(try bench.files == ["b": "2", "b.log": "2", "z": "z"])
    }

    @Test(arguments: [true, false])
    func `S3, S21: a filter that excludes the whole list is refused unless a run overrides it`(isFirst: Bool) async throws {
        let bench = try DirectoryBench(["a": "1", "d/b": "2"])
        if !isFirst { try await bench.sync() }
        let all = MirrorLayers { $0.filter = FileFilter(["*"]) }
        #expect(try await OneWaySynchronizer(processor: bench.target(layers: all)).plan().gateRefusal?.code == .everythingExcluded)
        #expect(await syncError { try await bench.sync(layers: all) }?.code == .everythingExcluded)
        #expect(try bench.files.count == (isFirst ? 0 : 2))
        #expect(try await bench.sync(.emptySource, layers: all).excludedCount == 2)
        #expect(try bench.files.count == (isFirst ? 0 : 2), "local files are excluded too")
    }

    @Test func `S2, S21: the count of a list includes excluded items`() async throws {
        let bench = try DirectoryBench(["a": "1"])
        let target = DirectoryTarget(directory: bench.url, transfer: BenchTransfer(bench: bench), layers: filtered) {
            ListedSource([ListedFile(path: "a", sha256: digest("1")), ListedFile(path: "b.log", sha256: digest("2"))], expectedCount: 2)
        }
        #expect(try await OneWaySynchronizer(processor: target).sync().sourceCount == 1)
    }

    @Test func `S11, S21: sorted sides are filtered as streams`() async throws {
        let bench = Sorted()
        let report = try await OneWaySynchronizer(processor: bench).sync()
        #expect((report.addedCount, report.removedCount, report.unchangedCount, report.excludedCount) == (1, 1, 1, 2))
    }

    /// Sorted sides without odd keys.
    private struct Sorted: SyncProcessor {
        var excludes: (@Sendable (Int) -> Bool)? { { $0 % 2 == 1 } }
        func sourceList() -> ListedSource<Thing> { ListedSource([1, 2, 3, 4].map { Thing($0) }, order: .sortedByKey) }
        func localInventory() -> LocalInventory<Thing> {
            LocalInventory([2, 5, 6].map { LocalEntry($0, version: 1) }, order: .sortedByKey)
        }
        func downloadContent(of item: Thing) {}
        func remove(_ keys: Set<Int>) { #expect(keys == [6]) }
    }
}
