import StoreCore
import StoreCoreTesting
import StoreTrials
import Testing
import Trials

/// A model that follows one element of a list.
@MainActor
@Suite(.timeLimit(.minutes(hangMinutes)))
struct ObservedElementTests {
    private struct Row: Identifiable, Hashable {
        let id: Int
        var likes = 0
    }

    private let script = ScriptedPaginationFetcher<String, Row>(.page((1...3).map { Row(id: $0) }, nextKey: "n"))

    private func lists(_ links: [EntityLink<[Row]>] = []) -> PaginationStore<String, Row> {
        PaginationStore(cacher: MemoryCacher(), fetcher: script, links: links, time: ManualTime())
    }

    @Test func `V1: a model follows one element without a request, and sees no change of other elements`() async throws {
        let lists = lists()
        let list = lists["a"]
        _ = try await list.requireData()
        let model = Observed<Row>()
        // The first frame, before a task follows.
        #expect(model.state(for: list, element: 2).content == Row(id: 2))
        let task = Task { await model.follow(list, element: 2) }
        try await until("the element is shown") { model.content == Row(id: 2) && !model.isLoading }
        let states = RecordingObserver(list.publish(element: 2))
        _ = try await states.next { $0.content == Row(id: 2) }

        await list.update { $0[0].likes = 7 }
        await list.update { $0[1].likes = 1 }
        try await until("the change is shown") { model.content?.likes == 1 }
        let next = try await states.next { _ in true }
        #expect(next.content == Row(id: 2, likes: 1))
        #expect(script.startedCount == 1)

        await list.update([Row(id: 1)])
        try await until("the element is gone") { (model.error as? StoreError)?.code == .removed }
        #expect(model.content == nil && !model.isLoading)
        await task.cancelAndWait()
    }

    @Test func `V1: an element of a list that is loading is loading, and its error is that of the list`() async throws {
        let list = lists()["a"]
        let model = Observed<Row>()
        script.hold()
        let task = Task { await model.follow(list, element: 3) }
        try await script.started(count: 1)
        #expect(model.isLoading && model.content == nil)
        script.release()
        try await until("the element is shown") { model.content == Row(id: 3) }
        script.enqueue(.failure(Missing()))
        await list.refresh()
        try await until("the error is shown") { model.error is Missing }
        #expect(model.content == Row(id: 3))
        await task.cancelAndWait()
    }

    @Test func `E1: a row shows its entity's changes and removal`() async throws {
        let entities = Store<Int, Row>(cacher: MemoryCacher()) { Row(id: $0) }
        let list = lists([.elements(of: entities)])["a"]
        _ = try await list.requireData()
        let model = Observed<Row>()
        #expect(model.state(for: list, element: 2).content == Row(id: 2))
        let task = Task { await model.follow(list, element: 2) }
        try await until("the element is shown") { model.content == Row(id: 2) }
        await entities[2].update(Row(id: 2, likes: 9))
        try await until("the change is shown") { model.content?.likes == 9 }
        try await entities.remove(2) {}
        try await until("the element is gone") { (model.error as? StoreError)?.code == .removed }
        await task.cancelAndWait()
    }

    private struct Missing: Error {}
}
