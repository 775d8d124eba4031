import Foundation
import Testing
import Trials
@testable import StoreCore
@testable import StoreFiles
@testable import StoreOutbox
@testable import StorePlatform

/// Tests O13 and O14 with several users of one log in one process.
struct OutboxLogTests {
    private let place: TemporaryDirectory

    init() throws { place = try TemporaryDirectory() }

    private func user() throws -> OutboxLog { try OutboxLog(directory: place.url) }

    private func data(_ texts: String...) -> [Data] { texts.map { Data($0.utf8) } }

    private func texts(_ news: OutboxLog.News) -> [String] { news.entries.map { String(decoding: $0, as: UTF8.self) } }

    // MARK: Reading and appending

    @Test(arguments: [Durability.crash, .power])
    func `O14: appended records survive a restart, in order`(durability: Durability) throws {
        let log = try user()
        #expect(try log.read().isEmpty)
        #expect(try log.append(data("a", ""), durability: durability).isEmpty)
        #expect(try log.append(data("c"), durability: durability).isEmpty)
        #expect(try log.byteCount == place.bytes("log").count)
        let news = try user().read()
        #expect(texts(news) == ["a", "", "c"])
        #expect(news.damages.isEmpty && !news.wasReplaced)
    }

    @Test func `O13: a user reads each record of the others once, in the order of the log`() throws {
        let (a, b) = (try user(), try user())
        #expect(try a.append(data("a1"), durability: .crash).isEmpty)
        #expect(texts(try b.append(data("b1", "b2"), durability: .crash)) == ["a1"])
        #expect(texts(try a.read()) == ["b1", "b2"])
        #expect(try a.read().isEmpty && b.read().isEmpty)
        #expect(try b.append(data("b3"), durability: .crash).isEmpty)
        #expect(texts(try a.append(data("a2"), durability: .crash)) == ["b3"])
        #expect(texts(try user().read()) == ["a1", "b1", "b2", "b3", "a2"])
    }

