import Foundation
import StoreCoreTesting
import Testing
import TextStore
import Trials

@testable import Inspector
@testable import StoreCore

/// The requests of pages, without a browser.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct ProtocolTests {
    let inspector: Inspector
    let visitor: Visitor

    init() throws {
        var policy = Inspector.Policy()
        // Neither a page nor a connection ends because a busy machine is slow.
        (policy.grace, policy.idle) = (.seconds(3_600), .seconds(3_600))
        (policy.patience, policy.pace) = (.seconds(2), .milliseconds(20))
        inspector = try Inspector.start(policy: policy)
        visitor = Visitor(inspector.url)
    }

    // MARK: I5

    @Test func `I5: the page is on the loopback address, and its address has a token of 128 bits`() async throws {
        #expect(inspector.url.host() == "127.0.0.1" && visitor.base.count == 34)
        #expect(try Inspector.start(policy: .init()).url.path() != inspector.url.path())
        let page = try #require(try await visitor.send("GET", visitor.base))
        #expect(page.status == 200 && page.text.contains("Storehouse"))
    }

    @Test(arguments: [
        "/", "/0123456789abcdef0123456789abcdef/", "/%2e%2e/", "/../../etc/passwd", "//", "/TOKEN", "/TOKEN/../../etc/passwd",
        "/TOKEN/%2e%2e/x", "/TOKEN/list/x", "/TOKEN/index.html", "/TOKEN//", "/TOKENx/",
    ])
    func `I5: a wrong token, and a path beside the known ones, find nothing`(path: String) async throws {
        let token = String(visitor.base.dropFirst().dropLast())
        let response = try await visitor.send("GET", path.replacingOccurrences(of: "TOKEN", with: token))
        #expect(response?.status == 404 && response?.text == "not found")
    }

    @Test(arguments: ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:PORT", "127.0.0.1:PORT.evil.example", ""])
    func `I5: a foreign host is refused, although the token is right`(host: String) async throws {
        let host = host.replacingOccurrences(of: "PORT", with: "\(visitor.port)")
        let response = try await visitor.send("GET", visitor.base, host: host)
        #expect(response?.status == 403 || response?.status == 400)
    }

    @Test(arguments: [
        "Origin: http://evil.example", "Origin: null", "Origin: https://127.0.0.1", "Sec-Fetch-Site: cross-site",
        "Sec-Fetch-Site: same-site",
    ])
    func `I5: a foreign origin is refused for each method`(field: String) async throws {
        #expect(try await visitor.send("GET", visitor.base, fields: [field])?.status == 403)
        let body = #"{"page":"x","action":"offline","value":1}"#
        #expect(try await visitor.send("POST", visitor.base + "act", fields: [field], body: body)?.status == 403)
    }

    @Test func `I5: no response allows other origins, and the page runs no foreign script`() async throws {
        for path in ["", "list?subject=1", "events?page=p", "nothing"] {
            let origin = "Origin: http://127.0.0.1:\(visitor.port)"
            let response = try #require(try await visitor.send("GET", visitor.base + path, fields: [origin]))
            #expect(!response.head.lowercased().contains("access-control"))
            let policy = try #require(response["Content-Security-Policy"])
            #expect(policy.hasPrefix("default-src 'none'") && policy.contains("frame-ancestors 'none'"))
            #expect(!policy.contains("unsafe") && !policy.contains("*"))
            #expect(response["X-Content-Type-Options"] == "nosniff" && response["Referrer-Policy"] == "no-referrer")
        }
        let page = try #require(try await visitor.send("GET", visitor.base))
        #expect(page["Content-Security-Policy"]?.contains("require-trusted-types-for 'script'") == true)
        #expect(!page.text.contains("{{nonce}}") && !page.text.contains("http://") && !page.text.contains("https://"))
    }

    @Test(arguments: ["POST", "PUT", "DELETE", "OPTIONS"])
    func `I5: only GET reads, and only POST acts`(method: String) async throws {
        let store = Store(cacher: MemoryCacher<Int, Int>()) { $0 }
        inspector.attach(store)
        for path in ["", "list?subject=1", "events?page=p", "item?subject=1&row=1"] {
            #expect(try await visitor.send(method, visitor.base + path, body: "")?.status == 405)
        }
        #expect(try await visitor.send("GET", visitor.base + "act?page=p&action=offline&value=1")?.status == 405)
        _ = try await store[1].requireData()
    }

    @Test func `I5: GET changes nothing in the store`() async throws {
        let fetches = WatchedState(0)
        let store = Store(cacher: MemoryCacher<Int, Int>()) { key in
            fetches.update { $0 += 1 }
            return key
        }
        inspector.attach(store)
        await store[1].update(5)
        let before = store.snapshot()
        for _ in 0..<3 {
            let row = try #require(try await visitor.row("1", of: 1))
            _ = try await visitor.get("item?subject=1&row=\(row)")
            _ = try await visitor.get("list?subject=1&q=1&filter=expired")
        }
        #expect(store.snapshot() == before && fetches.current == 0)
    }

    @Test func `I5: a request of 10 MB is refused without reading it`() async throws {
        let size = 10 << 20
        let long = String(repeating: "x", count: size)
        let chunks = String(repeating: "2000\r\n\(long.prefix(8_192))\r\n", count: size / 8_192)
        let post = "POST \(visitor.base)act HTTP/1.1\r\nHost: 127.0.0.1:\(visitor.port)\r\n"
        for (text, status) in [
            ("\(post)Content-Length: \(size)\r\n\r\n", 413), ("GET \(visitor.base)\(long)", 414),
            ("GET \(visitor.base) HTTP/1.1\r\nX: \(long)", 431), ("\(post)Transfer-Encoding: chunked\r\n\r\n\(chunks)", 413),
        ] {
            let client = try WireClient(port: visitor.port)
            try await client.write(Data(text.utf8), untilAnswered: true)
            #expect(try await client.response()?.status == status)
        }
        #expect(try await visitor.send("GET", visitor.base)?.status == 200)
    }

    @Test(arguments: [
        "", "{", "[]", #"{"page":"","action":"offline"}"#, #"{"page":"\#(String(repeating: "p", count: 100))","action":"x"}"#,
    ])
    func `I5: a malformed action does nothing`(body: String) async throws {
        #expect(try await visitor.send("POST", visitor.base + "act", body: body)?.status == 400)
    }

    @Test func `I5: an action of an unknown page is refused`() async throws {
        #expect(try await visitor.act("offline", #""value":1"#) == 409)
    }

    // MARK: I2

    @Test func `I2: 100 pages at once are served or refused, and the store works on`() async throws {
        let store = Store(cacher: MemoryCacher<Int, Int>()) { $0 }
        inspector.attach(store)
        var followers: [Follower] = []
        for number in 0..<100 {
            var visitor = visitor
            visitor.page = "page\(number)"
            let follower = try Follower(visitor)
            // A connection beyond the limit is closed at once.
            try? await follower.ask()
            followers.append(follower)
        }
        var statuses: [Int: Int] = [:]
        for follower in followers { statuses[try await follower.client.response()?.status ?? 0, default: 0] += 1 }
        let policy = Inspector.Policy()
        #expect(statuses[200, default: 0] == policy.pages && statuses[503, default: 0] == policy.connections - policy.pages)
        #expect(statuses[0, default: 0] == 100 - policy.connections)
        #expect(try await store[1].requireData() == 1)
        followers = []
        try await until("there is room again") { (try? await visitor.send("GET", visitor.base))??.status == 200 }
    }

    @Test func `I2: a page that stops reading blocks neither the store nor other pages, and is dropped`() async throws {
        var policy = Inspector.Policy()
        policy.idle = .milliseconds(300)
        let inspector = try Inspector.start(policy: policy)
        let visitor = Visitor(inspector.url)
        let store = Store(cacher: MemoryCacher<Int, String>()) { "\($0)" }
        inspector.attach(store)
        for key in 0..<200 { await store[key].update(String(repeating: "x", count: 1_000)) }
        let stuck = try WireClient(port: visitor.port)
        // Many responses that nothing reads; the server holds one of them.
        let request = visitor.request("GET", visitor.base)
        try await stuck.write((0..<400).reduce(into: Data()) { data, _ in data += request })
        for key in 0..<1_000 { _ = try await store[1_000 + key].requireData() }
        // Again, because a busy machine may take longer for it than the inspector waits for a request.
        try await until("another page is served") { try await visitor.send("GET", visitor.base)?.status == 200 }
        try await stuck.end()
        #expect(stuck.isEnded)
    }

    @Test func `I2: a client that sends nothing, or half a request, is dropped`() async throws {
        var policy = Inspector.Policy()
        policy.idle = .milliseconds(200)
        let inspector = try Inspector.start(policy: policy)
        let visitor = Visitor(inspector.url)
        let (silent, half) = (try WireClient(port: visitor.port), try WireClient(port: visitor.port))
        try await half.write(Data("GET \(visitor.base) HTTP/1.1\r\nHost".utf8))
        try await silent.end()
        try await half.end()
    }

    @Test func `I2: the timeline is bounded, and keeps the newest fetches`() async throws {
        let store = Store(cacher: MemoryCacher<Int, Int>()) { $0 }
        inspector.attach(store)
        for key in 0..<1_100 { _ = try await store[key].requireData() }
        let spans = inspector.board.timeline.changes(after: 0).spans
        #expect(spans.count == 1_000 && spans.last?.title == "1099" && spans.allSatisfy { $0.status == "ok" })
    }

    @Test func `I2: hits go past the inspector, and a store without one has no closure around its fetches`() async throws {
        let store = Store(cacher: MemoryCacher<Int, Int>()) { $0 }
        #expect(store.front != nil)
        inspector.attach(store)
        _ = try await store[1].requireData()
        for _ in 0..<100 { _ = try await store[1].requireData() }
        // The front serves hits without the engine, attached or not.
        #expect(store.front != nil && inspector.board.timeline.changes(after: 0).spans.count == 1)
        #expect(store.engine.fetches.interceptor.isSet)
        inspector.stop()
        #expect(!store.engine.fetches.interceptor.isSet)
    }

    @Test func `I2: an object that is attached again replaces itself, and released objects are forgotten`() async throws {
        let store = Store(cacher: MemoryCacher<Int, Int>()) { $0 }
        inspector.attach(store, name: "first")
        inspector.attach(store, name: "again")
        for _ in 0..<50 { inspector.attach(Store(cacher: MemoryCacher<Int, Int>()) { $0 }) }
        let event = try await Follower(visitor).next()
        let names = ((event["overview"] as? [String: Any])?["subjects"] as? [[String: Any]])?.compactMap { $0["name"] as? String }
        // The last one is gone too, which the next one would notice.
        #expect(names == ["again"] + Array(repeating: "Int", count: Inspector.Policy().gone + 1))
        _ = try await store[1].requireData()
        #expect(inspector.board.timeline.changes(after: 0).spans.count == 1)
    }

    // MARK: I3

    @Test func `I3: a row of a search leads to its own text`() async throws {
        let directory = try TemporaryDirectory()
        let texts = try TextStore(session: "s", directory: directory.url)
        try await texts.register(["a", "b", "c"].map { TextSource(identifier: $0, bundleFile: nil) })
        inspector.attach(texts)
        let rows = try await visitor.get("list?subject=1&q=B")["rows"] as? [[Any]]
        let row = try #require(rows?.first?.first as? Int)
        #expect(rows?.count == 1)
        #expect(try await visitor.get("item?subject=1&row=\(row)")["title"] as? String == "b")
    }

    @Test func `I3: events bring the subjects and the fetches as they happen`() async throws {
        let store = Store(cacher: MemoryCacher<Int, Int>(), name: "numbers") { $0 }
        inspector.attach(store)
        let follower = try Follower(visitor)
        let first = try await follower.next()
        let subjects = (first["overview"] as? [String: Any])?["subjects"] as? [[String: Any]]
        #expect(subjects?.map { $0["name"] as? String } == ["numbers"])
        _ = try await store[42].requireData()
        var spans: [[Any]] = []
        while spans.isEmpty { spans = (try await follower.next()["timeline"] as? [String: Any])?["spans"] as? [[Any]] ?? [] }
        #expect(spans.first?[2] as? String == "42" && spans.first?[4] as? String == "ok")
    }

    @Test func `I3: a part of thousands of keys is read by its position`() async throws {
        let count = max(12_000, rounds(100_000, quick: 12_000))
        let store = Store(cacher: MemoryCacher<Int, Int>(limit: 2 * count)) { $0 }
        inspector.attach(store)
        for key in 0..<count { await store[key].update(key) }
        let list = try await visitor.get("list?subject=1&from=\(count - 10)&count=50")
        #expect(list["total"] as? Int == count && (list["rows"] as? [[Any]])?.count == 10)
        let found = try await visitor.get("list?subject=1&q=\(count - 1)")
        #expect(found["total"] as? Int == 1)
    }

    @Test func `I3: a whole key comes first in a search, so that a link leads to it`() async throws {
        let store = Store(cacher: MemoryCacher<Int, Int>()) { $0 }
        inspector.attach(store)
        for key in (0..<1_000).reversed() { await store[key].update(key) }
        let rows = try await visitor.get("list?subject=1&q=7")["rows"] as? [[Any]]
        #expect(rows?.first?.dropFirst().first as? String == "7")
    }

    @Test func `I3: durations of any length are written`() {
        #expect(JSON.milliseconds(.seconds(Int64.max)).text == "9223372036854" && JSON.milliseconds(.milliseconds(-7)).text == "-7")
    }

    struct Unencodable: Sendable, CustomStringConvertible { let description: String }

    @Test func `I3: content that cannot be encoded is shown by its description`() async throws {
        let store = Store(cacher: MemoryCacher<String, Unencodable>()) { Unencodable(description: "<b>\($0)</b> \u{2028}") }
        inspector.attach(store)
        _ = try await store["<img src=x onerror=alert(1)>"].requireData()
        let row = try #require(try await visitor.row("<img src=x onerror=alert(1)>", of: 1))
        let item = try await visitor.get("item?subject=1&row=\(row)")
        #expect(item["json"] as? Bool == false && (item["record"] as? String)?.hasPrefix("<b><img") == true)
        // A browser that takes the response for HTML finds no element in it.
        let raw = try #require(try await visitor.send("GET", visitor.base + "item?subject=1&row=\(row)"))
        #expect(!raw.text.contains("<") && raw["Content-Type"] == "application/json")
    }

    @Test func `I3: a store that goes away while a page is open is shown as gone, and was not retained`() async throws {
        var store: Store<Int, Int>? = Store(cacher: MemoryCacher<Int, Int>()) { $0 }
        weak let engine = store?.engine
        inspector.attach(try #require(store))
        _ = try await store?[1].requireData()
        let follower = try Follower(visitor)
        _ = try await follower.next()
        let row = try #require(try await visitor.row("1", of: 1))
        store = nil
        #expect(engine == nil)
        var isGone = false
        while !isGone {
            let subjects = (try await follower.next()["overview"] as? [String: Any])?["subjects"] as? [[String: Any]]
            isGone = subjects?.first?["gone"] as? Bool == true
        }
        #expect(try await visitor.get("list?subject=1")["total"] as? Int == 0)
        #expect(try await visitor.send("GET", visitor.base + "item?subject=1&row=\(row)")?.status == 404)
        #expect(try await visitor.act("refresh", #""subject":1,"row":\#(row)"#) == 409)
    }
}
