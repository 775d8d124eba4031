import StoreCore
import StoreCoreTesting
import StoreTrials
import Testing
import Trials

@Suite(.timeLimit(.minutes(hangMinutes)))
struct LiveUpstreamTests {
    @Test(arguments: Backing.allCases)
    func `L1: one stream serves all observers and callers of a key`(_ backing: Backing) async throws {
        let bench = LiveBench(backing)
        let observers = (0..<20).map { _ in bench.observe() }
        let callers = (0..<20).map { _ in Task { try await bench.store[1].requireData() } }
        let fresh = (0..<20).map { _ in Task { try await bench.store[1].requireData(from: .origin) } }
        try await bench.feed.connected(count: 1)
        try await bench.feed.send(.content("a"))
        for caller in callers + fresh { #expect(try await caller.value == "a") }
        for observer in observers { try await observer.sees("completed(a)") }
        try await bench.feed.send(.content("b"))
        for observer in observers { try await observer.sees("completed(b)") }
        #expect(bench.feed.connections.count == 1)
    }

    @Test func `L1: generic code that knows only an origin keeps the streams`() async throws {
        func store(of origin: some Origin<Int, String>) -> Store<Int, String> { Store(cacher: MemoryCacher(), fetcher: origin) }
        let feed = ScriptedLiveFetcher<Int, String>()
        let observer = RecordingObserver(store(of: feed)[1].publish())
        try await feed.send(.content("a"))
        try await feed.send(.content("b"))
        try await observer.sees("completed(b)")
        #expect(feed.connections.count == 1)
    }

    @Test(arguments: Backing.allCases)
    func `L2: a caller gets the first value and does not keep the stream`(_ backing: Backing) async throws {
        let bench = LiveBench(backing)
        let caller = Task { try await bench.store[1].requireData() }
        try await bench.feed.send(.content("a"))
        #expect(try await caller.value == "a")
        try await bench.time.advance(by: .seconds(1), sleepers: 1)
        try await bench.feed.cancelled(count: 1)
        try await bench.idle()
        #expect(try await bench.store[1].requireData() == "a")
        #expect(bench.feed.connections.count == 1)
    }

    @Test func `L2: an unwanted stream ends after its first value if fetches run to completion`() async throws {
        let bench = LiveBench(policy: StorePolicy(unwantedFetch: .complete))
        let caller = Task { try await bench.store[1].requireData() }
        try await bench.feed.connected(count: 1)
        try await bench.callers(1)
        await caller.cancelAndWait()
        try await bench.feed.send(.content("a"))
        try await bench.feed.ended(count: 1)
        try await bench.idle()
        #expect(try await bench.store[1].requireData(from: .cache) == "a")
    }
}
