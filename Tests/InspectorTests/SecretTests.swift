import Foundation
import StoreCore
import StoreCoreTesting
import StoreOutbox
import Testing
import Trials

@testable import Inspector
@testable import RemoteRouting

@Suite(.timeLimit(.minutes(hangMinutes)))
struct SecretTests {
    let inspector: Inspector
    let visitor: Visitor

    init() throws {
        var policy = Inspector.Policy()
        (policy.pace, policy.spans) = (.milliseconds(20), 20_000)
        inspector = try Inspector.start(policy: policy)
        visitor = Visitor(inspector.url)
    }

    /// Responds with a secret in each place, or fails with one.
    private struct LeakyTransport: Transport {
        struct Failure: Error, CustomStringConvertible { let description: String }

        func perform(_ request: HTTPRequest, limits: ExchangeLimits) async throws -> HTTPResponse {
            let number = request.fields["X-Number"].flatMap { Int($0) } ?? 0
            if number % 10 == 9 { throw Failure(description: "s3cret") }
            let exchange = Exchange(limits: limits)
            var response = HTTPResponse(status: number % 10 == 8 ? 401 : 200, url: request.url, body: Data(#"{"a":"s3cret"}"#.utf8))
            for name in ["Set-Cookie", "WWW-Authenticate", "Authentication-Info", "X-Session", "Location", "Link", "ETag", "X-Any"] {
                try response.fields.append(name, "s3cret")
            }
            exchange.receive(response)
            exchange.finish()
            return try await exchange.response()
        }
    }

    @Test func `I5, H12: no exchange brings a secret to the page, in whichever place it is`() async throws {
        let own = RemoteHost("api.example.com", transport: LeakyTransport()).with { host in
            host.retry = .never
            host.limits.concurrentExchanges = 64
        }.logging(to: ExchangeLog(redactedQueryNames: ["session"]) { _ in })
        let host = inspector.attach(own, name: "leaky")
        let count = rounds(10_000, quick: 300)
        for number in 0..<count {
            var route = Route(
                path: "/things/\(number)", method: number % 3 == 0 ? .post : .get,
                query: ["token": "s3cret", "api_key": "s3cret", "session": "s3cret", "password": "s3cret", "page": 1])
            route.headers = [
                "X-Number": "\(number)", "Authorization": "Bearer s3cret", "Cookie": "a=s3cret", "X-API-Key": "s3cret",
                "X-Session": "s3cret",
                "X-Custom": "s3cret", "Referer": "https://a.example/?token=s3cret",
            ]
            do { _ = try await host.data(for: route) } catch let error as RemoteError {
                // A failure is one of the places.
                try #require(error.code != .invalidRoute, "\(error)")
            }
        }
        let spans = inspector.board.timeline.changes(after: 0).spans
        #expect(spans.count == count)
        let events = try #require(try await visitor.send("GET", visitor.base + "events?page=p"))
        #expect(events.text.contains("/things/\(count - 1)?") && events.text.contains("page=1"))
        #expect(!events.text.contains("s3cret"))
        for from in stride(from: 0, to: count, by: 200) {
            let list = try #require(try await visitor.send("GET", visitor.base + "list?subject=1&from=\(from)&count=200"))
            #expect(list.status == 200 && !list.text.contains("s3cret"))
        }
        let id = try #require(spans.last?.id)
        let item = try #require(try await visitor.send("GET", visitor.base + "item?subject=1&row=\(id)"))
        #expect(item.status == 200 && !item.text.contains("s3cret"))
    }

    struct Account: Codable, Sendable {
        var name = "Ada"
        var password = "s3cret"
        var nested = ["Token": ["s3cret"]]
    }

    struct SignIn: Command {
        static let name = "sign in"
        var password = "s3cret"
    }

    @Test func `I5: fields with secret names are hidden in records and commands`() async throws {
        let store = Store(cacher: MemoryCacher<Int, [Account]>()) { _ in [Account()] }
        inspector.attach(store)
        _ = try await store[1].requireData()
        let row = try #require(try await visitor.row("1", of: 1))
        let record = try await visitor.get("item?subject=1&row=\(row)")["record"] as? String
        #expect(record?.contains("Ada") == true && record?.contains("s3cret") == false && record?.contains("‹hidden›") == true)

        let directory = try TemporaryDirectory()
        let outbox = try Outbox(directory: directory.url)
        await outbox.register(SignIn.self) { _, _ in }
        _ = try await outbox.submit(SignIn())
        inspector.attach(outbox)
        let command = try #require(try await visitor.row("sign in", of: 2))
        let payload = try await visitor.get("item?subject=2&row=\(command)")["record"] as? String
        #expect(payload?.contains("password") == true && payload?.contains("s3cret") == false)
    }

    @Test func `I5: a store shows the value that its closure returns in place of the content`() async throws {
        let store = Store(cacher: MemoryCacher<Int, String>()) { _ in "s3cret" }
        inspector.attach(store, redacting: { "\($0.count) characters" })
        _ = try await store[1].requireData()
        let row = try #require(try await visitor.row("1", of: 1))
        #expect(try await visitor.get("item?subject=1&row=\(row)")["record"] as? String == "\"6 characters\"")
    }
}
