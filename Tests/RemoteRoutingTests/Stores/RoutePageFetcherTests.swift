import Foundation
import LoopbackOrigin
import RemoteRoutingTesting
import StoreCore
import StoreCoreTesting
import Testing

@testable import RemoteHTTP
@testable import RemoteRouting

struct RoutePageFetcherTests {
    private let time = ManualTime(date: Date())
    private let origin: LoopbackOrigin

    init() throws { origin = try LoopbackOrigin() }

    private func host(_ origin: LoopbackOrigin) -> RemoteHost {
        RemoteHost(HostConfiguration("127.0.0.1", scheme: .http, port: Int(origin.port)), time: time)
    }

    private func store(
        _ origin: LoopbackOrigin, _ cacher: MemoryCacher<String, [Int]> = MemoryCacher(), page: Int = 1
    ) -> PaginationStore<String, Int> {
        let fetcher = host(origin).pages(of: Int.self) { (org: String) in
            Route(
                path: "/orgs/\(org)/items", query: ["per_page": 3, "page": page == 1 ? nil : page, "q": "a b&c"],
                headers: ["X-Trace": "t"])
        }
        return PaginationStore(cacher: cacher, fetcher: fetcher, time: time)
    }

    private func serve(_ origin: LoopbackOrigin, count: Int = 8) {
        origin.on(.get, "/orgs/:org/items") { request in
            .pages(of: Array(1...count), for: request).tagged().setting("Cache-Control", to: "max-age=60").revalidated(by: request)
        }
    }

    @Test func `H9: next links are followed to the end`() async throws {
        serve(origin)
        let items = store(origin)
        #expect(try await items["apple"].requireData() == [1, 2, 3])
        #expect(await items["apple"].requestNextData() == .loaded)
        #expect(await items["apple"].requestNextData() == .loaded)
        #expect(await items["apple"].requestNextData() == .noPage)
        #expect(try await items["apple"].requireData() == Array(1...8))
        #expect(origin.requests.map { $0.request.query("page") } == [nil, "2", "3"])
        // The query comes from the link, and the fields come from the route.
        #expect(origin.requests.allSatisfy { $0.request.query("q") == "a b&c" && $0.headers["X-Trace"] == "t" })
    }

    @Test func `C25, H9: a 304 with a link to the next page extends the list`() async throws {
        let hasGrown = Lock(false)
        let transport = MemoryTransport { request in
            if request.url.query()?.contains("page=2") == true { return .json("[4]") }
            let isConfirmed = request.fields["If-None-Match"] != nil
            let response: MemoryTransport.Response = isConfirmed ? .status(304) : .json("[1,2,3]")
            let tagged = response.adding("ETag", "\"1\"").adding("Cache-Control", "max-age=0")
            return hasGrown.withLock { $0 } ? tagged.adding("Link", "</rows?page=2>; rel=\"next\"") : tagged
        }
        let api = RemoteHost("api.example.com", transport: transport)
        let fetcher = api.pages(of: Int.self) { (_: Int) in Route(path: "/rows") }
        let rows = PaginationStore(cacher: MemoryCacher<Int, [Int]>(), fetcher: fetcher)
        #expect(try await rows[1].requireData() == [1, 2, 3])
        #expect(await rows[1].requestNextData() == .noPage)
        hasGrown.withLock { $0 = true }
        await rows[1].refresh()
        #expect(await rows[1].requestNextData() == .loaded)
    }

    @Test func `H9: prev links are followed to the beginning`() async throws {
        serve(origin)
        let items = store(origin, page: 2)
        #expect(try await items["apple"].requireData() == [4, 5, 6])
        #expect(await items["apple"].requestPrevData() == .loaded)
        #expect(await items["apple"].requestPrevData() == .noPage)
        #expect(await items["apple"].requestNextData() == .loaded)
        #expect(await items["apple"].requestNextData() == .noPage)
        #expect(try await items["apple"].requireData() == Array(1...8))
    }

