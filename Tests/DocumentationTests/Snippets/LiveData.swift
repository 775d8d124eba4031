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

    //: LiveData.md: struct PriceFeed

    private func store(api: PriceAPI) -> Store<String, Price> {
        //: LiveFetcher.swift
        return prices
    }

    //: LiveData.md: struct AnswerFetcher

    //: LiveData.md: struct ContactObservation

    // Compiled only: it observes forever.
    private func observe(api: PriceAPI) async throws -> Price {
        //: LiveData.md: let prices = Store
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
        //: LiveData.md: let feed = ScriptedLiveFetcher
    }

    private func script() async throws {
        //: ScriptedLiveFetcher.swift
        observer.stop()
    }

    private func routes(api: RemoteHost) {
        struct Question: Identifiable { let id: Int }
        //: LiveRouteFetcher.swift: let prices = Store
        //: LiveRouteFetcher.swift: let fetcher = api
        //: LiveRouteFetcher.swift: let answers = api
        let texts = Store(cacher: MemoryCacher<Int, String>(), fetcher: answers)
        _ = (prices, fetcher, texts)
    }

    private func follow(shop: RemoteHost) {
        //: StreamsAndFiles.md: let prices = Store
        _ = prices
    }
}
