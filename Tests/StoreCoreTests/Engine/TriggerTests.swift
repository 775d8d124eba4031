import StoreCore
import StoreCoreTesting
import StoreTrials
import Testing
import Trials

@Suite(.timeLimit(.minutes(hangMinutes)))
struct TriggerTests {
    @Test(arguments: Backing.allCases)
    func `C16: a trigger fetches observed keys only`(_ backing: Backing) async throws {
        let bench = Bench(backing)
        for key in 1...3 { await bench.store[key].update(0) }
        let observers = [1, 2].map { RecordingObserver(bench.store[$0].publish()) }
        for observer in observers { _ = try await observer.states(count: 1) }
        let bell = Bell()
        bench.store.revalidate(on: bell)
        try await bell.ring()
        for observer in observers { try await observer.next { $0.content != 0 } }
        #expect(Set(bench.fetcher.requests.map(\.param)) == [1, 2])
    }

    @Test func `C16: bursts of triggers coalesce`() async throws {
        let bench = Bench()
        let observer = try await bench.observeUpdate(0)
        let bells = [Bell(), Bell()]
        for bell in bells { bench.store.revalidate(on: bell) }
        bench.fetcher.hold()
        for bell in bells { try await bell.ring(100) }
        // The fetch runs in its own task, which may run late.
        try await bench.fetcher.started(count: 1)
        #expect(bench.fetcher.startedCount == 1)
        bench.fetcher.release()
        try await observer.next { $0.content == 1 }
        // These rings come too early after the last fetch, and together cause one later fetch.
        for bell in bells { try await bell.ring(100) }
        #expect(bench.fetcher.startedCount == 1)
        try await until("the timer is set") { bench.time.nextDeadline == bench.time.now.advanced(by: .seconds(1)) }
        bench.time.advance(by: .seconds(1))
        try await observer.next { $0.content == 2 }
        bench.time.advance(by: .seconds(100))
        #expect(bench.fetcher.startedCount == 2)
    }

    @Test(arguments: [false, true])
    func `C16: the end or an error of a sequence ends only that trigger`(_ fails: Bool) async throws {
        let bench = Bench()
        let observer = try await bench.observeUpdate(0)
        let (ending, lasting) = (Bell(), Bell())
        bench.store.revalidate(on: ending)
        bench.store.revalidate(on: lasting)
        try await ending.heard()
        ending.end(failing: fails)
        try await ending.left()
        try await lasting.ring()
        try await observer.next { $0.content == 1 }
    }

    @Test func `C16: a trigger ends when it is canceled or its store is released`() async throws {
        let bell = Bell()
        var bench: Bench? = Bench()
        let trigger = bench?.store.revalidate(on: bell)
        try await bell.heard()
        trigger?.cancel()
        try await bell.left()
        let second = Bell()
        bench?.store.revalidate(on: second)
        try await second.heard()
        bench = nil
        try await second.left()
    }
}
