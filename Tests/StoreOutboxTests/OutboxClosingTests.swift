import Foundation
import Testing
import Trials
import StoreCoreTesting

@testable import StoreCore
@testable import StoreFiles
@testable import StoreOutbox
@testable import StorePlatform

/// Law C23 for an outbox and a scope, on real files.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct OutboxClosingTests {
    private func bench(
        in directory: TemporaryDirectory? = nil, cancellation: ScriptedCancellation = .ignored, scope: CacheScope? = nil
    ) throws -> OutboxBench {
        try OutboxBench(in: directory, origin: ScriptedDeliveries(cancellation: cancellation) { _ in .success(()) }, scope: scope)
    }

    @Test(arguments: [false, true])
    func `C23: after a scope is closed, no file changes, despite a screen and a delivery`(_ clearing: Bool) async throws {
        let directory = try TemporaryDirectory()
        let scope = CacheScope(directory: directory.url)
        let bench = try await bench(in: directory, scope: scope).prepared()
        try await bench.deliverHeld(5, 7)
        let screen = RecordingObserver(bench.store[1].publish())
        try await screen.next { $0.content == 12 }
        let closing = Task { try await scope.close(clearing: clearing) }
        try await screen.ended()
        try await bench.origin.cancelled(count: 1, timeout: .seconds(600))
        bench.origin.release()
        try await closing.value
        #expect(bench.origin.endedCount == bench.origin.commands.count)
        let files = try directory.fingerprint
        // A screen of the former user stays for a moment, and tries everything.
        let fetches = bench.fetcher.startedCount
        await bench.store[1].update(99)
        await bench.store[2].refresh()
        _ = await bench.store[3].getData()
        for await _ in bench.store[4].publish() { Issue.record("a closed store has a state") }
        await #expect(throws: StoreError.self) { try await bench.outbox.submit(Add(key: 1, amount: 1)) }
        try await bench.store.waitUntilSaved()
        bench.outbox.start()
        await bench.outbox.resume()
        try await bench.outbox.core.leases.perform {}
        #expect(try directory.fingerprint == files)
        #expect(bench.fetcher.startedCount == fetches)
        let records = files.keys.count { $0.hasSuffix(".record") }
        #expect(records == (clearing ? 0 : 4))
        try FileManager.default.removeItem(at: directory.url)
        await bench.store[1].update(100)
        #expect(!FileManager.default.fileExists(atPath: directory.url.path))
    }

    @Test func `O5, C23: a command stays pending if its delivery needed a closed store`() async throws {
        let bench = try OutboxBench()
        try await bench.store.close()
        await bench.outbox.register(Add.self) { [store = bench.store] _, _ in _ = try await store[1].requireData() }
        bench.outbox.start()
        try await bench.outbox.submit(Add(key: 1, amount: 5))
        try await bench.events.first("attempt 1 failed")
        #expect(await bench.outbox.commands().map(\.status) == [.pending])
        try await bench.outbox.close()
        let next = try await OutboxBench(in: bench.directory).started()
        try await next.settled()
        #expect(next.origin.commands == [Add(key: 1, amount: 5)])
    }

    @Test func `C23: a closed outbox refuses every request, and the next one delivers what was pending`() async throws {
        let bench = try await bench(cancellation: .honored).prepared()
        let first = try await bench.deliverHeld(5, 7)
        let states = Task { () -> Int in
            var count = 0
            for await _ in bench.outbox.publish() { count += 1 }
            return count
        }
        let draining = Task { await bench.outbox.drain(until: .seconds(1_000)) }
        try await bench.outbox.close()
        #expect(await states.value >= 0)
        #expect(await draining.value == .pending(2))
        #expect(bench.origin.runningCount == 0)
        for request: @Sendable () async throws -> Void in [
            { try await bench.outbox.submit(Add(key: 1, amount: 1)) }, { _ = try await bench.outbox.cancel(first) },
            { try await bench.outbox.retry(first) }, { try await bench.outbox.discard(first) },
            { try await bench.outbox.replace(first, with: Add(key: 1, amount: 1)) }, { try await bench.outbox.clear() },
        ] {
            let error = await #expect(throws: StoreError.self) { try await request() }
            #expect(error?.code == .closed)
        }
        await bench.outbox.register(Draft.self) { _, _ in }
        for await _ in bench.outbox.pending(for: bench.store[1]) { Issue.record("a closed outbox has a state") }
        #expect(await bench.outbox.drain(until: .seconds(1_000)) == .pending(2))
        let next = try await self.bench(in: bench.directory).started()
        try await next.settled()
        #expect(next.origin.commands.map(\.amount) == [5, 7])
    }

    @Test(arguments: [false, true])
    func `C23: closing an outbox waits for a running attempt, and drops the commands only with clearing`(_ clearing: Bool) async throws {
        let bench = try await bench().registered()
        try await bench.deliverHeld(5, 7)
        let isClosed = WatchedState(false)
        let closing = Task {
            try await bench.outbox.close(clearing: clearing)
            isClosed.update { $0 = true }
        }
        try await bench.origin.cancelled(count: 1, timeout: .seconds(600))
        await otherTasksRun()
        #expect(!isClosed.read { $0 })
        bench.origin.release()
        try await closing.value
        #expect(bench.origin.runningCount == 0)
        let next = try await self.bench(in: bench.directory).started()
        try await next.settled()
        // The attempt has succeeded, and is not repeated.
        #expect(next.origin.commands.map(\.amount) == (clearing ? [] : [7]))
    }

    @Test func `C23: a command that closes its scope does not wait for itself`() async throws {
        let directory = try TemporaryDirectory()
        let scope = CacheScope(directory: directory.url)
        let outbox = try Outbox(directory: directory.file("outbox"), time: ManualTime(), scope: scope)
        let arrived = WatchedState(0)
        let closed = WatchedState(0)
        await outbox.register(Add.self, lane: { "\($0.key)" }) { _, _ in
            arrived.update { $0 += 1 }
            try await arrived.wait { $0 == 2 ? () : nil }
            try await scope.close(clearing: true)
            closed.update { $0 += 1 }
        }
        outbox.start()
        try await outbox.submit(Add(key: 1, amount: 1))
        try await outbox.submit(Add(key: 2, amount: 1))
        try await closed.wait { $0 == 2 ? () : nil }
        try await scope.close()
        let again = try Outbox(directory: directory.file("outbox"), time: ManualTime())
        #expect(await again.isEmpty)
    }

    @Test func `C23: an outbox is closed if its scope is closed while it reads its log`() async throws {
        let place = try TemporaryDirectory()
        let directory = place.file("outbox")
        let former = try Outbox(directory: directory, time: ManualTime())
        await former.register(Add.self) { _, _ in }
        for amount in 1...3 { try await former.submit(Add(key: 1, amount: amount)) }
        try await former.close()
        // Damage is reported during the creation, which so can last until the scope is being closed.
        let log = directory.appending(path: "log")
        var bytes = try Data(contentsOf: log)
        bytes[bytes.count / 3] ^= 1
        try bytes.write(to: log)
        let (scope, member) = (CacheScope(), ScopeMember())
        scope.add(member)
        let (reads, reading) = (WatchedState(false), DispatchSemaphore(value: 0))
        let creation = Task {
            await withCheckedContinuation { continuation in
                Thread.detachNewThread {
                    let result = Result {
                        try Outbox(directory: directory, time: ManualTime(), scope: scope) { _ in
                            let isFirst = reads.update { reads in
                                defer { reads = true }
                                return !reads
                            }
                            if isFirst { reading.wait() }
                        }
                    }
                    continuation.resume(returning: result)
                }
            }
        }
        try await reads.wait { $0 ? () : nil }
        let hasReturned = WatchedState(false)
        let closing = Task {
            try await scope.close()
            hasReturned.update { $0 = true }
        }
        try await member.isClosed.wait { $0 ? () : nil }
        await otherTasksRun()
        // The creation may still change the directory.
        #expect(!hasReturned.current)
        reading.signal()
        let error = await #expect(throws: StoreError.self) { try await creation.value.get() }
        #expect(error?.code == .closed)
        try await closing.value
    }

    @Test func `C23: clearing a scope skips an outbox that was closed`() async throws {
        let scope = CacheScope()
        let (bench, other) = (try bench(scope: scope), try bench(scope: scope))
        for bench in [bench, other] {
            await bench.register()
            try await bench.outbox.submit(Add(key: 1, amount: 5))
            try await bench.outbox.close()
        }
        try FileManager.default.removeItem(at: other.directory.url)
        try await scope.clear()
        #expect(!FileManager.default.fileExists(atPath: other.directory.url.path))
        #expect(other.events.count("cleared") == 0)
        let next = try self.bench(in: bench.directory)
        #expect(await next.state.commands.count == 1)
    }

    @Test(arguments: [false, true])
    func `C23: closing again leaves a removed directory alone`(_ clearing: Bool) async throws {
        let directory = try TemporaryDirectory()
        let scope = CacheScope(directory: directory.url)
        let bench = try await bench(in: directory, scope: scope).prepared()
        try await bench.outbox.submit(Add(key: 1, amount: 5))
        try await bench.outbox.close(clearing: clearing)
        try await bench.store.close(clearing: clearing)
        try FileManager.default.removeItem(at: bench.directory.url)
        try await bench.outbox.close(clearing: true)
        #expect(!FileManager.default.fileExists(atPath: bench.directory.url.path))
        try await bench.store.close(clearing: true)
        #expect(!FileManager.default.fileExists(atPath: bench.directory.url.path))
        try await scope.close(clearing: true)
        #expect(!FileManager.default.fileExists(atPath: bench.directory.url.path))
    }

    @Test func `C23: closing an outbox ends the delay after a result that could not be logged`() async throws {
        let bench = try await bench().registered()
        try await bench.deliverHeld(5)
        // A file in place of the directory refuses each entry.
        let path = bench.directory.file("outbox")
        try await until("the directory is a file") {
            try? FileManager.default.removeItem(at: path)
            return (try? Data().write(to: path)) != nil
        }
        bench.origin.release()
        try await bench.events.first("log failed")
        let closing = Task { try await bench.outbox.close() }
        try await closing.value(of: "the outbox is closed")
        #expect(bench.origin.endedCount == 1)
    }

    @Test func `C23: a store and an outbox of a closed scope are closed from the start`() async throws {
        let directory = try TemporaryDirectory()
        let scope = CacheScope(directory: directory.url)
        try await scope.close()
        let store = Store(cacher: MemoryCacher<Int, Int>(), scope: scope) { $0 }
        let error = await #expect(throws: StoreError.self) { try await store[1].requireData() }
        #expect(error?.code == .closed)
        let refusal = #expect(throws: StoreError.self) { try Outbox(directory: directory.file("outbox"), scope: scope) }
        #expect(refusal?.code == .closed)
        #expect(try directory.names.isEmpty)
    }
}

/// A member of a scope that has no data.
private final class ScopeMember: CacheScopeMember {
    let isClosed = WatchedState(false)

    func clear() async throws {}

    func waitUntilSaved() async throws {}

    func close(clearing: Bool) async throws { isClosed.update { $0 = true } }
}
