internal import Foundation

/// The measuring machine.
enum Machine {
    /// Waits until the effects of earlier rows have subsided, so that no row depends on its predecessors.
    ///
    /// Closing sessions and pending disk writes occupy a core, which affects contestants with several tasks. Idle worker threads, which
    /// dispatch ends after five seconds, scatter later work over the cores.
    ///
    /// - Parameter limit: The longest wait, because a busy machine never rests. Systems without the statistics do not wait.
    static func rest(within limit: Duration) async throws {
        let end = ContinuousClock.now + limit
        var quietStretches = 0
        var (before, instant) = (busyTime, ContinuousClock.now)
        while quietStretches < 3, instant < end {
            // Waits in real time, because the machine itself must rest.
            try await Task.sleep(for: .milliseconds(100))
            guard let earlier = before, let now = busyTime, let threads else { return }
            let stretch = ContinuousClock.now - instant
            let isQuiet = now - earlier < stretch / 10 && threads <= 2 * ProcessInfo.processInfo.activeProcessorCount + 4
            quietStretches = isQuiet ? quietStretches + 1 : 0
            (before, instant) = (now, instant + stretch)
        }
    }

    /// The number of threads of the process; `nil` if the system does not provide it.
    private static var threads: Int? { try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count }

    /// The total busy time of the cores; `nil` if the system does not provide it.
    private static var busyTime: Duration? {
        guard let file = FileHandle(forReadingAtPath: "/proc/stat"), let data = try? file.readToEnd() else { return nil }
        // “cpu  user nice system idle iowait irq softirq steal …”, in hundredths of a second since the start.
        let figures = data.prefix { $0 != UInt8(ascii: "\n") }.split(separator: UInt8(ascii: " ")).dropFirst()
            .compactMap { Int(String(decoding: $0, as: UTF8.self)) }
        guard figures.count >= 8 else { return nil }
        return .milliseconds(10 * (figures[0] + figures[1] + figures[2] + figures[5] + figures[6] + figures[7]))
    }
}
