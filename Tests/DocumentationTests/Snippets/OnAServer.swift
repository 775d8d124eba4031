internal import Dispatch
internal import Foundation
internal import StoreCore
import StoreCoreTesting
import StoreFiles
import StoreOutbox
import StoreResilience
internal import Synchronization
internal import Testing
internal import Trials

struct Price: Hashable, Sendable {
    var cents: Int
}

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

//: OnAServer.md: struct Prices:

//: OnAServer.md: struct PriceResponse

//: OnAServer.md: /// Makes 10 000 requests

struct PriceFetcher: Fetcher {
    var upstream = PriceService(script: ScriptedFetcher { _ in .success(Price(cents: 250)) })

    func fetch(param article: String) async throws -> Price { try await upstream.price(of: article) }
}

private enum ServerSpan {
    @TaskLocal static var span = 0
}

/// Stands in for the function of a tracing library.
private func withSpan(_ name: String, _ operation: (_ span: Int) async throws -> Price) async throws -> Price {
    let span = ServerSpan.span * 10 + name.count
    return try await ServerSpan.$span.withValue(span) { try await operation(span) }
}

//: OnAServer.md: struct TracedPriceFetcher

//: OnAServer.md: /// Counts the events

//: OnAServer.md: var health

//: OnAServer.md: /// Ends the server when

struct OnAServerTests {
    /// The printed output of the service under load.
    static func output() async throws -> [[String]] {
        try await tell { printed in
            //: OnAServer.md: let time = ManualTime

            return [printed.lines]
        }
    }

