internal import Testing
internal import Trials

/// Runs the program of README.md and returns what it prints.
///
/// On a busy machine its pauses may be too short, and a slow observer skips states, so a run with missing lines is repeated.
@Sendable
func readme() async throws -> [[String]] {
    var lines: [String] = []
    for _ in 1...10 where lines.count != 6 {
        let program = try ChildProcess("hello", [])
        lines = []
        while let line = try await program.nextLine() { lines.append(line) }
        #expect(try await program.ending() == 0)
    }
    try #require(lines.count == 6, "the program prints other lines: \(lines)")
    return [Array(lines[..<2]), [lines[2]], Array(lines[3..<5]), [lines[5]]]
}
