import StoreCoreTesting
import StoreTrials
import Testing
import Trials

@testable import StoreCore

/// Tests that a list that shows an entity of a shared cacher does not decide between the changes of its users.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct LinkedSharingTests {
    private let cacher = ScriptedSharedCacher()
    private let store: Store<Int, Int>
    private let list: Store<Int, [Int]>
    private let detail: RecordingObserver<Int>
    private let rows: RecordingObserver<[Int]>

    /// Observes the entity 1, with the content 1100, and a list that shows it.
    init() async throws {
        store = Store(cacher: cacher, fetcher: ScriptedFetcher<Int, Int>())
        let memory = MemoryCacher<Int, [Int]>()
        var shown = record([1_100])
        shown.fields.stamp = 1
        await memory.save(shown, param: 0)
        let link = EntityLink<[Int]>.entities(of: store, id: { $0 / 1_000 }) { content, visit in
            for place in content.indices { visit(&content[place]) }
        }
        list = Store(cacher: memory, fetcher: ScriptedFetcher<Int, [Int]>(), links: [link])
        cacher.change(1, to: 1_100, stamp: 1)
        detail = RecordingObserver(store[1].publish())
        try await detail.next { $0.isCompleted && $0.content == 1_100 }
        rows = RecordingObserver(list[0].publish())
        try await rows.next { $0.isCompleted && $0.content == [1_100] }
        cacher.hold()
    }

    @Test func `D3, E2: a refused edit that a list shows is applied once to the newer content, although that is older by its stamp`()
        async throws
    {
        let edit = Task { [store] in await store[1].update { $0 += 1 } }
        try await cacher.saves(begun: 1)
        cacher.change(1, to: 1_200, stamp: 1)
        cacher.release()
        #expect(await edit.value)
        try await detail.next { $0.content == 1_201 }
        try await rows.next { $0.content == [1_201] }
        #expect(cacher.content(1) == 1_201)
    }

    @Test func `D3, E2: a newer value of a list that takes the place of an adopted record is saved`() async throws {
        await list[0].update([1_300])
        try await cacher.saves(begun: 1)
        cacher.change(1, to: 1_200, stamp: 1)
        cacher.release()
        try await until { cacher.content(1) == 1_300 }
        #expect(await store[1].getData(from: .cache) == 1_300)
    }
}
