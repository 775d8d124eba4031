import Foundation
import Testing
import Trials
import StoreCoreTesting

@testable import StoreCore
@testable import StoreOutbox

@Suite(.timeLimit(.minutes(hangMinutes)))
struct OutboxDeliveryTests {
    // MARK: Order and identity

    @Test func `O3: a lane delivers in the order of submission, and lanes run concurrently up to the limit`() async throws {
        let bench = try await OutboxBench(policy: OutboxPolicy { $0.concurrentLanes = 2 }).prepared()
        bench.origin.hold()
        for amount in 1...3 { for key in 1...3 { try await bench.outbox.submit(Add(key: key, amount: amount)) } }
        bench.outbox.start()
        try await bench.origin.started(count: 2, timeout: .seconds(600))
        #expect(Set(bench.origin.commands) == [Add(key: 1, amount: 1), Add(key: 2, amount: 1)])
        #expect(bench.origin.runningCount == 2)
        bench.origin.release()
        try await bench.settled()
        for key in 1...3 {
            #expect(bench.origin.commands.filter { $0.key == key }.map(\.amount) == [1, 2, 3])
            #expect(try await bench.value(key) == 6)
        }
    }

    @Test func `O4, O5: all deliveries of a command have one identity, even after a cancellation of its own and a restart`() async throws {
        let bench = try await OutboxBench(origin: ScriptedDeliveries(.failure(CancellationError()), .failure(Offline()))).launched()
        try await bench.outbox.submit(Add(key: 1, amount: 5))
        try await bench.events.first("attempt 1 failed")
        bench.time.advance(by: .seconds(10))
        try await bench.events.first("attempt 2 failed")
        let again = try await OutboxBench(in: bench.directory, time: bench.time).registered()
        await bench.outbox.core.shutDown()
        again.time.advance(by: .seconds(1_000))
        again.outbox.start()
        try await again.settled()
        let deliveries = bench.origin.deliveries + again.origin.deliveries
        #expect(deliveries.map(\.delivery.attempt) == [1, 2, 3])
        #expect(Set(deliveries.map(\.delivery.id)).count == 1)
        // RFC 9562, section 5.4: origins may check the version and the variant.
        #expect(deliveries.allSatisfy { $0.delivery.id.uuid.6 >> 4 == 4 && $0.delivery.id.uuid.8 >> 6 == 2 })
    }

    // MARK: Failures

    @Test func `O5: a transient failure is repeated after a growing delay, and never becomes permanent`() async throws {
        let origin = ScriptedDeliveries<Add, Void> { _ in .failure(Refusal(failureKind: .transient, attempts: 5)) }
        let bench = try await OutboxBench(origin: origin).launched()
        try await bench.outbox.submit(Add(key: 1, amount: 5))
        for attempt in 1...12 {
            try await bench.events.first("attempt \(attempt) failed")
            let delays = bench.events.all.compactMap { event -> Duration? in
                if case .deferred(attempt, let delay, _) = event.kind { delay } else { nil }
            }
            let bound = min(Duration.seconds(300), .seconds(1 << (attempt - 1)))
            #expect(delays.count == 1)
            #expect((bound / 2...bound).contains(try #require(delays.last)))
            bench.time.advance(by: .seconds(300))
        }
        #expect(await bench.state.failedCount == 0)
        #expect(try await bench.value() == 5)
    }

    @Test func `O5, O15: a delay that the origin asked for is shown, and continues after a restart, even if the clock was set back`()
        async throws
    {
        let refusal = Refusal(failureKind: .transient, retryAfter: .seconds(100))
        let bench = try await OutboxBench(origin: ScriptedDeliveries(.failure(refusal))).launched()
        try await bench.outbox.submit(Add(key: 1, amount: 5))
        try await bench.events.first("attempt 1 failed")
        #expect(await bench.state.commands.map(\.nextAttempt) == [bench.time.date.addingTimeInterval(100)])
        await bench.outbox.core.shutDown()
        // The same moment on the wall clock, with another monotonic clock.
        let later = ManualTime(date: bench.time.date.addingTimeInterval(40), now: MonotonicInstant(nanoseconds: 5))
        let again = try await OutboxBench(in: bench.directory, time: later).started()
        try await later.sleepers(atLeast: 1, timeout: .seconds(600))
        #expect(later.nextDeadline == later.now.advanced(by: .seconds(60)))
        await again.outbox.core.shutDown()
        // A clock that was set back a year prolongs nothing.
        let earlier = ManualTime(date: bench.time.date.addingTimeInterval(-366 * 86_400))
        let third = try await OutboxBench(in: bench.directory, time: earlier).started()
        try await earlier.sleepers(atLeast: 1, timeout: .seconds(600))
        #expect(earlier.nextDeadline == earlier.now.advanced(by: .seconds(100)))
        earlier.advance(by: .seconds(100))
        try await third.settled()
        #expect(third.origin.startedCount == 1)
    }

