internal import Foundation
internal import StoreCore
import StoreCoreTesting
internal import Testing

struct RefreshingAndExpiringTests {
    let time = ManualTime()
    let fetcher = ScriptedFetcher<Int, String> { .success("Ada, \($0.number)") }

    private func store(_ policy: StorePolicy = .default, expiry: Expiry = .after(.seconds(60))) -> Store<Int, String> {
        Store(cacher: MemoryCacher(expiry: expiry), fetcher: fetcher, policy: policy, time: time)
    }

    /// A store with expired content whose next fetch fails.
    private func expiredStore(_ policy: StorePolicy = .default) async throws -> Store<Int, String> {
        let users = store(policy)
        _ = try await users[1].requireData()
        time.advance(by: .seconds(60))
        fetcher.enqueue(.failure(Offline()))
        return users
    }

    // MARK: The table of calls

    @Test func `valid content is served without a fetch`() async throws {
        let users = store()
        _ = try await users[1].requireData()
        let recorder = RecordingObserver(users[1].publish())
        #expect(try await recorder.states(count: 1) == [.completed("Ada, 1")])
        //: RefreshingAndExpiring.md: await users[1]
        #expect(try await users[1].requireData(from: .cache) == "Ada, 1")
        #expect(fetcher.startedCount == 1)
        await users[1].refresh()
        #expect(try await users[1].requireData(from: .origin) == "Ada, 3")
        #expect(fetcher.startedCount == 3)
    }

    @Test func `expired content is fetched by the next caller, not by itself`() async throws {
        let users = store()
        let recorder = RecordingObserver(users[1].publish())
        try await recorder.next { $0.isCompleted }
        time.advance(by: .seconds(61))
        #expect(recorder.states.last == .completed("Ada, 1"))
        let error = await #expect(throws: StoreError.self) { try await users[1].requireData(from: .cache) }
        #expect(error?.code == .noValidCache)
        #expect(error?.staleContent as? String == "Ada, 1")
        #expect(fetcher.startedCount == 1)
        #expect(try await users[1].requireData() == "Ada, 2")
    }

    @Test func `a failed refresh of valid content throws only for the origin`() async throws {
        let users = store()
        _ = try await users[1].requireData()
        let recorder = RecordingObserver(users[1].publish())
        try await recorder.next { $0.isCompleted }
        fetcher.enqueue(.failure(Offline()), .failure(Offline()))
        await users[1].refresh()
        try await recorder.next { $0.error != nil && $0.content == "Ada, 1" }
        #expect(try await users[1].requireData() == "Ada, 1")
        await #expect(throws: Offline.self) { try await users[1].requireData(from: .origin) }
    }

    @Test func `a new observer retries a failed fetch`() async throws {
        let users = store()
        fetcher.enqueue(.failure(Offline()))
        let recorder = RecordingObserver(users[1].publish())
        try await recorder.next { $0.error != nil }
        let second = RecordingObserver(users[1].publish())
        try await second.next { $0.isCompleted }
        try await recorder.next { $0.isCompleted }
    }

    // MARK: The two stale windows

    @Test func `a store takes a policy`() async throws {
        let api = UserAPI()

        //: RefreshingAndExpiring.md: policy.staleWhileRevalidate

        #expect(try await users[1].requireData().name == "Ada")
    }

    @Test func `expired content is served during a refresh within its window`() async throws {
        var policy = StorePolicy()
        policy.staleWhileRevalidate = .seconds(30)
        let users = store(policy)
        _ = try await users[1].requireData()
        time.advance(by: .seconds(89))
        #expect(try await users[1].requireData() == "Ada, 1")
        try await fetcher.ended(count: 2)
        #expect(try await users[1].requireData(from: .origin) != "Ada, 1")
        time.advance(by: .seconds(91))
        #expect(try await users[1].requireData() == "Ada, \(fetcher.startedCount)")
    }

    @Test func `expired content is served while a fetch is slow`() async throws {
        //: RefreshingAndExpiring.md: policy.staleAfter

        let users = try await expiredStore(policy)
        fetcher.hold()
        async let name = users[1].requireData()
        try await fetcher.started(count: 2)
        try await time.sleepers(atLeast: 1)
        time.advance(by: .milliseconds(500))
        #expect(try await name == "Ada, 1")
        fetcher.release()
        try await fetcher.ended(count: 2)
    }

    @Test func `expired content is served after a failure within its window`() async throws {
        //: RefreshingAndExpiring.md: policy.staleIfError

        let users = try await expiredStore(policy)
        #expect(try await users[1].requireData() == "Ada, 1")
        fetcher.enqueue(.failure(Offline()))
        await #expect(throws: Offline.self) { try await users[1].requireData(from: .origin) }
        fetcher.enqueue(.failure(AccessError()))
        await #expect(throws: AccessError.self) { try await users[1].requireData() }
        await users[1].invalidate()
        fetcher.enqueue(.failure(Offline()))
        await #expect(throws: Offline.self) { try await users[1].requireData() }
    }

