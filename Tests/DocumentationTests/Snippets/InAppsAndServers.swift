internal import StoreCore
internal import Testing

/// What costs how much, as an upstream knows it.
struct Price: Hashable, Sendable {
    var cents: Int
}

/// An upstream as the example needs one.
struct PriceService: Sendable {
    let script: ScriptedFetcher<String, Price>

    func price(of article: String) async throws -> Price {
        guard case .modified(let price, _, _) = try await script.fetch(param: article, revalidating: nil) else { throw Offline() }
        return price
    }
}

struct Prices: Sendable {
    private let store: Store<String, Price>

    init(upstream: PriceService) {
        var policy = StorePolicy()
        policy.staleWhileRevalidate = .seconds(60)
        policy.staleIfError = .seconds(600)
        policy.errorExpiry = .seconds(1)
        store = Store(
            cacher: MemoryCacher(expiry: .after(.seconds(5)), limit: 100_000), fetcher: ClosureFetcher { try await upstream.price(of: $0) },
            policy: policy)
    }

    /// What a request's handler calls.
    func price(of article: String) async throws -> Price {
        try await store[article].requireData()
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

    @MainActor @Test func `an observed state that is dropped at once asks for nothing`() async throws {
        let script = ScriptedFetcher<Int, String> { .success("user \($0.param)") }
        let users = Store(cacher: MemoryCacher<Int, String>(), fetcher: script)
        for _ in 1...100 { _ = ObservedState(users[1].publish(forceRefresh: true)) }
        let kept = ObservedState(users[2].publish(forceRefresh: true))
        try await script.ended(count: 1)
        #expect(script.requests.map(\.param) == [2])
        #expect(kept.error == nil)
    }
}