    @Test func `C13, H9: a list of a single page is revalidated, and a list of several pages is fetched again`() async throws {
        serve(origin)
        let items = store(origin)
        _ = try await items["apple"].requireData()
        time.advance(by: .seconds(61))
        #expect(try await items["apple"].requireData() == [1, 2, 3])
        #expect(origin.requests.map(\.status) == [200, 304])
        #expect(await items["apple"].requestNextData() == .loaded)
        time.advance(by: .seconds(61))
        #expect(try await items["apple"].requireData() == [1, 2, 3, 4, 5, 6])
        #expect(origin.requests.map(\.status) == [200, 304, 200, 200, 200])
        #expect(await items["apple"].requestNextData() == .loaded)
    }

    @Test func `H9: a saved key works after the origin's port changes`() async throws {
        let cacher = MemoryCacher<String, [Int]>()
        let before = try LoopbackOrigin()
        serve(before)
        _ = try await store(before, cacher)["apple"].requireData()
        let saved = try #require(await cacher.load(param: "apple"))
        before.stop()
        let key = try #require(saved.nextKey)
        #expect(key.hasPrefix("/orgs/apple/items?") && !key.contains("127.0.0.1"))

        let after = try LoopbackOrigin()
        defer { after.stop() }
        serve(after)
        let items = store(after, cacher)
        #expect(try await items["apple"].requireData() == [1, 2, 3])
        #expect(await items["apple"].requestNextData() == .loaded)
        #expect(try await items["apple"].requireData() == [1, 2, 3, 4, 5, 6])
        #expect(after.requests.map { $0.request.query("page") } == ["2"])
    }

    @Test(arguments: [
        "http://evil.example/x?page=2", "//evil.example/x", "https://127.0.0.1/x", "http://127.0.0.1:1/x", "http://user@127.0.0.1/x",
        "file:///x",
    ])
    func `H9: a page that links to another origin is refused`(link: String) async throws {
        origin.on(.get, "/orgs/apple/items") { _ in .json([1]).setting("Link", to: "<\(link)>; rel=next") }
        let error = await #expect(throws: RemoteError.self) { try await store(origin)["apple"].requireData() }
        #expect(error?.code == .foreignPageLink)
        #expect((error?.underlyingError as? RouteFault)?.code == .foreignOrigin)
        #expect(error?.isRetryable == false)
    }

    @Test(arguments: ["http://evil.example/x", "//evil.example/x", "x", "/../x", "/x\r\nX: y"])
    func `H9: a saved key that leads to another origin is refused before anything is sent`(key: String) async throws {
        let cacher = MemoryCacher<String, [Int]>()
        await cacher.save(CacheRecord(content: [1], fetchedAt: time.date, nextKey: key), param: "apple")
        let items = store(origin, cacher)
        guard case .failed(let error) = await items["apple"].requestNextData() else {
            Issue.record("the key was accepted")
            return
        }
        #expect((error as? RemoteError)?.code == .invalidRoute)
        #expect(origin.requests.isEmpty)
    }

    private struct MessagePage: Codable, Sendable {
        var messages: [Int]
        var older: String?
        var newer: String?
    }

    @Test func `H9: cursors in the body work in both directions, and cannot inject parameters`() async throws {
        let (older, newer) = ("a&before=x#/../?", "b c+d")
        origin.on(.get, "/rooms/lobby/messages") { request in
            switch (request.query("after"), request.query("before")) {
            case (nil, nil): .json(MessagePage(messages: [5, 6], older: older, newer: newer))
            case (older, nil): .json(MessagePage(messages: [7], older: ""))
            case (nil, newer): .json(MessagePage(messages: [3, 4], older: "wrong side"))
            default: .status(400)
            }
        }
        let fetcher = host(origin).pages(in: MessagePage.self, elements: { $0.messages }, next: { $0.older }, prev: { $0.newer }) {
            (room: String, cursor: PageCursor?) in
            Route(path: "/rooms/\(room)/messages", query: ["after": cursor?.next, "before": cursor?.prev])
        }
        let messages = PaginationStore(cacher: MemoryCacher<String, [Int]>(), fetcher: fetcher, time: time)
        #expect(try await messages["lobby"].requireData() == [5, 6])
        #expect(await messages["lobby"].requestNextData() == .loaded)
        #expect(await messages["lobby"].requestPrevData() == .loaded)
        #expect(await messages["lobby"].requestNextData() == .noPage)
        #expect(await messages["lobby"].requestPrevData() == .noPage)
        #expect(try await messages["lobby"].requireData() == [3, 4, 5, 6, 7])
    }
}

