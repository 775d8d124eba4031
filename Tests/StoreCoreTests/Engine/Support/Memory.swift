import Foundation
import Testing
import Trials

/// The memory of the process.
enum Memory {
    /// Returns the resident size in bytes, or zero where `/proc` does not exist; tests of growth cannot fail there.
    static func resident() -> Int {
        guard let statm = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8) else { return 0 }
        let pages = statm.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        return pages * 4_096
    }

    /// Expects that memory has not grown since then. Other tests allocate a gigabyte in the same process, so only a long run is strict.
    static func expectFlat(since settled: Int, sourceLocation: SourceLocation = #_sourceLocation) {
        let growth = resident() - settled
        #expect(growth < (Cycles.isLongRun ? 16_000_000 : 4_000_000_000), sourceLocation: sourceLocation)
    }
}
