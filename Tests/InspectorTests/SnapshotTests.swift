import Foundation
import StoreCore
import StoreCoreTesting
import StoreFiles
import StoreOutbox
import SyncEngine
import Testing
import TextStore
import Trials

@testable import RemoteRouting

struct SnapshotTests {
    struct Broken: Error {}

    @Test func `I1: a key's snapshot has its age, its expiry, its observers, its content and its size`() async throws {
        let time = ManualTime()
        let cacher = MemoryCacher<Int, String>(expiry: .after(.seconds(60)), cost: { $0.utf8.count })
        let store = Store(cacher: cacher, time: time) { "value \($0)" }
        #expect(store.snapshot(of: 1) == nil)
        _ = try await store[1].requireData()
        time.advance(by: .seconds(20))
        let idle = try #require(store.snapshot(of: 1))
        #expect(!idle.isLive && idle.content == "value 1" && idle.phase == .completed)
        #expect(idle.age == .seconds(20) && idle.expiresIn == .seconds(40) && idle.size == 7)
        var observer = store[1].publish().makeAsyncIterator()
        _ = await observer.next()
        let live = try #require(store.snapshot(of: 1))
        #expect(live.isLive && live.observers == 1 && live.content == "value 1" && live.expiresIn == .seconds(40) && live.size == 7)
        time.advance(by: .seconds(41))
        #expect(store.keySnapshots(.expired).keys.map(\.param) == [1])
        #expect(store.keySnapshots(limit: 0).keys.map(\.param) == [1])
        withExtendedLifetime(observer) {}
    }

    @Test(arguments: [5, -60] as [Double])
    func `C11, I1: a record that was saved into memory with a future date, or has expired, is shown as expired`(_ date: Double) async {
        let (cacher, time) = (MemoryCacher<Int, Int>(expiry: .after(.seconds(60))), ManualTime())
        let store = Store(cacher: cacher, time: time) { $0 }
        await cacher.save(CacheRecord(content: 1, fetchedAt: time.date.addingTimeInterval(date)), param: 1)
        #expect(store.keySnapshots(.expired).keys.map(\.param) == [1])
    }

