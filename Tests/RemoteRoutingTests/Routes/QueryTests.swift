import Foundation
import Testing

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
        Parameters(dictionaryLiteral: ("t", ["a,b"])), ["t": [["a"], ["b"]]], ["t": [["a": 1] as Parameters]],
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

    @Test(arguments: [Double.nan, .infinity, 2.6e11, -2.6e11, 2.5e11, -2.5e11, 1e18, -1e300])
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
