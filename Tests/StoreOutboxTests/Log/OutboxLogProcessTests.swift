import Foundation
import Testing
import Trials
@testable import StoreCore
@testable import StoreFiles
@testable import StoreOutbox
@testable import StorePlatform

#if os(macOS) || os(Linux)

/// Tests O13 and O14 with real processes that are killed, or run out of space.
@Suite(.serialized)
struct OutboxLogProcessTests {
    private let place: TemporaryDirectory

    init() throws { place = try TemporaryDirectory() }

    private var path: String { place.directory.path }

    private func start(_ mode: String, _ arguments: String...) throws -> ChildProcess {
        try ChildProcess("CrashWriter", ["outbox", path, mode] + arguments)
    }

    private func texts(_ news: OutboxLog.News) -> [String] { news.entries.map { String(decoding: $0, as: UTF8.self) } }

    /// Reads the whole log as another process, and returns the serial numbers of each writer's appends in their order.
    ///
    /// Fails the test if an append is incomplete or a record is damaged.
    private func appends() throws -> [Int: [Int]] {
        let news = try OutboxLog(directory: place.url).read()
        #expect(news.damages.isEmpty)
        var serials: [Int: [Int]] = [:]
        var expected: (writer: Int, serial: Int, index: Int, size: Int)?
        for record in news.entries {
            let parts = String(decoding: record.prefix(80), as: UTF8.self).split(separator: " ").prefix(4).compactMap { Int($0) }
            try #require(parts.count == 4)
            let (writer, serial, index, size) = (parts[0], parts[1], parts[2], parts[3])
            if let expected { #expect(expected == (writer, serial, index, size), "an append is torn or mixed with another") }
            expected = index + 1 < size ? (writer, serial, index + 1, size) : nil
            if index == 0 { serials[writer, default: []].append(serial) }
        }
        #expect(expected == nil)
        return serials
    }

    @Test func `O14: kill -9 at random moments while processes append and compact loses no acknowledged record`() throws {
        var next = [1, 1]
        var acknowledged: [[Int]] = [[], []]
        var lost = 0
        for round in 0..<rounds(25, quick: 6) {
            let compactor = try start("compact", "0")
            let writers = try (0..<2).map { try start("append", "\($0)", "\(next[$0])", "0") }
            func note(_ line: String?, of writer: Int) {
                guard let serial = line.flatMap({ Int($0) }) else { return }
                acknowledged[writer].append(serial)
                next[writer] = serial + 1
            }
            for _ in 0..<Int.random(in: 1...20) { for writer in 0..<2 { note(writers[writer].readLine(), of: writer) } }
            // Varies the delay, so that the kill falls between two lines as well as right after one.
            for _ in 0..<Int.random(in: 0...2000) { _ = SHA256.digest(of: []) }
            for child in [compactor, writers[0], writers[1]].shuffled() { child.kill() }
            for writer in 0..<2 {
                while let line = writers[writer].readLine() { note(line, of: writer) }
                writers[writer].wait()
            }
            #expect(!compactor.rest.contains("damage"))
            compactor.wait()

            let found = try appends()
            for writer in 0..<2 {
                let serials = found[writer] ?? []
                #expect(zip(serials, serials.dropFirst()).allSatisfy { $0 < $1 }, "writer \(writer) appended in order, and once")
                lost += Set(acknowledged[writer]).subtracting(serials).count
                // A process may be killed between its append and its word of it.
                #expect(serials.count <= acknowledged[writer].count + round % 5 + 1)
                next[writer] = (serials.last ?? next[writer]) + 1
            }
            #expect(lost == 0, "round \(round)")
            if round % 5 == 4 {
                try OutboxLog(directory: place.url).compact { _ in [] }
                acknowledged = [[], []]
            }
        }
        #expect(lost == 0)
        #expect(try OutboxLog(directory: place.url).read().damages.isEmpty)
        #expect(try place.names.allSatisfy { !$0.hasSuffix(".tmp") })
    }

    @Test func `O14: processes that append and compact concurrently neither lose nor reorder records`() throws {
        let count = rounds(200, quick: 50)
        let writers = try (0..<2).map { try start("append", "\($0)", "0", "\(count)") }
        let compactors = try (0..<2).map { _ in try start("compact", "\(count / 4)") }
        // Output that is not read stops a process.
        for child in writers + compactors { #expect(child.rest.hasSuffix("done\n")) }
        for child in writers + compactors { #expect(child.wait()) }
        let found = try appends()
        #expect(found == [0: Array(0..<count), 1: Array(0..<count)])
    }

    // MARK: Succession

    @Test func `O13: when the deliverer is killed, another process takes over`() throws {
        for _ in 0..<rounds(5, quick: 2) {
            let first = try start("deliver")
            #expect(first.readLine() == "delivering")
            let second = try start("deliver")
            first.kill()
            #expect(second.readLine() == "delivering")
            second.kill()
        }
    }

    @Test func `O13: only one of several processes delivers at a time`() throws {
        let log = place.file("deliveries").path(percentEncoded: false)
        let children = try (0..<3).map { _ in try start("take-turns", "\(rounds(30, quick: 10))", log) }
        for child in children { #expect(child.rest == "done\n") }
        let lines = try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n").map { $0.split(separator: " ") }
        #expect(lines.count == 3 * rounds(30, quick: 10) * 2)
        // Each delivery ends before the next one begins.
        for pair in stride(from: 0, to: lines.count - 1, by: 2) {
            #expect(lines[pair][0] == "begin" && lines[pair + 1][0] == "end" && lines[pair][1] == lines[pair + 1][1])
        }
    }

    #if os(Linux)
    @Test func `O13: a process that has nothing to deliver holds no lock`() async throws {
        let child = try start("idle")
        let log = try OutboxLog(directory: place.url)
        #expect(child.readLine() == "delivering")
        // The check would see a lock: a deliverer holds one, and a second one while it appends or reads.
        try await until("the process holds a lock") { try child.holdsLock() }
        try await until { try texts(log.read()) == ["delivered"] }
        _ = try log.append([Data("go on".utf8)], durability: .crash)
        var line = child.readLine()
        while line == "news" { line = child.readLine() }
        #expect(line == "idle")
        // Releasing is asynchronous.
        try await until("the process holds no lock") { try !child.holdsLock() }
        // It still follows the log.
        _ = try log.append([Data("more".utf8)], durability: .crash)
        #expect(child.readLine() == "news")
        try await until("the process holds no lock") { try !child.holdsLock() }
    }
    #endif

    // MARK: Disks

    /// The size of a log of single records with these lengths.
    private func size(_ lengths: Int...) -> Int { LogFormat.headerSize + lengths.reduce(0) { $0 + LogFormat.entryHeaderSize + $1 } }

    /// Checks a process without space for its second append and for its compaction.
    private func checkRefusals(of child: ChildProcess, _ length: Int, code: Int32) throws {
        #expect(child.readLine() == "appended 1")
        #expect(child.readLine() == "read 1 damages 0 size \(size(length))")
        let failure = try #require(child.readLine())
        #expect(failure.hasPrefix("failed fileSystem \(code) writing \(path)/log"))
        if code == ENOSPC { #expect(failure.contains("free some space")) }
        #expect(child.readLine() == "read 1 damages 0 size \(size(length))")
        #expect(child.readLine() == "appended 1")
        #expect(child.readLine() == "read 2 damages 0 size \(size(length, length))")
        // A compaction that does not fit leaves the old log, and nothing else.
        #expect(child.readLine() == "failed fileSystem \(code)")
        #expect(child.readLine() == "read 2 damages 0 files lock log")
    }

    @Test func `O14: an append beyond the file size limit fails with its reason and changes nothing, as does a compaction`() throws {
        try checkRefusals(of: start("limited", "4096"), 100, code: EFBIG)
    }

    @Test(.enabled(if: canMountSmallDisks()))
    func `O14: an append to a full disk fails with its reason and changes nothing, as does a compaction`() throws {
        let child = try ChildProcess(onDisk: "size=128k,mode=700", at: path, "CrashWriter", ["outbox", path, "full"])
        try checkRefusals(of: child, 1_000, code: ENOSPC)
    }

    @Test(.enabled(if: canMountSmallDisks()))
    func `O10: a log is emptied on a disk without room for another file`() throws {
        // The files are the directory, the lock and the log.
        let child = try ChildProcess(onDisk: "nr_inodes=3,mode=700", at: path, "CrashWriter", ["outbox", path, "no-names"])
        for line in ["appended 1", "read 1 damages 0 size \(size(100))", "compacted", "read 0 damages 0 files lock log"] {
            #expect(child.readLine() == line)
        }
    }

    @Test(.enabled(if: canMountSmallDisks()))
    func `O14: a log on a read-only disk cannot be opened`() throws {
        let child = try ChildProcess(onDisk: "ro", at: path, "CrashWriter", ["outbox", path, "full"])
        let failure = try #require(child.readLine())
        #expect(failure.hasPrefix("cannot open fileSystem \(EROFS) opening \(path)/lock"))
    }

    @Test func `O14: a log in a directory without write permission cannot be opened`() throws {
        try FileManager.default.setAttributes([.posixPermissions: 0o555], ofItemAtPath: path)
        defer { try? FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path) }
        let failure = try #require(try start("nobody").readLine())
        #expect(failure.hasPrefix("cannot open fileSystem \(EACCES) opening \(path)/lock"))
    }
}

#endif
