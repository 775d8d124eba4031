import Testing
import Trials
import StoreCoreTesting
import StoreTrials

@testable import StoreCore

/// Tests content that the origin returns for mutations, and the fetch that it saves.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct MutationResponseTests {
    struct Post: Identifiable, Hashable, Sendable {
        var id: Int
        var likes = 0
        var edition = 0
    }

    @Test(arguments: Backing.allCases)
    func `C14: content returned by a mutation is accepted and saved, and no fetch runs`(_ backing: Backing) async throws {
        let bench = Bench(backing)
        let observer = try await bench.observeUpdate(10)
        #expect(
            try await bench.store[1].mutate {
                $0 += 1
            } perform: {
                500
            } == 500)
        try await observer.next { $0.summary == "completed(500)" }
        #expect(try await bench.store[1].requireData() == 500)
        #expect(bench.fetcher.startedCount == 0)
        if backing != .memory { #expect(bench.cacher.record(of: 1)?.content == 500) }
        #expect(!observer.summary.contains("loading"))
    }

    @Test func `C14: consecutive mutations that return content cause no fetch, and overlapping ones cause one`() async throws {
        let bench = Bench()
        let observer = try await bench.observeUpdate(10)
        for number in 1...5 { try await bench.store[1].mutate(optimistically: { $0 += 1 }) { 10 + number } }
        #expect(bench.fetcher.startedCount == 0)
        let works = (0..<5).map { _ in HeldRequest<Int>() }
        let tasks = works.map { work in Task { try await bench.store[1].mutate(optimistically: { $0 += 1 }) { try await work.run() } } }
        for work in works { try await work.hasBegun() }
        try await observer.next { $0.content == 20 }
        for (number, work) in works.enumerated() {
            work.end(.success(16 + number))
            _ = try await tasks[number].value
        }
        try await observer.next { $0.summary == "completed(1)" }
        #expect(bench.fetcher.startedCount == 1)
    }

    enum Change: CaseIterable, Sendable { case update, clear, invalidate, mutation, refresh }

    @Test(arguments: Change.allCases)
    func `C14: a response older than a change is not accepted, and the key is fetched once`(_ change: Change) async throws {
        let bench = Bench(fetcher: ScriptedFetcher { _ in .success(1_000) })
        let observer = try await bench.observeUpdate(10)
        let work = HeldRequest<Int>()
        let task = Task { try await bench.store[1].mutate(optimistically: { $0 += 1 }) { try await work.run() } }
        try await work.hasBegun()
        switch change {
        case .update: await bench.store[1].update(20)
        case .clear: await bench.store[1].clear()
        case .invalidate: await bench.store[1].invalidate()
        case .mutation: try await bench.store[1].mutate(optimistically: { $0 += 100 }) {}
        case .refresh: await bench.store[1].refresh()
        }
        try await until("no fetch runs") { bench.store.runningFetches == 0 }
        let before = bench.fetcher.startedCount
        work.end(.success(500))
        _ = try await task.value
        try await observer.next { $0.summary == "completed(1000)" }
        try await until("no fetch runs") { bench.store.runningFetches == 0 }
        #expect(bench.fetcher.startedCount == before + 1)
        #expect(!observer.states.contains { $0.content == 500 })
    }

    @Test(arguments: [true, false])
    func `C14: the policy can turn off the fetch after the last mutation`(_ succeeds: Bool) async throws {
        let bench = Bench(policy: StorePolicy(revalidatesAfterMutation: false))
        let observer = try await bench.observeUpdate(10)
        _ = try? await bench.store[1].mutate(optimistically: { $0 += 1 }) { if !succeeds { throw Offline() } }
        try await observer.next { $0.summary == (succeeds ? "completed(11)" : "completed(10)") }
        #expect(try await bench.store[1].requireData() == (succeeds ? 11 : 10))
        #expect(bench.fetcher.startedCount == 0)
    }

    @Test func `C14: a fetch dropped by a mutation is repeated, even if the policy turns off fetches after mutations`() async throws {
        let bench = Bench(policy: StorePolicy(revalidatesAfterMutation: false))
        let observer = try await bench.observeUpdate(10)
        bench.fetcher.hold()
        await bench.store[1].invalidate()
        try await bench.fetcher.started(count: 1)
        try await bench.store[1].mutate(optimistically: { $0 += 1 }) {}
        try await bench.fetcher.started(count: 2)
        bench.fetcher.release()
        try await observer.next { $0.isCompleted && $0.content != 11 && $0.content != 10 }
    }

    // MARK: Elements

    private func posts(_ pages: Int, fetcher: ScriptedPaginationFetcher<Int, Post>) async throws -> (
        PaginationStore<Int, Post>, RecordingObserver<[Post]>
    ) {
        let lists = PaginationStore(cacher: MemoryCacher<Int, [Post]>(), fetcher: fetcher)
        let observer = try await observeCompleted(lists[1].publish())
        for _ in 1..<pages { #expect(await lists[1].requestNextData() == .loaded) }
        try await observer.wait { $0.last?.content?.count == pages * 10 }
        return (lists, observer)
    }

    private func fetcher() -> ScriptedPaginationFetcher<Int, Post> {
        ScriptedPaginationFetcher { request in
            let page = Int(request.pageKey ?? "0") ?? 0
            return .page((0..<10).map { Post(id: page * 10 + $0) }, nextKey: "\(page + 1)")
        }
    }

    @Test func `C13, C14: mutating an element of the fifth page keeps all pages and needs no fetch`() async throws {
        let fetcher = fetcher()
        let (lists, observer) = try await posts(5, fetcher: fetcher)
        let before = observer.states.count
        for number in 1...5 {
            try await lists[1].mutate(element: 44, optimistically: { $0.likes += 1 }) { Post(id: 44, likes: number, edition: 1) }
        }
        try await observer.next { $0.content?.contains(Post(id: 44, likes: 5, edition: 1)) == true }
        #expect(observer.states.dropFirst(before).allSatisfy { $0.isCompleted && $0.content?.count == 50 })
        #expect(fetcher.startedCount == 5)
        #expect(await lists[1].requestNextData() == .loaded)
        #expect(fetcher.requests.last?.pageKey == "5")
    }

    @Test func `C14: an element is accepted after a page was added meanwhile, a whole list is not`() async throws {
        for whole in [false, true] {
            let fetcher = fetcher()
            let (lists, observer) = try await posts(1, fetcher: fetcher)
            let work = HeldRequest<Void>()
            let task = Task {
                if whole {
                    _ = try await lists[1].mutate { _ in
                    } perform: { () -> [Post] in
                        try await work.run()
                        return [Post(id: 3, edition: 1)]
                    }
                } else {
                    _ = try await lists[1].mutate(element: 3) { _ in
                    } perform: { () -> Post in
                        try await work.run()
                        return Post(id: 3, edition: 1)
                    }
                }
            }
            try await work.hasBegun()
            #expect(await lists[1].requestNextData() == .loaded)
            work.end(.success(()))
            try await task.value
            if whole { try await fetcher.started(count: 4) }
            try await until("no fetch runs") { lists.lists.runningFetches == 0 }
            let list = try await lists[1].requireData()
            #expect(list.count == 20 && list[3].edition == (whole ? 0 : 1))
            #expect(fetcher.startedCount == (whole ? 4 : 2))
            withExtendedLifetime(observer) {}
        }
    }

    @Test func `C14: mutating an element has no effect on a list without it`() async throws {
        let list = PaginationStore(cacher: MemoryCacher<Int, [Post]>(), fetcher: fetcher())[1]
        await list.update((0..<50).map { Post(id: $0) })
        let work = HeldRequest<Post>()
        let task = Task { try await list.mutate(element: 44, optimistically: { $0.likes += 1 }) { try await work.run() } }
        try await work.hasBegun()
        #expect(try await list.requireData()[44].likes == 1)
        await list.update([Post(id: 1)])
        #expect(try await list.requireData() == [Post(id: 1)])
        work.end(.success(Post(id: 44, likes: 9)))
        _ = try await task.value
        #expect(try await list.requireData() == [Post(id: 1)])
        // A plain store of a list behaves in the same way.
        let plain = Store(cacher: MemoryCacher<Int, [Post]>()) { _ in [] }
        await plain[1].update([Post(id: 1)])
        try await plain[1].mutate(element: 2, optimistically: { $0.likes += 1 }) {}
        #expect(try await plain[1].requireData() == [Post(id: 1)])
        try await plain[1].mutate(element: 1, optimistically: { $0.likes += 1 }) {}
        #expect(try await plain[1].requireData() == [Post(id: 1, likes: 1)])
    }

    @Test func `C14: a response that overtakes that of an earlier mutation keeps the order of the changes`() async throws {
        let post = Store(cacher: MemoryCacher<Int, Post>()) { Post(id: $0) }[1]
        await post.update(Post(id: 1))
        let works = [HeldRequest<Post>(), HeldRequest<Post>()]
        var tasks: [Task<Post, any Error>] = []
        for (number, work) in works.enumerated() {
            tasks.append(
                Task {
                    try await post.mutate {
                        $0.likes += 1
                        $0.edition = number
                    } perform: {
                        try await work.run()
                    }
                })
            try await work.hasBegun()
        }
        for (number, likes) in [(1, 2), (0, 1)] {
            works[number].end(.success(Post(id: 1, likes: likes, edition: number)))
            _ = try await tasks[number].value
            #expect(try await post.requireData() == Post(id: 1, likes: 2, edition: 1))
        }
    }

    @Test func `C14: an element accepted beneath a pending mutation does not apply a confirmed change twice`() async throws {
        let list = Store(cacher: MemoryCacher<Int, [Post]>()) { _ in [] }[1]
        await list.update([Post(id: 1), Post(id: 2)])
        let work = HeldRequest<Void>()
        let slow = Task { try await list.mutate(element: 2, optimistically: { $0.likes += 1 }) { try await work.run() } }
        try await work.hasBegun()
        try await list.mutate(element: 1, optimistically: { $0.likes += 1 }) {}
        try await list.mutate(element: 1, optimistically: { $0.likes += 1 }) { Post(id: 1, likes: 2) }
        #expect(try await list.requireData()[0].likes == 2)
        work.end(.success(()))
        try await slow.value
        #expect(try await list.requireData()[0].likes == 2)
    }
}