    @Test func `must-revalidate closes both windows, and observers still see the content`() async throws {
        var policy = StorePolicy()
        policy.staleWhileRevalidate = .seconds(3600)
        policy.staleIfError = .seconds(3600)
        let users = store(policy)
        fetcher.enqueue(.success("Ada", freshness: Freshness(lifetime: .seconds(10), mustRevalidate: true)), .failure(Offline()))
        _ = try await users[1].requireData()
        time.advance(by: .seconds(10))
        await #expect(throws: Offline.self) { try await users[1].requireData() }
        fetcher.hold()
        let recorder = RecordingObserver(users[1].publish())
        #expect(try await recorder.states(count: 1) == [.loading(content: "Ada")])
    }

    // MARK: Expiry while observed

    @Test func `an observed key is fetched when its content expires`() async throws {
        //: RefreshingAndExpiring.md: policy.revalidatesOnExpiry

        let users = store(policy)
        let recorder = RecordingObserver(users[1].publish())
        try await recorder.next { $0 == .completed("Ada, 1") }
        try await time.sleepers(atLeast: 1)
        time.advance(by: .seconds(60))
        try await recorder.next { $0 == .completed("Ada, 2") }
    }

    @Test func `content that is expired on arrival is not fetched again by itself`() async throws {
        var policy = StorePolicy()
        policy.revalidatesOnExpiry = true
        let users = store(policy, expiry: .after(.zero))
        let recorder = RecordingObserver(users[1].publish())
        try await recorder.next { $0.isCompleted }
        #expect(time.sleeperCount == 0)
    }

    // MARK: Triggers

    @Test func `a trigger fetches observed keys, valid or not`() async throws {
        let users = store()
        let (networkIsBack, network) = AsyncStream.makeStream(of: Void.self)

        //: RefreshingAndExpiring.md: let trigger = users

        _ = try await users[2].requireData()
        let recorder = RecordingObserver(users[1].publish())
        try await recorder.next { $0.isCompleted }
        // The minimum interval has passed.
        time.advance(by: .seconds(1))
        network.yield()
        try await recorder.next { $0 == .completed("Ada, 3") }
        // An early element waits for the interval.
        network.yield()
        try await time.sleepers(atLeast: 1)
        #expect(fetcher.startedCount == 3)
        time.advance(by: .seconds(1))
        try await recorder.next { $0 == .completed("Ada, 4") }

        //: RefreshingAndExpiring.md: trigger.cancel
    }

    // MARK: Many keys, and fetchers that use stores

    @Test func `prefetch can be canceled`() async throws {
        let users = store()
        let ids = 1...100
        fetcher.hold()

        //: RefreshingAndExpiring.md: let prefetching
        try await fetcher.started(count: StorePolicy.default.prefetchWidth)

        //: RefreshingAndExpiring.md: prefetching.cancel

        fetcher.release()
        #expect(try await users[1].requireData().hasPrefix("Ada"))
        #expect(fetcher.startedCount == 8)
    }

    @Test func `a policy limits the fetches that run at once`() async throws {
        //: RefreshingAndExpiring.md: policy.fetchWidth

        policy.prefetchWidth = 100
        let users = Store(cacher: MemoryCacher<Int, String>(), fetcher: fetcher, policy: policy, time: time)
        fetcher.hold()
        users.prefetch(1...100)
        try await fetcher.started(count: 32)
        let last = Task { try await users[100].requireData() }
        try await time.sleepers(atLeast: 32)
        #expect(fetcher.startedCount == 32)
        fetcher.release()
        #expect(try await last.value.hasPrefix("Ada"))
    }

    @Test func `a retry button clears the error`() async throws {
        let users = store()
        let recorder = RecordingObserver(users[1].publish())
        try await recorder.next { $0.isCompleted }
        fetcher.enqueue(.failure(Offline()))
        await users[1].refresh()
        try await recorder.next { $0.error != nil }

        await users[1].validate()

        try await recorder.next { $0 == .completed("Ada, 3") }
    }

    // MARK: Failures

    @Test func `a failed fetch is retried with delays`() async throws {
        //: RefreshingAndExpiring.md: policy.retry

        let users = store(policy)
        fetcher.enqueue(.failure(Offline()), .failure(Offline()))
        let recorder = RecordingObserver(users[1].publish())
        for _ in 1...2 {
            try await time.sleepers(atLeast: 1)
            #expect(recorder.states.allSatisfy { $0.isLoading })
            time.advanceToNextDeadline()
            try await time.sleepers(atMost: 0)
        }
        try await recorder.next { $0 == .completed("Ada, 3") }
    }

