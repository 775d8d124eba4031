import StoreCore
import StoreCoreTesting
import StoreTrials
import Testing
import Trials

/// Tests fetchers that wait for their own result, directly or through other keys and stores.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct ReentrantFetchTests {
    /// Stores by name, for use in fetchers.
    final class World: Sendable {
        private let stores = WatchedState<[String: Store<Int, Int>]>([:])
        subscript(_ name: String) -> Store<Int, Int>? { stores.current[name] }

        func add(
            _ name: String, policy: StorePolicy = .default, reports: EventLog? = nil,
            _ fetch: @escaping @Sendable (World, Int) async throws -> Int
        ) -> Store<Int, Int> {
            let store = Store<Int, Int>(cacher: MemoryCacher(), policy: policy, onEvent: reports?.append) { [weak self] key in
                guard let self else { throw Offline() }
                return try await fetch(self, key)
            }
            stores.update { $0[name] = store }
            return store
        }
    }

    /// Waits for a task's result, and fails if the task hangs.
    private func end(_ task: Task<Int, any Error>, _ name: String) async throws -> String {
        do {
            return "\(try await task.value(of: "\(name) ends"))"
        } catch let error as StoreError {
            return error.code.rawValue
        }
    }

    enum Wait: CaseIterable, Sendable { case both, origin, get, refresh, validate, observe, child, unstructured }

    private static func wait(_ wait: Wait, _ handle: StoreFlowable<Int, Int>) async throws -> Int {
        switch wait {
        case .both: return try await handle.requireData()
        case .origin: return try await handle.requireData(from: .origin)
        case .get: return await handle.getData() ?? -1
        case .refresh:
            await handle.refresh()
            return -2
        case .validate:
            await handle.validate()
            return -3
        case .observe:
            for await state in handle.publish() where state.isCompleted { return 1 }
            return -4
        case .child:
            async let content = handle.requireData()
            return try await content
        case .unstructured: return try await Task { try await handle.requireData() }.value
        }
    }

    private static func outcome(_ wait: Wait) -> String {
        switch wait {
        case .both, .origin, .child, .unstructured: "reentrantFetch"
        case .get: "-1"
        case .refresh: "-2"
        case .validate: "-3"
        case .observe: "-4"
        }
    }

    @Test(arguments: Wait.allCases)
    func `C1: a fetcher that waits for its own key gets an error`(_ wait: Wait) async throws {
        let world = World()
        let store = world.add("a") { world, key in
            guard let store = world["a"] else { return 0 }
            return try await Self.wait(wait, store[key])
        }
        #expect(try await end(Task { try await store[1].requireData() }, "the caller") == Self.outcome(wait))
        try await until("the engine is idle") { store.engineIsIdle }
    }

    @Test(arguments: Wait.allCases)
    func `C1: fetchers of two stores that wait for each other get an error`(_ wait: Wait) async throws {
        let world = World()
        let first = world.add("a") { world, key in try await world["b"]?[key].requireData() ?? 0 }
        _ = world.add("b") { world, key in
            guard let store = world["a"] else { return 0 }
            return try await Self.wait(wait, store[key])
        }
        // The wait that comes second gets the error: usually that of the second fetcher, and seldom that of the first.
        let outcome = try await end(Task { try await first[1].requireData() }, "the caller")
        #expect(outcome == Self.outcome(wait) || outcome == "reentrantFetch")
    }

    @Test func `C1: a cycle of three keys started by three callers is detected`() async throws {
        let world = World()
        let arrived = WatchedState(0)
        let store = world.add("a") { world, key in
            arrived.update { $0 += 1 }
            try await arrived.wait { $0 == 3 ? () : nil }
            return try await world["a"]?[(key + 1) % 3].requireData() ?? 0
        }
        let callers = (0..<3).map { key in Task { try await store[key].requireData() } }
        for caller in callers { #expect(try await end(caller, "a caller") == "reentrantFetch") }
    }

    @Test func `C1: the error of a cycle names the key and is not retried`() async throws {
        let world = World()
        let events = EventLog()
        let policy = StorePolicy(retry: .exponential(attempts: 5))
        let store = world.add("a", policy: policy, reports: events) { world, key in try await world["a"]?[key].requireData() ?? 0 }
        let caller = Task { try await store[42].requireData() }
        #expect(try await end(caller, "the caller") == "reentrantFetch")
        guard case .failure(let error) = await caller.result else { return }
        #expect("\(error)".contains("key 42"))
        #expect(!events.names.contains("retried"))
    }

    @Test func `C1: a fetcher may require other keys, or valid content of its own key`() async throws {
        let world = World()
        let store = world.add("a") { world, key in
            guard key > 0, let store = world["a"] else { return 100 }
            // One fetch waits for several keys, and two fetches wait for one key.
            async let one = store[0].requireData()
            async let other = store[key - 1].requireData()
            return try await one + other
        }
        #expect(try await store[5].requireData() == 600)
        let again = world.add("b") { world, key in (await world["b"]?[key].getData(from: .cache) ?? 0) + 1 }
        #expect(try await again[1].requireData() == 1)
        #expect(try await again[1].requireData(from: .origin) == 2)
    }

    @Test func `C1: a task that outlives the fetch that created it waits normally`() async throws {
        let world = World()
        let late = WatchedState<Task<Int, any Error>?>(nil)
        let gate = WatchedState(false)
        let count = WatchedState(0)
        let store = world.add("a") { world, key in
            let number = count.increment()
            if number == 1, let store = world["a"] {
                late.update {
                    $0 = Task {
                        try await gate.wait { $0 ? () : nil }
                        return try await store[key].requireData(from: .origin)
                    }
                }
            }
            return number
        }
        #expect(try await store[1].requireData() == 1)
        gate.update { $0 = true }
        guard let task = late.current else { return }
        #expect(try await end(task, "the late task") == "2")
    }

    @Test(arguments: PageDirection.allCases)
    func `C13: a page request inside the fetch of its list fails`(_ direction: PageDirection) async throws {
        let stores = WatchedState<PaginationStore<Int, Int>?>(nil)
        let outcome = WatchedState<String?>(nil)
        let store = PaginationStore<Int, Int>(
            cacher: MemoryCacher(),
            fetcher: PaginationClosureFetcher { key, _ in
                guard let list = stores.current?[key] else { return Page([]) }
                let request = await direction == .next ? list.requestNextData() : list.requestPrevData()
                outcome.update { $0 = request.word }
                return Page([1])
            })
        stores.update { $0 = store }
        defer { stores.update { $0 = nil } }
        let caller = Task { try await store[1].requireData().count }
        #expect(try await end(caller, "the caller") == "1")
        #expect(outcome.current == "failed")
    }

    @Test func `C1: an observer created by an ended fetch does not make another fetch fail`() async throws {
        let world = ReentrantFetchTests.World()
        let watching = WatchedState(0)
        let a = world.add("a") { world, key in
            let b = world["b"]
            Task {
                guard let b else { return }
                for await state in b[key].publish() where state.isCompleted { watching.update { $0 += 1 } }
            }
            try await watching.wait { $0 >= 1 ? () : nil }
            return 1
        }
        let calls = WatchedState(0)
        let b = world.add("b") { world, key in
            let n = calls.increment()
            guard n > 1, let a = world["a"] else { return 0 }
            return try await a[key].requireData(from: .origin) + n
        }
        let observer = RecordingObserver(a[1].publish())
        try await observer.next { $0.isCompleted }
        #expect(try await b[1].requireData(from: .origin) == 3)
    }

    @Test func `C1: a call by a task that outlives its fetch does not make another fetch fail`() async throws {
        let world = ReentrantFetchTests.World()
        let (began, gate) = (WatchedState(false), WatchedState(false))
        let a = world.add("a") { world, key in
            if let b = world["b"], !began.current { Task { try await b[key].requireData() } }
            try await began.wait { $0 ? () : nil }
            return 1
        }
        let b = world.add("b") { world, key in
            began.update { $0 = true }
            try await gate.wait { $0 ? () : nil }
            return try await world["a"]?[key].requireData(from: .origin) ?? 0
        }
        let observer = RecordingObserver(a[1].publish())
        try await observer.next { $0.isCompleted }
        let caller = Task { try await b[1].requireData() }
        gate.update { $0 = true }
        #expect(try await caller.value == 1)
    }

    @Test func `C1: a page fetch that refreshes its own list gets an error`() async throws {
        let stores = WatchedState<PaginationStore<Int, Int>?>(nil)
        let count = WatchedState(0)
        let store = PaginationStore<Int, Int>(
            cacher: MemoryCacher(),
            fetcher: ScriptedPaginationFetcher { request in
                if count.increment() > 50 { throw Offline() }
                if request.pageKey != nil, let list = stores.current?[1] {
                    _ = try await list.requireData(from: .origin)
                    return .page([2])
                }
                return .page([1], nextKey: "b")
            })
        stores.update { $0 = store }
        defer { stores.update { $0 = nil } }
        let observer = RecordingObserver(store[1].publish())
        try await observer.next { $0.isCompleted }
        let request = await store[1].requestNextData()
        #expect("\(request)".contains("reentrantFetch"))
        #expect(count.current <= 3)
    }

    @Test func `C1: a thousand fetchers that require shared keys in diamonds succeed`() async throws {
        let world = ReentrantFetchTests.World()
        let store = world.add("a") { world, key in
            guard let store = world["a"] else { return 0 }
            if key == 0 {
                // Yields so that the other fetchers arrive first and wait for this one.
                for _ in 0..<1_000 { await Task.yield() }
                return 1
            }
            return try await withThrowingTaskGroup(of: Int.self) { group in
                for need in [0, key - 1, key / 2] where need < key { group.addTask { try await store[need].requireData() } }
                return try await group.reduce(0, +) % 1_000
            }
        }
        let results = await withTaskGroup(of: Bool.self) { group in
            for key in (1...1_000).shuffled() { group.addTask { (try? await store[key].requireData()) != nil } }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(results == 1_000)
        // Refreshes all keys at once while they are valid.
        let again = await withTaskGroup(of: Bool.self) { group in
            for key in (1...1_000).shuffled() { group.addTask { (try? await store[key].requireData(from: .origin)) != nil } }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(again == 1_000)
    }
}
