internal import Foundation
internal import StoreCore
import StoreCoreTesting
internal import Testing

@Suite struct UserRefreshTests {
    let time = ManualTime()
    let fetcher = ScriptedFetcher<Int, String>()
    let users: Store<Int, String>

    init() {
        var policy = StorePolicy()
        policy.revalidatesOnExpiry = true
        users = Store(
            cacher: MemoryCacher(expiry: .after(.seconds(60))),
            fetcher: fetcher, policy: policy, time: time)
    }

    @Test func `an expired user stays on screen during the next fetch`()
        async throws
    {
        fetcher.hold()
        let recorder = RecordingObserver(users[1].publish())
        try await recorder.next { $0.isLoading }
        try await fetcher.answerNext(with: .success("Ada"))
        try await recorder.next { $0 == .completed("Ada") }

        try await time.sleepers(atLeast: 1)
        time.advance(by: .seconds(60))
        try await recorder.next { $0 == .loading(content: "Ada") }
        try await fetcher.answerNext(with: .success("Grace"))
        try await recorder.next { $0 == .completed("Grace") }

        let summary =
            "loading(nil) completed(Ada) loading(Ada) completed(Grace)"
        #expect(recorder.summary == summary)
        #expect(fetcher.requests.map(\.param) == [1, 1])
    }
}

extension UserRefreshTests {
    @Test func `a failure keeps the old user`() async throws {
        fetcher.enqueue(
            .success("Ada"), .failure(URLError(.notConnectedToInternet)))
        let recorder = RecordingObserver(users[1].publish())
        try await recorder.next { $0.isCompleted }
        await users[1].refresh()
        let failed = try await recorder.next { $0.error != nil }
        #expect(failed.content == "Ada")
    }

    @Test func `a thousand callers make one fetch`() async throws {
        let events = EventRecorder<Int>()
        let users = Store(
            cacher: MemoryCacher<Int, String>(), fetcher: fetcher,
            onEvent: events.record)
        fetcher.hold()
        let callers = (1...1_000).map { _ in
            Task { try await users[1].requireData() }
        }
        try await events.joined(count: 999)
        try await fetcher.answerNext(with: .success("Ada"))
        for caller in callers { #expect(try await caller.value == "Ada") }
        #expect(fetcher.startedCount == 1)
    }

    @Test func `retries wait as long as the policy says`() async throws {
        var policy = StorePolicy()
        policy.retry = .exponential(attempts: 2, base: .seconds(1))
        let users = Store(cacher: MemoryCacher<Int, String>(), fetcher: fetcher, policy: policy, time: time)
        fetcher.enqueue(.failure(URLError(.timedOut)), .success("Ada"))

        async let user = users[1].requireData()
        try await time.sleepers(atLeast: 1)
        let wait = time.now.duration(to: try #require(time.nextDeadline))
        #expect(wait <= .seconds(1))
        time.advanceToNextDeadline()
        #expect(try await user == "Ada")
    }
}

@Suite struct ModelTests {
    let fetcher = ScriptedFetcher<Int, String>()
    let users: Store<Int, String>

    init() {
        users = Store(cacher: MemoryCacher(), fetcher: fetcher)
    }

    @MainActor
    @Test func `a screen shows the new name of a user`() async throws {
        fetcher.enqueue(.success("Ada"))
        let model = Observed<String>()
        let following = Task { await model.follow(users[1]) }
        try await model.shows { $0 == "Ada" }

        await users[1].update("Grace")
        try await model.shows { $0 == "Grace" }
        following.cancel()
    }

    @Test func `the cacher of the database keeps the contract`() async throws {
        let database = Database()
        try await CacherContract.check(keys: [1, 2, 30], contents: ["", "Ada"]) {
            DatabaseCacher<String>(database: database)
        }
    }
}

@Suite struct GreetingTests {
    @Test func `a greeting follows its user`() async throws {
        let states = ManualStates<User>(.loading(content: nil))
        let greeting = await Greeting(states.sequence)
        let following = Task { await greeting.follow() }
        try await states.taken(by: 1)
        #expect(await greeting.text == "…")

        states.send(.completed(User(id: 1, name: "Ada")))
        try await states.taken(by: 1)
        #expect(await greeting.text == "Hello, Ada")

        following.cancel()
        try await states.observers(count: 0)
    }
}

@MainActor
final class Greeting {
    private(set) var text = ""
    private let states: LoadingStateSequence<User>

    init(_ states: LoadingStateSequence<User>) { self.states = states }

    func follow() async {
        for await state in states {
            text = state.content.map { "Hello, \($0.name)" } ?? "…"
        }
    }
}
