import Foundation
import Testing
import Trials

@testable import RemoteHTTP
@testable import RemoteRouting

struct QueryTests {
    private func query(_ parameters: Parameters, _ style: ParameterStyle = ParameterStyle()) throws -> String? {
        try PairEncoder(style: style).query(of: parameters)
    }

    private func form(_ parameters: Parameters, _ style: ParameterStyle = ParameterStyle()) throws -> String {
        try PairEncoder(style: style).form(of: parameters)
    }

    @Test(arguments: 0...255)
    func `H1: a query keeps the unreserved bytes and escapes all others`(byte: Int) throws {
        let character = Character(Unicode.Scalar(UInt8(byte)))
        let unreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
        let escaped =
            unreserved.contains(character)
            ? String(character) : String(character).utf8.map { String(format: "%%%02X", $0) }.joined()
        #expect(try query(["n": String(character)]) == "n=\(escaped)")
    }

    @Test(arguments: [
        ("a b", "a%20b", "a+b"), ("a+b", "a%2Bb", "a%2Bb"), ("~", "~", "%7E"), ("*", "%2A", "*"), ("a&b=c", "a%26b%3Dc", "a%26b%3Dc"),
        ("ü", "%C3%BC", "%C3%BC"), ("👍🏽", "%F0%9F%91%8D%F0%9F%8F%BD", "%F0%9F%91%8D%F0%9F%8F%BD"), ("%41", "%2541", "%2541"),
        ("\r\n", "%0D%0A", "%0D%0A"), ("[]", "%5B%5D", "%5B%5D"), ("/?", "%2F%3F", "%2F%3F"), ("\u{0}", "%00", "%00"), ("", "", ""),
    ])
    func `H1: queries and forms differ in the space, the tilde and the star`(text: String, inQuery: String, inForm: String) throws {
        #expect(try query(["k": text]) == "k=\(inQuery)")
        #expect(try form(["k": text]) == "k=\(inForm)")
        #expect(try query([text: "v"]) == "\(inQuery)=v")
        #expect(try form([text: "v"]) == "\(inForm)=v")
    }

    @Test func `H1: nil drops the name, and empty and valueless differ`() throws {
        let none: String? = nil
        let parameters: Parameters = [
            "a": nil, "b": none, "c": "", "d": ParameterValue.valueless, "e": ParameterValue.absent, "f": Optional("x"),
        ]
        #expect(try query(parameters) == "c=&d&f=x")
        #expect(try form(parameters) == "c=&d=&f=x")
        #expect(try query(["a": nil, "b": [none, none]]) == nil)
    }

    @Test func `H1: the declaration order is kept, and names may repeat`() throws {
        #expect(try query(["z": 1, "a": 2, "z": 3, "m": [5, 4]]) == "z=1&a=2&z=3&m=5&m=4")
        var parameters: Parameters = ["b": 1]
        parameters.append("a", 2)
        #expect(try query(parameters + ["b": 3]) == "b=1&a=2&b=3")
    }

    @Test(arguments: [
        (ParameterStyle.Lists.repeatedName, "t=a&t=b"), (.brackets, "t%5B%5D=a&t%5B%5D=b"), (.indices, "t%5B0%5D=a&t%5B2%5D=b"),
        (.commas, "t=a%2Cb"),
    ])
    func `H1: lists are written in the given style`(lists: ParameterStyle.Lists, expected: String) throws {
        let list: [String?] = ["a", nil, "b"]
        #expect(try query(["t": list, "e": [String]()], ParameterStyle(lists: lists)) == expected)
    }

