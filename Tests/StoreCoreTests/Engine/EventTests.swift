import Testing
import Trials
import StoreCoreTesting
import StoreTrials

@testable import StoreCore

@Suite(.timeLimit(.minutes(hangMinutes)))
struct EventTests {
    @Test func `C17: a miss, its fetch and its save are reported, then a hit`() async throws {
        let bench = Bench(.plain, reports: true)
        let first = try await bench.heldCaller()
        let second = Task { [handle = bench.store[1]] in try await handle.requireData() }
        try await bench.callers(2)
        bench.time.advance(by: .seconds(3))
        bench.fetcher.release()
        _ = try await (first.value, second.value)
        try await bench.events.first("saved")
        try await bench.idle()
        _ = try await bench.store[1].requireData()
        try await bench.allEvents()
        #expect(Set(bench.events.names.prefix(4)) == ["miss", "began", "coalesced"])
        #expect(Array(bench.events.names.dropFirst(4)) == ["ended", "saved", "hit"])
        let durations = bench.events.all.compactMap { if case .fetchEnded(_, let duration, _) = $0.kind { duration } else { nil } }
        #expect(durations == [.seconds(3)])
        #expect(bench.events.all.allSatisfy { $0.param == 1 })
    }

    @Test func `C17: failures, dropped results and cancellations are reported`() async throws {
        let bench = Bench(.plain, fetcher: ScriptedFetcher(.failure(Offline()), .notModified(), cancellation: .ignored), reports: true)
        bench.cacher.fail(.load, .save)
        bench.cacher.put(bench.record(3), param: 1)
        await bench.store[1].refresh()
        await bench.store[1].update(4)
        await bench.store[1].refresh()
        for name in ["fault load", "failed", "fault save", "confirmed"] { try await bench.events.first(name) }
        bench.fetcher.hold()
        let observer = RecordingObserver(bench.store[1].publish(forceRefresh: true))
        try await bench.fetcher.started(count: 3)
        await bench.store[1].update(5)
        try await bench.fetcher.answer(3, with: .success(-1))
        try await bench.events.first("cancelled")
        try await bench.events.first("outdated")
        try await observer.next { $0.content == 5 }
    }

    @Test func `C17: a fetch that ends after its key became idle is reported`() async throws {
        let bench = Bench(
            policy: StorePolicy(unwantedFetch: .cancel(after: .zero)), fetcher: .counting(cancellation: .ignored), reports: true)
        let caller = try await bench.heldCaller()
        caller.cancel()
        try await bench.idle()
        bench.fetcher.release()
        try await bench.events.first("outdated")
        try await bench.allEvents()
        #expect(bench.events.names == ["miss", "began", "cancelled", "outdated"])
        #expect(bench.events.all.allSatisfy { $0.param == 1 })
    }

    @Test(arguments: [
        (StoreEventKind.hit, "#3 1: hit"), (.fetchBegan(.page(.next)), "#3 1: fetch of next page began"),
        (
            .fetchEnded(.content, duration: .seconds(2), .failed(Offline())),
            "#3 1: fetch of content ended after 2 s: failed: Offline()"
        ),
        (.cacherFault(.save, Offline()), "#3 1: cacher failed to save: Offline()"), (.evicted(count: 4), "#3 1: evicted 4"),
        (.droppedAsOutdated(.content), "#3 1: fetch of content was outdated; result dropped"),
    ])
    func `C17: an event is one readable line`(_ kind: StoreEventKind, _ line: String) {
        #expect(StoreEvent(number: 3, param: 1, kind: kind).description == line)
        #expect(StoreEvent<Int>(number: 3, param: nil, kind: kind).description == line.replacing("1: ", with: "", maxReplacements: 1))
    }

    @Test func `C17: an event is one line, whatever its key and its error contain`() {
        let error = StoreError(.cacherFailed, "line\nbreak")
        let event = StoreEvent(number: 3, param: "lamp\n#4 saved\u{1B}[2J", kind: .cacherFault(.load, error), store: "a\u{202E}b")
        let (place, fault) = (#"a\u{202E}b #3 lamp\u{A}#4 saved\u{1B}[2J"#, #"StoreError.cacherFailed: line\u{A}break"#)
        #expect(event.description == "\(place): cacher failed to load: \(fault)")
    }

    @Test func `C17: an event names its store`() async throws {
        let events = EventRecorder<Int>()
        let store = Store<Int, Int>(cacher: MemoryCacher(), name: "users", onEvent: events.record) { $0 }
        _ = try await store[1].requireData()
        let lists = PaginationStore(
            cacher: MemoryCacher<Int, [Int]>(), fetcher: ScriptedPaginationFetcher<Int, Int>(.page([1])), name: "feed",
            onEvent: events.record)
        _ = try await lists[1].requireData()
        try await events.recorded(count: 6) { _ in true }
        #expect(Set(events.events.map(\.store)) == ["users", "feed"])
        #expect(events.events.contains { $0.description == "users #1 1: miss" })
    }

    @Test func `C17: an eviction is reported`() async throws {
        let events = EventLog()
        let store = Store<Int, Int>(cacher: MemoryCacher(limit: 2), onEvent: events.append) { $0 }
        for key in 1...5 { _ = try await store[key].requireData() }
        try await until("three evictions are reported") { events.names.count { $0 == "evicted" } == 3 }
    }
}
