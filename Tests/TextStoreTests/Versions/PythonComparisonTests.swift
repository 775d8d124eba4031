import Foundation
import Testing
import Trials

@testable import TextStore

/// T6: the order, compared with an independent implementation: Python's package `semver`.
struct PythonComparisonTests {
    /// The path of a Python with the package; `STOREHOUSE_PYTHON` names an additional one.
    private static let python =
        ([ProcessInfo.processInfo.environment["STOREHOUSE_PYTHON"]].compactMap { $0 } + ChildProcess.pythons).first { path in
            // A Python that cannot run is treated like one without the package.
            return (try? run(path, "import semver; semver.Version", "", showsErrors: false)) != nil
        }

    private static let script = """
        import sys, semver
        for line in sys.stdin.read().split("\\n"):
            left, right = line.split(" ")
            print(semver.Version.parse(left).compare(right))
        """

    @Test(.enabled(if: python != nil, "no python3 with the package semver was found"))
    func `T6: thousands of generated versions have the order of Python's semver`() throws {
        var random = SplitMix(seed: 7)
        let pairs = (0..<rounds(5_000, quick: 2_000)).map { _ in (random.version(), random.version()) }
        let input = pairs.map { "\($0.0) \($0.1)" }.joined(separator: "\n")
        let python = try #require(Self.python)
        let output = try #require(try Self.run(python, Self.script, input))
        let orders = output.split(separator: "\n").compactMap { Int($0) }
        try #require(orders.count == pairs.count)
        for ((left, right), expected) in zip(pairs, orders) {
            let (one, other) = (try SemanticVersion(parsing: left), try SemanticVersion(parsing: right))
            #expect((one < other ? -1 : one == other ? 0 : 1) == expected, "\(left) \(right)")
        }
    }

    /// - Returns: The output of the script; `nil` if it failed.
    private static func run(_ python: String, _ script: String, _ input: String, showsErrors: Bool = true) throws -> String? {
        let output = try ChildProcess.output(of: python, ["-c", script], input: Data(input.utf8), showsErrors: showsErrors)
        return output.map { String(decoding: $0, as: UTF8.self) }
    }
}

/// Random versions that are identical in every run.
extension SplitMix {
    mutating func version() -> String {
        let numbers = ["0", "1", "2", "10", "99999999999999999999", "99999999999999999998"]
        let words = ["0", "1", "2", "11", "alpha", "beta", "rc", "-", "a-b", "1a", "123456789012345678901", "A"]
        func pick(_ list: [String], _ dice: inout SplitMix) -> String { list[Int.random(in: 0..<list.count, using: &dice)] }
        var text = (0..<3).map { _ in pick(numbers, &self) }.joined(separator: ".")
        let identifiers = Int.random(in: 0...3, using: &self)
        if identifiers > 0 { text += "-" + (0..<identifiers).map { _ in pick(words, &self) }.joined(separator: ".") }
        if Bool.random(using: &self) { text += "+" + pick(words, &self) }
        return text
    }
}
