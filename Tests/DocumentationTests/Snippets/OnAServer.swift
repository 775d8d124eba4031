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

//: OnAServer.md: struct Prices

struct PriceFetcher: Fetcher {
    var upstream = PriceService(script: ScriptedFetcher { _ in .success(Price(cents: 250)) })

    func fetch(param article: String) async throws -> Price { try await upstream.price(of: article) }
}

private enum ServerSpan {
    @TaskLocal static var span = 0
}

//: OnAServer.md: /// Counts what happens

//: OnAServer.md: /// Ends the server when

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
            //: OnAServer.md: for await state
        }
        let watching = Task { await watch() }
        let upstream = PriceService(script: ScriptedFetcher { _ in .success(Price(cents: 250)) })
        //: OnAServer.md: fetcher: BatchFetcher
        #expect(try await prices["lamp"].requireData().cents == 250)
        watching.cancel()
        await watching.value
    }

    @Test func `metrics count hits and fetches, and an event is a line of a log`() async throws {
        let upstream = PriceService(script: ScriptedFetcher(.success(Price(cents: 250)), .failure(Offline())))
        func counted() async throws {
            //: OnAServer.md: let metrics = StoreMetrics

            for _ in 1...3 { _ = try await prices["lamp"].requireData() }
            await #expect(throws: Offline.self) { try await prices["chair"].requireData() }
            try await until("the events arrive") { metrics.text.contains("failed") }
            let lines = metrics.text.split(separator: "\n")
            #expect(lines.contains("storehouse_total{store=\"prices\",outcome=\"hit\"} 2"))
            #expect(lines.contains("storehouse_total{store=\"prices\",outcome=\"failed\"} 1"))
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
        let breaker = CircuitBreaker()
        //: OnAServer.md: func isHealthy

        #expect(isHealthy())
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
