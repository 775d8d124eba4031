internal import StoreCore
internal import Synchronization
internal import Testing

/// The price of an article.
struct Price: Hashable, Sendable {
    var cents: Int
}

/// The upstream of the example.
struct PriceService: Sendable {
    let script: ScriptedFetcher<String, Price>

    func price(of article: String) async throws -> Price {
        guard case .modified(let price, _, _) = try await script.fetch(param: article, revalidating: nil) else { throw Offline() }
        return price
    }
}

struct Prices: Sendable {
    private let store: Store<String, Price>

    init(upstream: PriceService, time: any TimeSource = .system) {
        var policy = StorePolicy()
        policy.staleWhileRevalidate = .seconds(60)
        policy.staleIfError = .seconds(600)
        store = Store(
            cacher: MemoryCacher(expiry: .after(.seconds(5)), limit: 100_000), fetcher: SparingFetcher(upstream, time: time),
            policy: policy, time: time)
    }

    /// The price of an article, for the handler of a request.
    func price(of article: String) async throws -> Price {
        try await store[article].requireData()
    }
}

/// Makes no call for a second after a failure of the upstream.
final class SparingFetcher: Fetcher {
    private struct Failure {
        var error: any Error
        var moment: MonotonicInstant
    }

    private let upstream: PriceService
    private let time: any TimeSource
    private let last = Mutex<Failure?>(nil)

    init(_ upstream: PriceService, time: any TimeSource) {
        self.upstream = upstream
        self.time = time
    }

    func fetch(param article: String) async throws -> Price {
        if let last = last.withLock({ $0 }), last.moment.duration(to: time.now) < .seconds(1) { throw last.error }
        do {
            return try await upstream.price(of: article)
        } catch {
            // A real upstream may also report a missing article; here every error except cancellation is the upstream's own.
            if !(error is CancellationError) { last.withLock { $0 = Failure(error: error, moment: time.now) } }
            throw error
        }
    }
}

struct InAppsAndServersTests {
    @Test func `a thousand requests cause one call upstream`() async throws {
        let service = PriceService(script: ScriptedFetcher { _ in .success(Price(cents: 250)) })
        let prices = Prices(upstream: service)
        let requests = (0..<1_000).map { _ in Task { try await prices.price(of: "lamp") } }
        for request in requests { #expect(try await request.value.cents == 250) }
        #expect(service.script.startedCount == 1)
    }

    @Test func `an upstream that is down gets one call a second, and known prices are still served`() async throws {
        let time = ManualTime()
        let service = PriceService(script: ScriptedFetcher(.success(Price(cents: 250))))
        let prices = Prices(upstream: service, time: time)
        #expect(try await prices.price(of: "lamp").cents == 250)
        time.advance(by: .seconds(66))
        // The script has no answer left, which counts as a failure.
        for _ in 1...10 { #expect(try await prices.price(of: "lamp").cents == 250) }
        for _ in 1...10 { await #expect(throws: StoreError.self) { try await prices.price(of: "chair") } }
        #expect(service.script.startedCount == 2)
        time.advance(by: .seconds(1))
        _ = try await prices.price(of: "lamp")
        #expect(service.script.startedCount == 3)
    }

    /// A warning of the article: without an observer a failure is forgotten, regardless of the policy.
    @Test func `errorExpiry does not protect keys without observers`() async throws {
        let script = ScriptedFetcher<String, Price> { _ in .failure(Offline()) }
        let store = Store(
            cacher: MemoryCacher<String, Price>(), fetcher: script, policy: StorePolicy(errorExpiry: .seconds(1)), time: ManualTime())
        for _ in 1...10 { await #expect(throws: Offline.self) { try await store["lamp"].requireData() } }
        #expect(script.startedCount == 10)
    }

    @MainActor @Test func `an observed state that is released at once starts no fetch`() async throws {
        let script = ScriptedFetcher<Int, String> { .success("user \($0.param)") }
        let users = Store(cacher: MemoryCacher<Int, String>(), fetcher: script)
        for _ in 1...100 { _ = ObservedState(users[1].publish(forceRefresh: true)) }
        let kept = ObservedState(users[2].publish(forceRefresh: true))
        try await script.ended(count: 1)
        #expect(script.requests.map(\.param) == [2])
        #expect(kept.error == nil)
    }
}
