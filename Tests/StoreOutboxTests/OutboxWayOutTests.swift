import Foundation
import Testing
import Trials
import StoreCoreTesting

@testable import StoreCore
@testable import StoreFiles
@testable import StoreOutbox

/// Commands that fail again and again, and the ways to get rid of them.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct OutboxWayOutTests {
    /// An outbox with a command that has failed once, and one behind it in its lane.
    private func stuck(
        policy: OutboxPolicy = .default, _ answers: ScriptedAnswer<Void>...
    ) async throws -> (bench: OutboxBench, id: UUID) {
        let origin = ScriptedDeliveries<Add, Void>(.failure(Offline()))
        for answer in answers { origin.enqueue(answer) }
        let bench = try await OutboxBench(policy: policy, origin: origin).launched()
        let id = try await bench.outbox.submit(Add(key: 1, amount: 5))
        try await bench.outbox.submit(Add(key: 1, amount: 7))
        try await bench.events.first("attempt 1 failed")
        return (bench, id)
    }

    @Test(arguments: [false, true])
    func `O17: a command between attempts is discarded, and its lane continues`(_ restarts: Bool) async throws {
        let (first, id) = try await stuck(.success(()))
        var bench = first
        if restarts {
            await first.outbox.core.shutDown()
            bench = try OutboxBench(in: first.directory)
            await bench.register()
        }
        #expect(try await bench.value() == 12)
        #expect(try await bench.outbox.cancel(id) == .alreadyDelivering)
        #expect(try await bench.outbox.discard(id) == .perhapsPerformed)
        #expect(try await bench.value() == 7)
        #expect(bench.events.count("discarded") == 1)
        #expect(try await bench.outbox.discard(id) == .unknown)
        bench.outbox.start()
        try await bench.settled()
        #expect(bench.origin.commands.last == Add(key: 1, amount: 7))
        #expect(try await bench.value() == 7)
    }

    @Test func `O4, O17: a command between attempts is replaced under a new identity`() async throws {
        let (bench, id) = try await stuck(.success(()), .success(()))
        #expect(try await bench.outbox.replace(id, with: Add(key: 1, amount: 50)) == .perhapsPerformed)
        #expect(try await bench.value() == 57)
        // The new command does not wait for the delay of the old one.
        try await bench.settled()
        #expect(bench.origin.commands.map(\.amount) == [5, 50, 7])
        #expect(Set(bench.origin.deliveries.map(\.delivery.id)).count == 3)
        #expect(bench.origin.deliveries.map(\.delivery.attempt) == [1, 1, 1])
    }

    @Test(arguments: [false, true])
    func `O17: a command is discarded, or replaced and canceled, only after the deadline of an attempt that does not end`(
        _ replaces: Bool
    ) async throws {
        let bench = try await OutboxBench(origin: ScriptedDeliveries(cancellation: .ignored) { _ in .success(()) }).prepared()
        let id = try await bench.deliverHeld(5, 7)
        #expect(try await bench.outbox.discard(id) == .delivering)
        #expect(try await bench.outbox.replace(id, with: Add(key: 1, amount: 50)) == .delivering)
        try await bench.passDeadline()
        if replaces {
            #expect(try await bench.outbox.replace(id, with: Add(key: 1, amount: 50)) == .perhapsPerformed)
            #expect(try await bench.outbox.cancel(id) == .canceled)
        } else {
            #expect(try await bench.outbox.discard(id) == .perhapsPerformed)
        }
        #expect(try await bench.value() == 7)
        // The lane continues although the attempt has not ended.
        try await bench.origin.started(count: 2, timeout: .seconds(600))
        #expect(bench.origin.endedCount == 0)
        // The late result is dropped.
        bench.origin.release()
        try await bench.events.first("dropped a late success")
        try await bench.settled()
        #expect(try await bench.value() == 7)
        #expect(bench.origin.commands.map(\.amount) == [5, 7])
    }

    @Test func `O17: a command that a former outbox still delivers is taken back only after the deadline of the attempt`() async throws {
        let former = try await OutboxBench(origin: ScriptedDeliveries(cancellation: .ignored) { _ in .success(()) }).registered()
        let id = try await former.deliverHeld(5)
        try await until { former.time.sleeperCount > 0 }
        await former.outbox.core.shutDown()
        let next = try await OutboxBench(in: former.directory).registered()
        #expect(try await next.outbox.discard(id) == .delivering)
        #expect(try await next.outbox.replace(id, with: Add(key: 1, amount: 50)) == .delivering)
        former.time.advance(by: OutboxPolicy.default.attemptTimeout)
        try await former.events.first("attempt is overdue")
        #expect(try await next.outbox.discard(id) == .perhapsPerformed)
        former.origin.release()
        try await former.events.first("dropped a late success")
        #expect(await next.outbox.core.isEmpty)
    }

    @Test(arguments: [false, true])
    func `O10, O17: a late fatal failure of a command that was taken back stops no deliveries`(_ clears: Bool) async throws {
        let origin = ScriptedDeliveries<Add, Void>(cancellation: .ignored) { delivery in
            delivery.command.amount == 5 ? .failure(Refusal(failureKind: .fatal)) : .success(())
        }
        let bench = try await OutboxBench(policy: OutboxPolicy { $0.clearTimeout = .zero }, origin: origin).prepared()
        let id = try await bench.deliverHeld(5)
        if clears {
            #expect(try await bench.outbox.clear() == 1)
        } else {
            try await bench.passDeadline()
            #expect(try await bench.outbox.discard(id) == .perhapsPerformed)
        }
        origin.release()
        try await bench.events.first("dropped a late failure")
        #expect(await !bench.state.isStopped)
        #expect(bench.events.count("stopped") == 0)
        try await bench.outbox.submit(Add(key: 1, amount: 7))
        try await bench.settled()
        #expect(origin.commands.map(\.amount) == [5, 7])
    }

    @Test(arguments: [false, true])
    func `O13, O17: the result of a delivery is dropped if another process discards or replaces its command`(
        _ replaces: Bool
    ) async throws {
        let bench = try await OutboxBench().prepared()
        let id = try await bench.deliverHeld(5)
        let other = try await OutboxBench(in: bench.directory).registered()
        if replaces {
            #expect(try await other.outbox.replace(id, with: Add(key: 1, amount: 50)) == .perhapsPerformed)
        } else {
            #expect(try await other.outbox.discard(id) == .perhapsPerformed)
        }
        try await until { try await bench.value() == (replaces ? 50 : 0) }
        bench.origin.release()
        try await bench.settled()
        #expect(try await bench.value() == (replaces ? 50 : 0))
        #expect(bench.origin.commands.map(\.amount) == (replaces ? [5, 50] : [5]))
    }

    @Test func `O11, O13: a command that another process replaces just before an attempt counts as attempted`() async throws {
        let origin = ScriptedDeliveries<Add, Void> { delivery in delivery.command.amount == 5 ? .failure(Offline()) : .success(()) }
        let bench = try await OutboxBench(origin: origin).started()
        let id = try await bench.outbox.submit(Add(key: 1, amount: 5))
        try await bench.events.first("attempt 1 failed")
        // The other delivery keeps the lease, so that the outbox reads the log only when the next attempt is about to begin.
        origin.hold()
        try await bench.outbox.submit(Add(key: 2, amount: 7))
        try await origin.started(count: 2, timeout: .seconds(600))
        await bench.outbox.core.log.unfollow()
        let other = try await OutboxBench(in: bench.directory).registered()
        #expect(try await other.outbox.replace(id, with: Add(key: 1, amount: 50)) == .perhapsPerformed)
        bench.time.advance(by: .seconds(1))
        try await origin.started(count: 3, timeout: .seconds(600))
        #expect(try await other.outbox.cancel(id) == .alreadyDelivering)
        origin.release()
        try await bench.settled()
        #expect(origin.commands.map(\.amount).sorted() == [5, 7, 50])
    }

    @Test func `O17: a policy gives a command up after a number of attempts, and a retry begins to count again`() async throws {
        let policy = OutboxPolicy { $0.attemptLimit = 2 }
        let (bench, id) = try await stuck(policy: policy, .failure(Offline()), .success(()), .failure(Offline()), .failure(Offline()))
        try await until { bench.time.sleeperCount > 0 }
        bench.time.advance(by: .seconds(1))
        try await bench.events.first("gave up after 2 attempts: Offline")
        try await bench.events.first("delivered")
        #expect(try await bench.value() == 7)
        #expect(await bench.state.commands.map(\.status) == [.failed])
        #expect(try await bench.outbox.retry(id))
        try await bench.events.first("attempt 1 failed", count: 2)
        try await until { await bench.outbox.core.isQuiet }
        bench.time.advance(by: .seconds(1))
        try await bench.events.first("gave up", count: 2)
        #expect(Set(bench.origin.deliveries.filter { $0.command.amount == 5 }.map(\.delivery.id)).count == 1)
        let again = try await OutboxBench(in: bench.directory).registered()
        #expect(await again.state.failedCount == 1)
        #expect(try await again.outbox.discard(id) == .perhapsPerformed)
    }

    @Test func `O17: a policy gives a command up at an age, and a refused command was not performed`() async throws {
        let (bench, id) = try await stuck(policy: OutboxPolicy { $0.ageLimit = .seconds(3_600) }, .failure(Offline()), .failure(Refusal()))
        try await until { bench.time.sleeperCount > 0 }
        bench.time.advance(by: .seconds(3_600))
        try await bench.events.first("gave up after 2 attempts: Offline")
        #expect(try await bench.outbox.discard(id) == .perhapsPerformed)
        try await bench.events.first("failed")
        let refused = try #require(await bench.outbox.commands().first?.id)
        #expect(try await bench.outbox.discard(refused) == .discarded)
    }
}

