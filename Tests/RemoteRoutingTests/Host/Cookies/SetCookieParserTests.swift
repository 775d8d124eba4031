import Foundation
import StoreCore
import Testing
import Trials

@testable import RemoteHTTP
@testable import RemoteRouting

struct SetCookieParserTests {
    @Test(arguments: [
        ("a=b", "a", "b"), ("  a \t=\t b  ", "a", "b"), ("a=", "a", ""), ("=b", "", "b"), ("b", "", "b"), ("a=b=c", "a", "b=c"),
        ("a=\"b c\"", "a", "\"b c\""), ("a=b;", "a", "b"), ("a=b,c", "a", "b,c"), ("é=\u{1F36A}", "é", "\u{1F36A}"), ("a=b;;;x", "a", "b"),
    ])
    func `W12: a line splits into name and value at the first equals sign`(line: String, name: String, value: String) {
        #expect(SetCookieParser.parse(line) == SetCookie(name: name, value: value))
    }

    @Test(arguments: [
        "", "=", " = ; Path=/", ";", "a=b\u{0}", "a=\rb", "a=b\nSet-Cookie: c=d", "a\u{1F}=b", "a=b; Path=/\u{7F}",
        "a=" + String(repeating: "x", count: 4096), String(repeating: "x", count: 4096) + "=a", String(repeating: "é", count: 2049),
    ])
    func `W12: a line with control characters, without content or over 4 096 bytes is ignored`(line: String) {
        #expect(SetCookieParser.parse(line) == nil)
    }

    @Test func `W12: a pair of exactly 4 096 bytes is accepted`() {
        #expect(SetCookieParser.parse("a=" + String(repeating: "x", count: 4095))?.value.utf8.count == 4095)
    }

    @Test func `W12: attributes are parsed in any case and with blanks`() {
        let cookie = SetCookieParser.parse(
            "a=b;MAX-AGE = 5 ; domain=.Example.COM;path=/x; SECURE; httponly=yes; sAmEsItE=STRICT; Unknown=1")
        var expected = SetCookie(name: "a", value: "b")
        (expected.maxAge, expected.domain, expected.path) = (5, "example.com", "/x")
        (expected.isSecure, expected.isHTTPOnly, expected.sameSite) = (true, true, .strict)
        #expect(cookie == expected)
    }

    @Test func `W12: the last valid attribute of a name applies`() {
        let cookie = SetCookieParser.parse(
            "a=b; Max-Age=1; Max-Age=2; Max-Age=x; Domain=x.example; Domain=y.example; Path=/1; Path=/2; Secure; Secure; HttpOnly; HttpOnly; "
                + "SameSite=Strict; SameSite=Lax; Expires=Thu, 01 Jan 2009 00:00:00 GMT; Expires=Fri, 01 Jan 2010 00:00:00 GMT; Expires=never"
        )
        var expected = SetCookie(name: "a", value: "b")
        (expected.maxAge, expected.domain, expected.path, expected.sameSite) = (2, "y.example", "/2", .lax)
        (expected.isSecure, expected.isHTTPOnly) = (true, true)
        expected.expires = Date(timeIntervalSince1970: 1_262_304_000)
        #expect(cookie == expected)
    }

    @Test(
        arguments: [
            ("0", 0), ("-5", -5), ("007", 7), ("99999999999999999999999", Int.max), ("-99999999999999999999999", Int.min), ("", nil),
            ("-", nil), ("+5", nil), ("5s", nil), ("5.0", nil), ("٣", nil), ("--5", nil),
        ] as [(String, Int?)])
    func `W12: Max-Age is a number of seconds`(text: String, seconds: Int?) {
        #expect(SetCookieParser.parse("a=b; Max-Age=\(text)")?.maxAge == seconds)
    }

    @Test(arguments: ["", "x", "*"])
    func `W12: a Path without a leading slash selects the default`(path: String) {
        #expect(SetCookieParser.parse("a=b; Path=/x; Path=\(path)")?.path == "")
    }

    @Test func `W12: an attribute over 1 024 bytes is ignored`() {
        let long = String(repeating: "x", count: 1024)
        #expect(SetCookieParser.parse("a=b; Path=/1; Path=/\(long)")?.path == "/1")
        #expect(SetCookieParser.parse("a=b; Path=/1; Path=/\(long.dropFirst())")?.path == "/" + long.dropFirst())
    }

    @Test func `W12: a domain keeps letters that lowercasing would map to ASCII`() {
        #expect(SetCookieParser.parse("a=b; Domain=ban\u{212A}.example")?.domain == "ban\u{212A}.example")
    }

    @Test func `W12: lines of megabytes are parsed in one pass`() {
        let giant = String(repeating: "x", count: rounds(10_000_000, quick: 1_000_000))
        #expect(SetCookieParser.parse("a=" + giant) == nil)
        #expect(SetCookieParser.parse(giant) == nil)
        #expect(SetCookieParser.parse("a=b; Path=" + giant) == SetCookie(name: "a", value: "b"))
        #expect(SetCookieParser.parse("a=b" + String(repeating: "; Secure", count: rounds(100_000, quick: 20_000)))?.isSecure == true)
    }

