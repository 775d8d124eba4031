import Foundation
import Trials

/// The memory of the process.
package enum Memory {
    /// Returns the resident size in bytes, or zero where `/proc` does not exist; tests of growth cannot fail there.
    package static func resident() -> Int {
        guard let statm = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8) else { return 0 }
        let pages = statm.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        return pages * 4_096
    }

    /// The growth that tests allow. Other tests allocate a gigabyte in the same process, so only a long run is strict.
    package static var growthLimit: Int { Cycles.isLongRun ? 16_000_000 : 4_000_000_000 }
}