/// The lanes on disk.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct OutboxLaneTests {
    private struct Old { struct Post { var text: String } }
    private struct New { struct Article { var text: String } }

    private struct Edit: Command, Hashable {
        static let name = "edit"
        var text: String
    }

    private struct Tag: Command, Hashable {
        static let name = "tag"
        var text: String
    }

    @Test(arguments: ["", "posts"])
    func `O3: a change waits for an earlier one in its lane after the type of the content was renamed`(_ name: String) async throws {
        let directory = try TemporaryDirectory()
        do {
            let posts = Store(cacher: MemoryCacher<Int, Old.Post>(), time: ManualTime(), name: name) { _ in Old.Post(text: "") }
            let outbox = try Outbox(directory: directory.file("outbox"))
            await outbox.register(Edit.self, patching: posts, at: { _ in 7 }, patch: { $1.text = $0.text }, perform: { _, _ in })
            try await outbox.submit(Edit(text: "first"))
            await outbox.core.shutDown()
        }
        let articles = Store(cacher: MemoryCacher<Int, New.Article>(), time: ManualTime(), name: name) { _ in New.Article(text: "") }
        let events = OutboxEvents()
        let outbox = try Outbox(directory: directory.file("outbox"), onEvent: events.append)
        let performed = WatchedState<[String]>([])
        await outbox.register(Tag.self, patching: articles, at: { _ in 7 }, patch: { $1.text += $0.text }) { command, _ in
            performed.update { $0.append(command.text) }
        }
        try await outbox.submit(Tag(text: "second"))
        #expect(Set(await outbox.commands().map(\.lane)) == [name.isEmpty ? "7" : "posts 7"])
        outbox.start()
        try await events.first("cannot decode edit")
        await outbox.register(Edit.self, patching: articles, at: { _ in 7 }, patch: { $1.text = $0.text }) { command, _ in
            performed.update { $0.append(command.text) }
        }
        try await until { await outbox.core.isEmpty }
        #expect(performed.current == ["first", "second"])
    }

    @Test func `O3: stores of one type with names of their own share no lanes, and a delivery delays no other lane`() async throws {
        let first = Store(cacher: MemoryCacher<Int, Int>(), time: ManualTime(), name: "likes") { _ in 0 }
        let second = Store(cacher: MemoryCacher<Int, Int>(), time: ManualTime(), name: "views") { _ in 0 }
        let origin = ScriptedDeliveries<Add, Void> { _ in .success(()) }
        let events = OutboxEvents()
        let outbox = try Outbox(directory: TemporaryDirectory().file("outbox"), onEvent: events.append)
        await outbox.register(
            Add.self, patching: first, at: \.key, patch: { $1 += $0.amount }, perform: { try await origin.perform($0, $1) })
        await outbox.register(Draft.self, patching: second, at: \.key, patch: { $1 = $0.value }, perform: { _, _ in })
        origin.hold()
        outbox.start()
        try await outbox.submit(Add(key: 1, amount: 5))
        try await origin.started(count: 1, timeout: .seconds(600))
        try await outbox.submit(Draft(key: 1, value: 5))
        try await events.first("delivered")
        for (store, names) in [(first, ["add"]), (second, [])] {
            #expect(await outbox.pending(for: store[1]).first { _ in true }?.commands.map(\.name) == names)
        }
        origin.release()
        try await until { await outbox.core.isEmpty }
    }
}
