import Foundation
import Testing

/// What the process occupies.
enum Memory {
    /// Resident bytes; zero where the platform does not tell in this way, and then no test of growth can fail.
    static func resident() -> Int {
        guard let statm = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8) else { return 0 }
        let pages = statm.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        return pages * 4_096
    }

    /// Expects that memory has not grown; other tests of the process run too, so that only a long run alone looks closely.
    static func expectFlat(since settled: Int, sourceLocation: SourceLocation = #_sourceLocation) {
        let growth = resident() - settled
        #expect(growth < (Cycles.isLongRun ? 16_000_000 : 512_000_000), sourceLocation: sourceLocation)
    }
}
