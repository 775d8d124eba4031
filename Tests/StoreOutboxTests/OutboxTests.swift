import Foundation
import Testing
import Trials
import StoreCoreTesting

@testable import StoreCore
@testable import StoreFiles
@testable import StoreOutbox

@Suite(.timeLimit(.minutes(hangMinutes)))
struct OutboxTests {
    @Test func `O1, O12: a failed submit changes nothing`() async throws {
        let bench = try OutboxBench(policy: OutboxPolicy { $0.countLimit = 1 })
        await bench.store[1].update(10)
        await #expect(throws: StoreError.self) { try await bench.outbox.submit(Add(key: 1, amount: 5)) }
        await bench.register()
        try await bench.outbox.submit(Add(key: 1, amount: 5))
        let error = await #expect(throws: StoreError.self) { try await bench.outbox.submit(Add(key: 1, amount: 7)) }
        #expect(error?.code == .outboxFull)
        #expect(try await bench.value() == 15)
        #expect(await bench.state.pendingCount == 1)
        let again = try OutboxBench(in: bench.directory)
        #expect(await again.state.pendingCount == 1)
    }

    @Test func `O1, O2: a submitted command is on disk and visible when submit returns, and visible before the next register returns`()
        async throws
    {
        let bench = try await OutboxBench().prepared(10)
        try await bench.outbox.submit(Add(key: 1, amount: 5))
        #expect(try await bench.value() == 15)
        #expect(try await bench.saved()?.content == 10)
        #expect(try await OutboxBench(in: bench.directory).state.commands.map(\.name) == ["add"])
        try await bench.outbox.submit(Add(key: 1, amount: 100))
        let again = try OutboxBench(in: bench.directory)
        #expect(try await again.store[1].requireData() == 10)
        await again.register()
        #expect(try await again.store[1].requireData() == 115)
        let third = try await OutboxBench(in: bench.directory).registered()
        #expect(try await third.store[1].requireData(from: .cache) == 115)
        #expect(third.origin.startedCount == 0)
    }

    @Test func `O2: fetched content and cleared keys keep the changes of pending commands`() async throws {
        let bench = try await OutboxBench(fetcher: ScriptedFetcher { .success($0.number * 1_000) }).registered()
        try await bench.outbox.submit(Add(key: 1, amount: 5))
        #expect(try await bench.value() == 1_005)
        await bench.store[1].refresh()
        #expect(try await bench.value() == 2_005)
        await bench.store[1].clear()
        #expect(try await bench.value() == 3_005)
        try await bench.store.clear()
        #expect(try await bench.value() == 4_005)
        try await bench.store.waitUntilSaved()
        #expect(try await bench.saved()?.content == 4_000)
    }

    @Test func `O7, O15: a delivered command is kept until its change is saved, but is not shown as pending`() async throws {
        let (directory, cacher, store, outbox) = try await deliverUnsaved()
        #expect(await outbox.pending(for: store[1]).first { _ in true }?.commands.isEmpty == true)
        // The next process would fold the change into the old record.
        let next = try OutboxMachine(reading: OutboxLog(directory: directory.file("outbox")))
        #expect(next.items.values.map(\.status) == [.delivered])
        cacher.release()
        try await until { await outbox.core.isEmpty }
        #expect(cacher.record(of: 1)?.content == 15)
    }

    @Test func `O5: a permanent failure takes back only its own change`() async throws {
        let bench = try await OutboxBench(origin: ScriptedDeliveries(.failure(Refusal()), .success(()))).prepared(10)
        let refused = try await bench.outbox.submit(Add(key: 1, amount: 5))
        try await bench.outbox.submit(Add(key: 1, amount: 100))
        #expect(try await bench.value() == 115)
        bench.outbox.start()
        try await bench.origin.ended(count: 2)
        try await until { await bench.state.pendingCount == 0 }
        #expect(try await bench.value() == 110)
        let state = await bench.state
        #expect(state.failedCount == 1)
        #expect(state.commands.map(\.id) == [refused])
        #expect(state.commands.first?.lastError?.contains("Refusal") == true)
        let again = try await OutboxBench(in: bench.directory).registered()
        #expect(await again.state.commands.map(\.status) == [.failed])
        #expect(try await again.value() == 110)
    }

    @Test func `O5: once a refusal is visible, its change no longer is`() async throws {
        for _ in 0..<50 {
            let bench = try await OutboxBench(origin: ScriptedDeliveries(.failure(Refusal()))).prepared(10)
            try await bench.outbox.submit(Add(key: 1, amount: 5))
            let seen = Task {
                for await state in bench.outbox.publish() where state.failedCount == 1 {
                    return await bench.store[1].publish().first { _ in true }?.content
                }
                return nil
            }
            bench.outbox.start()
            #expect(await seen.value == 10)
        }
    }
}

extension OutboxMachine {
    /// The state that a new process derives from a log.
    fileprivate init(reading log: OutboxLog) throws {
        self.init()
        for record in try log.read().entries { if let entry = OutboxEntry(record) { apply(entry, date: Date()) } }
    }
}
