internal import Foundation

/// The machine that is measured on.
enum Machine {
    /// Waits until what earlier rows have left behind is at rest, so that no row depends on which ones came before.
    ///
    /// Sessions that end and files on their way to the disk take a core from those who use more than one, and from nobody else. Worker
    /// threads that have nothing to do any more, of which dispatch lets go after five seconds, scatter later work over the cores.
    ///
    /// - Parameter limit: The longest to wait; a machine with other work to do never rests. Where the system does not say what it does, this
    ///   is not waited for.
    static func rest(within limit: Duration) async throws {
        let end = ContinuousClock.now + limit
        var quietStretches = 0
        var (before, instant) = (busyTime, ContinuousClock.now)
        while quietStretches < 3, instant < end {
            // Real time: it is the machine that is waited for.
            try await Task.sleep(for: .milliseconds(100))
            guard let earlier = before, let now = busyTime, let threads else { return }
            let stretch = ContinuousClock.now - instant
            let isQuiet = now - earlier < stretch / 10 && threads <= 2 * ProcessInfo.processInfo.activeProcessorCount + 4
            quietStretches = isQuiet ? quietStretches + 1 : 0
            (before, instant) = (now, instant + stretch)
        }
    }

    /// How many threads the process has; `nil` where the system does not say.
    private static var threads: Int? { try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count }

    /// How long the cores have worked in sum; `nil` where the system does not say.
    private static var busyTime: Duration? {
        guard let file = FileHandle(forReadingAtPath: "/proc/stat"), let data = try? file.readToEnd() else { return nil }
        // “cpu  user nice system idle iowait irq softirq steal …”, in hundredths of a second since the start.
        let figures = data.prefix { $0 != UInt8(ascii: "\n") }.split(separator: UInt8(ascii: " ")).dropFirst()
            .compactMap { Int(String(decoding: $0, as: UTF8.self)) }
        guard figures.count >= 8 else { return nil }
        return .milliseconds(10 * (figures[0] + figures[1] + figures[2] + figures[5] + figures[6] + figures[7]))
    }
}