    @Test func `O13: a decision sees all earlier records, and no append comes between it and its own records`() throws {
        let (a, b) = (try user(), try user())
        _ = try b.append(data("b1"), durability: .crash)
        try a.append(durability: .crash) { news in
            #expect(texts(news) == ["b1"])
            return data("a1")
        }
        _ = try b.append(data("b2"), durability: .crash)
        #expect(throws: Refusal.self) {
            try a.append(durability: .crash) { news in
                #expect(texts(news) == ["b2"])
                throw Refusal()
            }
        }
        // The closure has received the record.
        #expect(try a.read().isEmpty)
        #expect(texts(try user().read()) == ["b1", "a1", "b2"])
    }

    @Test func `O13: decisions of several users under the lock never conflict`() throws {
        let logs = try (0..<4).map { _ in try user() }
        let rounds = 50
        // Threads, because tasks may run one after another.
        DispatchQueue.concurrentPerform(iterations: logs.count) { index in
            var last = 0
            for _ in 0..<rounds {
                do {
                    try logs[index].append(durability: .crash) { news in
                        if let newest = news.entries.last { last = Int(String(decoding: newest, as: UTF8.self)) ?? -1 }
                        last += 1
                        // Gives the others time to decide meanwhile, if they can.
                        for _ in 0..<20 { sched_yield() }
                        return [Data("\(last)".utf8)]
                    }
                } catch {
                    Issue.record(error)
                }
            }
        }
        #expect(texts(try user().read()) == (1...4 * rounds).map { "\($0)" })
    }

    @Test func `O13: an observer is called after appends and after a replacement`() async throws {
        let (a, b) = (try user(), try user())
        let seen = Lock<[String]>([])
        b.follow { [weak b] _ in
            guard let news = try? b?.read() else { return }
            seen.withLock { [texts = texts(news)] in $0 += texts }
        }
        _ = try a.append(data("1"), durability: .crash)
        try await until { seen.withLock { $0 } == ["1"] }
        _ = try a.append(data("2"), durability: .crash)
        try await until { seen.withLock { $0 } == ["1", "2"] }
        try a.compact { _ in data("3") }
        try await until { seen.withLock { $0 } == ["1", "2", "3"] }
        // The watch has moved to the new file.
        _ = try a.append(data("4"), durability: .crash)
        try await until { seen.withLock { $0 } == ["1", "2", "3", "4"] }
    }

    // MARK: Compaction

    @Test func `O14: a compaction replaces the log for all users and loses no append`() throws {
        let (a, b, c) = (try user(), try user(), try user())
        _ = try a.append(data("1", "2"), durability: .crash)
        _ = try b.read()
        _ = try b.append(data("3"), durability: .crash)
        let old = try FileHandle(forReadingFrom: place.file("log"))
        let bytes = try place.bytes("log")
        try a.compact { news in
            #expect(texts(news) == ["3"])
            return data("2", "3")
        }
        #expect(try a.read().isEmpty)
        // A reader that has the old file open reads all of it.
        #expect(try old.readToEnd() == Data(bytes))
        // A user that has the old file open appends to the new one.
        let news = try b.append(data("4"), durability: .crash)
        #expect(news.wasReplaced && texts(news) == ["2", "3"])
        let first = try c.read()
        #expect(!first.wasReplaced && texts(first) == ["2", "3", "4"])
        #expect(texts(try a.read()) == ["4"])
        #expect(try place.names == ["lock", "log"])
    }

    @Test func `O14: a compaction without records leaves an empty log`() throws {
        let (a, b) = (try user(), try user())
        _ = try a.append(data("1"), durability: .crash)
        _ = try b.read()
        try a.compact { _ in [] }
        #expect(try place.bytes("log").isEmpty && a.byteCount == 0)
        let news = try b.read()
        #expect(news.wasReplaced && news.entries.isEmpty)
        _ = try b.append(data("2"), durability: .crash)
        #expect(texts(try user().read()) == ["2"])
    }

    @Test func `O14: a compaction that is refused leaves the old log`() throws {
        let log = try user()
        _ = try log.append(data("1"), durability: .crash)
        let before = try place.bytes("log")
        #expect(throws: Refusal.self) { try log.compact { _ in throw Refusal() } }
        #expect(try place.bytes("log") == before)
    }

    @Test func `O14: the leftover file of a killed compaction is removed`() throws {
        let log = try user()
        let name = TemporaryFile.makeName(kind: "replacement")
        try place.write([1, 2, 3], name)
        try place.write([1], ".other.tmp")
        _ = try user()
        #expect(try place.names.contains(name) == false)
        #expect(try place.names.contains(".other.tmp"))
        withExtendedLifetime(log) {}
    }

    // MARK: Damage

    @Test func `O14: damage is reported once, stays in the file, and is removed by a compaction`() throws {
        let log = try user()
        _ = try log.append(data("1"), durability: .crash)
        let start = try place.bytes("log").count
        _ = try log.append(data("2"), durability: .crash)
        let end = try place.bytes("log").count
        var bytes = try place.bytes("log")
        bytes[start + 5] ^= 4
        try place.write(bytes, "log")
        let reader = try user()
        let news = try reader.read()
        #expect(texts(news) == ["1"])
        #expect(news.damages.map(\.offset) == [start] && news.damages.map(\.length) == [end - start])
        #expect(try reader.read().isEmpty)
        #expect(try reader.append(data("3"), durability: .crash).isEmpty)
        #expect(texts(try user().read()) == ["1", "3"])
        #expect(try Array(place.bytes("log")[..<end]) == bytes)
        try reader.compact { _ in data("1", "3") }
        #expect(try user().read() == OutboxLog.News(entries: data("1", "3")))
    }

    @Test func `O6, O14: an outbox refuses a log of another version, or another file, and does not change it`() throws {
        func log(version: UInt32) -> [UInt8] { LogFormat("SHoutbox", version: version, noun: "").header + [1, 2, 3] }
        for (bytes, reasons) in [
            (log(version: 1), ["has version 1", "the earlier version of the program"]), (log(version: 9), ["version 9"]),
            (Array("something else entirely".utf8), ["is not the log"]),
        ] {
            try place.write(bytes, "log")
            let status = try place.status("log")
            let error = try #require(throws: StoreError.self) { try Outbox(directory: place.url) }
            #expect(error.code == .unreadableRecord && reasons.allSatisfy { error.message.contains($0) })
            #expect(try place.bytes("log") == bytes)
            #expect(try place.status("log") == status)
        }
    }

    @Test func `O14: a log that is replaced by a newer version while it is open is not changed`() throws {
        let log = try user()
        _ = try log.append(data("1"), durability: .crash)
        let newer = Array("a newer format without any header of this one".utf8)
        try Data(newer).write(to: place.file("log"), options: .atomic)
        #expect(throws: StoreError.self) { try log.append(data("2"), durability: .crash) }
        #expect(throws: StoreError.self) { try log.compact { _ in [] } }
        #expect(try place.bytes("log") == newer)
    }

    // MARK: Directories

    @Test func `O14: a compaction is repeated in a new directory if its own is removed`() throws {
        let log = try OutboxLog(directory: place.file("a"))
        _ = try log.append(data("a"), durability: .crash)
        var isFirst = true
        try log.compact { _ in
            if isFirst { try FileManager.default.removeItem(at: place.file("a")) }
            isFirst = false
            return data("b")
        }
        #expect(texts(try OutboxLog(directory: place.file("a")).read()) == ["b"])
    }

    @Test func `O14: a missing directory is created, and created again when it was removed`() throws {
        let missing = place.file("a/b")
        let log = try OutboxLog(directory: missing)
        _ = try log.append(data("1"), durability: .crash)
        try FileManager.default.removeItem(at: place.file("a"))
        let news = try log.append(data("2"), durability: .power)
        #expect(news.wasReplaced && news.entries.isEmpty)
        #expect(texts(try OutboxLog(directory: missing).read()) == ["2"])
    }

    @Test func `O14: a directory that is a file, and a symbolic link in place of the log, are refused`() throws {
        try place.write([1], "file")
        #expect(throws: StoreError.self) { _ = try OutboxLog(directory: place.file("file")) }
        try FileManager.default.createSymbolicLink(at: place.file("log"), withDestinationURL: place.file("file"))
        let error = #expect(throws: StoreError.self) { _ = try user() }
        #expect(error?.fileSystemErrno == ELOOP)
        #expect(try place.bytes("file") == [1])
    }
}