    @Test func `I1: a running fetch is shown with its callers and its duration, and a failed one with its error`() async throws {
        let time = ManualTime()
        let gate = WatchedState(false)
        let store = Store(cacher: MemoryCacher<Int, String>(), time: time) { (id: Int) -> String in
            _ = try await gate.wait { $0 ? true : nil }
            throw Broken()
        }
        let callers = (0..<3).map { _ in Task { try await store[1].requireData() } }
        try await until("three callers wait") { store.snapshot(of: 1)?.callers == 3 && store.snapshot(of: 1)?.fetches.count == 1 }
        time.advance(by: .seconds(2))
        let key = try #require(store.keySnapshots(.fetching).keys.first)
        #expect(key.phase == .loading && key.fetches.map(\.duration) == [.seconds(2)] && key.fetches.first?.target == .content)
        var observer = store[1].publish().makeAsyncIterator()
        _ = await observer.next()
        gate.update { $0 = true }
        for caller in callers { await #expect(throws: Broken.self) { try await caller.value } }
        let failed = try #require(store.keySnapshots(.failed).keys.first)
        #expect(failed.phase == .failed && failed.error is Broken && failed.content == nil)
        withExtendedLifetime(observer) {}
    }

    @Test func `I1: the pages of thousands of keys contain each key once`() async throws {
        let count = max(20_000, rounds(100_000, quick: 20_000))
        let store = Store(cacher: MemoryCacher<Int, Int>(limit: 2 * count)) { $0 }
        for key in 0..<count { await store[key].update(key) }
        var observer = store[7].publish().makeAsyncIterator()
        _ = await observer.next()
        let first = store.keySnapshots(limit: 100)
        #expect(first.keys.count == 100 && first.keys.first?.param == 7 && !first.isLast)
        var seen: [Int] = []
        var place: KeyPlace? = .start
        while place != nil { seen += store.listedKeys(from: &place, limit: 1_000) }
        #expect(seen.count == count && Set(seen).count == count)
        var found: [Int] = []
        var page = store.keySnapshots(matching: "\(count - 1)")
        // A page looks at 10 000 keys.
        var pages = 1
        found += page.keys.map(\.param)
        while !page.isLast {
            page = store.keySnapshots(matching: "\(count - 1)", after: page)
            pages += 1
            found += page.keys.map(\.param)
        }
        #expect(found == [count - 1] && pages >= count / 10_000)
        withExtendedLifetime(observer) {}
    }

    @Test func `I1: a snapshot is no use of a key, so it changes no eviction`() async throws {
        let store = Store(cacher: MemoryCacher<Int, Int>(limit: 2)) { $0 }
        await store[1].update(1)
        await store[2].update(2)
        _ = store.keySnapshots()
        // As a use, this would make the other key the oldest one.
        _ = store.snapshot(of: 1)
        await store[3].update(3)
        #expect(store.snapshot(of: 1) == nil && store.snapshot(of: 2) != nil)
    }

    @Test func `I1: links name the entities that a list shows`() async throws {
        struct Row: Identifiable, Sendable { var id: Int }
        let entities = Store(cacher: MemoryCacher<Int, Row>(), name: "rows") { Row(id: $0) }
        let list = Store(cacher: MemoryCacher<UnitParam, [Row]>(), links: [.elements(of: entities)]) { _ in [Row(id: 1), Row(id: 2)] }
        var observer = list.flowable.publish().makeAsyncIterator()
        _ = try await until("the list is loaded") { await observer.next()?.isCompleted == true }
        let links = try #require(list.snapshot(of: UnitParam())?.links)
        #expect(links.map(\.store) == ["rows"] && links.first?.count == 2 && Set(links.first?.keys ?? []) == ["1", "2"])
        withExtendedLifetime(observer) {}
    }

    @Test func `I1: a host counts its open exchanges, and shows the last ones without secrets`() async throws {
        let gate = WatchedState(false)
        let transport = GatedTransport(gate: gate)
        let host = RemoteHost("api.example.com", transport: transport, limits: HostLimits(concurrentExchanges: 1))
        let route = Route(path: "/a", query: ["token": "s3cret"])
        let calls = (0..<2).map { _ in Task { try await host.data(for: route) } }
        try await until("one exchange is open, and one waits") {
            let snapshot = host.snapshot()
            return snapshot.openExchanges == 1 && snapshot.waitingExchanges == 1 && snapshot.exchanges.count == 1
        }
        #expect(host.snapshot().exchanges.first?.status == nil)
        gate.update { $0 = true }
        for call in calls { _ = try await call.value }
        try await until("no exchange is open") {
            let snapshot = host.snapshot()
            return snapshot.openExchanges == 0 && snapshot.waitingExchanges == 0
        }
        let exchanges = host.snapshot().exchanges
        #expect(exchanges.map(\.operation) == ["GET https://api.example.com/a", "GET https://api.example.com/a"])
        #expect(exchanges.allSatisfy { $0.status == 200 && $0.failure == nil })
        for _ in 0..<60 { _ = try await host.data(for: route) }
        #expect(host.snapshot().exchanges.count == 50)
    }

    @Test func `I1: a synchronizer shows its running pass and the report of its last one, and an outbox its commands`() async throws {
        let gate = WatchedState(false)
        let synchronizer = OneWaySynchronizer(processor: EmptyProcessor(gate: gate))
        #expect(synchronizer.snapshot().report == nil)
        let pass = Task { try await synchronizer.sync() }
        try await until("the pass is running") {
            let running = synchronizer.snapshot()
            return running.isSyncing && running.callers == 1 && running.report?.pass == 1 && running.error == nil
        }
        gate.update { $0 = true }
        await #expect(throws: SyncError.self) { try await pass.value }
        let snapshot = synchronizer.snapshot()
        #expect(snapshot.report?.pass == 1 && snapshot.error is SyncError && !snapshot.isSyncing)

        let directory = try TemporaryDirectory()
        let outbox = try Outbox(directory: directory.url)
        await outbox.register(Nothing.self) { _, _ in }
        _ = try await outbox.submit(Nothing(number: 3))
        #expect(await outbox.snapshot().commands.map(\.name) == ["nothing"])
    }

    @Test func `I1: texts are shown with versions and floors, in pages`() async throws {
        let directory = try TemporaryDirectory()
        let texts = try TextStore(session: "s", directory: directory.url)
        try await texts.register(["a", "b", "c"].map { TextSource(identifier: $0, bundleFile: nil) })
        #expect(texts.registeredCount == 3)
        let page = await texts.snapshot(after: "a", limit: 1)
        #expect(page.map(\.identifier) == ["b"] && page.first?.version == nil && page.first?.origin == nil)
    }

    @Test func `I1: a text is shown with its wording, its version, its source, its floor and its acceptance`() async throws {
        let directory = try TemporaryDirectory()
        try Data("Two weeks.".utf8).write(to: directory.file("terms.txt"))
        try Data(#"{ "terms": "1.0.0" }"#.utf8).write(to: directory.file("versions.json"))
        let bundle = try #require(Bundle(path: directory.url.path(percentEncoded: false)))
        let texts = try TextStore(session: "s", directory: directory.file("texts"), bundle: bundle)
        await texts.setVersionSource(VersionSource(bundleFile: BundleFile(fileName: "versions", fileExtension: "json")))
        try await texts.register(TextSource(identifier: "terms", bundleFile: BundleFile(fileName: "terms", fileExtension: "txt")))
        try await texts.accept(try await texts.text(for: "terms"))
        let text = try #require(await texts.snapshot(matching: "TERM").first)
        #expect(text.text == "Two weeks." && text.version == SemanticVersion("1.0.0") && text.origin == .bundle && text.isVerified)
        #expect(text.isAccepted && text.accepted == SemanticVersion("1.0.0") && text.waiting.isEmpty && !text.isBelowFloor)
        try await until("the floor is raised") { await texts.snapshot().first?.floor == SemanticVersion("1.0.0") }
    }

    struct Nothing: Command {
        static let name = "nothing"
        var number: Int
    }

    struct Thing: SyncItem {
        var key: Int
        var version: Int
    }

    struct EmptyProcessor: SyncProcessor {
        let gate: WatchedState<Bool>

        func sourceList() async throws -> ListedSource<Thing> {
            _ = try await gate.wait { $0 ? true : nil }
            throw Broken()
        }
        func localInventory() async throws -> LocalInventory<Thing> { LocalInventory(versions: [1: 1]) }
        func downloadContent(of item: Thing) async throws {}
        func remove(_ keys: Set<Int>) async throws {}
    }
}

/// A transport that responds once a gate opens.
struct GatedTransport: Transport {
    let gate: WatchedState<Bool>

    func perform(_ request: HTTPRequest, limits: ExchangeLimits) async throws -> HTTPResponse {
        _ = try await gate.wait { $0 ? true : nil }
        let exchange = Exchange(limits: limits)
        exchange.receive(HTTPResponse(status: 200, url: request.url, body: Data("hello".utf8)))
        exchange.finish()
        return try await exchange.response()
    }
}

extension RemoteHost {
    /// A host with an immediate response to each request, and without retries.
    static var immediate: RemoteHost {
        RemoteHost("api.example.com", transport: GatedTransport(gate: WatchedState(true))).with { $0.retry = .never }
    }
}
