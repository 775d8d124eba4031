import Foundation
import StoreCore
import StoreCoreTesting
import StoreOutbox
import SyncEngine
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
        (policy.pace, policy.spans) = (.milliseconds(20), 30_000)
        inspector = try Inspector.start(policy: policy)
        visitor = Visitor(inspector.url)
    }

    /// Responds with a secret in each place, or fails with one.
    private struct LeakyTransport: Transport {
        struct Failure: Error, CustomStringConvertible { let description: String }

        func perform(_ request: HTTPRequest, limits: ExchangeLimits) async throws -> HTTPResponse {
            let number = request.fields["X-Number"].flatMap { Int($0) } ?? 0
            if number % 10 == 9 { throw Failure(description: "s3cret") }
            if number % 10 == 7 { throw TransportFailure(.connectionLost, "s3cret", underlyingError: Failure(description: "s3cret")) }
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
        let store = Store(cacher: MemoryCacher<Int, Data>()) { try await host.data(for: Self.route($0)) }
        inspector.attach(store, redacting: { "\($0.count) bytes" })
        // Keeps the errors of these keys visible.
        let observers = [7, 8, 9].map { key in Task { for await _ in store[key].publish() {} } }
        defer { for observer in observers { observer.cancel() } }
        let count = max(20, rounds(10_000, quick: 300))
        for number in 0..<count {
            // A failure is one of the places.
            do { _ = try await store[number].requireData(from: .origin) } catch let error as RemoteError {
                try #require(error.code != .invalidRoute, "\(error)")
            }
        }
        // A user and a fragment, which no route has, as a redirect may have.
        let url = try #require(URL(string: "https://ada:s3cret@api.example.com/user?token=s3cret#s3cret"))
        _ = try await host.transport.perform(HTTPRequest(url: url), limits: ExchangeLimits())
        try await until("the errors are visible") { Set(store.keySnapshots(.failed).keys.map(\.param)).isSuperset(of: [7, 8, 9]) }
        let spans = inspector.board.timeline.changes(after: 0).spans
        #expect(spans.count >= min(2 * count + 1, 30_000))
        let events = try #require(try await visitor.send("GET", visitor.base + "events?page=p"))
        for text in ["/things/\(count - 1)?", "page=1", "/user?", "connectionLost"] { #expect(events.text.contains(text)) }
        #expect(!events.text.contains("s3cret"))
        for path in ["list?subject=1", "list?subject=2", "list?subject=2&filter=failed"] {
            for from in stride(from: 0, to: count + 10, by: 200) {
                let list = try #require(try await visitor.send("GET", visitor.base + path + "&from=\(from)&count=200"))
                #expect(list.status == 200 && !list.text.contains("s3cret"))
            }
        }
        var items = spans.filter { $0.subject == 1 }.suffix(20).map { "item?subject=1&row=\($0.id)" }
        for key in 7...9 {
            let row = try #require(try await visitor.row("\(key)", of: 2))
            items.append("item?subject=2&row=\(row)")
        }
        for path in items {
            let item = try #require(try await visitor.send("GET", visitor.base + path))
            #expect(item.status == 200 && !item.text.contains("s3cret"))
        }
        #expect(host.snapshot().exchanges.count == 50 && !"\(host.snapshot())".contains("s3cret"))
    }

    /// Fails with a secret: for the list, or for its item.
    private struct LeakyProcessor: SyncProcessor {
        typealias Thing = SnapshotTests.Thing

        let failsList: Bool
        let failure = RemoteError(.transport, .connectionLost, operation: "GET /things", "s3cret")

        func sourceList() async throws -> ListedSource<Thing> {
            if failsList { throw failure }
            return ListedSource([Thing(key: 1, version: 1)])
        }
        func localInventory() async throws -> LocalInventory<Thing> { LocalInventory(versions: [:]) }
        func downloadContent(of item: Thing) async throws { throw failure }
        func remove(_ keys: Set<Int>) async throws {}
    }

    @Test(arguments: [true, false])
    func `I5, H12: the failure of a pass brings no secret to the page`(failsList: Bool) async throws {
        let synchronizer = OneWaySynchronizer(processor: LeakyProcessor(failsList: failsList))
        inspector.attach(synchronizer)
        await #expect(throws: SyncError.self) { try await synchronizer.sync() }
        let list = try #require(try await visitor.send("GET", visitor.base + "list?subject=1"))
        #expect(list.text.contains("RemoteError.connectionLost (transport): GET /things") && !list.text.contains("s3cret"))
        let item = try #require(try await visitor.send("GET", visitor.base + "item?subject=1&row=0"))
        #expect(item.status == 200 && !item.text.contains("s3cret"))
    }

    @Test func `I5, H12: an error around that of a transport brings no secret to the page`() {
        let causes: [any Error] = [
            RemoteError(.transport, .connectionLost, operation: "GET /things", "s3cret"), TransportFailure(.connectionLost, "s3cret"),
        ]
        for cause in causes {
            let wrapped = StoreError(.cacherFailed, "cannot read", underlyingError: cause)
            for error in [wrapped, SyncError(.stageFailed, "cannot list: \(wrapped)", underlyingError: wrapped)] as [any Error] {
                let text = errorText(error, 500)
                #expect(text.contains("cannot read (underlying: ") && text.contains("connectionLost"))
                #expect(!text.contains("s3cret"), "\(text)")
            }
        }
        let refused = RemoteError(.status, .badStatus, operation: "GET /things", "404; check the path")
        #expect(errorText(StoreError(.cacherFailed, "cannot read", underlyingError: refused), 500).contains("check the path"))
    }

    /// A request with a secret in each place.
    private static func route(_ number: Int) -> Route {
        let isPost = number % 3 == 0
        var route = Route(
            path: "/things/\(number)", method: isPost ? .post : .get,
            query: ["token": "s3cret", "api_key": "s3cret", "session": "s3cret", "password": "s3cret", "page": 1],
            body: isPost ? .json(Account()) : .none)
        route.headers = [
            "X-Number": "\(number)", "Authorization": "Bearer s3cret", "Cookie": "a=s3cret", "X-API-Key": "s3cret", "X-Session": "s3cret",
            "X-Custom": "s3cret", "Referer": "https://a.example/?token=s3cret",
        ]
        return route
    }

    struct Account: Codable, Sendable {
        var name = "Ada"
        var password = "s3cret"
        var nested = ["Token": ["s3cret"], "API-Key": ["s3cret"], "refresh_token": ["s3cret"]]
        enum Field: String, Codable { case password }
        var keyed = [Field.password: "s3cret"]
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
        await outbox.register(SignIn.self) { _, _ in
            throw RemoteError(.transport, .connectionLost, operation: "POST /sign-in", "s3cret")
        }
        _ = try await outbox.submit(SignIn())
        outbox.start()
        try await until("the delivery has failed") { await outbox.commands().first?.lastError != nil }
        inspector.attach(outbox)
        let command = try #require(try await visitor.row("sign in", of: 2))
        for path in ["item?subject=2&row=\(command)", "list?subject=2"] {
            let shown = try #require(try await visitor.send("GET", visitor.base + path))
            #expect(shown.text.contains("RemoteError.connectionLost (transport): POST /sign-in") && !shown.text.contains("s3cret"))
        }
        let payload = try await visitor.get("item?subject=2&row=\(command)")["record"] as? String
        #expect(payload?.contains("password") == true)
    }

    @Test func `I5: a description with a secret field is hidden as a whole`() {
        struct Login: Sendable {
            var name = "Ada"
            var accessToken: String? = "s3cret"
        }
        struct Name: Sendable { var first = "Ada" }
        let redactor = Redactor(names: Redactor.usualNames)
        let secrets: [any Sendable] = [Login(), [Login()], ["a": Login()], ["password": Name()]]
        for secret in secrets { #expect(redactor.text(of: secret).text.hasPrefix("‹hidden›, a ")) }
        for other in [Name(), [Name()], ["a": Name()]] as [any Sendable] { #expect(redactor.text(of: other).text.contains("Ada")) }
    }

    @Test func `I5: an address hides the query values with the names of the inspector`() {
        let redactor = Redactor(names: Redactor.usualNames)
        let address = redactor.address("/a?session_id=s3cret&page=1&API-Key=s3cret&otp")
        #expect(address == "/a?session_id=‹hidden›&page=1&API-Key=‹hidden›&otp=‹hidden›")
        #expect(redactor.address("/a?%73ession=s3cret?x=s3cret") == "/a?%73ession=‹hidden›" && redactor.address("/a") == "/a")
    }

    @Test func `I5: a store shows the value that its closure returns in place of the content`() async throws {
        let store = Store(cacher: MemoryCacher<Int, String>()) { _ in "s3cret" }
        inspector.attach(store, redacting: { "\($0.count) characters" })
        _ = try await store[1].requireData()
        let row = try #require(try await visitor.row("1", of: 1))
        #expect(try await visitor.get("item?subject=1&row=\(row)")["record"] as? String == "\"6 characters\"")
    }
}