    @Test func `H1: nested fields are written in brackets`() throws {
        let parameters: Parameters = ["user": ["name": "Ada", "tags": ["x", "y"], "none": nil] as Parameters]
        #expect(try query(parameters)?.removingPercentEncoding == "user[name]=Ada&user[tags]=x&user[tags]=y")
        #expect(
            try query(parameters, ParameterStyle(lists: .indices))?.removingPercentEncoding
                == "user[name]=Ada&user[tags][0]=x&user[tags][1]=y")
    }

    @Test(arguments: [
        Parameters(dictionaryLiteral: ("t", ["a,b"])), ["t": ["a,\u{301}b"]], ["t": [["a"], ["b"]]], ["t": [["a": 1] as Parameters]],
        ["t": [ParameterValue.valueless]],
    ])
    func `H1: values that commas cannot separate are refused`(parameters: Parameters) {
        let error = #expect(throws: RouteFault.self) { try query(parameters, ParameterStyle(lists: .commas)) }
        #expect(error?.code == .unsupportedShape && error?.part == "parameter t")
    }

    @Test(arguments: [
        Parameters(dictionaryLiteral: ("n", Double.nan)), ["n": Double.infinity], ["n": -Double.infinity], ["n": Float.nan],
        ["n": Float.infinity], ["n": Decimal.nan], ["n": [1.0, .nan]], ["o": ["n": Double.nan] as Parameters],
    ])
    func `H1: NaN and infinity are refused everywhere`(parameters: Parameters) {
        let style = ParameterStyle()
        #expect(throws: RouteFault.self) { try query(parameters) }
        #expect(throws: RouteFault.self) { try form(parameters) }
        let error = #expect(throws: RouteFault.self) { try JSONFields(style: style).encode(parameters) }
        #expect(error?.code == .notFinite)
    }

    @Test func `H1: numbers have their shortest form`() throws {
        let parameters: Parameters = [
            "a": 5.0, "b": 0.1, "c": Float(0.1), "d": -0.0, "e": 1e21, "f": UInt64.max, "g": Int64.min, "h": true,
            "i": Decimal(string: "0.10"), "j": Int8(-1),
        ]
        #expect(try query(parameters) == "a=5&b=0.1&c=0.1&d=-0&e=1e%2B21&f=18446744073709551615&g=-9223372036854775808&h=true&i=0.1&j=-1")
    }

    @Test func `H1: a date without a strategy is refused`() {
        let error = #expect(throws: RouteFault.self) { try query(["since": Date(timeIntervalSince1970: 0)]) }
        #expect(error?.code == .noDateStrategy)
    }

    @Test(arguments: [
        (ParameterStyle.Dates.iso8601, 784_111_777.0, "1994-11-06T08:49:37Z"), (.iso8601, 784_111_777.25, "1994-11-06T08:49:37.250Z"),
        (.iso8601, -0.5, "1969-12-31T23:59:59.500Z"), (.secondsSince1970, -0.5, "-1"), (.secondsSince1970, 1.9, "1"),
        (.millisecondsSince1970, 1.2345, "1234"), (.http, 784_111_777.9, "Sun, 06 Nov 1994 08:49:37 GMT"),
        (.custom { _ in "now" }, 0, "now"),
    ])
    func `H1: dates are written in the given style`(dates: ParameterStyle.Dates, seconds: Double, expected: String) throws {
        let parameters: Parameters = ["d": Date(timeIntervalSince1970: seconds)]
        #expect(try query(parameters, ParameterStyle(dates: dates))?.removingPercentEncoding == "d=\(expected)")
    }

    @Test func `H1: a date from a server goes back with the same millisecond`() throws {
        for second in stride(from: -2_000_000_000.0, to: 4_000_000_000, by: 10_007_003) {
            let whole = Date(timeIntervalSince1970: second)
            let number = Int64(second) * 1000 + 123
            // Counted from 1970, and added to whole seconds as parsers do.
            for date in [Date(timeIntervalSince1970: Double(number) / 1000), whole.addingTimeInterval(0.123)] {
                #expect(try query(["d": date], ParameterStyle(dates: .millisecondsSince1970)) == "d=\(number)")
                #expect(try query(["d": date], ParameterStyle(dates: .iso8601))?.hasSuffix(".123Z") == true)
            }
        }
    }

    @Test(arguments: [Double.nan, .infinity, 2.6e11, -6.3e10, 2.5e11, -62_167_219_201, 1e18, -1e300])
    func `H1: a date out of range is refused`(seconds: Double) {
        let parameters: Parameters = ["d": Date(timeIntervalSince1970: seconds)]
        let error = #expect(throws: RouteFault.self) { try query(parameters, ParameterStyle(dates: .secondsSince1970)) }
        #expect(error?.code == .notFinite)
    }

    private enum Sorting: String, ParameterConvertible { case newest }
    private enum Level: Int, ParameterConvertible { case high = 3 }
    private struct Money: ParameterConvertible { var parameterValue: ParameterValue { .text("5 EUR") } }

    @Test func `every convertible type is written in its own form`() throws {
        let id = UUID()
        let parameters: Parameters = [
            "s": Sorting.newest, "l": Level.high, "m": Money(), "u": id, "w": URL(string: "https://a/b"), "x": "abc".dropFirst(),
        ]
        #expect(try query(parameters)?.removingPercentEncoding == "s=newest&l=3&m=5 EUR&u=\(id.uuidString)&w=https://a/b&x=bc")
    }
}

