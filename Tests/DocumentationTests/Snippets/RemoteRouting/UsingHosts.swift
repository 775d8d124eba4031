internal import Foundation
internal import LoopbackOrigin
internal import RemoteRouting
internal import StoreCore
import RemoteRoutingTesting
internal import Testing
internal import Trials

// What stands in the articles on errors, parsers, streams and testing.

struct ErrorsAndRetriesTests {
    @Test func `a missing thing is an error that says so`() async throws {
        let printed = Printed()
        let shop = RemoteHost("shop.example.com", transport: MemoryTransport { _ in .status(404) })
        try await Printed.$page.withValue(printed) {
            //: RemoteRouting.docc/ErrorsAndRetries.md: let lamp: Product
        }
        #expect(printed.lines == ["there is no such lamp"])
    }

    @Test func `an idempotency key makes an order repeatable, and stays the same`() async throws {
        let transport = MemoryTransport { request in .status(503) }
        var shop = RemoteHost("shop.example.com", transport: transport)
        shop.retry = .exponential(attempts: 2, base: .milliseconds(1))
        let order = NewOrder(product: "lamp", count: 1)
        //: RemoteRouting.docc/ErrorsAndRetries.md: let once = Route
        await #expect(throws: RemoteError.self) { try await shop.send(once) as Void }
        let keys = transport.requests.map { $0.fields["Idempotency-Key"] }
        #expect(keys.count == 2 && keys[0] != nil && keys[0] == keys[1])
    }
}

//: ParsingResponses.md: struct PropertyListParser

//: ParsingResponses.md: struct Envelope

struct ParsingResponsesTests {
    struct Settings: Codable {
        var theme: String
    }

    @Test func `property lists in the place of JSON`() async throws {
        let bodies = [
            "/products/lamp": try PropertyListEncoder().encode(Product(id: "lamp", name: "Lamp")),
            "/settings.plist": try PropertyListEncoder().encode(Settings(theme: "dark")),
        ]
        let transport = MemoryTransport { request in
            .init(headers: [("Content-Type", "application/x-plist")], body: bodies[request.url.path] ?? Data())
        }
        //: ParsingResponses.md: let shop = RemoteHost
        #expect(lamp.name == "Lamp")
        #expect(transport.requests.map { $0.fields["Accept"] } == ["application/x-plist, */*;q=0.1"])
        try await settings(of: RemoteHost("shop.example.com", transport: transport))
    }

    private func settings(of shop: RemoteHost) async throws {
        //: ParsingResponses.md: let route = Route
        #expect(settings.theme == "dark")
    }

    @Test func `an envelope is taken off`() async throws {
        let transport = MemoryTransport { _ in .json(#"{"data": {"id": "lamp", "name": "Lamp"}}"#) }
        let shop = RemoteHost("shop.example.com", transport: transport).with { $0.parser = EnvelopeParser() }
        #expect(try await shop.send("/products/lamp", as: Product.self).name == "Lamp")
    }
}

struct StreamsAndFilesTests {
    @Test func `lines come as they come`() async throws {
        let printed = Printed()
        let shop = RemoteHost(
            "shop.example.com", transport: MemoryTransport { _ in .init(body: Data("one\ntwo\n".utf8)) })
        try await Printed.$page.withValue(printed) {
            //: StreamsAndFiles.md: let export = try
        }
        #expect(printed.lines == ["one", "two"])
    }

    @Test func `a file appears whole`() async throws {
        let origin = try LoopbackOrigin()
        origin.on(.get, "/films/:film") { _ in .data(Data("abc".utf8)) }
        let shop = RemoteHost(HostConfiguration("127.0.0.1", scheme: .http, port: Int(origin.port)))
        let film = temporaryURL("mp4")
        let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        let printed = Printed()
        try await Printed.$page.withValue(printed) {
            //: StreamsAndFiles.md: try await shop
        }
        #expect(try Data(contentsOf: film) == Data("abc".utf8))
    }

    @Test func `events come until the server ends them`() async throws {
        let asked = Lock(0)
        let transport = MemoryTransport { _ in
            let isFirst = asked.withLock { asked in
                asked += 1
                return asked == 1
            }
            guard isFirst else { return .status(204) }
            return .init(headers: [("Content-Type", "text/event-stream")], body: Data("retry: 1\ndata: hello\n\n".utf8))
        }
        let shop = RemoteHost("shop.example.com", transport: transport)
        let printed = Printed()
        try await Printed.$page.withValue(printed) {
            //: StreamsAndFiles.md: for try await
        }
        #expect(printed.lines == ["hello"])
    }
}

private func landingPage(over transport: MemoryTransport) async throws -> Product {
    //: RemoteRouting.md
    return lamp
}

struct TestingWithoutANetworkTests {
    @Test func `a closure answers`() async throws {
        //: TestingWithoutANetwork.md: let transport = MemoryTransport { request
        //: TestingWithoutANetwork.md: let lamp: Product
    }

    @Test func `an answer may have any header and any bytes`() async throws {
        let bytes = Data([0x89, 0x50, 0x4E, 0x47])
        //: TestingWithoutANetwork.md: let picture = MemoryTransport
        let shop = RemoteHost("shop.example.com", transport: MemoryTransport { _ in picture })
        let answer = try await shop.dataResponse(for: Route(path: "/lamp.png"))
        #expect(answer.value == bytes && answer.fields["Content-Type"] == "image/png")
    }

    @Test func `answers are given in turn, and then no more`() async throws {
        //: TestingWithoutANetwork.md: let transport = MemoryTransport(inTurn
        let host = RemoteHost("api.example.com", transport: transport).with { $0.retry = .never }
        let first = await #expect(throws: RemoteError.self) { try await host.send("/users/7") }
        #expect(first?.status == 503)
        try await host.send("/users/7")
        let last = await #expect(throws: RemoteError.self) { try await host.send("/users/7") }
        #expect(last?.code == .unsupported && last?.description.contains("all 2 responses") == true)
    }
}
