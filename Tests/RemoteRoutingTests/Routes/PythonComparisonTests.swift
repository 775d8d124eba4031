import Foundation
import Testing
import Trials

@testable import RemoteRouting

/// Compares the encoders with Python's `urllib.parse`.
struct PythonComparisonTests {
    private static let python = ["/usr/bin/python3", "/usr/local/bin/python3", "/opt/homebrew/bin/python3"].first {
        FileManager.default.isExecutableFile(atPath: $0)
    }

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

    @Test(.enabled(if: python != nil, "python3 is not installed, so there is nothing to compare with"))
    func `H1: queries and forms agree with Python over thousands of inputs`() throws {
        var random = SplitMix(seed: 20_240_917)
        let cases = (0..<4000).map { _ in (0..<Int.random(in: 1...4, using: &random)).map { _ in [random.text(), random.text()] } }
        let lines = try run(JSONEncoder().encode(cases)).split(separator: UInt8(ascii: "\n"))
        try #require(lines.count == cases.count)
        let encoder = PairEncoder(style: ParameterStyle())
        for (pairs, line) in zip(cases, lines) {
            let expected = try JSONDecoder().decode([String].self, from: Data(line))
            let parameters = Parameters(pairs.map { .init(name: $0[0], value: .text($0[1])) })
            #expect(try encoder.query(of: parameters) == expected[0])
            #expect(try encoder.form(of: parameters) == expected[1])
        }
    }

    private func run(_ input: Data) throws -> Data {
        let directory = FileManager.default.temporaryDirectory.appending(path: "python-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { #expect(throws: Never.self) { try FileManager.default.removeItem(at: directory) } }
        let source = directory.appending(path: "input.json")
        try input.write(to: source)
        let python = try #require(PythonComparisonTests.python)
        return try #require(
            try ChildProcess.output(of: python, ["-c", PythonComparisonTests.script], reading: source.path(percentEncoded: false)))
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