/// Compares the encoders with Python's `urllib.parse`.
struct PythonComparisonTests {
    /// Reads JSON lists of pairs and writes the query and the form of each. Python's `quote` always keeps the tilde and escapes the star;
    /// the URL standard's form does the opposite.
    private static let script = """
        import json, sys
        from urllib.parse import quote, quote_plus, unquote, parse_qsl
        def form(text): return quote_plus(text, safe='*').replace('~', '%7E')
        for pairs in json.load(sys.stdin):
            query = '&'.join(quote(n, safe='') + '=' + quote(v, safe='') for n, v in pairs)
            assert parse_qsl(query.replace('+', '%2B'), keep_blank_values=True) == [tuple(p) for p in pairs]
            print(json.dumps([query, '&'.join(form(n) + '=' + form(v) for n, v in pairs)]))
        """

    @Test(.enabled(if: !ChildProcess.pythons.isEmpty, "python3 is not installed, so there is nothing to compare with"))
    func `H1: queries and forms agree with Python over thousands of inputs`() async throws {
        var random = SplitMix(seed: 20_240_917)
        let cases = (0..<rounds(4_000, quick: 1_000)).map { _ in
            (0..<Int.random(in: 1...4, using: &random)).map { _ in [random.text(), random.text()] }
        }
        let python = try #require(ChildProcess.pythons.first)
        let input = try JSONEncoder().encode(cases)
        let output = try await onOwnThread { try ChildProcess.output(of: python, ["-c", Self.script], input: input) }
        let lines = try #require(output).split(separator: UInt8(ascii: "\n"))
        try #require(lines.count == cases.count)
        let encoder = PairEncoder(style: ParameterStyle())
        for (pairs, line) in zip(cases, lines) {
            let expected = try JSONDecoder().decode([String].self, from: Data(line))
            let parameters = Parameters(pairs.map { .init(name: $0[0], value: .text($0[1])) })
            #expect(try encoder.query(of: parameters) == expected[0])
            #expect(try encoder.form(of: parameters) == expected[1])
        }
    }
}

extension SplitMix {
    /// A text of ASCII, letters of all UTF-8 lengths, and special characters of addresses.
    fileprivate mutating func text() -> String {
        var scalars = String.UnicodeScalarView()
        for _ in 0..<Int.random(in: 1...12, using: &self) {
            let bound: UInt32 = [0x80, 0x80, 0x800, 0xFFFF, 0x10FFFF].randomElement(using: &self) ?? 0x80
            // Surrogates are not scalars, so a plus sign replaces them.
            scalars.append(Unicode.Scalar(UInt32.random(in: 0...bound, using: &self)) ?? "+")
        }
        return String(scalars)
    }
}

