import Foundation

/// What the process occupies.
enum Memory {
    /// Resident bytes; zero where the platform does not tell in this way, and then no test of growth can fail.
    static func resident() -> Int {
        guard let statm = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8) else { return 0 }
        let pages = statm.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        return pages * 4_096
    }
}