    @Test func `a retry follows the advice of the error`() async throws {
        var policy = StorePolicy()
        policy.retry = .exponential()
        let users = store(policy)
        fetcher.enqueue(.failure(APIError(status: 404)))
        await #expect(throws: APIError.self) { try await users[1].requireData() }
        #expect(fetcher.startedCount == 1)
        fetcher.enqueue(.failure(APIError(status: 503, retryAfter: .seconds(120))))
        async let user = users[1].requireData()
        try await time.sleepers(atLeast: 1)
        #expect(time.nextDeadline == time.now.advanced(by: .seconds(120)))
        time.advanceToNextDeadline()
        #expect(try await user == "Ada, 3")
    }

    @Test func `a failure holds off automatic fetches`() async throws {
        //: RefreshingAndExpiring.md: policy.errorExpiry

        let users = store(policy)
        fetcher.enqueue(.failure(Offline()))
        let recorder = RecordingObserver(users[1].publish())
        try await recorder.next { $0.error != nil }
        await #expect(throws: Offline.self) { try await users[1].requireData() }
        await users[1].validate()
        let second = RecordingObserver(users[1].publish())
        try await second.next { $0.error != nil }
        #expect(fetcher.startedCount == 1)
        await users[1].refresh()
        #expect(fetcher.startedCount == 2)
    }

    @Test func `an idle key forgets its failure`() async throws {
        var policy = StorePolicy()
        policy.errorExpiry = .seconds(30)
        let users = store(policy)
        fetcher.enqueue(.failure(Offline()))
        await #expect(throws: Offline.self) { try await users[1].requireData() }
        #expect(try await users[1].requireData() == "Ada, 2")
    }

    // MARK: Validators

    @Test func `a confirmed version is kept and dated anew`() async throws {
        let api = VersionedAPI()
        let users = Store(
            cacher: MemoryCacher<User.ID, User>(expiry: .after(.seconds(60))), fetcher: CheckedUserFetcher(api: api), time: time)
        _ = try await users[1].requireData()
        time.advance(by: .seconds(60))
        _ = try await users[1].requireData()
        #expect(await api.statuses == [200, 304])
        #expect(try await users[1].requireData(from: .cache).name == "Ada")
        // The validator does not name the changed content.
        await users[1].update { $0.name = "Ada Lovelace" }
        await users[1].refresh()
        #expect(await api.statuses == [200, 304, 200])
    }

    @Test func `content that must not be stored is gone when its key is idle`() async throws {
        let memory = MemoryCacher<Int, String>()
        let users = Store(cacher: memory, fetcher: fetcher, time: time)
        fetcher.enqueue(.success("secret", freshness: Freshness(storage: .forbidden)))
        #expect(try await users[1].requireData() == "secret")
        #expect(memory.count == 0)
        #expect(try await users[1].requireData() == "Ada, 2")
    }

    // MARK: Unwanted fetches

    @Test func `a fetch without callers and observers is canceled after the grace period`() async throws {
        let users = store()
        fetcher.hold()
        let caller = Task { try await users[1].requireData() }
        try await fetcher.started(count: 1)
        caller.cancel()
        await #expect(throws: CancellationError.self) { try await caller.value }
        try await time.sleepers(atLeast: 1)
        #expect(fetcher.cancelledCount == 0)
        time.advance(by: .seconds(1))
        try await fetcher.cancelled(count: 1)
    }

    @Test func `a fetch without callers runs to its end by policy`() async throws {
        //: RefreshingAndExpiring.md: policy.unwantedFetch

        let users = store(policy)
        fetcher.hold()
        let caller = Task { try await users[1].requireData() }
        try await fetcher.started(count: 1)
        caller.cancel()
        await #expect(throws: CancellationError.self) { try await caller.value }
        fetcher.release()
        try await fetcher.ended(count: 1)
        #expect(try await users[1].requireData() == "Ada, 1")
    }
}

//: RefreshingAndExpiring.md: struct APIError

//: RefreshingAndExpiring.md: struct AccessError

//: RefreshingAndExpiring.md: struct CheckedUserFetcher

/// An API with conditional requests.
actor VersionedAPI {
    struct Response {
        var user: User?
        var maxAge = Duration.seconds(60)
        var entityTag: String?
    }

    private(set) var statuses: [Int] = []

    func user(_ id: Int, ifNoneMatch tag: String?) throws -> Response {
        statuses.append(tag == "\"1\"" ? 304 : 200)
        return Response(user: tag == "\"1\"" ? nil : User(id: id, name: "Ada"), entityTag: "\"1\"")
    }
}
