import Foundation
import StoreCore
import StoreCoreTesting
import StoreTrials
import Testing
import Trials

@Suite(.timeLimit(.minutes(hangMinutes)))
struct SavingTests {
    @Test(arguments: Backing.withCacher)
    func `C6: content is accepted and published before it is saved`(_ backing: Backing) async throws {
        let bench = Bench(backing)
        bench.cacher.hold(.save)
        let observer = RecordingObserver(bench.store[1].publish())
        try await observer.next { $0.summary == "completed(1)" }
        #expect(try await bench.store[1].requireData() == 1)
        #expect(try await bench.store[1].requireData(from: .cache) == 1)
        try await bench.cacher.releaseNext(.save)
        try await until("the record is saved") { bench.cacher.record(of: 1)?.content == 1 }
    }

    @Test(arguments: Backing.withCacher)
    func `C6: while a save runs only the newest record waits`(_ backing: Backing) async throws {
        let bench = Bench(backing)
        bench.cacher.hold(.save)
        let first = Task { [handle = bench.store[1]] in await handle.update(1) }
        try await bench.cacher.began(.save)
        let others = (2...50).map { number in Task { [handle = bench.store[1]] in await handle.update(number) } }
        try await bench.callers(50)
        await #expect(bench.store[1].getData() != nil)
        let newest = await bench.store[1].getData()
        try await bench.cacher.releaseNext(.save)
        await first.value
        #expect(bench.waiting() == 49)
        try await bench.cacher.releaseNext(.save)
        for other in others { await other.value }
        #expect(bench.cacher.calls(.save).map(\.content) == [1, newest])
        #expect(bench.cacher.breaches == [])
    }

    enum Returning: CaseIterable, Sendable { case update, refresh, clear, invalidate, inPlace, mutate }

    @Test(arguments: Returning.allCases, [false, true])
    func `C6: changes return when their record is saved or the save has failed`(_ returning: Returning, _ fails: Bool) async throws {
        let bench = Bench(.plain, reports: true)
        await bench.store[1].update(5)
        let operation: GatedCacher<Int, Int>.Operation = returning == .clear ? .remove : .save
        bench.cacher.hold(operation)
        let before = bench.cacher.calls(operation).count
        let returned = WatchedState(false)
        let change = Task { [handle = bench.store[1]] in
            switch returning {
            case .update: await handle.update(6)
            case .refresh: await handle.refresh()
            case .clear: await handle.clear()
            case .invalidate: await handle.invalidate()
            case .inPlace: await handle.update { $0 += 1 }
            case .mutate: try await handle.mutate(optimistically: { $0 += 1 }) {}
            }
            returned.update { $0 = true }
        }
        try await bench.cacher.began(operation, count: before + 1)
        try await until("the change waits") { bench.waiting() == 1 }
        #expect(!returned.current)
        try await bench.cacher.releaseNext(operation, failing: fails)
        try await change.value
        if fails { try await bench.events.first("fault \(operation)") }
        #expect(bench.cacher.breaches == [])
    }

    @Test(arguments: Backing.withCacher)
    func `C6: a record that failed to save stays readable`(_ backing: Backing) async throws {
        let bench = Bench(backing, saved: 3)
        bench.cacher.fail(.save)
        await bench.store[1].update(70)
        #expect(bench.cacher.record(of: 1)?.content == 3)
        #expect(try await bench.store[1].requireData(from: .cache) == 70)
        #expect(bench.liveKeys == 1)
        bench.cacher.recover()
        await bench.store[1].update { $0 += 1 }
        #expect(bench.cacher.record(of: 1)?.content == 71)
        try await bench.idle()
    }

    @Test(arguments: Backing.withCacher)
    func `C6: a save inherits no caller's cancellation`(_ backing: Backing) async throws {
        let bench = Bench(backing)
        bench.cacher.hold(.save)
        let update = Task { [handle = bench.store[1]] in await handle.update(70) }
        try await bench.cacher.began(.save)
        await update.cancelAndWait()
        bench.cacher.release()
        try await bench.idle()
        #expect(bench.cacher.record(of: 1)?.content == 70 && bench.cacher.breaches == [])
    }

    @Test(arguments: Backing.withCacher)
    func `C6: too many unsaved records are dropped, oldest first`(_ backing: Backing) async throws {
        let bench = Bench(backing, reports: true)
        bench.cacher.fail(.save)
        for key in 0..<1_010 {
            await bench.store[key].update(key)
            guard key < 20 else { continue }
            // The age of an unsaved record begins when its save fails, and the saves of several keys fail in any order.
            try await until("the save of \(key) has failed") {
                bench.events.all.contains { $0.param == key && $0.kind.name == "fault save" }
            }
        }
        func dropped() -> [Int?] { bench.events.all.filter { $0.kind.name == "droppedUnsaved" }.map(\.param) }
        // The event follows the removal.
        try await until("the oldest records are dropped and reported") { bench.liveKeys == 1_000 && dropped().count >= 10 }
        #expect(dropped() == Array(0..<10))
        #expect(try await bench.store[1_009].requireData(from: .cache) == 1_009)
    }

    @Test(arguments: Backing.withCacher)
    func `C6: unstorable content is kept only while it is wanted`(_ backing: Backing) async throws {
        let secret = Freshness(storage: .forbidden)
        let bench = Bench(backing, fetcher: ScriptedFetcher { .success($0.number, freshness: secret) }, saved: 70)
        let observer = RecordingObserver(bench.store[1].publish(forceRefresh: true))
        try await observer.next { $0.summary == "completed(1)" }
        #expect(try await bench.store[1].requireData() == 1)
        try await until("the old record is removed") { bench.cacher.record(of: 1) == nil }
        try await observer.stopAndLeave()
        try await bench.idle()
        #expect(bench.cacher.calls(.save).isEmpty)
        #expect(try await bench.store[1].requireData() == 2)
    }
}