struct LinkHeaderTests {
    private func targets(_ lines: String..., relation: String = "next") throws -> [String] {
        LinkHeader(try fields(lines.map { ("Link", $0) })).links.filter { $0.relations.contains(relation) }.map(\.target)
    }

    @Test(
        arguments: [
            (#"<https://h/a?p=2>; rel="next""#, ["https://h/a?p=2"]), ("<a>;rel=next", ["a"]), (#"<a> ; REL = "NEXT""#, ["a"]),
            (#"<a>; rel="prev next last""#, ["a"]), (#"<a>; rel="prev", <b>; rel="next""#, ["b"]), (#"<a,b>; rel=next"#, ["a,b"]),
            (#"<a>; title="x, <z>; rel=\"next\""; rel=next"#, ["a"]), (#"<a>; rel=prev; rel=next"#, []), (#"<a>; rel"#, []), ("<a>", []),
            (#"<a>; title=x y; rel=next"#, ["a"]), ("<a; rel=next", []), ("a; rel=next", []), (", ,<a>; rel=next,", ["a"]),
            (#"<a>;;rel=next"#, ["a"]), (#"<>; rel="next""#, [""]), (#"<a>; rel="nextpage""#, []), (#"<a>; rel="next"#, []),
            (#"<a>; rel=http://x/y, <b>; rel=next"#, ["b"]),
        ] as [(String, [String])])
    func `H9: links are parsed by RFC 8288`(line: String, expected: [String]) throws {
        #expect(try targets(line) == expected)
    }

    @Test func `H9: links in several lines and with several relations are parsed`() throws {
        #expect(try targets("<a>; rel=next", "broken", "<b>; rel=next") == ["a", "b"])
        #expect(try targets("<a>; rel=next, <b>; rel=prev", relation: "prev") == ["b"])
    }

    @Test func `H9: a link with an anchor does not belong to the response`() throws {
        let fields = try fields(["Link": #"<a>; rel=next; anchor="/other", <b>; rel=next"#])
        #expect(fields.link("Next") == "b" && fields.link("prev") == nil)
    }
}

struct URIReferenceTests {
    /// The examples of RFC 3986 §5.4.
    @Test(
        arguments: [
            ("g:h", "g:h"), ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"), ("/g", "http://a/g"),
            ("//g", "http://g"), ("?y", "http://a/b/c/d;p?y"), ("g?y", "http://a/b/c/g?y"), ("#s", "http://a/b/c/d;p?q#s"),
            ("g#s", "http://a/b/c/g#s"), ("g?y#s", "http://a/b/c/g?y#s"), (";x", "http://a/b/c/;x"), ("g;x", "http://a/b/c/g;x"),
            ("g;x?y#s", "http://a/b/c/g;x?y#s"), ("", "http://a/b/c/d;p?q"), (".", "http://a/b/c/"), ("./", "http://a/b/c/"),
            ("..", "http://a/b/"), ("../", "http://a/b/"), ("../g", "http://a/b/g"), ("../..", "http://a/"), ("../../", "http://a/"),
            ("../../g", "http://a/g"), ("../../../g", "http://a/g"), ("../../../../g", "http://a/g"), ("/./g", "http://a/g"),
            ("/../g", "http://a/g"), ("g.", "http://a/b/c/g."), (".g", "http://a/b/c/.g"), ("g..", "http://a/b/c/g.."),
            ("..g", "http://a/b/c/..g"), ("./../g", "http://a/b/g"), ("./g/.", "http://a/b/c/g/"), ("g/./h", "http://a/b/c/g/h"),
            ("g/../h", "http://a/b/c/h"), ("g;x=1/./y", "http://a/b/c/g;x=1/y"), ("g;x=1/../y", "http://a/b/c/y"),
            ("g?y/./x", "http://a/b/c/g?y/./x"), ("g?y/../x", "http://a/b/c/g?y/../x"), ("g#s/./x", "http://a/b/c/g#s/./x"),
            ("http:g", "http:g"), ("g/h:i", "http://a/b/c/g/h:i"), ("g_h:i", "http://a/b/c/g_h:i"), ("g+h-1.i:j", "g+h-1.i:j"),
            ("1g:h", "http://a/b/c/1g:h"),
        ] as [(String, String)])
    func `H4: references are resolved by RFC 3986`(reference: String, expected: String) {
        #expect(URIReference(reference).resolved(against: URIReference("http://a/b/c/d;p?q"))?.text == expected)
    }

    @Test func `H4: a relative base resolves nothing`() {
        #expect(URIReference("g").resolved(against: URIReference("/a/b")) == nil)
        #expect(URIReference("g").resolved(against: URIReference("http://a"))?.text == "http://a/g")
    }
}

struct OriginReferenceTests {
    private let base = URL(string: "https://api.example.com/v1/repos?page=1")!
    private let origin: WebOrigin

    init() throws { origin = try WebOrigin(scheme: .https, host: "api.example.com") }

    @Test(
        arguments: [
            ("https://api.example.com/v1/repos?page=2", "/v1/repos?page=2"), ("https://API.example.com:443/x", "/x"), ("/x?y", "/x?y"),
            ("?page=2", "/v1/repos?page=2"), ("repos?page=2", "/v1/repos?page=2"), ("./repos?page=2", "/v1/repos?page=2"),
            ("../z", "/z"), ("//api.example.com/x", "/x"),
            ("https://api.example.com", "/"), ("https://api.example.com?x=1", "/?x=1"), ("/x?a=b%20c&d=e+f/../g", "/x?a=b%20c&d=e+f/../g"),
            ("/x?f[a]=1", "/x?f%5Ba%5D=1"), ("/x#fragment", "/x"), ("/x y?q=a b", "/x%20y?q=a%20b"),
            ("/\u{E4}?q=\u{E4}", "/%C3%A4?q=%C3%A4"), ("/caf%C3%A9?q=\u{E9}", "/caf%C3%A9?q=%C3%A9"), ("/x?q=\"a\"", "/x?q=%22a%22"),
            ("/x?q=<a>", "/x?q=%3Ca%3E"), ("/x?q=50%", "/x?q=50%25"), (" /x ", "/x"), ("/x?q=\\", "/x?q=%5C"),
            ("https://api.example.com:/x", "/x"),
        ] as [(String, String)])
    func `H9: a link within the origin is stored without its origin`(link: String, kept: String) throws {
        let reference = try OriginReference(link: link, from: base, at: origin)
        #expect(reference.text == kept)
        #expect(try OriginReference(kept: reference.text) == reference)
        let elsewhere = try WebOrigin(scheme: .http, host: "127.0.0.1", port: 8080)
        #expect(try reference.resolved(at: elsewhere).absoluteString == "http://127.0.0.1:8080" + kept)
    }

    @Test(arguments: [
        "https://evil.example/x", "//evil.example/x", "http://api.example.com/x", "https://api.example.com:444/x",
        "https://user@api.example.com/x",
        "https://api.example.com@evil.example/x", "ftp://api.example.com/x", "javascript:alert(1)", "https:///x",
        "https://api.example.com\\@evil/",
        "/\\evil.example", "", " ", "/x\u{7}", "/x\n", "/%2e%2e/x", "https://api.example.com:99999999999999999999/x", "/a//..//%252e",
        "https://api.example.com.evil.example/", "file:///etc/passwd", "https:x",
    ])
    func `H9: a link to another origin is refused`(link: String) {
        let error = #expect(throws: RouteFault.self) { try OriginReference(link: link, from: base, at: origin) }
        #expect(error?.code == .foreignOrigin)
    }

    @Test(arguments: ["", "x", "//evil.example/", "https://evil.example/", "/x#y", "/../x", "/a/..", "/x\r\n", "/\\evil", "?x", "/x y"])
    func `H9: a saved link to another origin is refused`(text: String) {
        #expect(throws: RouteFault.self) { try OriginReference(kept: text) }
    }
}
