import Foundation

/// What the process holds, as the system counts it.
enum ProcessState {
    /// Resident memory in bytes; `nil` where the system does not tell in this way.
    static var residentBytes: Int? {
        guard let text = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8) else { return nil }
        return text.split(separator: " ").dropFirst().first.flatMap { Int($0) }.map { $0 * 4096 }
    }

    /// How many files and sockets are open; `nil` where the system does not tell in this way.
    static var openFiles: Int? {
        try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
    }
}
