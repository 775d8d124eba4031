import Foundation

/// The resources of the process, as the system counts them.
enum ProcessState {
    /// The resident memory in bytes; `nil` without a `/proc` file system.
    static var residentBytes: Int? {
        guard let text = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8) else { return nil }
        return text.split(separator: " ").dropFirst().first.flatMap { Int($0) }.map { $0 * 4096 }
    }

    /// The number of open files and sockets; `nil` without a `/proc` file system.
    static var openFiles: Int? { try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count }
}