    @Test func `a thousand requests cause one call upstream`() async throws {
        let service = PriceService(script: ScriptedFetcher { _ in .success(Price(cents: 250)) })
        let prices = Prices(upstream: service.script)
        let requests = (0..<1_000).map { _ in Task { try await prices.store["lamp"].requireData() } }
        for request in requests { #expect(try await request.value.cents == 250) }
        #expect(service.script.startedCount == 1)
    }

    @Test func `an upstream that is down gets five calls in 30 seconds, and known prices are still served`() async throws {
        let time = ManualTime()
        let service = PriceService(script: ScriptedFetcher(.success(Price(cents: 250))))
        let prices = Prices(upstream: service.script, time: time)
        #expect(try await prices.store["lamp"].requireData().cents == 250)
        time.advance(by: .seconds(66))
        // The script has no answer left, which counts as a failure.
        for _ in 1...10 { #expect(try await prices.store["lamp"].requireData().cents == 250) }
        #expect(service.script.startedCount == 2)
        for number in 1...100 { await #expect(throws: (any Error).self) { try await prices.store["chair \(number)"].requireData() } }
        #expect(try await prices.store["lamp"].requireData().cents == 250)
        #expect(service.script.startedCount == 6)
        time.advance(by: .seconds(30))
        service.script.enqueue(.success(Price(cents: 300)))
        #expect(try await prices.store["chair 1"].requireData().cents == 300)
    }

    @Test func `an upstream that hangs opens the breaker, and requests without a price end with 503`() async throws {
        let time = ManualTime()
        let upstream = ScriptedFetcher<String, Price>()
        let prices = Prices(upstream: upstream, time: time)
        upstream.hold()
        let requests = (1...5).map { number in Task { await prices.respond(to: "\(number)").status } }
        try await upstream.started(count: 5)
        while prices.breaker.state == .closed {
            time.advanceToNextDeadline()
            await Task.yield()
        }
        for request in requests { #expect(await request.value == 503) }
        let refused = await prices.respond(to: "6")
        #expect(refused.status == 503 && refused.retryAfter != nil)
        try await prices.store.close()
        #expect(await prices.respond(to: "7").status == 503)
    }

    @Test func `the examples of decorators and batches do as the article says`() async throws {
        let breaker = CircuitBreaker(opensAfter: 1)
        let printed = Printed()
        func report(_ line: String) { printed.add(line) }
        func watch() async {
            //: OnAServer.md: for await state
        }
        let watching = Task { await watch() }
        let upstream = PriceService(script: ScriptedFetcher { _ in .success(Price(cents: 250)) })
        //: OnAServer.md: fetcher: BatchFetcher
        //: OnAServer.md: let basket
        #expect(basket.mapValues(\.cents) == ["lamp": 250, "chair": 250])
        watching.cancel()
        await watching.value
    }

    @Test func `metrics count hits and fetches, and an event is a line of a log`() async throws {
        let upstream = PriceService(script: ScriptedFetcher(.success(Price(cents: 250)), .failure(Offline())))
        func counted() async throws {
            //: OnAServer.md: let metrics = StoreMetrics

            for _ in 1...3 { _ = try await prices["lamp"].requireData() }
            await #expect(throws: Offline.self) { try await prices["chair"].requireData() }
            try await until("the events arrive") { metrics.text().contains("failed") }
            let lines = metrics.text(prices.snapshot()).split(separator: "\n")
            #expect(lines.contains("storehouse_total{store=\"prices\",outcome=\"hit\"} 2"))
            #expect(lines.contains("storehouse_total{store=\"prices\",outcome=\"failed\"} 1"))
            #expect(lines.contains("storehouse_records{store=\"prices\"} 1"))
        }
        try await counted()
        upstream.script.enqueue(.failure(Offline()))
        let printed = Printed()
        @Sendable func log(_ line: String) { printed.add(line) }
        func logged() async throws {
            //: OnAServer.md: ) { event in

            await #expect(throws: Offline.self) { try await prices["chair"].requireData() }
            try await until("the failure is logged") { !printed.lines.isEmpty }
        }
        try await logged()
        #expect(printed.lines[0].hasPrefix("prices #"))
    }

    @Test func `the health of a service names a breaker that is open`() async throws {
        let time = ManualTime()
        let upstream = ScriptedFetcher<String, Price> { _ in .failure(Offline()) }
        let prices = Prices(upstream: upstream, time: time)
        #expect(prices.health.body == "ok")
        for number in 1...5 { #expect(await prices.respond(to: "\(number)").status == 502) }
        #expect(prices.health.status == 200 && prices.health.body.hasSuffix("in 30.0 seconds"))
        time.advance(by: .seconds(30))
        #expect(prices.health.body == "ok")
        try await prices.store.close()
        #expect(prices.health.status == 503)
    }

    @Test func `a server that fails closes its stores, and its failure is thrown`() async {
        await #expect(processExitsWith: .success) {
            let directory = try TemporaryDirectory()
            let scope = CacheScope(directory: directory.url)
            let outbox = try Outbox(directory: directory.file("outbox"))
            await #expect(throws: Offline.self) { try await serveUntilTerminated(scope, outbox) { throw Offline() } }
            #expect(scope.isClosed)
        }
    }

    @Test func `a server that is asked to end closes its stores and ends`() async {
        await #expect(processExitsWith: .success) {
            let directory = try TemporaryDirectory()
            let scope = CacheScope(directory: directory.url)
            let outbox = try Outbox(directory: directory.file("outbox"))
            try await serveUntilTerminated(scope, outbox) {
                // The signal arrives once its handler is there.
                while !Task.isCancelled {
                    kill(getpid(), SIGTERM)
                    try? await Task.sleep(for: .milliseconds(10))
                }
            }
            #expect(scope.isClosed)
        }
    }

    @Test func `a fetch is part of the trace of its first caller`() async throws {
        let upstream = PriceService(script: ScriptedFetcher { _ in .success(Price(cents: ServerSpan.span)) })

        //: OnAServer.md: policy: StorePolicy

        let handler = ServerSpan.$span.withValue(7) { Task { try await prices["lamp"].requireData() } }
        #expect(try await handler.value.cents == 7)
        let traced = Store(
            cacher: MemoryCacher(), fetcher: TracedPriceFetcher(upstream: upstream), policy: StorePolicy(fetchContext: .firstCaller))
        let second = ServerSpan.$span.withValue(7) { Task { try await traced["lamp"].requireData() } }
        #expect(try await second.value.cents == 75)
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
