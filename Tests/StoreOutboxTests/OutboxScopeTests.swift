import Foundation
import Testing
import Trials
import StoreCoreTesting
import StoreFiles

@testable import StoreCore
@testable import StoreOutbox

/// Scopes, several outboxes on one directory, and the view from outside.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct OutboxScopeTests {
    @Test func `O10: clearing a scope drops all commands, on disk and in the stores, and the results of running deliveries`() async throws {
        let scope = CacheScope()
        let bench = try await OutboxBench(origin: ScriptedDeliveries(cancellation: .ignored) { _ in .success(()) }, scope: scope)
            .registered()
        bench.origin.hold()
        bench.outbox.start()
        try await bench.outbox.submit(Add(key: 1, amount: 5))
        try await bench.outbox.submit(Add(key: 2, amount: 5))
        try await bench.outbox.submit(Add(key: 1, amount: 7))
        try await bench.origin.started(count: 2, timeout: .seconds(600))
        let clearing = Task { try await scope.clear() }
        try await bench.events.first("cleared 3")
        // The deliveries ignore their cancellation, so the call waits for them up to its limit, beside the deadlines of both.
        try await bench.time.sleepers(atLeast: 3, timeout: .seconds(600))
        bench.time.advance(by: OutboxPolicy.default.clearTimeout)
        try await clearing.value
        #expect(try await bench.value() == 0)
        #expect(await bench.state.commands.isEmpty)
        bench.origin.release()
        try await bench.origin.ended(count: 2, timeout: .seconds(600))
        try await bench.outbox.submit(Add(key: 3, amount: 1))
        try await bench.events.first("delivered")
        #expect(bench.origin.commands.map(\.key).sorted() == [1, 2, 3])
        #expect(bench.events.count("delivered") == 1)
        #expect(bench.origin.cancelledCount == 2)
        let again = try OutboxBench(in: bench.directory)
        #expect(await again.state.commands.isEmpty)
        #expect(try await again.value() == 0)
    }

    @Test func `O10: what a former user's delivery has created stays out of a cleared store`() async throws {
        let scope = CacheScope()
        let cacher = GatedCacher<String, String>()
        let store = Store(
            cacher: cacher, fetcher: ScriptedFetcher<String, String> { _ in .failure(Offline()) }, time: ManualTime(), scope: scope)
        let events = OutboxEvents()
        let outbox = try Outbox(directory: TemporaryDirectory().file("outbox"), time: ManualTime(), scope: scope, onEvent: events.append)
        await outbox.register(
            CreateNote.self, creating: store, at: \.id, content: { $0.text },
            perform: { _, _ in Created("real", content: "of the former user") })
        cacher.hold(.load)
        outbox.start()
        try await outbox.submit(CreateNote(id: "t", text: "a"))
        try await events.first("delivered")
        // The entity moves to its real key. The record of that key is being read.
        try await cacher.began(.load)
        let clearing = Task { try await scope.clear() }
        try await events.first("cleared")
        cacher.release()
        try await clearing.value
        try await until { await outbox.core.moving.isEmpty }
        #expect(await store["real"].getData(from: .cache) == nil)
        #expect(await store["t"].getData(from: .cache) == nil)
        try await store.waitUntilSaved()
        #expect(cacher.storedCount == 0)
    }

    @Test func `O13: a deliverer that has lost its lease begins no delivery`() async throws {
        let first = try await OutboxBench().registered()
        try await first.deliverHeld(5)
        // Another process may remove the directory of a cache, and then nothing tells that the lease is still in use.
        let leases = await first.outbox.core.leases.path
        try FileManager.default.removeItem(atPath: leases + "/" + DeliveryLease.name)
        let second = try await OutboxBench(in: first.directory).registered()
        // Keeps the lease with the second. The first does not know this kind of command, or it could take the free lease to deliver it.
        let drafts = ScriptedDeliveries<Draft, Void> { _ in .success(()) }
        drafts.hold()
        await second.outbox.register(Draft.self) { try await drafts.perform($0, $1) }
        second.outbox.start()
        try await second.outbox.submit(Draft(key: 2, value: 7))
        try await drafts.started(count: 1, timeout: .seconds(600))
        try await first.outbox.submit(Add(key: 3, amount: 1))
        first.origin.release()
        try await first.origin.ended(count: 1)
        try await second.origin.ended(count: 1)
        drafts.release()
        try await until { await second.outbox.core.isEmpty }
        #expect(first.origin.commands == [Add(key: 1, amount: 5)])
        #expect(second.origin.commands == [Add(key: 3, amount: 1)])
    }

    @Test func `O13: two outboxes of one process over one store show each change once, and deliver it once`() async throws {
        let bench = try OutboxBench()
        await bench.fill()
        let other = try Outbox(directory: bench.directory.file("outbox"), time: bench.time)
        await bench.register()
        await other.register(
            Add.self, patching: bench.store, at: \.key, patch: { $1 += $0.amount },
            perform: { [origin = bench.origin] in try await origin.perform($0, $1) })
        for amount in 1...20 { try await (amount % 2 == 0 ? other : bench.outbox).submit(Add(key: 1, amount: amount)) }
        try await until { await other.core.machine.pendingCount == 20 }
        try await until { await bench.state.pendingCount == 20 }
        #expect(try await bench.value() == 210)
        try await other.core.compact()
        bench.outbox.start()
        other.start()
        try await bench.settled()
        try await until { await other.core.isEmpty }
        #expect(try await bench.value() == 210)
        #expect(bench.origin.commands.map(\.amount) == Array(1...20))
        for amount in 1...20 { try await (amount % 2 == 0 ? other : bench.outbox).submit(Add(key: 1, amount: amount)) }
        try await bench.settled()
        try await until { await other.core.isEmpty }
        #expect(try await bench.value() == 420)
        #expect(try await bench.saved()?.content == 420)
    }

    @Test func `O7, O15: the commands keep their places when another outbox has compacted the log`() async throws {
        let bench = try OutboxBench()
        await bench.fill()
        await bench.outbox.register(
            Add.self, patching: bench.store, at: \.key, patch: { $1 = $1 * 10 + $0.amount }, perform: { _, _ in })
        let first = try await bench.outbox.submit(Add(key: 1, amount: 1))
        let second = try await bench.outbox.submit(Add(key: 1, amount: 2))
        let page = await bench.outbox.commands(limit: 1)
        let other = try Outbox(directory: bench.directory.file("outbox"), time: bench.time)
        try await other.core.compact()
        await bench.outbox.core.refresh()
        #expect(await bench.outbox.commands(after: page.first).map(\.id) == [second])
        #expect(try await bench.outbox.replace(first, with: Add(key: 1, amount: 3)) == .discarded)
        #expect(try await bench.value() == 32)
    }

    @Test func `O13: commands of another outbox on the directory are delivered without a restart, by one deliverer`() async throws {
        let app = try await OutboxBench().started()
        let widget = try await OutboxBench(in: app.directory, origin: ScriptedDeliveries { _ in .failure(Refusal()) }).registered()
        try await app.outbox.submit(Add(key: 1, amount: 5))
        try await app.events.first("delivered")
        try await widget.outbox.submit(Add(key: 1, amount: 7))
        #expect([7, 12].contains(try await widget.value()))
        try await app.events.first("delivered", count: 2)
        #expect(app.origin.commands.map(\.amount) == [5, 7])
        #expect(widget.origin.startedCount == 0)
        try await until { await widget.outbox.core.isEmpty }
        // No lock is held while nothing is delivered.
        try await until { await !app.outbox.core.isDeliverer }
        try await until { await !widget.outbox.core.isDeliverer }
    }

    @Test func `O13: a command that only a compaction has read is shown`() async throws {
        let directory = try TemporaryDirectory()
        let log = try OutboxLog(directory: directory.file("outbox"))
        // Outdated entries, so that the registration compacts the log.
        let outdated = OutboxEntry(id: UUID(), lane: "a", fact: .attempted).record
        _ = try log.append(Array(repeating: outdated, count: 2_000), durability: .crash)
        let bench = try OutboxBench(in: directory)
        await bench.outbox.core.log.unfollow()
        let submission = try OutboxEntry.Submission(Add(key: 1, amount: 5))
        _ = try log.append([OutboxEntry(id: UUID(), lane: .ofKey(1), fact: .submitted(submission)).record], durability: .crash)
        await bench.register()
        #expect(try await bench.value() == 5)
    }

    @Test func `O13: an outbox that is released right after its start follows no trigger`() async throws {
        let core = try OutboxBench().outbox.core
        await core.shutDown()
        await core.start(AsyncStream<Void> { _ in })
        #expect(await core.triggers.isEmpty)
        #expect(await !core.machine.isStarted)
    }

    @Test func `O13: another outbox takes over from a deliverer that has ended`() async throws {
        let first = try await OutboxBench(origin: ScriptedDeliveries(cancellation: .ignored) { _ in .success(()) }).registered()
        try await first.deliverHeld(5)
        let second = try await OutboxBench(in: first.directory).started()
        try await second.outbox.submit(Add(key: 2, amount: 7))
        try await first.outbox.submit(Add(key: 1, amount: 1))
        #expect(second.origin.startedCount == 0)
        await first.outbox.core.shutDown()
        first.origin.release()
        // The first one may have begun the command of the second one, too; its deliveries still end.
        try await until { await second.outbox.core.isEmpty }
        #expect(second.origin.commands.contains(Add(key: 1, amount: 1)))
        #expect(Set(first.origin.commands + second.origin.commands).count == 3)
        #expect((first.origin.commands + second.origin.commands).count == 3)
        #expect(await second.store[1].getData(from: .cache) ?? 6 == 6)
    }

    @Test func `O13: an outbox that was shut down leaves the store alone when the next one changes the log`() async throws {
        let (directory, cacher, store, former) = try await deliverUnsaved()
        await former.core.shutDown()
        let next = try await OutboxBench(in: directory).launched()
        try await next.outbox.submit(Add(key: 1, amount: 7))
        try await next.settled()
        try await next.outbox.submit(Add(key: 1, amount: 9))
        cacher.release()
        try await until { await former.core.unsettled.isEmpty }
        #expect(try await store[1].requireData() == 15)
        try await store.waitUntilSaved()
        #expect(cacher.calls(.save).map(\.content) == [10, 15])
    }

    @Test func `O15: states and pages show every command, and a key shows only its own`() async throws {
        let bench = try await OutboxBench(origin: ScriptedDeliveries(.failure(Refusal()), .success(()))).registered()
        var states = bench.outbox.publish().makeAsyncIterator()
        #expect(await states.next()?.pendingCount == 0)
        var ofKey = bench.outbox.pending(for: bench.store[1]).makeAsyncIterator()
        #expect(await ofKey.next()?.commands.isEmpty == true)
        for number in 1...250 { try await bench.outbox.submit(Add(key: number == 1 ? 1 : 2, amount: number)) }
        let state = await states.next()
        #expect(state?.pendingCount == 250)
        #expect(state?.commands.count == 100)
        #expect(try state?.commands.map { try $0.value(as: Add.self).amount } == Array(1...100))
        #expect(await ofKey.next()?.commands.map(\.name) == ["add"])
        var all = state?.commands ?? []
        while case let page = await bench.outbox.commands(after: all.last), !page.isEmpty { all += page }
        #expect(all.count == 250)
        #expect(Set(all.map(\.id)).count == 250)
        bench.outbox.start()
        try await bench.events.first("failed")
        var last = await ofKey.next()
        while let state = last, state.failedCount == 0 { last = await ofKey.next() }
        #expect(last?.commands.first?.lastError?.contains("Refusal") == true)
        // Others may follow in the meantime.
        let numbers = bench.events.all.map(\.number).sorted()
        #expect(numbers == Array(1...UInt64(numbers.count)))
    }

    @Test func `O11, O15: a key shows its other commands after one of them was canceled`() async throws {
        let bench = try await OutboxBench().registered()
        let first = try await bench.outbox.submit(Add(key: 1, amount: 1))
        let second = try await bench.outbox.submit(Add(key: 1, amount: 2))
        #expect(try await bench.outbox.cancel(first) == .canceled)
        #expect(await bench.outbox.pending(for: bench.store[1]).first { _ in true }?.commands.map(\.id) == [second])
    }

    @Test func `O2, O15: many commands are read and shown`() async throws {
        let bench = try OutboxBench()
        let count = isLongRun ? 100_000 : 5_000
        let log = try OutboxLog(directory: bench.directory.file("outbox"))
        let entries = try (0..<count).map { number in
            let submission = try OutboxEntry.Submission(Add(key: number % 100, amount: 1))
            return OutboxEntry(id: UUID(), lane: submission.subject, fact: .submitted(submission))
        }
        _ = try log.append(entries.map(\.record), durability: .crash)
        let again = try await OutboxBench(in: bench.directory).registered()
        #expect(await again.state.pendingCount == count)
        #expect(try await again.value(7) == count / 100)
        try await until { await bench.state.pendingCount == count }
    }

    @Test func `O16: draining returns when nothing is pending, or when the time is over`() async throws {
        let bench = try await OutboxBench().registered()
        try await bench.deliverHeld(5)
        let late = Task { await bench.outbox.drain(until: .seconds(25)) }
        try await bench.time.sleepers(atLeast: 2, timeout: .seconds(600))
        bench.time.advance(by: .seconds(25))
        #expect(await late.value == .pending(1))
        let drained = Task { await bench.outbox.drain(until: .seconds(25)) }
        bench.origin.release()
        #expect(await drained.value == .drained)
        try await bench.settled()
    }

    @Test func `O16: failed and undecodable commands do not count, and a canceled wait harms no delivery`() async throws {
        let bench = try await OutboxBench(origin: ScriptedDeliveries(.failure(Refusal()), .success(()))).prepared()
        await bench.outbox.register(Draft.self) { _, _ in }
        try await bench.outbox.submit(Add(key: 1, amount: 5))
        try await bench.outbox.submit(Draft(key: 1, value: 1))
        let again = try await OutboxBench(in: bench.directory, origin: ScriptedDeliveries(.failure(Refusal()), .success(()))).registered()
        #expect(await again.outbox.drain(until: .zero) == .pending(1))
        again.outbox.start()
        try await again.events.first("failed")
        #expect(await again.outbox.drain(until: .seconds(3_600)) == .drained)
        #expect(await again.state.undecodableCount == 1)
        #expect(await again.state.failedCount == 1)
        again.origin.hold()
        try await again.outbox.submit(Add(key: 2, amount: 7))
        try await again.origin.started(count: 2, timeout: .seconds(600))
        let canceled = Task { await again.outbox.drain(until: .seconds(3_600)) }
        try await again.time.sleepers(atLeast: 2, timeout: .seconds(600))
        canceled.cancel()
        #expect(await canceled.value == .pending(1))
        #expect(again.origin.cancelledCount == 0)
        again.origin.release()
        #expect(await again.outbox.drain(until: .seconds(3_600)) == .drained)
        #expect(again.origin.commands.map(\.amount) == [5, 7])
    }

    @Test func `O1: two types with one name stop the program`() async throws {
        // A directory of this process, because a process that stops removes nothing.
        let directory = temporaryURL()
        await #expect(processExitsWith: .failure) { [directory = directory as URL] in
            let outbox = try Outbox(directory: directory)
            await outbox.register(Add.self) { _, _ in }
            await outbox.register(Add.self) { _, _ in }
        }
    }
}
