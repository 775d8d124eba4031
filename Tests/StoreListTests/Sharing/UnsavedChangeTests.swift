import Testing
import Trials
import StoreCoreTesting
import StoreTrials
@testable import StoreCore

/// Tests changes that a shared cacher fails to take while other users change the key.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct UnsavedChangeTests {
    private let cacher = ScriptedSharedCacher()
    private let events = EventLog()
    private let fetcher = ScriptedFetcher<Int, Int>.counting()
    private let store: Store<Int, Int>

    init() {
        store = Store(
            cacher: TieredCacher(over: cacher), fetcher: fetcher, policy: StorePolicy(revalidatesAfterMutation: false),
            onEvent: events.append)
    }

    struct Unavailable: Error {}

    struct Refused: Error, FailureAdvising { var failureKind: FailureKind { .permanent } }

    private func observe(from content: Int = 1) async throws -> RecordingObserver<Int> {
        let observer = RecordingObserver(store[1].publish())
        try await until("the content is there") { observer.states.last?.content == content }
        try await store.waitUntilSaved()
        return observer
    }

    private var drops: Int { events.names.count { $0 == "droppedUnsaved" } }

    enum Change: Sendable, CaseIterable { case set, edit, mutate }

    private func make(_ change: Change) async throws {
        switch change {
        case .set: await store[1].update(50)
        case .edit: #expect(await store[1].update { $0 += 49 })
        case .mutate: try await store[1].mutate(optimistically: { $0 += 49 }) {}
        }
    }

    // MARK: Outages

    @Test func `D8: an invalidation of a key with a failed removal returns`() async throws {
        #expect(try await store[1].requireData() == 1)
        try await store.waitUntilSaved()
        cacher.fail(saves: Unavailable())
        await store[1].clear()
        await store[1].invalidate()
        await #expect(throws: StoreError.self) { try await store.waitUntilSaved() }
        cacher.fail(saves: nil)
        try await store.waitUntilSaved()
        #expect(cacher.content(1) == nil)
    }

    @Test func `D8: a leased fetch begins although an unsaved removal keeps a newer record from being read`() async throws {
        cacher.grantLeases()
        #expect(try await store[1].requireData() == 1)
        try await store.waitUntilSaved()
        cacher.fail(saves: Unavailable())
        await store[1].clear()
        cacher.change(1, to: 7)
        #expect(try await store[1].requireData() == 2)
    }

    @Test(arguments: Change.allCases)
    func `D8: a change that could not be saved during an outage is saved after it`(change: Change) async throws {
        let observer = try await observe()
        cacher.fail(saves: Unavailable())
        try await make(change)
        cacher.fail(saves: nil)
        cacher.announceGap()
        try await until("the change is saved") { cacher.content(1) == 50 }
        try await store.waitUntilSaved()
        try await until("the observer sees 50") { observer.states.last?.content == 50 }
        #expect(drops == 0)
    }

    @Test(arguments: [false, true])
    func `D8: content that was fetched during an outage is saved after it, in place of an older record`(hasRecord: Bool) async throws {
        if hasRecord { cacher.change(1, to: 7, isExpired: true) }
        cacher.fail(saves: Unavailable())
        let observer = RecordingObserver(store[1].publish())
        try await until("the content is there") { observer.states.last?.content == 1 }
        try await events.first("fault save")
        cacher.fail(saves: nil)
        cacher.announceGap()
        try await until("the content is saved") { cacher.content(1) == 1 }
        try await store.waitUntilSaved()
        #expect(observer.states.last?.content == 1 && fetcher.requests.count == 1)
    }

    @Test func `D8: an expired record that takes the place of content fetched during an outage is fetched again`() async throws {
        cacher.change(1, to: 7, isExpired: true, delivers: false)
        cacher.fail(loads: Unavailable())
        cacher.fail(saves: Unavailable())
        let observer = RecordingObserver(store[1].publish())
        try await until("the content is there") { observer.states.last?.content == 1 }
        try await events.first("fault save")
        cacher.fail(loads: nil)
        cacher.fail(saves: nil)
        cacher.announceGap()
        // The gap may make the store read the record once more, and drop the first fetch.
        try await until("later content of the origin is saved") { [2, 3].contains(cacher.content(1)) }
        try await until("the observer sees that content") { [2, 3].contains(observer.states.last?.content) }
    }

    @Test func `D3: an invalidation during a gap reaches the newer record of another user`() async throws {
        let observer = try await observe()
        cacher.hold()
        async let invalidation: Void = store[1].invalidate()
        try await cacher.saves(begun: 2)
        try await fetcher.started(count: 2)
        cacher.change(1, to: 7, delivers: false)
        cacher.announceGap()
        cacher.release()
        await invalidation
        // The content that was fetched before the newer record was known may not replace it. The gap may drop a fetch once more.
        try await until("a later content of the origin replaces it") { [3, 4].contains(cacher.content(1)) }
        try await until("the observer sees that content") { [3, 4].contains(observer.states.last?.content) }
    }

    @Test func `D8: an invalidation of a record that could not be read during an outage is made after it`() async throws {
        cacher.change(1, to: 7)
        cacher.fail(loads: Unavailable())
        await store[1].invalidate()
        cacher.fail(loads: nil)
        cacher.announceGap()
        try await until("the record is out of date") { cacher.isInvalidated(1) }
        #expect(try await store[1].requireData() != 7)
    }

    @Test func `D1: an empty key invalidates a record that was not announced to it yet`() async throws {
        let store = Store(cacher: TieredCacher(over: cacher), fetcher: ScriptedFetcher<Int, Int>(.failure(Refused())))
        let observer = RecordingObserver(store[1].publish())
        try await until("the fetch has failed") { observer.states.last?.error != nil }
        cacher.change(1, to: 7, delivers: false)
        await store[1].invalidate()
        try await store.waitUntilSaved()
        #expect(cacher.isInvalidated(1))
    }

    @Test func `D3: a value that could not be saved is saved above the newer record of another user`() async throws {
        let observer = try await observe()
        cacher.fail(saves: Unavailable())
        await store[1].update(50)
        await store[1].update { $0 += 1 }
        cacher.fail(saves: nil)
        cacher.change(1, to: 7)
        try await until("the change is saved") { cacher.content(1) == 51 }
        try await until("the observer sees 51") { observer.states.last?.content == 51 }
        #expect(drops == 0)
    }

    @Test func `D3: fetched content that could not be saved gives way to the newer record of another user`() async throws {
        cacher.fail(saves: Unavailable())
        let observer = RecordingObserver(store[1].publish())
        try await until("the content is there") { observer.states.last?.content == 1 }
        try await events.first("fault save")
        cacher.change(1, to: 7)
        try await until("the newer record is there") { observer.states.last?.content == 7 }
        #expect(drops == 0)
    }

    // MARK: Changes that nothing applies again

    @Test(arguments: [true, false])
    func `D3: a change that is refused after a failed save is reported as dropped`(waits: Bool) async throws {
        let observer = try await observe()
        cacher.fail(saves: Unavailable())
        #expect(await store[1].update { $0 += 49 })
        try await until("the observer sees 50") { observer.states.last?.content == 50 }
        cacher.change(1, to: 7, delivers: false)
        cacher.fail(saves: nil)
        if waits {
            let error = await #expect(throws: StoreError.self) { try await store.waitUntilSaved() }
            #expect(error?.code == .cacherFailed)
        } else {
            cacher.deliver()
        }
        try await until("the drop is reported") { drops == 1 }
        #expect(drops == 1)
        try await until("the newer record is there") { observer.states.last?.content == 7 }
        try await store.waitUntilSaved()
        #expect(cacher.content(1) == 7)
    }

    @Test func `D3: a change of a canceled caller is reported as dropped if the save before it failed`() async throws {
        cacher.fail(saves: Unavailable())
        cacher.hold()
        let observer = RecordingObserver(store[1].publish())
        try await cacher.saves(begun: 1)
        let caller = Task { await store[1].update { $0 += 49 } }
        try await until("the caller waits for the next save") { observer.states.last?.content == 50 && store.waiting(1) == 1 }
        caller.cancel()
        #expect(await caller.value)
        cacher.release()
        try await events.first("fault save", count: 2)
        cacher.fail(saves: nil)
        cacher.change(1, to: 7)
        try await until("the drop is reported") { drops == 1 }
        try await until("the newer record is there") { observer.states.last?.content == 7 }
    }

    @Test(arguments: [false, true])
    func `D3: a refused change is applied again while its caller waits, and reported as dropped if its caller was canceled`(
        isCanceled: Bool
    ) async throws {
        let observer = try await observe()
        cacher.hold()
        let caller = Task { await store[1].update { $0 += 49 } }
        try await cacher.saves(begun: 2)
        if isCanceled {
            caller.cancel()
            #expect(await caller.value)
        }
        cacher.change(1, to: 7, delivers: false)
        cacher.release()
        if !isCanceled { #expect(await caller.value) }
        try await until("the outcome is there") { drops == (isCanceled ? 1 : 0) && observer.states.last?.content == (isCanceled ? 7 : 56) }
        #expect(cacher.content(1) == (isCanceled ? 7 : 56))
    }

    @Test func `D3: a change that the cacher can never take gives way to a newer record, and is reported as dropped`() async throws {
        let observer = try await observe()
        cacher.fail(saves: Refused())
        await store[1].update(50)
        cacher.change(1, to: 7)
        try await until("the drop is reported") { drops == 1 }
        try await until("the newer record is there") { observer.states.last?.content == 7 }
        #expect(drops == 1)
    }

    @Test func `D3: a change that the origin has made is fetched again if a newer record may lack it`() async throws {
        let observer = try await observe()
        cacher.hold()
        let mutation = Task { try await store[1].mutate(optimistically: { $0 += 49 }) {} }
        try await cacher.saves(begun: 2)
        cacher.change(1, to: 7, delivers: false)
        cacher.release()
        try await mutation.value
        try await until("the origin's content is there") { observer.states.last?.content == 2 }
        #expect(fetcher.requests.count == 2)
        #expect(drops == 0)
    }
}
