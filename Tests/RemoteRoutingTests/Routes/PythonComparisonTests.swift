import Foundation
import Testing
import Trials

@testable import RemoteRouting

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
