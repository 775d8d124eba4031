import Foundation
import Testing
import Trials
import StoreCoreTesting

@testable import StoreCore
@testable import StoreFiles
@testable import StoreOutbox

/// Damaged logs, disks that fail, and values that no program should produce.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct OutboxInputTests {
    // MARK: The log

    /// A log with every kind of fact, one append each: the bytes, and the end of each append.
    private func history() throws -> (bytes: [UInt8], ends: [Int]) {
        let place = try TemporaryDirectory()
        let log = try OutboxLog(directory: place.file("outbox"))
        let ids = (0..<6).map { _ in UUID() }
        var entries: [(UUID, OutboxEntry.Fact)] = []
        for (number, id) in ids.enumerated() { entries.append((id, .submitted(try .init(Add(key: 1 + number % 2, amount: 1))))) }
        entries += [
            (ids[0], .attempted), (ids[0], .delivered(replacement: nil)), (ids[0], .retired), (ids[1], .attempted),
            (ids[1], .deferred(.init(attempts: 1, date: entryDate, delay: .seconds(10), requested: .seconds(10), error: "offline"))),
            (ids[2], .attempted), (ids[2], .failed(.init(attempts: 1, date: entryDate, error: "refused"))), (ids[2], .retried),
            (ids[3], .canceled), (ids[4], .failed(.init(attempts: 1, date: entryDate, error: "refused"))), (ids[4], .discarded),
            (ids[5], .replaced(try .init(Add(key: 3, amount: 1)))),
            (OutboxEntry.noCommand, .mapped(temporary: "\"t\"", replacement: "\"r\"")),
        ]
        var ends: [Int] = []
        for (id, fact) in entries {
            _ = try log.append([OutboxEntry(id: id, lane: "Int", fact: fact).record], durability: .crash)
            ends.append(log.byteCount)
        }
        return (try Array(Data(contentsOf: place.file("outbox").appending(path: "log"))), ends)
    }

    private func bench(_ bytes: [UInt8]) throws -> OutboxBench {
        let place = try TemporaryDirectory()
        try FileManager.default.createDirectory(at: place.file("outbox"), withIntermediateDirectories: true)
        try Data(bytes).write(to: place.file("outbox").appending(path: "log"))
        return try OutboxBench(in: place)
    }

    @Test func `O1, O14: an outbox over a log cut at any byte has exactly the facts of its complete appends`() async throws {
        let (bytes, ends) = try history()
        var expected = OutboxMachine()
        var next = 0
        let contents = try bytes.withUnsafeBytes({ try LogFormat.outbox.read($0, from: 0) }).contents
        let entries = contents.compactMap { OutboxEntry(Data(bytes[$0])) }
        #expect(entries.count == ends.count)
        let cuts = positions(0..<bytes.count + 1, every: 41, and: ends.flatMap { $0 - 1...$0 + 1 })
        for (number, cut) in cuts.enumerated() {
            while next < ends.count, ends[next] <= cut {
                expected.apply(entries[next], date: entryDate)
                next += 1
            }
            let bench = try bench(Array(bytes.prefix(cut)))
            #expect(await bench.outbox.commands().map(\.id) == expected.commands { $0.status != .delivered }.map(\.id), "cut at \(cut)")
            guard number % 16 == 0 else { continue }
            await bench.register()
            let id = try await bench.outbox.submit(Add(key: 4, amount: 1))
            #expect(try await bench.value(4) == 1)
            let again = try OutboxBench(in: bench.directory)
            #expect(await again.outbox.commands().last?.id == id, "cut at \(cut)")
        }
        #expect(next == ends.count)
    }

    @Test func `O14: a flipped bit in any entry costs at most its fact, is reported, and stops no other lane`() async throws {
        let (bytes, ends) = try history()
        // The header of the file and that of the first record are damaged at each byte.
        let all = positions(bytes.indices, every: 41, and: Array(0..<64) + ends.flatMap { $0 - 1...$0 })
        for (number, position) in all.enumerated() {
            var damaged = bytes
            damaged[position] ^= 1 << UInt8(position % 8)
            let bench = try bench(damaged)
            let isLast = position >= ends[ends.count - 2]
            #expect(isLast || bench.events.count("skipped") > 0, "the damage at \(position) is not reported")
            #expect(await bench.outbox.commands().count <= 6)
            guard number % 32 == 0 else { continue }
            await bench.register()
            try await bench.outbox.submit(Add(key: 4, amount: 1))
            bench.outbox.start()
            try await bench.origin.wait(until: { $0.contains(Add(key: 4, amount: 1)) })
        }
    }

    @Test(arguments: [(0, UInt8(2)), (1, 200)])
    func `O6: a fact of a newer version is reported, survives, and holds its lane alone`(_ place: Int, _ byte: UInt8) async throws {
        let bench = try await OutboxBench().registered()
        try await bench.outbox.submit(Add(key: 1, amount: 5))
        try await bench.outbox.submit(Add(key: 2, amount: 7))
        let held = try #require(await bench.outbox.commands().first)
        var record = OutboxEntry(id: held.id, lane: .ofKey(1), fact: .attempted).record
        record[place] = byte
        _ = try OutboxLog(directory: bench.directory.file("outbox")).append([record], durability: .crash)
        for _ in 1...2 {
            let again = try await OutboxBench(in: bench.directory).started()
            try await again.outbox.submit(Add(key: 3, amount: 1))
            try await again.origin.wait(until: { $0.contains(Add(key: 3, amount: 1)) })
            try await until("the other lanes are delivered") { await again.outbox.commands().map(\.id) == [held.id] }
            #expect(!again.origin.commands.contains { $0.key == 1 })
            #expect(again.events.count("cannot decode") == 1)
            #expect(try await again.value() == 5)
            // A compaction keeps the record of the newer version.
            try await again.outbox.core.compact()
            await again.outbox.core.shutDown()
        }
    }

    @Test func `O6, O11: an undecodable command that changes no content is never attempted`() async throws {
        let directory = try TemporaryDirectory()
        var damaged = try OutboxEntry.Submission(Add(key: 1, amount: 5))
        damaged.payload = Data("{}".utf8)
        let entry = OutboxEntry(id: UUID(), lane: "add", fact: .submitted(damaged))
        _ = try OutboxLog(directory: directory.file("outbox")).append([entry.record], durability: .crash)
        let outbox = try Outbox(directory: directory.file("outbox"))
        await outbox.register(Add.self) { _, _ in }
        outbox.start()
        #expect(await outbox.drain(until: .seconds(600)) == .drained)
        #expect(try await outbox.cancel(entry.id) == .canceled)
    }

    // MARK: Disks

    /// Puts a directory in place of the log, so that every access of the log fails.
    private func blockLog(of bench: OutboxBench) throws {
        try withLockedLog(of: bench) { log in
            try FileManager.default.moveItem(at: log, to: bench.directory.file("kept"))
            try FileManager.default.createDirectory(at: log, withIntermediateDirectories: false)
        }
    }

    private func restoreLog(of bench: OutboxBench) throws {
        try withLockedLog(of: bench) { log in
            try FileManager.default.removeItem(at: log)
            try FileManager.default.moveItem(at: bench.directory.file("kept"), to: log)
        }
    }

    /// Holds the lock of the log, so that the outbox does not make a new log between two moves.
    private func withLockedLog(of bench: OutboxBench, _ body: (URL) throws -> Void) throws {
        let directory = bench.directory.file("outbox")
        let lock = try FileHandle(forUpdating: directory.appending(path: "lock"))
        defer {
            // A child process of another test may have inherited the descriptor, which would keep the lock.
            _ = flock(lock.fileDescriptor, LOCK_UN)
            try? lock.close()
        }
        #expect(flock(lock.fileDescriptor, LOCK_EX) == 0)
        try body(directory.appending(path: "log"))
    }

    @Test func `O1, O11: calls on a disk that fails throw, and change nothing`() async throws {
        let bench = try await OutboxBench().prepared()
        let id = try await bench.outbox.submit(Add(key: 1, amount: 5))
        try blockLog(of: bench)
        var error = await #expect(throws: StoreError.self) { try await bench.outbox.submit(Add(key: 1, amount: 100)) }
        #expect(error?.code == .fileSystem)
        error = await #expect(throws: StoreError.self) { try await bench.outbox.cancel(id) }
        #expect(error?.code == .fileSystem)
        await #expect(throws: StoreError.self) { try await bench.outbox.retry(id) }
        await #expect(throws: StoreError.self) { try await bench.outbox.replace(id, with: Add(key: 1, amount: 100)) }
        #expect(try await bench.value() == 5)
        #expect(await bench.outbox.commands().map(\.id) == [id])
        try restoreLog(of: bench)
        try await bench.outbox.submit(Add(key: 1, amount: 7))
        #expect(try await bench.value() == 12)
        bench.outbox.start()
        try await bench.settled()
        #expect(bench.origin.commands.map(\.amount) == [5, 7])
    }

    @Test func `O13, O15: changes of other processes that cannot be read are reported, and are read later`() async throws {
        let bench = try await OutboxBench().registered()
        try blockLog(of: bench)
        await bench.outbox.core.refresh()
        try await bench.events.first("log failed")
        try restoreLog(of: bench)
        let other = try await OutboxBench(in: bench.directory).registered()
        try await other.outbox.submit(Add(key: 1, amount: 5))
        try await until { await bench.state.pendingCount == 1 }
    }

    @Test func `O7: a success that cannot be logged is logged later, and is not delivered twice`() async throws {
        let bench = try await OutboxBench().prepared()
        try await bench.deliverHeld(5)
        try blockLog(of: bench)
        bench.origin.release()
        try await bench.events.first("log failed")
        #expect(try await bench.value() == 5)
        try restoreLog(of: bench)
        try await until("the success is logged") {
            bench.time.advance(by: .seconds(1))
            return await bench.outbox.core.isEmpty
        }
        #expect(bench.origin.startedCount == 1)
        #expect(try await bench.value() == 5)
    }

    @Test func `O5: an attempt that cannot be logged follows after a delay, even if the policy has none`() async throws {
        let policy = OutboxPolicy { ($0.concurrentLanes, $0.backOff) = (1, .zero) }
        let origin = ScriptedDeliveries<Add, Void>(cancellation: .ignored) { _ in .success(()) }
        let bench = try await OutboxBench(policy: policy, origin: origin).prepared()
        origin.hold()
        bench.outbox.start()
        for key in 1...2 { try await bench.outbox.submit(Add(key: key, amount: 5)) }
        try await origin.started(count: 1, timeout: .seconds(600))
        try await bench.time.sleepers(atLeast: 1, timeout: .seconds(600))
        try blockLog(of: bench)
        // The other lane begins after the deadline of the first attempt.
        bench.time.advance(by: policy.attemptTimeout)
        try await bench.events.first("log failed")
        #expect(await bench.state.pendingCount == 2)
        try restoreLog(of: bench)
        origin.release()
        try await until("both are delivered") {
            bench.time.advance(by: .seconds(1))
            return await bench.outbox.core.isEmpty
        }
    }

    @Test func `O10: clearing on a disk that fails throws, keeps the commands, and stops deliveries until resume`() async throws {
        let scope = CacheScope()
        let bench = try await OutboxBench(scope: scope).registered()
        try await bench.outbox.submit(Add(key: 1, amount: 5))
        var states = bench.outbox.publish().makeAsyncIterator()
        #expect(await states.next()?.isStopped == false)
        try blockLog(of: bench)
        let error = await #expect(throws: StoreError.self) { try await scope.clear() }
        #expect(error?.code == .fileSystem)
        #expect(await states.next()?.isStopped == true)
        try restoreLog(of: bench)
        bench.outbox.start()
        #expect(await bench.state.isStopped)
        #expect(await bench.state.pendingCount == 1)
        #expect(bench.origin.startedCount == 0)
        await bench.outbox.resume()
        try await bench.settled()
        #expect(bench.origin.commands == [Add(key: 1, amount: 5)])
    }

    @Test func `O10: the commands remain if the emptied log cannot be written`() async throws {
        // A directory of this process, because a process that stops removes nothing.
        let directory = temporaryURL()
        await #expect(processExitsWith: .success) { [directory = directory as URL] in
            let outbox = try Outbox(directory: directory)
            await outbox.register(Add.self) { _, _ in }
            try await outbox.submit(Add(key: 1, amount: 5))
            limitDescriptors(to: 0)
            let isCleared = (try? await outbox.clear()) != nil
            let pendingCount = await outbox.snapshot().pendingCount
            precondition(!isCleared && pendingCount == 1)
        }
    }

    // MARK: Values

    private struct Unencodable: Command {
        static let name = "unencodable"
        var number = Double.nan
    }

    @Test func `O1: a command that cannot be encoded is refused, and nothing changes`() async throws {
        let bench = try OutboxBench()
        await bench.fill()
        await bench.outbox.register(
            Unencodable.self, patching: bench.store, at: { _ in 1 }, patch: { _, number in number += 1 }, perform: { _, _ in })
        await #expect(throws: EncodingError.self) { try await bench.outbox.submit(Unencodable()) }
        #expect(try await bench.value() == 0)
        #expect(await bench.state.pendingCount == 0)
    }

    @Test(arguments: [Duration.seconds(Int64.max), .seconds(-5), .nanoseconds(1)])
    func `O5: no delay that an origin asks for harms the outbox`(_ delay: Duration) async throws {
        let origin = ScriptedDeliveries<Add, Void>(.failure(Refusal(failureKind: .transient, retryAfter: delay)), .success(()))
        let bench = try await OutboxBench(origin: origin).launched()
        try await bench.outbox.submit(Add(key: 1, amount: 5))
        try await bench.events.first("attempt 1 failed")
        let again = try OutboxBench(in: bench.directory)
        #expect(await again.state.commands.map(\.attempts) == [1])
        #expect("\(await again.state.commands)".contains("nextAttempt"))
        guard delay < .seconds(1) else { return }
        bench.time.advance(by: .seconds(1))
        try await bench.settled()
    }

    @Test func `O12: a replacement is bounded like a submission`() async throws {
        let bench = try OutboxBench(policy: OutboxPolicy { $0.byteLimit = 200 }, origin: ScriptedDeliveries(.failure(Refusal())))
        await bench.fill()
        await bench.outbox.register(AppendText.self) { _, _ in throw Refusal() }
        let id = try await bench.outbox.submit(AppendText(note: "n", text: "a"))
        bench.outbox.start()
        try await bench.events.first("failed")
        let text = String(repeating: "a", count: 300)
        let error = await #expect(throws: StoreError.self) { try await bench.outbox.replace(id, with: AppendText(note: "n", text: text)) }
        #expect(error?.code == .outboxFull)
        #expect(try await bench.outbox.commands().map { try $0.value(as: AppendText.self).text } == ["a"])
        // An accepted replacement counts with its own size.
        let half = AppendText(note: "n", text: String(repeating: "b", count: 100))
        #expect(try await bench.outbox.replace(id, with: half).isDone)
        let further = await #expect(throws: StoreError.self) { try await bench.outbox.submit(half) }
        #expect(further?.code == .outboxFull)
    }

    // MARK: Many commands

    @Test func `O2, O10: many changes of one content are shown, delivered in order, and dropped`() async throws {
        let count = isLongRun ? 100_000 : 500
        let bench = try OutboxBench()
        await bench.fill()
        let log = try OutboxLog(directory: bench.directory.file("outbox"))
        let entries = try (0..<count).map { number in
            OutboxEntry(id: UUID(), lane: .ofKey(1), fact: .submitted(try .init(Add(key: 1, amount: 1))))
        }
        _ = try log.append(entries.map(\.record), durability: .crash)
        let scope = CacheScope()
        let again = try OutboxBench(in: bench.directory, policy: OutboxPolicy { $0.countLimit = count + 1 }, scope: scope)
        let began = ContinuousClock.now
        await again.register()
        #expect(try await again.value() == count)
        let shown = ContinuousClock.now
        try await again.outbox.submit(Add(key: 1, amount: 1))
        await #expect(throws: StoreError.self) { try await again.outbox.submit(Add(key: 1, amount: 1)) }
        #expect(try await again.value() == count + 1)
        again.outbox.start()
        try await again.events.first("delivered", count: 100)
        #expect(try await again.value() == count + 1)
        let delivered = ContinuousClock.now
        try await scope.clear()
        #expect(try await again.value() == 0)
        #expect(await again.state.pendingCount == 0)
        if isLongRun {
            print(
                "\(count) changes of one content: shown in \(shown - began), 100 delivered in \(delivered - shown),"
                    + " dropped in \(ContinuousClock.now - delivered)")
        }
    }
}

extension ScriptedDeliveries where Value == Add {
    /// Waits until the deliveries that have begun satisfy a condition.
    fileprivate func wait(until holds: ([Add]) -> Bool) async throws { try await Trials.until { holds(commands) } }
}
