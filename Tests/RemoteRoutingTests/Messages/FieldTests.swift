import Foundation
import Testing
import Trials

@testable import RemoteHTTP

func fields(_ lines: KeyValuePairs<String, String>) throws -> HTTPFields { try fields(lines.map { ($0.key, $0.value) }) }

func fields(_ lines: [(String, String)]) throws -> HTTPFields {
    var fields = HTTPFields()
    for (name, value) in lines { try fields.append(name, value) }
    return fields
}

struct HTTPDateTests {
    private let now = Date(timeIntervalSince1970: 1_700_000_000)  // 2023-11-14

    @Test(
        arguments: [
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777), ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
            ("Sun Nov  6 08:49:37 1994", 784_111_777), ("Sun Nov 06 08:49:37 1994", 784_111_777),
            // A leap second.
            ("Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_799),
        ] as [(String, TimeInterval)])
    func `a date is parsed in all three forms, and a leap second as the second before it`(text: String, seconds: TimeInterval) {
        #expect(HTTPDate.parse(text, now: now) == Date(timeIntervalSince1970: seconds))
    }

    @Test(arguments: [
        "", "0", "-1", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 06 Nov 1994 08:49:37 +0100",
        "Xyz, 06 Nov 1994 08:49:37 GMT", "Sun, 6 Nov 1994 08:49:37 GMT", "Sun, 06 nov 1994 08:49:37 GMT", "Sun, 31 Feb 1994 08:49:37 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 1994 08:60:37 GMT", "Sun, 06 Nov 1994 08:49:61 GMT",
        "Sun, 06 Nov 1994 8:49:37 GMT", "Sun, 06 Nov 94 08:49:37 GMT", "Sun, 06 Nov 19940 08:49:37 GMT", "1994-11-06T08:49:37Z",
        "Sun, 06 Nov 1994 08:49:37:00 GMT", "Sun, 06 Nov 1994 08:4٣:37 GMT", "Thu, 29 Feb 1900 00:00:00 GMT",
        "Sun,  06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994  08:49:37 GMT", "Sunday,  06-Nov-94 08:49:37 GMT", "Sun Nov 6 08:49:37 1994",
        "Sun  Nov 06 08:49:37 1994", " Sun, 06 Nov 1994 08:49:37 GMT",
    ])
    func `a malformed date is rejected`(text: String) {
        #expect(HTTPDate.parse(text, now: now) == nil)
    }

    @Test(arguments: [("73", 2073), ("74", 1974), ("99", 1999), ("00", 2000), ("23", 2023)])
    func `a two-digit year is at most fifty years in the future`(year: String, expected: Int) throws {
        let date = try #require(HTTPDate.parse("Sunday, 06-Nov-\(year) 08:49:37 GMT", now: now))
        #expect(CivilMoment(date).year == expected)
    }

    @Test func `a formatted date parses to the same date, across four centuries`() {
        for day in stride(from: -80_000, to: 80_000, by: isWholeRun ? 13 : 61) {
            let date = Date(timeIntervalSince1970: Double(day) * 86_400 + 45_296)
            #expect(HTTPDate.parse(HTTPDate.format(date), now: now) == date)
        }
        #expect(HTTPDate.format(Date(timeIntervalSince1970: 951_782_400)) == "Tue, 29 Feb 2000 00:00:00 GMT")
        #expect(HTTPDate.format(Date(timeIntervalSince1970: 784_111_777.9)) == "Sun, 06 Nov 1994 08:49:37 GMT")
    }
}

struct RetryAfterTests {
    private let now = Date(timeIntervalSince1970: 784_111_777.5)

    @Test(
        arguments: [
            (["0"], .zero), (["120"], .seconds(120)), (["99999999999999999999"], .seconds(2_147_483_648)),
            (["Sun, 06 Nov 1994 08:49:47 GMT"], .seconds(10)), (["Sun, 06 Nov 1994 08:49:30 GMT"], .zero),
            // The longest of several applies.
            (["1", "5"], .seconds(5)), ([], nil),
        ] as [([String], Duration?)])
    func `H7: Retry-After is parsed as seconds or as a date`(values: [String], expected: Duration?) throws {
        #expect(RetryAfter.delay(in: try fields(values.map { ("retry-after", $0) }), now: now) == expected)
    }

    @Test(arguments: ["", "-1", "+3", "1.5", "soon", "1 2", "5, 7", "0x10", "٣", "Sun, 06 Nov 1994 08:49:37"])
    func `H7: a malformed Retry-After is ignored`(value: String) throws {
        #expect(RetryAfter.delay(in: try fields(["Retry-After": value]), now: now) == nil)
    }

    @Test(arguments: [("Sun, 06 Nov 1994 08:49:37 GMT", [-86_400, 0, 86_400, 1e9]), ("yesterday", [0])])
    func `C24: a date in Retry-After counts from a valid Date, otherwise from this clock`(date: String, offsets: [TimeInterval]) throws {
        let fields = try fields(["Date": date, "Retry-After": "Sun, 06 Nov 1994 08:51:37 GMT"])
        for offset in offsets { #expect(RetryAfter.delay(in: fields, now: now.addingTimeInterval(offset)) == .seconds(120)) }
    }
}

struct CacheControlTests {
    private func control(_ lines: String...) throws -> CacheControl {
        CacheControl(try fields(lines.map { ("Cache-Control", $0) }))
    }