    @Test func `O5: a trigger ends the back-off, but not a delay that the origin asked for`() async throws {
        let (trigger, network) = AsyncStream.makeStream(of: Void.self)
        let bench = try await OutboxBench(
            origin: ScriptedDeliveries(
                .failure(Offline()), .failure(Refusal(failureKind: .transient, retryAfter: .seconds(100))), .success(()), .success(()))
        ).prepared()
        bench.outbox.start(deliveringOn: trigger)
        try await bench.outbox.submit(Add(key: 1, amount: 5))
        try await bench.events.first("attempt 1 failed")
        network.yield()
        try await bench.events.first("attempt 2 failed")
        network.yield()
        try await bench.outbox.submit(Add(key: 2, amount: 5))
        try await bench.events.first("delivered")
        #expect(await bench.state.commands.map(\.attempts) == [2])
        bench.time.advance(by: .seconds(100))
        try await bench.settled()
    }

    @Test func `O5: a fatal failure stops all lanes until resume`() async throws {
        let origin = ScriptedDeliveries<Add, Void>(.failure(Refusal(failureKind: .fatal)), .success(()), .success(()))
        let bench = try await OutboxBench(origin: origin).prepared()
        try await bench.outbox.submit(Add(key: 1, amount: 5))
        bench.outbox.start()
        try await bench.events.first("stopped")
        try await bench.outbox.submit(Add(key: 2, amount: 5))
        #expect(await bench.state.isStopped)
        #expect(await bench.state.pendingCount == 2)
        #expect(bench.origin.startedCount == 1)
        await bench.outbox.resume()
        try await bench.settled()
        #expect(bench.origin.commands.map(\.key).sorted() == [1, 1, 2])
    }

