import Foundation
import Testing
@testable import StoreCore
@testable import StoreFiles

struct CanonicalJSONTests {
    private func text(_ value: some Encodable) throws -> String { String(decoding: try CanonicalJSON.encode(value), as: UTF8.self) }

    struct Point: Codable, Hashable, Sendable {
        var y: Double
        var x: Int8
        var note: String?
    }

    enum Choice: Codable, Hashable, Sendable {
        case none
        case some(Int, named: String)
    }

    class Base: Encodable {
        var base = 1
    }

    final class Derived: Base {
        override func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Name.self)
            try container.encode(2, forKey: .derived)
            try super.encode(to: container.superEncoder())
            var list = container.nestedUnkeyedContainer(forKey: .list)
            try list.encodeNil()
            try super.encode(to: list.superEncoder())
            var inner = list.nestedContainer(keyedBy: Name.self)
            try inner.encodeNil(forKey: .derived)
            var innermost = list.nestedUnkeyedContainer()
            try innermost.encode(true)
        }

        enum Name: CodingKey { case derived, list }
    }

    /// A value that opens the containers of one name twice, as a class and its superclass may.
    private struct Reopened: Encodable {
        func encode(to encoder: any Encoder) throws {
            for name in Name.allCases {
                var container = encoder.container(keyedBy: Name.self)
                var inner = container.nestedContainer(keyedBy: Name.self, forKey: .inner)
                try inner.encode(1, forKey: name)
                var list = container.nestedUnkeyedContainer(forKey: .list)
                try list.encode(2)
            }
        }

        enum Name: CodingKey, CaseIterable { case inner, list }
    }

    @Test func `F3: a second container for one name adds to the first`() throws {
        #expect(try text(Reopened()) == #"{"inner":{"inner":1,"list":1},"list":[2,2]}"#)
    }

    @Test func `a value that is not an object is encoded alone`() throws {
        #expect(try text(7) == "7")
        #expect(try text(Int8(-7)) == "-7")
        #expect(try text(UInt64.max) == "18446744073709551615")
        #expect(try text(Int128.min) == "-170141183460469231731687303715884105728")
        #expect(try text(true) == "true")
        #expect(try text(Int?.none) == "null")
        #expect(try text("user") == "\"user\"")
        #expect(try text(UnitParam()) == "{}")
        #expect(try text(Decimal(sign: .plus, exponent: -1, significand: 10)) == "1")
        #expect(try text(Data([1, 2])) == "\"AQI=\"")
    }

    @Test func `F3: objects have sorted keys and no white space`() throws {
        #expect(try text(Point(y: 1.5, x: 2, note: nil)) == #"{"x":2,"y":1.5}"#)
        #expect(try text(["b": [2: "x", 10: "y"], "a": [:]]) == #"{"a":{},"b":{"10":"y","2":"x"}}"#)
        #expect(try text(Choice.some(3, named: "é")) == #"{"some":{"_0":3,"named":"é"}}"#)
        #expect(try text(Derived()) == #"{"derived":2,"list":[null,{"base":1},{"derived":null},[true]],"super":{"base":1}}"#)
    }

    @Test func `strings escape only what JSON requires`() throws {
        #expect(try text("\u{0}\n\t\"\\/é😀") == #""\u0000\u000a\u0009\"\\/é😀""#)
        #expect(try JSONDecoder().decode(String.self, from: Data(text("\u{0}\n\t\"\\/é😀").utf8)) == "\u{0}\n\t\"\\/é😀")
    }

    /// Canonically equivalent spellings, which Swift compares as equal.
    @Test(arguments: [
        ("\u{e9}", "e\u{301}"), ("\u{1ea5}", "a\u{302}\u{301}"), ("\u{212b}", "\u{c5}"), ("\u{ac01}", "\u{1100}\u{1161}\u{11a8}"),
        ("\u{ac00}\u{11a8}", "\u{ac01}"), ("\u{ac00}\u{11b9}", "\u{ac12}"),
        ("q\u{307}\u{323}", "q\u{323}\u{307}"), ("\u{2126}", "\u{3a9}"),
    ])
    func `F3: equal strings have equal bytes, in every position`(first: String, second: String) throws {
        // Compares bytes, because equal strings compare as equal in either spelling.
        func bytes(_ value: some Encodable) throws -> [UInt8] { try CanonicalJSON.encode(value) }
        #expect(first == second)
        #expect(try bytes(first) == bytes(second))
        #expect(try bytes([first: 1, "f": 2, "z": 3]) == bytes([second: 1, "f": 2, "z": 3]))
        #expect(try bytes([[first]]) == bytes([[second]]))
        #expect(try bytes(Point(y: 0, x: 0, note: first)) == bytes(Point(y: 0, x: 0, note: second)))
        #expect(try bytes(Set([first, "x"])) == bytes(Set([second, "x"])))
    }

    @Test func `F3: strings are encoded in normal form C, and object names are sorted after it`() throws {
        #expect(try CanonicalJSON.encode("e\u{301}") == Array("\"\u{e9}\"".utf8))
        #expect(try CanonicalJSON.encode("\u{1100}\u{1161}\u{11b9}") == Array("\"\u{ac12}\"".utf8))
        // Decomposed, é comes before f; composed, after it.
        #expect(try text(["e\u{301}": 1, "f": 2]) == "{\"f\":2,\"\u{e9}\":1}")
    }

    @Test func `F3: equal sets and equal dictionaries have equal bytes, in any order of insertion`() throws {
        let numbers = Array(0..<50)
        for seed in 0..<20 {
            var shuffled = numbers.shuffled()
            let set = Set(shuffled)
            shuffled.sort { ($0 &* (seed + 7)) % 53 < ($1 &* (seed + 7)) % 53 }
            var other = Set<Int>(minimumCapacity: 1 << (seed % 10))
            for number in shuffled { other.insert(number) }
            #expect(try text(set) == text(other))
            let (tags, others) = (Set(numbers.map(String.init)), Set(shuffled.map(String.init)))
            #expect(try text(FileKeyTests.Tagged<AsOneValue>(tags)) == text(FileKeyTests.Tagged<AsOneValue>(others)))
            var dictionary: [Point: Set<Int>] = [:]
            for number in shuffled { dictionary[Point(y: Double(number), x: 1, note: "n")] = [number, seed] }
            var twin: [Point: Set<Int>] = [:]
            for number in numbers { twin[Point(y: Double(number), x: 1, note: "n")] = [seed, number] }
            #expect(try text(dictionary) == text(twin))
        }
        #expect(try text(Set([2, 10, 1])) == "[1,10,2]")
        #expect(try text([2.5: "b", 1.5: "a"]) == #"[1.5,"a",2.5,"b"]"#)
    }

    @Test func `F3: equal numbers have equal bytes`() throws {
        #expect(try text(-0.0) == "0")
        #expect(try text(Float(-0.0)) == "0")
        #expect(try text(Date(timeIntervalSinceReferenceDate: -0.0)) == "0")
        #expect(try text(1.0) == "1")
        #expect(try text([Double.infinity, -.infinity]) == #"["Infinity","-Infinity"]"#)
        var (ten, half) = (Decimal(10), Decimal(string: "0.5") ?? 0)
        _ = NSDecimalNormalize(&ten, &half, .plain)
        #expect(try text(ten) == "10")
        #expect(try text(half) == "0.5")
    }

    @Test func `doubles and floats are decoded bit for bit`() throws {
        let decoder = JSONDecoder()
        for _ in 0..<2000 {
            let double = Double(bitPattern: .random(in: .min ... .max))
            let float = Float(bitPattern: .random(in: .min ... .max))
            if double.isFinite { #expect(try decoder.decode(Double.self, from: Data(CanonicalJSON.encode(double))) == double) }
            if float.isFinite { #expect(try decoder.decode(Float.self, from: Data(CanonicalJSON.encode(float))) == float) }
        }
    }
}
