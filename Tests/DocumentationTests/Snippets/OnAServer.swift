internal import StoreCore
import StoreCoreTesting
import StoreResilience
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

    func prices(of articles: [String]) async throws -> [String: Price] {
        var prices: [String: Price] = [:]
        for article in articles { prices[article] = try await price(of: article) }
        return prices
    }
}

struct Prices: Sendable {
    private let store: Store<String, Price>

    init(upstream: PriceService, time: any TimeSource = .system) {
        let breaker = CircuitBreaker(
            opensAfter: 5, within: .seconds(10), holdsFor: .seconds(30),
            time: time)
        var policy = StorePolicy()
        policy.staleWhileRevalidate = .seconds(60)
        policy.staleIfError = .seconds(600)
        store = Store(
            cacher: MemoryCacher(expiry: .after(.seconds(5)), limit: 100_000),
            fetcher: PriceFetcher(upstream: upstream).guarded(by: breaker)
                .rememberingFailures(for: .seconds(1), time: time),
            policy: policy, time: time)
    }

    /// The price of an article, for the handler of a request.
    func price(of article: String) async throws -> Price {
        try await store[article].requireData()
    }
}

struct PriceFetcher: Fetcher {
    var upstream = PriceService(script: ScriptedFetcher { _ in .success(Price(cents: 250)) })

    func fetch(param article: String) async throws -> Price { try await upstream.price(of: article) }
}

private enum ServerSpan {
    @TaskLocal static var span = 0
}

struct OnAServerTests {
    @Test func `a thousand requests cause one call upstream`() async throws {
        let service = PriceService(script: ScriptedFetcher { _ in .success(Price(cents: 250)) })
        let prices = Prices(upstream: service)
        let requests = (0..<1_000).map { _ in Task { try await prices.price(of: "lamp") } }
        for request in requests { #expect(try await request.value.cents == 250) }
        #expect(service.script.startedCount == 1)
    }

    @Test func `an upstream that is down gets five calls in 30 seconds, and known prices are still served`() async throws {
        let time = ManualTime()
        let service = PriceService(script: ScriptedFetcher(.success(Price(cents: 250))))
        let prices = Prices(upstream: service, time: time)
        #expect(try await prices.price(of: "lamp").cents == 250)
        time.advance(by: .seconds(66))
        // The script has no answer left, which counts as a failure.
        for _ in 1...10 { #expect(try await prices.price(of: "lamp").cents == 250) }
        #expect(service.script.startedCount == 2)
        for number in 1...100 { await #expect(throws: (any Error).self) { try await prices.price(of: "chair \(number)") } }
        #expect(try await prices.price(of: "lamp").cents == 250)
        #expect(service.script.startedCount == 6)
        time.advance(by: .seconds(30))
        service.script.enqueue(.success(Price(cents: 300)))
        #expect(try await prices.price(of: "chair 1").cents == 300)
    }

    @Test func `the examples of decorators and batches do as the article says`() async throws {
        let breaker = CircuitBreaker(opensAfter: 1)
        let printed = Printed()
        func report(_ line: String) { printed.add(line) }
        func watch() async {
            for await state in breaker.states { report("upstream: \(state)") }
        }
        let watching = Task { await watch() }
        let upstream = PriceService(script: ScriptedFetcher { _ in .success(Price(cents: 250)) })
        let prices = Store(
            cacher: MemoryCacher<String, Price>(),
            fetcher: BatchFetcher(limit: 100) { articles in
                try await upstream.prices(of: articles)
            })
        #expect(try await prices["lamp"].requireData().cents == 250)
        watching.cancel()
        await watching.value
    }

    @Test func `a fetch is part of the trace of its first caller`() async throws {
        let upstream = PriceService(script: ScriptedFetcher { _ in .success(Price(cents: ServerSpan.span)) })

        let prices = Store(
            cacher: MemoryCacher<String, Price>(),
            fetcher: PriceFetcher(upstream: upstream),
            policy: StorePolicy(fetchContext: .firstCaller))

        let handler = ServerSpan.$span.withValue(7) { Task { try await prices["lamp"].requireData() } }
        #expect(try await handler.value.cents == 7)
    }

    /// A warning of the article: without an observer a failure is forgotten, regardless of the policy.
    @Test func `errorExpiry does not protect keys without observers`() async throws {
        let script = ScriptedFetcher<String, Price> { _ in .failure(Offline()) }
        let store = Store(
            cacher: MemoryCacher<String, Price>(), fetcher: script, policy: StorePolicy(errorExpiry: .seconds(1)), time: ManualTime())
        for _ in 1...10 { await #expect(throws: Offline.self) { try await store["lamp"].requireData() } }
        #expect(script.startedCount == 10)
    }
}
