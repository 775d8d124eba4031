import Foundation
import Testing
import Trials

@testable import TextStore

/// T6: the specification's grammar and section 11, compared with a slow, simple reference on strings.
struct GeneratedVersionTests {
    /// A version as the specification describes it.
    struct Reference: Hashable {
        var numbers: [String]
        var preRelease: [String]
        var build: String?

        init?(_ text: String, lenient: Bool) {
            var rest = text[...]
            build = nil
            if let plus = rest.firstIndex(of: "+") {
                build = String(rest[rest.index(after: plus)...])
                rest = rest[..<plus]
            }
            var pre: Substring?
            if let hyphen = rest.firstIndex(of: "-") {
                pre = rest[rest.index(after: hyphen)...]
                rest = rest[..<hyphen]
            }
            if lenient, let first = rest.first, first == "v" || first == "V" { rest = rest.dropFirst() }
            var numbers = rest.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
            guard lenient ? (1...3).contains(numbers.count) : numbers.count == 3 else { return nil }
            for number in numbers { guard Self.isNumber(number), lenient || number == "0" || !number.hasPrefix("0") else { return nil } }
            while numbers.count < 3 { numbers.append("0") }
            self.numbers = numbers.map(Self.canonical)
            let identifiers = pre.map { $0.split(separator: ".", omittingEmptySubsequences: false).map(String.init) } ?? []
            for identifier in identifiers {
                guard Self.isIdentifier(identifier) else { return nil }
                if !lenient, Self.isNumber(identifier), identifier.count > 1, identifier.hasPrefix("0") { return nil }
            }
            preRelease = identifiers.map { Self.isNumber($0) ? Self.canonical($0) : $0 }
            if let build {
                for identifier in build.split(separator: ".", omittingEmptySubsequences: false) {
                    guard Self.isIdentifier(String(identifier)) else { return nil }
                }
            }
        }

        static func isNumber(_ text: String) -> Bool { !text.isEmpty && text.unicodeScalars.allSatisfy { ("0"..."9").contains($0) } }

        static func isIdentifier(_ text: String) -> Bool {
            !text.isEmpty
                && text.unicodeScalars.allSatisfy {
                    ("0"..."9").contains($0) || ("a"..."z").contains($0) || ("A"..."Z").contains($0) || $0 == "-"
                }
        }

        static func canonical(_ digits: String) -> String {
            let trimmed = digits.drop { $0 == "0" }
            return trimmed.isEmpty ? "0" : String(trimmed)
        }

        static func order(_ left: String, _ right: String) -> Int {
            switch (isNumber(left), isNumber(right)) {
            case (true, false): return -1
            case (false, true): return 1
            case (true, true) where left.count != right.count: return left.count < right.count ? -1 : 1
            default: break
            }
            let leftBytes = Array(left.utf8), rightBytes = Array(right.utf8)
            return leftBytes == rightBytes ? 0 : leftBytes.lexicographicallyPrecedes(rightBytes) ? -1 : 1
        }

        static func order(_ left: Reference, _ right: Reference) -> Int {
            for (one, other) in zip(left.numbers, right.numbers) {
                let order = order(one, other)
                if order != 0 { return order }
            }
            if left.preRelease.isEmpty || right.preRelease.isEmpty {
                return left.preRelease.isEmpty ? (right.preRelease.isEmpty ? 0 : 1) : -1
            }
            for (one, other) in zip(left.preRelease, right.preRelease) {
                let order = order(one, other)
                if order != 0 { return order }
            }
            return left.preRelease.count == right.preRelease.count ? 0 : left.preRelease.count < right.preRelease.count ? -1 : 1
        }
    }