    @Test func `W12: joined lines are split, and dates stay whole`() {
        let joined = "a=b; Expires=Thu, 01 Jan 2009 00:00:00 GMT; Path=/, c=d,e=f; expires=Thu, 01-Jan-2009 00:00:00 GMT, g=1,2"
        #expect(
            SetCookieLines.separate(joined) == [
                "a=b; Expires=Thu, 01 Jan 2009 00:00:00 GMT; Path=/", "c=d", "e=f; expires=Thu, 01-Jan-2009 00:00:00 GMT", "g=1,2",
            ])
        #expect(SetCookieLines.separate("a=b") == ["a=b"])
        #expect(SetCookieLines.separate("") == [""])
        #expect(SetCookieLines.separate(",") == [","])
    }

    @Test func `W12: an attribute without an equals sign has an empty value`() {
        let cookie = SetCookieParser.parse("a=b; Domain=x.example; Domain; Path=/x; Path; Max-Age=5; Max-Age; Secure")
        #expect(cookie?.domain == "" && cookie?.path == "" && cookie?.maxAge == 5 && cookie?.isSecure == true)
    }
}

struct CookieDateTests {
    @Test(
        arguments: [
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777), ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
            ("Sun Nov  6 08:49:37 1994", 784_111_777), ("06 nov 1994 8:49:37", 784_111_777), ("1994 6 November 08:49:37", 784_111_777),
            ("08:49:37,06;Nov/1994", 784_111_777), ("Sun, 06 Nov 1994 08:49:37.123 +0100", 784_111_777),
            ("Nov 06th 1994 08:49:37Z", 784_111_777), ("Thu, 01-Jan-1970 00:00:00 GMT", 0), ("Wed, 1 Jan 2020 0:0:0 GMT", 1_577_836_800),
            ("01 Jan 69 00:00:00", 3_124_224_000), ("01 Jan 70 00:00:00", 0), ("29 Feb 2000 12:00:00", 951_825_600),
            ("1 Jan 1601 00:00:00", -11_644_473_600),
        ] as [(String, Int)])
    func `W12: a date is parsed leniently`(text: String, seconds: Int) {
        #expect(CookieDate.parse(text.utf8) == Date(timeIntervalSince1970: Double(seconds)))
    }

    @Test(arguments: [
        "", "0", "-1", "never", "06 Nov 1994", "Nov 1994 08:49:37", "06 1994 08:49:37", "06 Nov 08:49:37", "31 Feb 1994 08:49:37",
        "29 Feb 1900 00:00:00", "32 Jan 1994 08:49:37", "00 Jan 1994 08:49:37", "06 Nov 1994 24:00:00", "06 Nov 1994 08:60:00",
        "06 Nov 1994 08:49:60", "06 Nov 1600 08:49:37", "06 Nov 19940 08:49:37", "006 Nov 1994 08:49:37", "06 Nov 1994 008:49:37",
        "06 Nov 1994 08:49", "06 Nov 1994 8::37", "06 Növ 1994 08:49:37", "٠٦ Nov 1994 08:49:37",
    ])
    func `W12: a text with a missing or invalid part is not a date`(text: String) {
        #expect(CookieDate.parse(text.utf8) == nil)
    }
}

/// A cookie storage with a manual clock.
struct CookieBench {
    var storage: CookieStorage
    var now = Date(timeIntervalSince1970: 1_000_000_000)

    init(shared: Set<String> = [], limits: CookieStorage.Limits = .init()) {
        storage = CookieStorage(sharedDomains: shared, limits: limits)
    }

    mutating func set(_ lines: String..., at address: String = "https://a.example/") throws {
        storage.receive(lines, from: try request(address), now: now)
    }

    mutating func sent(to address: String = "https://a.example/", _ method: HTTPMethod = .get, after hops: [String] = []) throws -> String?
    {
        storage.header(for: try request(address), isSafe: method.isSafe, after: try hops.map(request), now: now)
    }

    var all: [Cookie] { storage.cookies.values.flatMap(\.self) }

    private func request(_ address: String) throws -> CookieRequest {
        let url = try #require(URL(string: address))
        return try #require(CookieRequest(url), "\(address) cannot have cookies")
    }
}

/// A cacher that records its calls, and fails or waits on command.
final class CookieDisk: Cacher {
    struct Refused: Error {}

    struct State: Sendable {
        var records: [String: CacheRecord<[Cookie]>] = [:]
        var isBroken = false
        /// Whether `keys()` succeeds although the cacher is broken.
        var listsAlways = false
        var lists = true
        var calls: [String] = []
        /// The prefix of the calls that wait; `nil` if none waits.
        var held: String?
        var running = 0
        var mostRunning = 0
    }

    let state = WatchedState(State())

    private func call<Result: Sendable>(_ name: String, _ body: @Sendable (inout State) -> Result) async throws -> Result {
        state.update {
            $0.calls.append(name)
            $0.running += 1
            $0.mostRunning = max($0.mostRunning, $0.running)
        }
        defer { state.update { $0.running -= 1 } }
        _ = try await state.wait { $0.held.map(name.hasPrefix) == true ? nil : true }
        if state.current.isBroken, !(state.current.listsAlways && name == "keys") { throw Refused() }
        return state.update(body)
    }

    func load(param: String) async throws -> CacheRecord<[Cookie]>? { try await call("load \(param)") { $0.records[param] } }
    func save(_ record: CacheRecord<[Cookie]>, param: String) async throws {
        try await call("save \(param)") { $0.records[param] = record }
    }
    func remove(param: String) async throws { try await call("remove \(param)") { $0.records[param] = nil } }
    func removeAll() async throws { try await call("removeAll") { $0.records = [:] } }
    func keys() async throws -> [String]? { try await call("keys") { $0.lists ? Array($0.records.keys) : nil } }
}
