import Foundation
import RemoteRoutingTesting
import StoreCore
import StoreCoreTesting
import Testing
import Trials

@testable import RemoteRouting

struct FreshnessTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var section: String
        var lines: [(String, String)]
        var expected: Freshness
        var requestedBefore = 0.0

        var testDescription: String { "\(section): \(lines)" }

        init(_ section: String, _ lines: [(String, String)], _ expected: Freshness, requestedBefore: Double = 0) {
            (self.section, self.lines, self.expected, self.requestedBefore) = (section, lines, expected, requestedBefore)
        }
    }

    /// Sun, 06 Nov 1994 08:49:37 GMT
    fileprivate static let now = Date(timeIntervalSince1970: 784_111_777)
    fileprivate static func date(_ offset: Double) -> String { HTTPDate.format(now.addingTimeInterval(offset)) }
    fileprivate static func cc(_ value: String) -> (String, String) { ("Cache-Control", value) }
    private static func fresh(_ seconds: Int) -> Freshness { .fresh(for: .seconds(seconds)) }
    fileprivate static let mustAsk = Freshness(lifetime: .zero, mustRevalidate: true)
    fileprivate static let neverSaved = Freshness(lifetime: .zero, mustRevalidate: true, storage: .forbidden)

    static let cases: [Case] = [
        // Lifetimes
        Case("RFC 9111 §4.2", [], .unspecified),
        Case("RFC 9111 §4.2.1", [cc("max-age=60")], fresh(60)),
        Case("RFC 9111 §4.2.1 max-age overrides Expires", [cc("max-age=60"), ("Expires", date(600)), ("Date", date(0))], fresh(60)),
        Case("RFC 9111 §4.2.1 Expires", [("Expires", date(600)), ("Date", date(0))], fresh(600)),
        Case("RFC 9111 §5.3 Expires without Date", [("Expires", date(600))], fresh(600)),
        Case("RFC 9111 §5.3 Expires 0", [("Expires", "0")], fresh(0)),
        Case("RFC 9111 §5.3 Expires -1", [("Expires", "-1")], fresh(0)),
        Case("RFC 9111 §5.3 Expires in the past", [("Expires", date(-5)), ("Date", date(0))], fresh(0)),
        Case("RFC 9111 §4.2.1 two Expires", [("Expires", date(600)), ("Expires", date(700))], fresh(0)),
        Case("RFC 9111 §5.2.2.10 s-maxage is for shared caches", [cc("s-maxage=600")], .unspecified),
        Case("RFC 9111 §5.2.2.10 s-maxage does not override max-age", [cc("s-maxage=600, max-age=5")], fresh(5)),
        Case("RFC 9111 §5.2.2.7 private allows a private cache", [cc("private, max-age=5")], fresh(5)),
        Case("RFC 9111 §5.2.2.9 public gives no lifetime", [cc("public")], .unspecified),
        Case("RFC 9111 §4.2.1 equal duplicates", [cc("max-age=5"), cc("max-age=5")], fresh(5)),
        Case("RFC 9111 §4.2.1 contradictory duplicates", [cc("max-age=5"), cc("max-age=6")], fresh(0)),
        Case("RFC 9111 §4.2.1 invalid max-age with a valid Expires", [cc("max-age=x"), ("Expires", date(600))], fresh(0)),
        Case("RFC 9111 §1.2.2 overflow", [cc("max-age=18446744073709551616")], fresh(2_147_483_648)),
        Case("RFC 9111 §4.2.2 no heuristics", [("Last-Modified", date(-1_000_000)), ("Date", date(0))], .unspecified),
        Case("RFC 8246 immutable gives no lifetime", [cc("immutable")], .unspecified),
        Case("RFC 8246 immutable does not change the lifetime", [cc("max-age=5, immutable")], fresh(5)),
        // Age
        Case("RFC 9111 §4.2.3 Age", [cc("max-age=60"), ("Age", "20")], fresh(40)),
        Case("RFC 9111 §4.2.3 apparent age", [cc("max-age=60"), ("Date", date(-20))], fresh(40)),
        Case("RFC 9111 §4.2.3 the larger age", [cc("max-age=60"), ("Date", date(-20)), ("Age", "30")], fresh(30)),
        Case("RFC 9111 §4.2.3 a Date in the future does not make the age negative", [cc("max-age=60"), ("Date", date(20))], fresh(60)),
        Case("RFC 9111 §4.2.3 response delay", [cc("max-age=60"), ("Age", "10")], fresh(45), requestedBefore: 5),
        Case("RFC 9111 §4.2.3 response delay without Age", [cc("max-age=60")], fresh(55), requestedBefore: 5),
        Case("RFC 9111 §5.1 first of several ages", [cc("max-age=60"), ("Age", "10, 50")], fresh(50)),
        Case("RFC 9111 §5.1 blanks around an age", [cc("max-age=60"), ("Age", "10 , 50")], fresh(50)),
        Case("RFC 9111 §5.1 invalid age", [cc("max-age=60"), ("Age", "-5")], fresh(60)),
        Case("RFC 9111 §5.1 overflowing age", [cc("max-age=60"), ("Age", "99999999999999999999")], fresh(0)),
        Case("RFC 9111 §4.2 stale on arrival", [cc("max-age=60"), ("Age", "70")], fresh(0)),
        Case("RFC 9110 §6.6.1 invalid Date", [cc("max-age=60"), ("Date", "yesterday")], fresh(60)),
        Case("RFC 9111 §5.3 Expires counts from Date", [("Expires", date(50)), ("Date", date(-20))], fresh(50)),
        // Mandatory revalidation
        Case("RFC 9111 §5.2.2.4 no-cache", [cc("no-cache")], mustAsk),
        Case("RFC 9111 §5.2.2.4 no-cache overrides max-age", [cc("max-age=60, no-cache")], mustAsk),
        Case("RFC 9111 §5.2.2.4 no-cache with field names applies to the response", [cc("no-cache=\"Set-Cookie\", max-age=60")], mustAsk),
        Case("RFC 9111 §5.2.2.5 no-store", [cc("no-store")], neverSaved),
        Case("RFC 9111 §5.2.2.5 no-store overrides max-age", [cc("max-age=60, NO-STORE")], neverSaved),
        Case(
            "RFC 9111 §4.1 more fields than a record keeps",
            [cc("max-age=60"), ("Vary", (0...64).map { "X-\($0)" }.joined(separator: ","))], mustAsk),
        Case("RFC 9111 §4.1 Vary *", [cc("max-age=60"), ("Vary", "*")], mustAsk),
        Case("RFC 9111 §4.1 Vary * among others", [cc("max-age=60"), ("Vary", "Accept, *")], mustAsk),
        Case("RFC 9111 §4.1 Vary by a field that the host changes", [cc("max-age=60"), ("Vary", "Accept"), ("Vary", "X-User")], mustAsk),
        Case("RFC 9111 §4.1 Vary by credentials", [cc("max-age=60"), ("Vary", "authorization")], mustAsk),
        Case(
            "RFC 9111 §4.1 Vary by fields that are the same for all users",
            [cc("max-age=60"), ("Vary", "Accept, Accept-Encoding, Cookie")], fresh(60)),
        // Stale windows
        Case(
            "RFC 9111 §5.2.2.2 must-revalidate", [cc("max-age=60, must-revalidate")],
            Freshness(lifetime: .seconds(60), mustRevalidate: true)),
        Case("RFC 9111 §5.2.2.2 must-revalidate without a lifetime", [cc("must-revalidate")], Freshness(mustRevalidate: true)),
        Case("RFC 9111 §5.2.2.8 proxy-revalidate is for shared caches", [cc("max-age=60, proxy-revalidate")], fresh(60)),
        Case(
            "RFC 5861 both windows", [cc("max-age=60, stale-while-revalidate=10, stale-if-error=20")],
            Freshness(lifetime: .seconds(60), staleWhileRevalidate: .seconds(10), staleIfError: .seconds(20))),
        Case(
            "RFC 5861 invalid windows are zero", [cc("stale-while-revalidate=x, stale-if-error")],
            Freshness(staleWhileRevalidate: .zero, staleIfError: .zero)),
        Case(
            "RFC 5861 a response that arrives stale has used part of its windows",
            [cc("max-age=60, stale-while-revalidate=10, stale-if-error=20"), ("Age", "75")],
            Freshness(lifetime: .zero, staleWhileRevalidate: .zero, staleIfError: .seconds(5))),
    ]

    private func exchange(_ lines: [(String, String)]) throws -> CachedExchange {
        CachedExchange(
            request: try fields(["Authorization": "secret", "X-User": "7"]), response: try fields(lines), requestedAt: FreshnessTests.now,
            respondedAt: FreshnessTests.now, changingFields: ["x-user"])
    }

    @Test(arguments: cases)
    func `H9: header fields determine the freshness`(_ example: Case) throws {
        var exchange = try exchange(example.lines)
        exchange.requestedAt -= example.requestedBefore
        #expect(Freshness(of: exchange) == example.expected)
    }

    @Test func `H9: a request with no-store forbids storing its response`() throws {
        var exchange = try exchange([FreshnessTests.cc("max-age=60")])
        exchange.request = try fields(["Cache-Control": "no-store"])
        #expect(Freshness(of: exchange) == FreshnessTests.neverSaved)
        exchange.request = HTTPFields()
        exchange.policy = .neverStore
        #expect(Freshness(of: exchange) == FreshnessTests.neverSaved)
    }

    @Test func `H9: ignoreLifetimes leaves lifetimes to the cacher and obeys no-store`() throws {
        var exchange = try exchange([FreshnessTests.cc("max-age=60, must-revalidate")])
        exchange.policy = .ignoreLifetimes
        #expect(Freshness(of: exchange) == .unspecified)
        exchange.response = try fields(["Cache-Control": "no-store"])
        #expect(Freshness(of: exchange) == Freshness(storage: .forbidden))
    }

    @Test(arguments: [
        (#""a""#, true), (#"W/"a""#, true), (#""""#, true), (#""a b""#, false), ("a", false), ("*", false), (#"w/"a""#, false),
        (#""a"b""#, false), (#"""#, false), ("W/", false), (#""ä""#, true), (#""a", "b""#, false),
    ])
    func `H9: a valid entity tag is stored verbatim, and an invalid tag is ignored`(text: String, isValid: Bool) throws {
        #expect(Validator(of: try fields(["ETag": text]), now: FreshnessTests.now)?.entityTag == (isValid ? text : nil))
    }

    @Test func `H9: a modification date is a validator, and repeated fields are ignored`() throws {
        let date = FreshnessTests.date(-5)
        #expect(Validator(of: try fields(["Last-Modified": date]), now: FreshnessTests.now) == Validator(lastModified: date))
        #expect(Validator(of: try fields(["Last-Modified": "today"]), now: FreshnessTests.now) == nil)
        let two = try fields(["Last-Modified": date, "last-modified": FreshnessTests.date(-9)])
        #expect(Validator(of: two, now: FreshnessTests.now) == nil)
        #expect(
            Validator(of: try fields(["ETag": #""a""#, "etag": #""b""#, "Last-Modified": date]), now: FreshnessTests.now)
                == Validator(lastModified: date))
    }

    @Test func `H9: a valid validator adds conditions, and a damaged validator adds none`() {
        var headers: Headers = [:]
        let date = FreshnessTests.date(-5)
        let damaged = Validator(entityTag: "a\r\nX: y", lastModified: "*")
        let isConditional = headers.append(conditionsOf: damaged, now: FreshnessTests.now)
        #expect(!isConditional && headers.lines.isEmpty)
        let isNowConditional = headers.append(conditionsOf: Validator(entityTag: #"W/"a""#, lastModified: date), now: FreshnessTests.now)
        #expect(isNowConditional)
        #expect(headers == ["If-None-Match": #"W/"a""#, "If-Modified-Since": date])
    }
}

/// The conditions that a fetcher adds to a route, and the page keys that it returns.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct ConditionTests {
    private let memory = MemoryTransport { request in
        .json("[1]").adding("Link", "<?page=3>; rel=next, <?page=1>; rel=prev")
    }

    private var host: RemoteHost { RemoteHost("a.example", transport: memory) }

    @Test func `H9: a store's conditions replace the route's own`() async throws {
        let fetcher = host.fetcher(of: [Int].self) { (_: Int) in
            Route(
                path: "/x",
                headers: ["If-None-Match": "\"own\"", "If-Modified-Since": "Sun, 06 Nov 1994 08:49:37 GMT", "If-Match": "\"own\""])
        }
        _ = try await fetcher.fetch(param: 1, revalidating: Validator(entityTag: "\"v1\""))
        _ = try await fetcher.fetch(param: 1, revalidating: nil)
        #expect(memory.requests.map { $0.fields.values(of: "If-None-Match") } == [["\"v1\""], ["\"own\""]])
        #expect(memory.requests.map { $0.fields["If-Modified-Since"] == nil } == [true, false])
        #expect(memory.requests.map { $0.fields["If-Match"] == nil } == [true, false])
    }

    @Test(arguments: [HTTPMethod.get, .post, .put])
    func `H9: a GET becomes conditional, and a POST or PUT does not`(_ method: HTTPMethod) async throws {
        let fetcher = host.fetcher(of: [Int].self) { (_: Int) in Route(path: "/x", method: method) }
        _ = try await fetcher.fetch(param: 1, revalidating: Validator(entityTag: "\"v1\""))
        #expect((memory.requests.last?.fields["If-None-Match"] != nil) == (method == .get))
    }

    @Test func `H9: an added page has a key in its own direction only`() async throws {
        let fetcher = host.pages(of: Int.self) { (_: Int) in Route(path: "/x") }
        let first = try await fetcher.respond(to: .content(1, revalidating: nil))
        #expect([first.nextKey, first.prevKey] == ["/x?page=3", "/x?page=1"])
        let next = try await fetcher.respond(to: .page(.next, key: "/x?page=2", 1))
        #expect([next.nextKey, next.prevKey] == ["/x?page=3", nil])
        let prev = try await fetcher.respond(to: .page(.prev, key: "/x?page=2", 1))
        #expect([prev.nextKey, prev.prevKey] == [nil, "/x?page=1"])
    }
}

/// The fields of a 304, which are merged into the stored ones (RFC 9111 §4.3.4).
@Suite(.timeLimit(.minutes(hangMinutes)))
struct ConfirmationTests {
    fileprivate typealias Fields = [(String, String)]
    private static let now = FreshnessTests.now
    private static func date(_ offset: Double) -> String { FreshnessTests.date(offset) }
    private static func cc(_ value: String) -> (String, String) { FreshnessTests.cc(value) }

    struct Case: Sendable, CustomTestStringConvertible {
        var name: String
        var stored: [(String, String)]
        var confirmed: [(String, String)]
        var expected: Freshness
        var tag: String

        var testDescription: String { name }

        fileprivate init(_ name: String, _ stored: Fields, then confirmed: Fields, _ expected: Freshness, tag: String = "\"v1\"") {
            (self.name, self.stored, self.confirmed, self.expected, self.tag) = (name, stored, confirmed, expected, tag)
        }
    }

    static let cases: [Case] = [
        Case("max-age stays above a new Expires", [cc("max-age=10")], then: [("Expires", date(100))], .fresh(for: .seconds(10))),
        Case(
            "a new max-age replaces the stored one", [cc("max-age=10, must-revalidate")], then: [cc("max-age=20")],
            .fresh(for: .seconds(20))),
        Case("Age counts against the stored max-age", [cc("max-age=100")], then: [("Age", "95")], .fresh(for: .seconds(5))),
        Case("the stored Age is not that of the confirmation", [cc("max-age=100"), ("Age", "60")], then: [], .fresh(for: .seconds(100))),
        Case(
            "must-revalidate and stale windows stay", [cc("max-age=10, must-revalidate, stale-if-error=7")], then: [("Date", date(0))],
            Freshness(lifetime: .seconds(10), staleIfError: .seconds(7), mustRevalidate: true)),
        Case(
            "the stored Expires is compared with the new Date", [("Expires", date(50)), ("Date", date(-20))], then: [("Date", date(10))],
            .fresh(for: .seconds(40))),
        Case("a new Cache-Control without a lifetime ends the stored one", [cc("max-age=10")], then: [cc("private")], .unspecified),
        Case(
            "a new entity tag replaces the stored one", [cc("max-age=10")], then: [("ETag", "\"v2\"")], .fresh(for: .seconds(10)),
            tag: "\"v2\""),
        Case(
            "a new entity tag replaces the stored one, although no message states a lifetime", [], then: [("ETag", "\"v2\"")],
            .unspecified, tag: "\"v2\""),
        Case("a malformed entity tag is ignored", [cc("max-age=10")], then: [("ETag", "v2")], .fresh(for: .seconds(10))),
        Case("no-store forbids to keep the content", [cc("max-age=10")], then: [cc("no-store")], FreshnessTests.neverSaved),
        Case("a new Vary applies", [cc("max-age=10")], then: [("Vary", "*")], FreshnessTests.mustAsk),
    ]

    private static func response(_ status: Int, _ lines: [(String, String)]) -> MemoryTransport.Response {
        var response = status == 304 ? MemoryTransport.Response.status(304) : .json("[1]")
        for (name, value) in lines { response = response.adding(name, value) }
        return response
    }

    @Test(arguments: cases)
    func `H19: a 304 merges its fields into the stored ones`(_ row: Case) async throws {
        let time = ManualTime(date: ConfirmationTests.now)
        let transport = MemoryTransport(
            inTurn: ConfirmationTests.response(200, row.stored + [("ETag", "\"v1\"")]), ConfirmationTests.response(304, row.confirmed),
            .status(404))
        let host = RemoteHost("api.example.com", transport: transport, time: time)
        // The second store reads the record of the first one, so the fields were saved with it.
        let cacher = MemoryCacher<Int, [Int]>()
        for isSecond in [false, true] {
            let store = Store(cacher: cacher, fetcher: host.fetcher(of: [Int].self) { (_: Int) in Route(path: "/x") }, time: time)
            #expect(try await store[1].requireData() == [1])
            if isSecond { #expect(try await store[1].requireData(from: .origin) == [1]) }
            try await store.waitUntilSaved()
        }
        let record = await cacher.load(param: 1)
        if row.expected.storage == .forbidden {
            #expect(record == nil)
        } else {
            #expect(record?.freshness == row.expected && record?.validator?.entityTag == row.tag)
        }
        #expect(transport.requests.map { $0.fields["If-None-Match"] } == [nil, "\"v1\""])
    }

    @Test func `H19: a 304 without fields keeps the freshness of the page function`() async throws {
        let transport = MemoryTransport(inTurn: .json("[1]").adding("Cache-Control", "max-age=60").adding("ETag", "\"v1\""), .status(304))
        let fetcher = RemoteHost("api.example.com", transport: transport).pages(parsing: { _ in
            Page([1], freshness: .fresh(for: .seconds(5)))
        }) { (_: Int, _: PageCursor?) in Route(path: "/log") }
        let first = try await fetcher.respond(to: .content(1, revalidating: nil)).result
        guard case .modified(_, _, let validator) = first else { throw TestError() }
        #expect(try await fetcher.respond(to: .content(1, revalidating: validator)).result == .notModified())
        #expect(transport.requests.map { $0.fields["If-None-Match"] } == [nil, "\"v1\""])
    }

    @Test func `H19: a Vary that only the 304 states selects the content, although no message states a lifetime`() async throws {
        let transport = MemoryTransport(inTurn: .json("[1]").adding("ETag", "\"v1\""), .status(304).adding("Vary", "Accept-Language"))
        let fetcher = RemoteHost("api.example.com", transport: transport).fetcher(of: [Int].self) { (language: String) in
            Route(path: "/x", headers: ["Accept-Language": language])
        }
        let content = try await fetcher.fetch(param: "en", revalidating: nil)
        guard case .modified(_, _, let known) = content else { throw TestError() }
        let confirmation = try await fetcher.fetch(param: "en", revalidating: known)
        guard case .notModified(_, let validator) = confirmation else { throw TestError() }
        let selected = try #require(validator)
        #expect(await fetcher.accepts(selected, param: "en"))
        #expect(await fetcher.accepts(selected, param: "de") == false)
    }

    @Test func `H9, H19: content that varies by an interceptor's field has no lifetime after a 304 without Vary`() async throws {
        let transport = MemoryTransport(
            inTurn: .json("[1]").adding("ETag", "\"v1\"").adding("Vary", "X-User"), .status(304).adding("Cache-Control", "max-age=60"))
        let host = RemoteHost("api.example.com", transport: transport)
            .intercepting(requests: Changing { try $0.fields.set("X-User", "7") })
        let fetcher = host.fetcher(of: [Int].self) { (_: Int) in Route(path: "/x") }
        guard case .modified(_, _, let known) = try await fetcher.fetch(param: 1, revalidating: nil) else { throw TestError() }
        guard case .notModified(let freshness, _) = try await fetcher.fetch(param: 1, revalidating: known) else { throw TestError() }
        #expect(freshness == FreshnessTests.mustAsk)
    }

    @Test func `H19: a new Last-Modified replaces the stored one, and survives the next confirmation`() async throws {
        let (old, new) = (ConfirmationTests.date(-100), ConfirmationTests.date(-50))
        let time = ManualTime(date: ConfirmationTests.now)
        let transport = MemoryTransport(
            inTurn: ConfirmationTests.response(200, [("Cache-Control", "max-age=10"), ("Last-Modified", old)]),
            ConfirmationTests.response(304, [("Last-Modified", new)]), .status(304), .status(304))
        let host = RemoteHost("api.example.com", transport: transport, time: time)
        let store = Store(
            cacher: MemoryCacher<Int, [Int]>(), fetcher: host.fetcher(of: [Int].self) { (_: Int) in Route(path: "/x") }, time: time)
        for _ in 0..<4 {
            #expect(try await store[1].requireData() == [1])
            #expect(try await store[1].requireData() == [1])
            time.advance(by: .seconds(11))
        }
        #expect(transport.requests.map { $0.fields["If-Modified-Since"] } == [nil, old, new, new])
    }
}