    /// Returns a version, or a text that differs from a version in a few characters.
    private static func text(_ dice: inout SplitMix) -> String {
        let pieces = [
            "0", "00", "1", "01", "9", "10", "18446744073709551614", "18446744073709551615", "18446744073709551616",
            "018446744073709551615", "9999999999999999999", "99999999999999999999", "184467440737095516150", "1234567890123456789",
        ]
        let words = ["0", "00", "1", "01", "a", "A", "alpha", "-", "--", "-1", "0a", "a0", "rc", "18446744073709551616", "0-0"]
        let strange = [
            "", ".", "..", "-", "+", "v", "V", "vv", " ", "\n", "\0", "ä", "१", "é", "_", ",", "\u{0301}", "x", "/", ":", "@", "[", "`",
            "{",
        ]
        func pick(_ list: [String], _ dice: inout SplitMix) -> String { list[Int.random(in: 0..<list.count, using: &dice)] }
        var text = Int.random(in: 0..<8, using: &dice) == 0 ? pick(["v", "V"], &dice) : ""
        let count = Int.random(in: 0..<6, using: &dice) == 0 ? Int.random(in: 0...4, using: &dice) : 3
        text += (0..<count).map { _ in pick(pieces, &dice) }.joined(separator: ".")
        for (sign, odds) in [("-", 2), ("+", 4)] where Int.random(in: 0..<odds, using: &dice) == 0 {
            text += sign + (0..<Int.random(in: 1...3, using: &dice)).map { _ in pick(words, &dice) }.joined(separator: ".")
        }
        if Int.random(in: 0..<3, using: &dice) == 0 {
            var scalars = Array(text.unicodeScalars)
            let position = Int.random(in: 0...scalars.count, using: &dice)
            if Bool.random(using: &dice), position < scalars.count { scalars.remove(at: position) }
            scalars.insert(contentsOf: Array(pick(strange, &dice).unicodeScalars), at: min(position, scalars.count))
            text = String(String.UnicodeScalarView(scalars))
        }
        return text
    }

    @Test func `T6: generated texts parse exactly as the specification's grammar requires`() async throws {
        var dice = SplitMix(seed: 41)
        var counts = [0, 0]
        let texts = rounds(100_000, quick: 8_000)
        for round in 0..<texts {
            if round % 1000 == 0 { await Task.yield() }
            let text = Self.text(&dice)
            for mode in [SemanticVersion.Mode.strict, .lenient] {
                let version = SemanticVersion(text, mode: mode), expected = Reference(text, lenient: mode == .lenient)
                guard (version == nil) == (expected == nil) else {
                    Issue.record("“\(text)” \(mode)")
                    continue
                }
                counts[version == nil ? 0 : 1] += 1
                guard let version, let expected else { continue }
                let numbers = [version.major, version.minor, version.patch]
                #expect(numbers == expected.numbers.map { UInt64($0) ?? .max }, "\(text)")
                #expect(version.isPreRelease == !expected.preRelease.isEmpty && version.buildMetadata == expected.build, "\(text)")
                #expect(Array(version.description.utf8) == Array(text.utf8))
            }
        }
        #expect(counts.allSatisfy { $0 > texts / 3 }, "\(counts)")
    }

    @Test func `T6: order, equality, and hash agree with the specification for all pairs`() async throws {
        var dice = SplitMix(seed: 42)
        var all: [(SemanticVersion, Reference)] = []
        while all.count < rounds(500, quick: 150) {
            let text = Self.text(&dice)
            if let version = SemanticVersion(text, mode: .lenient), let reference = Reference(text, lenient: true) {
                all.append((version, reference))
            }
        }
        // Equal versions are rare among random ones, so some are added in another spelling.
        for (version, reference) in all.prefix(100) {
            let pre =
                reference.preRelease.isEmpty
                ? "" : "-" + reference.preRelease.map { Reference.isNumber($0) ? "0" + $0 : $0 }.joined(separator: ".")
            let text = "v" + reference.numbers.map { "00" + $0 }.joined(separator: ".") + pre + "+other"
            let again = try SemanticVersion(parsing: text, mode: .lenient)
            #expect(again == version && again.hashValue == version.hashValue, "\(text) \(version)")
            all.append((again, try #require(Reference(text, lenient: true))))
        }
        for (left, one) in all {
            await Task.yield()
            for (right, other) in all {
                let order = Reference.order(one, other)
                if (left < right) != (order < 0) || (left == right) != (order == 0) || (right < left) != (order > 0) {
                    Issue.record("\(left) \(right)")
                }
                if order == 0, left.hashValue != right.hashValue { Issue.record("hash of \(left) and \(right)") }
            }
        }
        // Agreement with the reference's total order makes this a strict weak order.
        let sorted = all.map(\.0).sorted()
        #expect(zip(sorted, sorted.dropFirst()).allSatisfy { !($1 < $0) })
        #expect(Set(all.map(\.0)).count == Set(all.map { [$0.1.numbers, $0.1.preRelease] }).count)
    }
}