    @Test(
        arguments: [
            ("max-age=60", DeltaSeconds.seconds(60)), ("Max-Age=60", .seconds(60)), ("max-age=\"60\"", .seconds(60)),
            ("private, max-age=60", .seconds(60)), (", ,max-age=60, ,", .seconds(60)), ("ext=\"a, max-age=1\", max-age=60", .seconds(60)),
            ("ext=\"a\\\", max-age=1\", max-age=60", .seconds(60)), ("max-age=99999999999999999999", .seconds(2_147_483_648)),
            ("max-age=2147483649", .seconds(2_147_483_648)), ("max-age", .invalid), ("max-age=", .invalid), ("max-age=-1", .invalid),
            ("max-age=1.5", .invalid), ("max-age=a", .invalid), ("max-age=60, max-age=60", .seconds(60)),
            ("max-age=60, max-age=70", .invalid), ("@@@, max-age=60", .seconds(60)), ("a b, max-age=60", .seconds(60)),
        ] as [(String, DeltaSeconds)])
    func `H9: the seconds of a directive are parsed from any Cache-Control`(line: String, expected: DeltaSeconds) throws {
        #expect(try control(line).seconds("max-age") == expected)
    }

    @Test func `H9: directives of several lines form a single list`() throws {
        let control = try control("no-cache=\"Set-Cookie, X\"", "IMMUTABLE")
        #expect(control.contains("no-cache") && control.contains("immutable") && !control.contains("set-cookie"))
        #expect(control.directives.first?.argument == "Set-Cookie, X" && control.seconds("max-age") == nil)
    }

    @Test func `random field values do not crash the parsers`() throws {
        var random = SplitMix(seed: 9)
        let alphabet = Array("ab=\",;\\ 09<>")
        for _ in 0..<5000 {
            let text = String((0..<Int.random(in: 0..<12, using: &random)).map { _ in alphabet.randomElement(using: &random) ?? "a" })
            guard text.isFieldValue else { continue }
            _ = try control(text)
            _ = LinkHeader(try fields(["Link": text]))
            _ = MimeType(rawValue: text)
        }
    }
}

struct FieldValueTests {
    @Test(arguments: [
        ("a", "a"), (" \ta b\t ", "a b"), ("", ""), (" \t", ""), ("\u{A0}a\u{A0}", "\u{A0}a\u{A0}"), (" ä\u{301} ", "ä\u{301}"),
    ])
    func `blanks at the ends of a value are removed`(written: String, value: String) {
        #expect(written[...].withoutBlanksAtEnds == value)
    }

    @Test func `lines with the same name are joined in order`() throws {
        let fields = try fields(["Vary": "Accept", "ETag": "\"1\"", "vary": "Origin", "VARY": "Cookie"])
        #expect(fields["vary"] == "Accept, Origin, Cookie" && fields["etag"] == "\"1\"" && fields["Date"] == nil)
    }
}

struct MimeTypeTests {
    @Test(arguments: [
        ("application/json", "application/json"), ("Application/JSON;Charset=\"utf-8\"", "application/json; charset=utf-8"),
        ("text/html ; charset=\"a b\\\"c\" ;; q=1", "text/html; charset=\"a b\\\"c\"; q=1"), ("a/b;", "a/b"),
        // A malformed parameter does not hide the type.
        ("a/b;c", "a/b"), ("a/b;c=", "a/b"), ("a/b; c=\"d", "a/b"), ("a/b;=c", "a/b"), ("a/b; c = d; e=f", "a/b; e=f"),
        ("application/json; charset", "application/json"), ("text/html;charset=utf-8, text/html", "text/html; charset=utf-8"),
        ("a/b; c=d e; f=\"g;h\"; i", "a/b; c=d; f=\"g;h\""), ("a/b; \u{E4}=c; d=e", "a/b; d=e"), ("a/b; c=\u{E4}; d=e", "a/b; d=e"),
    ])
    func `H10: a media type is parsed and normalized, without malformed parameters`(text: String, expected: String) {
        #expect(MimeType(rawValue: text)?.rawValue == expected)
    }

    @Test(arguments: [
        "", "json", "a/", "/b", "a/b c", "a /b", "a/b\r\n", "a/b, c/d", "a/b; c=\"\u{1}\"", "text/plain; a=\"x\r\nEvil: y\"",
        "text/plain; a=\"\n\"", "text/plain; a=\"\u{0}\"", "text/plain; a=\"\\\r\"",
    ])
    func `H3: a media type that is malformed or has a control character is rejected`(text: String) {
        #expect(MimeType(rawValue: text) == nil)
    }

    @Test(arguments: [
        ("application/json", true), ("application/problem+json; charset=utf-8", true), ("text/json", false), ("text/html", false),
        ("application/jsonp", false),
    ])
    func `H10: JSON is recognized by type and suffix`(text: String, isJSON: Bool) {
        #expect(MimeType(rawValue: text)?.isJSON == isJSON)
    }

    @Test func `a literal is the media type that it spells`() {
        let types: [MimeType] = ["image/png", "audio/*", "Text/HTML; Charset=utf-8"]
        #expect(types.map(\.rawValue) == ["image/png", "audio/*", "text/html; charset=utf-8"])
    }

    @Test func `a literal that is not a media type stops the program`() async {
        await #expect(processExitsWith: .failure) { _ = "png" as MimeType }
    }

    @Test func `parameter names ignore case, and values cannot inject lines`() {
        let type = MimeType.plainText
        #expect(type["CHARSET"] == "utf-8" && type["x"] == nil)
        #expect(type.with("x", "a\r\nb") == type && type.with("a b", "c") == type)
    }
}
