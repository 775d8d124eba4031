import StoreCore
import StoreCoreTesting
import StoreTrials
import Testing
import Trials

@Suite(.timeLimit(.minutes(hangMinutes)))
struct LiveEpochTests {
    enum Change: CaseIterable, Sendable { case clear, clearAll, invalidate, refresh, forceRefresh }

    @Test(arguments: Change.allCases, [ScriptedCancellation.honored, .ignored])
    func `L3: a new epoch ends the stream, and nothing of it is accepted`(
        _ change: Change, _ cancellation: ScriptedCancellation
    ) async throws {
        let bench = LiveBench(.tiered, cancellation: cancellation)
        let observer = try await bench.observe(sending: .content("a", Validator("1")))
        try await observer.sees("completed(a)")
        let changing = Task { [handle = bench.store[1]] in
            switch change {
            case .clear: await handle.clear()
            case .clearAll: try await bench.store.clear()
            case .invalidate: await handle.invalidate()
            case .refresh: await handle.refresh()
            case .forceRefresh: _ = await handle.publish(forceRefresh: true).first { !$0.isLoading }
            }
        }
        try await bench.feed.connected(count: 2)
        try await bench.feed.cancelled(count: 1)
        // A stream that ignores its cancellation still delivers.
        if cancellation == .ignored { try await bench.feed.send(.content("old"), on: 1) }
        try await bench.feed.ended(count: 1)
        try await bench.feed.send(.content("b"), on: 2)
        try await observer.sees("completed(b)")
        try await changing.value
        try await bench.store.waitUntilSaved()
        #expect(bench.cacher.record(of: 1)?.content == "b")
        #expect(!observer.summary.contains("old"))
        #expect(bench.feed.connections.map(\.last) == [nil, change == .clear || change == .clearAll ? nil : Validator("1")])
    }

    @Test(arguments: Backing.allCases)
    func `L3: an update leaves the stream running, and its next content replaces the update`(_ backing: Backing) async throws {
        let bench = LiveBench(backing)
        let observer = try await bench.observe(sending: .content("a", Validator("1")))
        await bench.store[1].update("mine")
        try await observer.sees("completed(mine)")
        #expect(try await bench.store[1].requireData(from: .origin) == "mine")
        try await bench.feed.send(.content("b"))
        try await observer.sees("completed(b)")
        #expect(bench.feed.connections.count == 1 && bench.feed.cancelledCount == 0)
    }

    @Test(arguments: Backing.allCases)
    func `L3: a change after an update applies to the last value of the stream`(_ backing: Backing) async throws {
        let bench = LiveBench(backing)
        let observer = try await bench.observe(sending: .content("a"))
        try await bench.feed.send(.change { $0 += "b" })
        await bench.store[1].update("mine")
        await bench.store[1].update { $0 += "!" }
        try await observer.sees("completed(mine!)")
        try await bench.feed.send(.change { $0 += "c" })
        try await observer.sees("completed(abc)")
        try await bench.feed.send(.change { $0 += "d" })
        try await observer.sees("completed(abcd)")
    }

    @Test func `L3: an update during a connection leaves it running`() async throws {
        let bench = LiveBench()
        let observer = bench.observe()
        try await bench.feed.connected(count: 1)
        await bench.store[1].update("mine")
        try await observer.sees("loading(mine)")
        #expect(try await bench.store[1].requireData() == "mine")
        try await bench.feed.send(.content("a"))
        try await observer.sees("completed(a)")
        #expect(bench.feed.connections.count == 1)
    }

    @Test(arguments: Backing.allCases, [true, false])
    func `L3: a mutation leaves the stream running and refetches nothing`(_ backing: Backing, _ succeeds: Bool) async throws {
        let bench = LiveBench(backing)
        let observer = try await bench.observe(sending: .content("a"))
        let gate = Gate()
        let mutation = Task { [handle = bench.store[1]] in
            try await handle.mutate(optimistically: { $0 += "+" }) {
                await gate.wait()
                if !succeeds { throw Offline() }
            }
        }
        try await observer.sees("completed(a+)")
        try await bench.feed.send(.content("b"))
        try await observer.sees("completed(b+)")
        gate.open()
        _ = await mutation.result
        // Success makes the patch part of the content, which observers have seen already.
        if !succeeds { try await observer.sees("completed(b)") }
        #expect(try await bench.store[1].requireData() == (succeeds ? "b+" : "b"))
        try await bench.feed.send(.change { $0 += "c" })
        try await observer.sees("completed(bc)")
        #expect(bench.feed.connections.count == 1 && bench.feed.cancelledCount == 0)
    }

    @Test func `L3: a value of the stream replaces the fetch that an earlier failed mutation requires`() async throws {
        let bench = LiveBench(reports: true)
        await bench.store[1].update("a")
        let gates = [Gate(), Gate()]
        let mutations = gates.indices.map { index in
            Task { [handle = bench.store[1]] in
                try await handle.mutate(optimistically: { $0 += "+" }) {
                    await gates[index].wait()
                    if index == 0 { throw Offline() }
                }
            }
        }
        try await until("both mutations have begun") { try await bench.store[1].requireData(from: .cache) == "a++" }
        gates[0].open()
        _ = await mutations[0].result
        let observer = bench.observe(forceRefresh: true)
        try await bench.feed.send(.content("b"))
        try await observer.sees("completed(b+)")
        gates[1].open()
        try await mutations[1].value
        #expect(bench.feed.connections.count == 1)
        #expect(!bench.events.names.contains("coalesced"))
    }

    @Test func `L3: after a reconnection, a change applies to the stream's own last value`() async throws {
        let bench = LiveBench(policy: .reconnecting())
        let observer = try await bench.observe(sending: .content("a", Validator("1")))
        await bench.store[1].update("mine")
        try await bench.feed.end(throwing: Lost())
        try await observer.sees("error(\(Lost()),mine)")
        try await bench.time.advance(by: .seconds(1), sleepers: 1)
        try await bench.feed.send(.change({ $0 += "b" }, Validator("2")), on: 2)
        try await observer.sees("completed(ab)")
        #expect(bench.feed.connections.last?.last == Validator("1"))
    }
}
