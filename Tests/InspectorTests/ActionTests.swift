import Foundation
import StoreCore
import StoreCoreTesting
import Testing
import Trials

@testable import Inspector
@testable import RemoteRouting

/// The actions of pages, and what they leave behind.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct ActionTests {
    let inspector: Inspector
    let visitor: Visitor
    let fetches = WatchedState(0)
    let store: Store<Int, Int>

    init() throws {
        var policy = Inspector.Policy()
        // No page counts as closed because a busy machine is slow; the tests close their pages.
        (policy.grace, policy.patience, policy.pace) = (.seconds(3_600), .seconds(60), .milliseconds(20))
        inspector = try Inspector.start(policy: policy)
        visitor = Visitor(inspector.url)
        store = Store(cacher: MemoryCacher<Int, Int>()) { [fetches] _ in
            fetches.update {
                $0 += 1; return $0
            }
        }
        inspector.attach(store)
    }

    private func openPage() async throws -> Follower {
        let follower = try Follower(visitor)
        _ = try await follower.next()
        // The page is open while this request waits.
        try await follower.ask()
        try await until("the page is open") { inspector.board.control("visitor") { _ in } }
        return follower
    }

    /// Hangs up, and passes the time after which the page counts as closed.
    private func close(_ page: Follower) async throws {
        page.client.hangUp()
        try await until("the page is closed") {
            for visits in 1...9 { inspector.board.closeIfUnconnected("visitor", since: visits) }
            return !inspector.board.control("visitor") { _ in }
        }
    }

    @Test func `I4: refresh, invalidate and clear act on the key`() async throws {
        #expect(try await store[1].requireData() == 1)
        let row = try #require(try await visitor.row("1", of: 1))
        #expect(try await visitor.act("refresh", #""subject":1,"row":\#(row)"#) == 204)
        try await until("the key is fetched") { store.snapshot(of: 1)?.content == 2 }
        #expect(try await visitor.act("invalidate", #""subject":1,"row":\#(row)"#) == 204)
        try await until("the key is out of date") { store.snapshot(of: 1)?.isInvalidated == true }
        #expect(try await visitor.act("clear", #""subject":1,"row":\#(row)"#) == 204)
        try await until("the key is empty") { store.snapshot(of: 1)?.content == nil }
        #expect(try await visitor.act("explode", #""subject":1,"row":\#(row)"#) == 409)
        // No action on all keys: a page without a selection would send it by mistake.
        #expect(try await visitor.act("clear", #""subject":1"#) == 409)
    }

    @Test func `I4: the next fetch of a key fails, and no other fetch`() async throws {
        let page = try await openPage()
        _ = try await (store[1].requireData(), store[2].requireData())
        let row = try #require(try await visitor.row("1", of: 1))
        #expect(try await visitor.act("fail", #""subject":1,"row":\#(row)"#) == 204)
        _ = try await store[2].requireData(from: .origin)
        await #expect(throws: InspectionFailure(code: .failed)) { try await store[1].requireData(from: .origin) }
        _ = try await store[1].requireData(from: .origin)
        withExtendedLifetime(page) {}
    }

    /// The ways in which the actions of a page end.
    enum End: CaseIterable {
        case connectionLost, pageClosed, inspectorStopped
    }

    @Test(arguments: End.allCases)
    func `I4: offline fails every fetch and exchange until its page leaves, or the inspector stops`(end: End) async throws {
        let host = inspector.attach(RemoteHost.immediate)
        let page = try await openPage()
        #expect(try await visitor.act("offline", #""value":1"#) == 204)
        await #expect(throws: InspectionFailure(code: .offline)) { try await store[1].requireData() }
        let failure = await #expect(throws: RemoteError.self) { try await host.data(for: Route(path: "/a")) }
        #expect(failure?.code == .offline)
        switch end {
        case .connectionLost: try await close(page)
        case .pageClosed: #expect(try await visitor.act("close") == 204)
        case .inspectorStopped:
            inspector.stop()
            #expect(!inspector.board.pageOpened("page") && !inspector.board.control("page") { $0.setOffline(true, "page") })
        }
        #expect(try await store[1].requireData() == 1)
        // A stopped inspector leaves a store, but its copy of a host keeps meeting the actions.
        _ = try await host.data(for: Route(path: "/a"))
        withExtendedLifetime(page) {}
    }

    @Test func `I3: an attempt that its store cancels at the time limit is shown as failed, with the reason`() async throws {
        let (time, script) = (ManualTime(), ScriptedFetcher<Int, Int>())
        let slow = Store(cacher: MemoryCacher<Int, Int>(), fetcher: script, policy: StorePolicy(fetchTimeLimit: .seconds(5)), time: time)
        inspector.attach(slow)
        script.hold()
        let caller = Task { try await slow[1].requireData() }
        try await script.started(count: 1)
        try await time.sleepers(atLeast: 1)
        time.advance(by: .seconds(5))
        await #expect(throws: StoreError.self) { try await caller.value }
        try await until("the attempt has ended") { inspector.board.timeline.changes(after: 0).spans.first?.ended != nil }
        let span = try #require(inspector.board.timeline.changes(after: 0).spans.first)
        #expect(span.status == "failed" && span.note.contains("fetchTimedOut"), "\(span)")
    }

    @Test func `I4: a delay holds a fetch back, and ends with the page`() async throws {
        let page = try await openPage()
        #expect(try await visitor.act("delay", #""value":60000"#) == 204)
        let caller = Task { try await store[1].requireData() }
        try await until("the fetch waits") { inspector.board.timeline.changes(after: 0).spans.count == 1 }
        #expect(fetches.current == 0)
        try await close(page)
        #expect(try await caller.value == 1)
    }

    @Test func `I3: an object that two calls attach at once is shown once`() {
        let board = Board(secretNames: [], policy: Inspector.Policy())
        let object = WatchedState(0)
        let first = board.add { StandIn($0, WatchedState(1)) }
        // While a call looks at the first subject, another one attaches the same object.
        first.onLook.withLock { $0 = { _ = board.add { StandIn($0, object) } } }
        board.add { StandIn($0, object) }
        #expect(board.subject(2) == nil && board.subject(3) != nil)
    }

    @Test func `I4: an action outlasts the reconnections of its page`() async throws {
        var policy = Inspector.Policy()
        policy.grace = .seconds(3_600)
        let board = Board(secretNames: [], policy: policy)
        for _ in 1...2 {
            #expect(board.pageOpened("page"))
            board.pageLeft("page")
        }
        #expect(board.control("page") { $0.setOffline(true, "page") })
        // The end of the first connection is checked while the page is between two others.
        board.closeIfUnconnected("page", since: 1)
        await #expect(throws: InspectionFailure(code: .offline)) { try await board.controls.pass(1, row: nil) }
        board.closeIfUnconnected("page", since: 2)
        try await board.controls.pass(1, row: nil)
    }

    @Test func `I4: the actions of a page end once it has had no connection for the grace`() async throws {
        var policy = Inspector.Policy()
        policy.grace = .milliseconds(20)
        let board = Board(secretNames: [], policy: policy)
        #expect(board.pageOpened("page"))
        #expect(board.control("page") { $0.setOffline(true, "page") })
        await #expect(throws: InspectionFailure(code: .offline)) { try await board.controls.pass(1, row: nil) }
        board.pageLeft("page")
        try await until("the action is undone") { (try? await board.controls.pass(1, row: nil)) != nil }
    }

    @Test func `I4, I3: an exchange inside a fetch is shown below it, and fails if its host is chosen`() async throws {
        let host = inspector.attach(RemoteHost.immediate)
        let remote = Store(cacher: MemoryCacher<Int, Data>()) { _ in try await host.data(for: Route(path: "/a")) }
        inspector.attach(remote)
        let page = try await openPage()
        #expect(try await visitor.act("fail", #""subject":2"#) == 204)
        await #expect(throws: RemoteError.self) { try await remote[1].requireData() }
        #expect(inspector.board.timeline.changes(after: 0).spans.map(\.parent) == [nil, 0])
        _ = try await remote[1].requireData()
        withExtendedLifetime(page) {}
    }

    @Test func `a closure around fetches may wait and fail, and the store performs what it leaves out`() async throws {
        let calls = WatchedState<[String]>([])
        let inner = store.interceptFetches { _, _, _ in calls.update { $0.append("inner") } }
        #expect(try await store[1].requireData() == 1)
        let outer = store.interceptFetches { param, target, perform in
            calls.update { $0.append("outer") }
            #expect(param == 2 && target == .content)
            if case .modified = try await perform() { throw SnapshotTests.Broken() }
        }
        // Each handle removes its own closure.
        await #expect(throws: SnapshotTests.Broken.self) { try await store[2].requireData() }
        inner.cancel()
        await #expect(throws: SnapshotTests.Broken.self) { try await store[2].requireData() }
        outer.cancel()
        #expect(try await store[2].requireData() == 4)
        #expect(calls.current == ["inner", "outer", "inner", "outer"])
    }

    @Test func `an error that a closure around fetches catches fails the attempt, which is not repeated`() async throws {
        let fetcher = ScriptedFetcher<Int, Int>(.failure(SnapshotTests.Broken()), .success(2))
        let store = Store(cacher: MemoryCacher(), fetcher: fetcher)
        store.interceptFetches { _, _, perform in _ = try? await perform() }
        await #expect(throws: SnapshotTests.Broken.self) { try await store[1].requireData() }
        #expect(fetcher.startedCount == 1)
    }

    @Test func `I4: several inspectors show one store and one host, and each of them acts`() async throws {
        let other = try Inspector.start(policy: .init())
        other.attach(store)
        let host = other.attach(inspector.attach(RemoteHost.immediate))
        let page = try await openPage()
        _ = try await (store[1].requireData(), host.data(for: Route(path: "/a")))
        for board in [inspector.board, other.board] {
            #expect(board.timeline.changes(after: 0).spans.map(\.status) == ["ok", "ok"])
        }
        #expect(try await visitor.act("offline", #""value":1"#) == 204)
        other.stop()
        await #expect(throws: InspectionFailure(code: .offline)) { try await store[1].requireData(from: .origin) }
        await #expect(throws: RemoteError.self) { try await host.data(for: Route(path: "/a")) }
        try await close(page)
        _ = try await (store[1].requireData(from: .origin), host.data(for: Route(path: "/a")))
    }

    @Test func `I4: a fetch that one inspector lets pass meets the actions of another`() async throws {
        let other = try Inspector.start(policy: .init())
        let host = other.attach(RemoteHost.immediate)
        let remote = Store(cacher: MemoryCacher<Int, Data>()) { _ in try await host.data(for: Route(path: "/a")) }
        inspector.attach(remote)
        #expect(other.board.pageOpened("page") && other.board.control("page") { $0.setOffline(true, "page") })
        await #expect(throws: RemoteError.self) { try await remote[1].requireData() }
        other.board.controls.undo("page")
        _ = try await remote[1].requireData()
    }
}

/// A subject that calls a closure once, when its object is looked at.
private final class StandIn: Subject {
    let id: Int
    let kind = "test"
    let name = ""
    let columns: [Column] = []
    private let shown: WatchedState<Int>
    let onLook = Lock<(@Sendable () -> Void)?>(nil)

    init(_ id: Int, _ shown: WatchedState<Int>) { (self.id, self.shown) = (id, shown) }

    var object: AnyObject? {
        let look = onLook.withLock { $0.take() }
        look?()
        return shown
    }

    func summary() async -> Summary? { nil }
    func rows(_ query: RowQuery) async -> Rows { Rows() }
}