    @Test(arguments: [OutboxPolicy.AfterFailure.laneContinues, .laneStops])
    func `O5: after a permanent failure, a lane continues or stops until it is handled`(_ rule: OutboxPolicy.AfterFailure) async throws {
        let policy = OutboxPolicy { ($0.afterFailure, $0.concurrentLanes) = (rule, 1) }
        let origin = ScriptedDeliveries<Add, Void>(.failure(Refusal()), .success(()), .success(()), .success(()))
        let bench = try await OutboxBench(policy: policy, origin: origin).prepared()
        let refused = try await bench.outbox.submit(Add(key: 1, amount: 5))
        try await bench.outbox.submit(Add(key: 1, amount: 7))
        bench.outbox.start()
        try await bench.events.first("failed")
        if rule == .laneStops {
            #expect(try await bench.value() == 7)
            // One lane delivers at a time: the next command would be delivered before that of another lane.
            try await bench.outbox.submit(Add(key: 2, amount: 1))
            try await bench.events.first("delivered")
            #expect(bench.origin.commands.map(\.key) == [1, 2])
            #expect(try await bench.outbox.discard(refused) == .discarded)
        }
        try await bench.events.first("delivered", count: rule == .laneStops ? 2 : 1)
        if rule == .laneContinues { #expect(try await bench.outbox.retry(refused)) }
        try await bench.settled()
        #expect(try await bench.value() == (rule == .laneStops ? 7 : 12))
        #expect(try await bench.outbox.retry(refused) == false)
    }

    @Test func `O4, O5: a failed command is replaced under a new identity`() async throws {
        let bench = try await OutboxBench(origin: ScriptedDeliveries(.failure(Refusal()), .success(()))).prepared()
        let refused = try await bench.outbox.submit(Add(key: 1, amount: 5))
        bench.outbox.start()
        try await bench.events.first("failed")
        #expect(try await bench.outbox.replace(refused, with: Add(key: 1, amount: 50)) == .discarded)
        try await bench.settled()
        #expect(bench.origin.commands.map(\.amount) == [5, 50])
        #expect(Set(bench.origin.deliveries.map(\.delivery.id)).count == 2)
        #expect(try await bench.value() == 50)
    }

    @Test func `O3, O5: a delivery that passes its deadline is canceled, and its late success counts`() async throws {
        let policy = OutboxPolicy { $0.concurrentLanes = 1 }
        let origin = ScriptedDeliveries<Add, Void>(cancellation: .ignored) { _ in .success(()) }
        let bench = try await OutboxBench(policy: policy, origin: origin).prepared()
        try await bench.deliverHeld(5, 7)
        try await bench.outbox.submit(Add(key: 2, amount: 1))
        try await bench.passDeadline()
        // Another lane takes the free place; the next command of the same lane waits.
        try await bench.origin.started(count: 2, timeout: .seconds(600))
        #expect(bench.origin.commands.map(\.key) == [1, 2])
        #expect(bench.origin.cancelledCount == 1)
        bench.origin.release()
        try await bench.settled()
        #expect(bench.origin.commands.map(\.amount) == [5, 1, 7])
        #expect(try await bench.value() == 12)
    }

    // MARK: Undecodable commands

    @Test func `O6: a command of an unregistered type waits unchanged, and blocks only its own lane`() async throws {
        let bench = try await OutboxBench().prepared()
        await bench.outbox.register(Draft.self, patching: bench.store, at: \.key, patch: { $1 = $0.value }, perform: { _, _ in })
        try await bench.outbox.submit(Draft(key: 1, value: 100))
        try await bench.outbox.submit(Add(key: 1, amount: 5))
        try await bench.outbox.submit(Add(key: 2, amount: 5))
        let again = try await OutboxBench(in: bench.directory).started()
        try await again.events.first("delivered")
        try await again.events.first("cannot decode draft")
        #expect(again.origin.commands.map(\.key) == [2])
        #expect(await again.state.undecodableCount == 1)
        #expect(await again.state.commands.map(\.status) == [.undecodable, .pending])
        // Registered after the start.
        let drafts = ScriptedDeliveries<Draft, Void> { _ in .success(()) }
        await again.outbox.register(
            Draft.self, patching: again.store, at: \.key, patch: { $1 = $0.value }, perform: { try await drafts.perform($0, $1) })
        #expect(try await again.value() == 105)
        try await again.settled()
        #expect(drafts.commands == [Draft(key: 1, value: 100)])
        #expect(again.origin.commands.map(\.key) == [2, 1])
    }

    private struct NewAdd: Command, Hashable {
        static let name = "add"
        static var version: Int { 2 }
        var key: Int
        var amounts: [Int]

        static func migrate(from version: Int, _ payload: Data) throws -> NewAdd {
            let old = try JSONDecoder().decode(Add.self, from: payload)
            return NewAdd(key: old.key, amounts: [old.amount])
        }
    }

    @Test func `O6: an older command is migrated, and a newer one waits`() async throws {
        let bench = try await OutboxBench().prepared()
        try await bench.outbox.submit(Add(key: 1, amount: 5))
        let newer = try OutboxBench(in: bench.directory)
        let performed = Lock<[NewAdd]>([])
        await newer.outbox.register(
            NewAdd.self, patching: newer.store, at: \.key, patch: { command, number in number += command.amounts.reduce(0, +) },
            perform: { command, _ in performed.withLock { $0.append(command) } })
        #expect(try await newer.value() == 5)
        #expect(try await newer.outbox.commands().map { try $0.value(as: NewAdd.self) } == [NewAdd(key: 1, amounts: [5])])
        try await newer.outbox.submit(NewAdd(key: 2, amounts: [1, 2]))
        newer.outbox.start()
        try await newer.events.first("delivered", count: 2)
        #expect(performed.withLock { $0 }.contains(NewAdd(key: 1, amounts: [5])))
        try await newer.outbox.submit(NewAdd(key: 3, amounts: [1]))
        await newer.outbox.core.shutDown()
        let fresh = try TemporaryDirectory()
        let writer = try OutboxBench(in: fresh)
        await writer.outbox.register(NewAdd.self) { _, _ in }
        let id = try await writer.outbox.submit(NewAdd(key: 2, amounts: [1, 2]))
        let older = try await OutboxBench(in: fresh).started()
        try await older.outbox.submit(Add(key: 4, amount: 1))
        try await older.events.first("delivered")
        #expect(older.origin.commands.map(\.key) == [4])
        #expect(await older.state.commands.map(\.status) == [.undecodable])
        #expect(try await older.outbox.discard(id) == .discarded)
        #expect(await older.outbox.drain(until: .zero) == .drained)
    }

    // MARK: Superseding, canceling, limits

    @Test func `O9: a newer draft replaces the previous draft if its delivery was never attempted`() async throws {
        let bench = try OutboxBench()
        let drafts = ScriptedDeliveries<Draft, Void> { _ in .success(()) }
        drafts.hold()
        await bench.outbox.register(
            Draft.self, patching: bench.store, at: \.key, patch: { $1 = $0.value }, perform: { try await drafts.perform($0, $1) })
        for value in 1...3 { try await bench.outbox.submit(Draft(key: 1, value: value)) }
        try await bench.outbox.submit(Draft(key: 2, value: 9))
        #expect(await bench.state.pendingCount == 2)
        #expect(try await bench.value() == 3)
        bench.outbox.start()
        try await drafts.started(count: 2, timeout: .seconds(600))
        // The delivery of the third one has begun, so nothing replaces it.
        try await bench.outbox.submit(Draft(key: 1, value: 4))
        try await bench.outbox.submit(Draft(key: 1, value: 5))
        #expect(await bench.state.pendingCount == 3)
        drafts.release()
        try await bench.settled()
        #expect(drafts.commands.filter { $0.key == 1 }.map(\.value) == [3, 5])
        #expect(bench.events.count("superseded") == 3)
        #expect(try await bench.value() == 5)
    }

    @Test func `O9: the change of a superseded command to another key is no longer shown`() async throws {
        let bench = try OutboxBench()
        await bench.fill()
        await bench.outbox.register(
            Draft.self, patching: bench.store, at: \.key, lane: { _ in "drafts" }, patch: { $1 = $0.value }, perform: { _, _ in })
        try await bench.outbox.submit(Draft(key: 1, value: 9))
        #expect(try await bench.value(1) == 9)
        try await bench.outbox.submit(Draft(key: 2, value: 9))
        #expect(try await bench.value(1) == 0)
        #expect(try await bench.value(2) == 9)
    }

    @Test func `O11: a pending command is taken back durably, but not after its first attempt`() async throws {
        let bench = try await OutboxBench(origin: ScriptedDeliveries(.failure(Offline()))).prepared()
        let id = try await bench.outbox.submit(Add(key: 1, amount: 5))
        #expect(try await bench.outbox.cancel(id) == .canceled)
        #expect(try await bench.value() == 0)
        #expect(try await bench.outbox.cancel(id) == .unknown)
        let attempted = try await bench.outbox.submit(Add(key: 1, amount: 7))
        bench.outbox.start()
        try await bench.events.first("attempt 1 failed")
        #expect(try await bench.outbox.cancel(attempted) == .alreadyDelivering)
        #expect(try await bench.value() == 7)
        let again = try OutboxBench(in: bench.directory)
        #expect(await again.state.commands.map(\.id) == [attempted])
        #expect(try await again.outbox.cancel(attempted) == .alreadyDelivering)
    }

    @Test func `O12: the total size of all commands is limited`() async throws {
        let bench = try await OutboxBench(policy: OutboxPolicy { $0.byteLimit = 100 }).prepared()
        var accepted = 0
        let error = await #expect(throws: StoreError.self) {
            while accepted < 1_000 {
                try await bench.outbox.submit(Add(key: 1, amount: 5))
                accepted += 1
            }
        }
        #expect(error?.code == .outboxFull)
        #expect((1...10).contains(accepted))
        bench.outbox.start()
        try await bench.settled()
        #expect(try await bench.value() == 5 * accepted)
        try await bench.outbox.submit(Add(key: 1, amount: 5))
    }
}

extension OutboxDeliveryTests {
    @Test func `a delivery without a response in the script fails its command at once`() async throws {
        let bench = try await OutboxBench(origin: ScriptedDeliveries()).started()
        try await bench.outbox.submit(Add(key: 1, amount: 5))
        try await bench.events.first("failed")
        #expect(await bench.state.commands.first?.lastError?.contains("the script has no answer left") == true)
    }
}
