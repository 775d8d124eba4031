import Foundation
import StoreCore
internal import StorePlatform
internal import StoreFiles
internal import StoreOutbox
import Trials

/// The modes in which the process shares the log of an outbox with others.
enum OutboxModes {
    static func run(_ mode: String, _ directory: URL, _ arguments: [String]) async throws {
        func number(_ index: Int) -> Int { arguments.dropFirst(index).first.flatMap { Int($0) } ?? 0 }
        switch mode {
        case "append": try append(directory, writer: number(0), from: number(1), count: number(2))
        case "compact": try compact(directory, count: number(0))
        case "limited":
            limitFileSize(number(0))
            tryToAppend(directory, lengths: [[100], [100, 100_000, 100], [100]])
            tryToCompact(directory, lengths: [3000, 3000])
        case "full":
            tryToAppend(directory, lengths: [[1000], [1000, 500_000], [1000]])
            tryToCompact(directory, lengths: [100_000, 100_000])
        case "no-names":
            tryToAppend(directory, lengths: [[100]])
            tryToCompact(directory, lengths: [])
        case "nobody":
            becomeNobody()
            tryToAppend(directory, lengths: [[100]])
        case "idle": try await idle(directory)
        case "deliver": try await deliver(directory)
        case "take-turns": try await takeTurns(directory, count: number(0), log: arguments[1])
        default: say("unknown mode \(mode)")
        }
    }

    /// Appends one to three records at a time, and prints the serial number of each append.
    ///
    /// A record contains writer, serial number, its place in the append, the number of records of the append, and a filler.
    static func append(_ directory: URL, writer: Int, from first: Int, count: Int) throws {
        let log = try OutboxLog(directory: directory)
        for serial in first..<(count == 0 ? .max : first + count) {
            let size = 1 + serial % 3
            let records = (0..<size).map { index in
                // Every tenth append is large, so that a kill may tear it.
                let length = serial % 10 == 0 ? 60_000 : serial &* 7919 % 500
                return Data("\(writer) \(serial) \(index) \(size) \(String(repeating: "x", count: length))".utf8)
            }
            _ = try log.append(records, durability: .crash)
            say("\(serial)")
        }
        say("done")
    }

    /// Compacts the log over and over, without dropping a record.
    static func compact(_ directory: URL, count: Int) throws {
        let log = try OutboxLog(directory: directory)
        var all: [Data] = []
        for _ in 0..<(count == 0 ? .max : count) {
            try log.compact { news in
                for damage in news.damages { say("damage \(damage)") }
                all = news.wasReplaced ? news.entries : all + news.entries
                return all
            }
            say("compacted \(all.count)")
        }
        say("done")
    }

    /// Makes appends with records of these lengths; prints each result, what another reader finds, and the file's size.
    static func tryToAppend(_ directory: URL, lengths: [[Int]]) {
        do {
            let log = try OutboxLog(directory: directory)
            for lengths in lengths {
                do {
                    _ = try log.append(lengths.map { Data(repeating: 120, count: $0) }, durability: .crash)
                    say("appended \(lengths.count)")
                } catch {
                    say("failed \(error.code.rawValue) \(error.fileSystemErrno ?? 0) \(error.message)")
                }
                let news = try OutboxLog(directory: directory).read()
                let size = try Directory(path: directory.path(percentEncoded: false)).status(of: "log")?.size
                say("read \(news.entries.count) damages \(news.damages.count) size \(size ?? -1)")
            }
        } catch {
            say("cannot open \(error.code.rawValue) \(error.fileSystemErrno ?? 0) \(error.message)")
        }
    }

    /// Compacts the log to records of these lengths; prints the result, what another reader finds, and the names in the directory.
    static func tryToCompact(_ directory: URL, lengths: [Int]) {
        do {
            try OutboxLog(directory: directory).compact { _ in lengths.map { Data(repeating: 120, count: $0) } }
            say("compacted")
        } catch let error as StoreError {
            say("failed \(error.code.rawValue) \(error.fileSystemErrno ?? 0)")
        } catch {
            say("failed otherwise \(error)")
        }
        do {
            let news = try OutboxLog(directory: directory).read()
            let names = try FileManager.default.contentsOfDirectory(atPath: directory.path(percentEncoded: false)).sorted()
            say("read \(news.entries.count) damages \(news.damages.count) files \(names.joined(separator: " "))")
        } catch {
            say("failed otherwise \(error)")
        }
    }

    /// Follows the log, delivers once, and then has nothing to deliver.
    static func idle(_ directory: URL) async throws {
        let log = try OutboxLog(directory: directory)
        _ = try log.read()
        log.follow { _ in say("news") }
        let leases = log.leases()
        let lease = try await leases.acquireDelivery()
        say("delivering")
        _ = try log.append([Data("delivered".utf8)], durability: .crash)
        // Long enough for the test to see the lock.
        try await until("the test has seen the lock") { try log.read().entries == [Data("go on".utf8)] }
        lease.release()
        say("idle")
        try await untilCanceled()
    }

    /// Holds the lease until the process ends or has lost it.
    static func deliver(_ directory: URL) async throws {
        let log = try OutboxLog(directory: directory)
        let lease = try await log.leases().acquireDelivery()
        say("delivering")
        try await until("the lease is lost") { await !lease.isHeld() }
        say("lost")
    }

    /// Acquires the lease over and over; begin and end of each delivery are lines of a file.
    static func takeTurns(_ directory: URL, count: Int, log: String) async throws {
        let leases = try OutboxLog(directory: directory).leases()
        for _ in 0..<count {
            let lease = try await leases.acquireDelivery()
            appendLine(log, "begin \(ProcessInfo.processInfo.processIdentifier)")
            await Task.yield()
            if await !lease.isHeld() { say("lost") }
            appendLine(log, "end \(ProcessInfo.processInfo.processIdentifier)")
            lease.release()
        }
        say("done")
        // Releasing is asynchronous, and the system releases the lock in any case.
    }
}
