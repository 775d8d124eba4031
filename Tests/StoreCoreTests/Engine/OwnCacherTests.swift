import Testing
import Trials
import StoreCoreTesting
import StoreTrials

@testable import StoreCore

/// Tests calls of a store inside the calls of its own cacher, which would wait for themselves.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct OwnCacherTests {
    enum Call: CaseIterable, Sendable {
        case waitForAll, waitForKey, waitForScope, clear, clearScope, close
        case update, edit, mutate, clearKey, refresh, invalidate, requireData, getData

        /// Whether the call is about the whole store, so that it can only throw.
        var isWhole: Bool { [.waitForAll, .waitForKey, .waitForScope, .clear, .clearScope, .close].contains(self) }

        /// Makes the call for the key 1; returns its result in short.
        func make(_ store: Store<Int, Int>, _ scope: CacheScope) async -> String {
            do {
                switch self {
                case .waitForAll: try await store.waitUntilSaved()
                case .waitForKey: try await store[1].waitUntilSaved()
                case .waitForScope: try await scope.waitUntilSaved()
                case .clear: try await store.clear()
                case .clearScope: try await scope.clear()
                case .close: try await store.close()
                case .update: await store[1].update(7)
                case .edit: _ = await store[1].update { $0 = 7 }
                case .mutate: try await store[1].mutate(optimistically: { $0 = 7 }) {}
                case .clearKey: await store[1].clear()
                case .refresh: await store[1].refresh()
                case .invalidate: await store[1].invalidate()
                case .requireData: return "\(try await store[1].requireData())"
                case .getData: return "\(await store[1].getData() ?? 0)"
                }
                return "done"
            } catch let error as StoreError {
                return error.code.rawValue
            } catch {
                return "\(error)"
            }
        }
    }

    @Test(arguments: [GatedCacher<Int, Int>.Operation.load, .save, .remove, .removeAll], Call.allCases)
    func `C6: a call of a store inside a call of its own cacher never waits for itself`(
        _ place: GatedCacher<Int, Int>.Operation, _ call: Call
    ) async throws {
        let (cacher, scope) = (CallingCacher(), CacheScope())
        let store = Store(cacher: cacher, fetcher: ScriptedFetcher<Int, Int>.counting(), scope: scope)
        let result = WatchedState<String?>(nil)
        let late = WatchedState<String?>(nil)
        let mayWait = WatchedState(false)
        cacher.run(inside: place) {
            let made = await call.make(store, scope)
            result.update { $0 = made }
            // Outlives the call of the cacher, and may wait for everything after it.
            Task {
                try await mayWait.wait { $0 ? () : nil }
                var made = await Call.waitForAll.make(store, scope)
                // The call of the cacher may end later than the call that caused it.
                while made == "reentrantFetch" {
                    await Task.yield()
                    made = await Call.waitForAll.make(store, scope)
                }
                let end = made
                late.update { $0 = end }
            }
        }
        let outer = Task<Void, any Error> {
            switch place {
            case .load: _ = await store[1].getData()
            case .save: await store[1].update(5)
            case .remove: await store[1].clear()
            case .removeAll: try await store.clear()
            }
        }
        try await outer.value(of: "the call \(call) inside \(place) ends")
        let made = try await result.wait { $0 }
        let knowsContent = place == .save || place == .remove
        switch call {
        case _ where call.isWhole: #expect(made == "reentrantFetch")
        case .requireData: #expect(made == (place == .save ? "5" : place == .remove ? "1" : "reentrantFetch"))
        case .getData: #expect(made == (place == .save ? "5" : place == .remove ? "1" : "0"))
        case .mutate: #expect(made == (knowsContent ? "done" : "reentrantFetch"))
        default: #expect(made == "done")
        }
        // Outside, every call waits and works.
        mayWait.update { $0 = true }
        try await until("the late wait ends after \(call) inside \(place)") { late.current != nil }
        #expect(late.current == "done")
        guard call != .close else { return }
        if call == .update { #expect(cacher.base.record(of: 1)?.content == 7) }
        await store[1].update(9)
        #expect(cacher.base.record(of: 1)?.content == 9)
        try await store.clear()
        #expect(cacher.base.record(of: 1) == nil)
    }

    @Test func `C6: inside a call of its own cacher, a store waits for other keys`() async throws {
        let cacher = CallingCacher()
        let store = Store(cacher: cacher, fetcher: ScriptedFetcher<Int, Int>.counting())
        let found = WatchedState<[Int?]>([])
        cacher.run(inside: .save) {
            await store[2].update(8)
            let loaded = try? await store[3].requireData()
            try? await store[2].waitUntilSaved()
            found.update { $0 = [cacher.base.record(of: 2)?.content, loaded] }
        }
        await store[1].update(5)
        #expect(found.current == [8, 1])
    }

    @Test(arguments: [GatedCacher<Int, Int>.Operation.load, .save])
    func `C6: inside a call of its own cacher, a store waits for no key while a clearing waits for the call`(
        _ place: GatedCacher<Int, Int>.Operation
    ) async throws {
        let cacher = CallingCacher()
        let store = Store(cacher: cacher, fetcher: ScriptedFetcher<Int, Int>.counting())
        let made = WatchedState<[String]>([])
        cacher.run(inside: place) {
            // Begins the clearing, although it throws.
            let cleared = await Call.clear.make(store, CacheScope())
            await store[2].update(8)
            let loaded = await store[3].getData()
            let listing = await #expect(throws: StoreError.self) { try await store.invalidate { _ in false } }
            made.update { $0 = [cleared, "\(loaded ?? 0)", listing?.code.rawValue ?? "done"] }
        }
        if place == .load { _ = await store[1].getData() } else { await store[1].update(5) }
        try await until("the call has ended") { !made.current.isEmpty }
        #expect(made.current == ["reentrantFetch", "0", "reentrantFetch"])
        try await store.waitUntilSaved()
        #expect(cacher.base.record(of: 2)?.content == 8)
    }

    @Test func `C6: a wait inside a call of its own cacher ends when a clearing begins to wait for the call`() async throws {
        let (cacher, fetcher) = (CallingCacher(), ScriptedFetcher<Int, Int>.counting())
        fetcher.hold()
        let store = Store(cacher: cacher, fetcher: fetcher)
        let made = WatchedState<String?>(nil)
        cacher.run(inside: .load) {
            let refresh = Task { await store[2].refresh() }
            try? await fetcher.started(count: 1)
            // The clearing restarts the fetch. Its result cannot be saved before the cacher is empty.
            let cleared = await Call.clear.make(store, CacheScope())
            fetcher.release()
            await refresh.value
            made.update { $0 = cleared }
        }
        let reading = Task { await store[1].getData() }
        try await until("the refresh inside the call has ended") { made.current != nil }
        _ = await reading.value
        try await store.clear()
    }

    @Test func `C6: a wait for the saves of another key inside a call of its own cacher ends when a clearing begins`() async throws {
        let cacher = CallingCacher()
        let store = Store(cacher: cacher, fetcher: ScriptedFetcher<Int, Int>.counting())
        let made = WatchedState<String?>(nil)
        cacher.run(inside: .load) {
            cacher.base.hold(.save)
            let updates = [8, 9].map { content in Task { await store[2].update(content) } }
            // The first of them is being saved, and the second is dropped by the clearing.
            try? await until("the updates wait") { store.snapshot(of: 2)?.callers == 2 }
            let waiting = Task<String, Never> {
                let error = await #expect(throws: StoreError.self) { try await store[2].waitUntilSaved() }
                return error?.code.rawValue ?? "done"
            }
            try? await until("all three wait") { store.snapshot(of: 2)?.callers == 3 }
            _ = await Call.clear.make(store, CacheScope())
            cacher.base.release()
            let ended = await waiting.value
            for update in updates { await update.value }
            made.update { $0 = ended }
        }
        let reading = Task { await store[1].getData() }
        try await until("the wait inside the call has ended") { made.current != nil }
        #expect(made.current == "reentrantFetch")
        _ = await reading.value
        try await store.clear()
    }

    @Test func `C6: of two loads by its own cacher that would wait for each other, one does not wait`() async throws {
        let cacher = CallingCacher()
        let store = Store(cacher: cacher, fetcher: ScriptedFetcher<Int, Int>.counting())
        let found = WatchedState<[Int?]>([])
        cacher.run(inside: .load) {
            cacher.run(inside: .load) {
                let first = await store[1].getData()
                found.update { $0.append(first) }
            }
            let second = await store[2].getData()
            found.update { $0.append(second) }
        }
        let reading = Task { await store[1].getData() }
        try await until("both loads have ended") { found.current.count == 2 }
        #expect(found.current.count { $0 == nil } == 1)
        #expect(await reading.value != nil)
    }

    @Test func `C6: inside a call of its own cacher, a caller with a result keeps no other one from waiting`() async throws {
        let engine = Store(cacher: GatedCacher<Int, Int>(), fetcher: ScriptedFetcher<Int, Int>.counting()).engine
        let result = SharedResult<CallerResult<BoxedContent>>()
        // The key does not know it any longer, but its task has not continued yet.
        let caller = Task {
            await engine.calling(.write(BoxedKey(2))) {
                _ = await engine.valueInsideCall(result, engine.nextID(), BoxedKey(1), .allSaved)
            }
        }
        try await until("the caller is inside the call") { engine.state.withLock { !$0.insideCallers.isEmpty } }
        let waitsForItself = await engine.calling(.write(BoxedKey(1))) { engine.waitsForItself(BoxedKey(2)) }
        #expect(!waitsForItself)
        result.put(.done)
        await caller.value
    }

    @Test func `C6: a fetch in the context of a call of its own cacher does not wait for that call`() async throws {
        let (cacher, made) = (CallingCacher(), WatchedState<Store<Int, Int>?>(nil))
        let store = Store<Int, Int>(
            cacher: cacher,
            fetcher: ClosureFetcher { key in
                guard key == 2 else { return key }
                return await made.current?[1].getData() ?? 0
            }, policy: StorePolicy(fetchContext: .firstCaller))
        made.update { $0 = store }
        let found = WatchedState<Int?>(nil)
        cacher.run(inside: .load) {
            let content = await store[2].getData()
            found.update { $0 = content }
        }
        let reading = Task { await store[1].getData() }
        try await until("the call has ended") { found.current != nil }
        #expect(found.current == 0)
        #expect(await reading.value == 1)
        made.update { $0 = nil }
    }
}

/// A cacher that runs a closure once, inside one of its calls.
final class CallingCacher: Cacher {
    typealias Operation = GatedCacher<Int, Int>.Operation

    let base = GatedCacher<Int, Int>()
    private let work = Lock<(place: Operation, body: @Sendable () async -> Void)?>(nil)

    func run(inside place: Operation, _ body: @escaping @Sendable () async -> Void) { work.withLock { $0 = (place, body) } }

    private func reached(_ place: Operation) async {
        let body = work.withLock { work -> (@Sendable () async -> Void)? in
            guard work?.place == place else { return nil }
            defer { work = nil }
            return work?.body
        }
        await body?()
    }

    var expiry: Expiry { base.expiry }

    func load(param: Int) async throws -> CacheRecord<Int>? {
        await reached(.load)
        return try await base.load(param: param)
    }

    func save(_ record: CacheRecord<Int>, param: Int) async throws {
        await reached(.save)
        try await base.save(record, param: param)
    }

    func remove(param: Int) async throws {
        await reached(.remove)
        try await base.remove(param: param)
    }

    func removeAll() async throws {
        await reached(.removeAll)
        try await base.removeAll()
    }
}
