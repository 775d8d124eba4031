internal import RemoteRouting
internal import StoreCore
import StoreCoreTesting
internal import Testing

private func render<Content>(_ state: LoadingState<Content>) {}

// The stand-ins are nested, because other articles have their own of the same names.
struct LiveDataTests {
    struct Price: Codable, Hashable, Sendable {
        var cents = 700
        var id = "1"
    }

    struct PriceAPI: Sendable {
        func prices(of ticker: String, after id: String?) -> AsyncThrowingStream<Price, any Error> {
            AsyncThrowingStream { continuation in continuation.yield(Price()) }
        }
    }

    struct LanguageModel: Sendable {
        struct Token: Sendable {
            var text: String
            var isFirst = false
        }

        func tokens(answering question: String) -> AsyncThrowingStream<Token, any Error> {
            AsyncThrowingStream { continuation in
                continuation.yield(Token(text: "Yes", isFirst: true))
                continuation.yield(Token(text: ", it does."))
                continuation.finish()
            }
        }
    }

    struct Contact: Identifiable, Hashable, Sendable {
        let id: Int
    }

    struct Database: Sendable {
        func contact(_ id: Contact.ID) -> AsyncThrowingStream<Contact, any Error> {
            AsyncThrowingStream { continuation in continuation.yield(Contact(id: id)) }
        }
    }

    struct Offline: Error {}

    struct PriceFeed: LiveFetcher {
        let api: PriceAPI

        func values(
            param ticker: String, after last: Validator?
        ) -> some AsyncSequence<LiveValue<Price>, any Error> {
            api.prices(of: ticker, after: last?.entityTag).map {
                LiveValue.content($0, Validator(entityTag: $0.id))
            }
        }
    }

    // LiveFetcher
    private func store(api: PriceAPI) -> Store<String, Price> {
        struct PriceFeed: LiveFetcher {
            let api: PriceAPI

            func values(
                param ticker: String, after last: Validator?
            ) -> some AsyncSequence<LiveValue<Price>, any Error> {
                api.prices(of: ticker, after: last?.entityTag).map {
                    LiveValue.content($0, Validator(entityTag: $0.id))
                }
            }
        }

        let prices = Store(
            cacher: MemoryCacher<String, Price>(), fetcher: PriceFeed(api: api))
        return prices
    }

    struct AnswerFetcher: LiveFetcher {
        let model: LanguageModel

        func values(
            param question: String, after last: Validator?
        ) -> some AsyncSequence<LiveValue<String>, any Error> {
            model.tokens(answering: question).map { token in
                token.isFirst
                    ? LiveValue.content(token.text) : .change { $0 += token.text }
            }
        }
    }

    struct ContactObservation: LiveFetcher {
        let database: Database

        func values(
            param id: Contact.ID, after last: Validator?
        ) -> some AsyncSequence<LiveValue<Contact>, any Error> {
            database.contact(id).map { LiveValue.content($0) }
        }
    }

    // Compiled only: it observes forever.
    private func observe(api: PriceAPI) async throws -> Price {
        let prices = Store(
            cacher: MemoryCacher<String, Price>(), fetcher: PriceFeed(api: api),
            policy: StorePolicy(
                retry: .exponential(attempts: .max), idleTimeout: .seconds(60)))

        for await state in prices["ACME"].publish() { render(state) }
        let price = try await prices["ACME"].requireData()
        return price
    }

    @Test func `a caller gets the first price and the observed contact`() async throws {
        #expect(try await store(api: PriceAPI())["ACME"].requireData().cents == 700)
        let contacts = Store(cacher: MemoryCacher<Int, Contact>(), fetcher: ContactObservation(database: Database()))
        #expect(try await contacts[3].requireData().id == 3)
    }

    @Test func `an answer grows token by token`() async throws {
        let answers = Store(cacher: MemoryCacher<String, String>(), fetcher: AnswerFetcher(model: LanguageModel()))
        let whole = await answers["Does it?"].publish().first { $0.content == "Yes, it does." }
        #expect(whole != nil)
    }

    @Test func `a test sends values and cuts the connection`() async throws {
        let feed = ScriptedLiveFetcher<String, Int>()
        let prices = Store(cacher: MemoryCacher(), fetcher: feed)
        let observer = RecordingObserver(prices["ACME"].publish())
        try await feed.send(.content(7))
        try await feed.end(throwing: Offline())
        try await observer.next { $0.error is Offline && $0.content == 7 }
    }

    // ScriptedLiveFetcher
    private func script() async throws {
        let feed = ScriptedLiveFetcher<String, Int>()
        let prices = Store(cacher: MemoryCacher(), fetcher: feed)
        let observer = RecordingObserver(prices["A"].publish())
        // Returns when the store has accepted the value.
        try await feed.send(.content(7))
        try await feed.end(throwing: Offline())
        #expect(feed.connections.map(\.param) == ["A"])
        observer.stop()
    }

    // LiveRouteFetcher
    private func routes(api: RemoteHost) {
        struct Question: Identifiable { let id: Int }
        let prices = Store(
            cacher: MemoryCacher<String, Price>(),
            fetcher: api.liveFetcher(of: Price.self) { ticker in
                Route(path: "/prices/\(ticker)")
            },
            policy: StorePolicy(
                retry: .exponential(attempts: .max), idleTimeout: .seconds(60)))
        let fetcher = api.liveFetcher(of: Price.self) { (ticker: String) in
            Route(path: "/prices/\(ticker)")
        }
        let answers = api.liveFetcher(reading: { event in
            event.type == "token" ? .change { $0 += event.data } : .content("")
        }) { (question: Question.ID) in Route(path: "/answers/\(question)") }
        let texts = Store(cacher: MemoryCacher<Int, String>(), fetcher: answers)
        _ = (prices, fetcher, texts)
    }

    // StreamsAndFiles
    private func follow(shop: RemoteHost) {
        let prices = Store(
            cacher: MemoryCacher<String, Price>(),
            fetcher: shop.liveFetcher(of: Price.self) { ticker in
                Route(path: "/prices/\(ticker)")
            },
            policy: StorePolicy(
                retry: .exponential(attempts: .max), idleTimeout: .seconds(60)))
        _ = prices
    }
}