/// Texts that are meant to do harm.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct HostileTextTests {
    /// Whether an operation takes linear time; a quadratic one takes many times this.
    ///
    /// Counts the processor time of this thread, because on the real clock a busy machine would be slow too.
    private func isQuick(_ operation: () -> Void) -> Bool {
        var (start, end) = (timespec(), timespec())
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start)
        operation()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end)
        return end.tv_sec - start.tv_sec < 4
    }

    @Test(arguments: [
        "\u{FF0E}\u{FF0E}", "\u{2024}\u{2024}", "..\u{FF0F}x", "\u{2215}..\u{2215}", ".\u{338}.", "\u{301}", "..\u{200D}", "\u{2025}",
        "\u{29F5}..\u{29F5}", "%c0%ae%c0%ae", "%u002e%u002e", "..%00", "..;", ";..", "\u{1F469}\u{200D}\u{1F4BB}",
    ])
    func `H2: lookalikes of dots and slashes are encoded and stay in one segment`(value: String) throws {
        let path = try ("/a/\(value)/b" as RoutePath).encoded()
        #expect(path.utf8.split(separator: UInt8(ascii: "/")).count == 3)
        #expect(path.utf8.allSatisfy { $0 < 0x80 })
        #expect(path.removingPercentEncoding == "/a/\(value)/b")
    }

    @Test(arguments: [
        ("/v1", "//x"), ("/v1/", "/../x"), ("/v1/.", "/x"), ("/v1//", "/x"), ("v1", "/x"), ("/v1?a", "/x"), ("/v1", "x"), ("//evil", "/x"),
        ("/v1/%2e", "/x"), ("/v1\\", "/x"),
    ])
    func `H2: the same rules apply to a base path`(base: String, path: String) throws {
        let builder = RequestBuilder(origin: try WebOrigin(scheme: .https, host: "a.example"), basePath: RoutePath(stringLiteral: base))
        #expect(throws: RouteFault.self) { try builder.request(for: Route(path: RoutePath(stringLiteral: path))) }
    }

    @Test func `H2: a value that is escaped ten thousand times is checked in linear time`() throws {
        let value = "%" + String(repeating: "25", count: 10_000) + "2e"
        var code: RouteFault.Code?
        #expect(
            isQuick {
                do { _ = try ("/a/\(value)" as RoutePath).encoded() } catch { code = (error as? RouteFault)?.code }
            })
        #expect(code == .dotSegment)
    }

    @Test(arguments: [
        ("%2e", true), ("%25%32%65", true), ("%%32%65", true), ("%2%65", true), ("%2", false), ("%", false), ("%%2e", false),
        ("%2e%2", false), ("%252e%2525252E", true), ("%2e%2e%2e", false), ("%25", false), ("a%2e", false), ("%zz", false), ("%25zz", false),
    ])
    func `H2: dot segments are found under any number of encodings`(segment: String, stands: Bool) {
        #expect(PathCheck.standsForDots(Array(segment.utf8)[...]) == stands)
    }

    @Test func `H9: fields full of open quotes are parsed in linear time`() throws {
        let text = "a=\"" + String(repeating: "\\\"", count: 20_000)
        let fields = try fields(["Link": "<x>; " + text, "Cache-Control": text])
        #expect(isQuick { _ = LinkHeader(fields) })
        #expect(isQuick { _ = CacheControl(fields) })
    }

    @Test func `H1: a long query is encoded completely, including NUL`() throws {
        let long = String(repeating: "\u{0}+ \u{1F469}", count: 20_000)
        let query = try #require(try PairEncoder(style: ParameterStyle()).query(of: ["q": long]))
        #expect(query.utf8.count == 2 + 20_000 * (3 + 3 + 3 + 12))
        #expect(query.removingPercentEncoding == "q=" + long)
    }
}
