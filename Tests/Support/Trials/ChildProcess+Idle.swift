#if os(Linux)
internal import Foundation

extension ChildProcess {
    /// Returns how often this process and another were woken during a few seconds without work.
    ///
    /// The work before may end late, and the threads of the pool end after some seconds, so the first quiet period counts. A process that
    /// polls has none.
    ///
    /// - Parameter control: A process with nothing to wait for: the runtime wakes every process about once a second.
    public func wakes(beside control: ChildProcess) async throws -> (Int, control: Int) {
        var counts = (0, control: 0)
        for _ in 0..<10 {
            let (own, other) = (try switches(), try control.switches())
            try await leaveIdle(seconds: isLongRun ? 10 : 4)
            counts = (Self.woken(own, try switches()), control: Self.woken(other, try control.switches()))
            if counts.0 <= counts.control + 2 { break }
        }
        return counts
    }

    /// Whether this process has locked a file.
    public func holdsLock() throws -> Bool {
        let locks = try String(contentsOfFile: "/proc/locks", encoding: .utf8)
        return locks.split(separator: "\n").contains { $0.split(separator: " ").contains { $0 == "\(id)" } }
    }

    /// Returns how often each thread has given up the processor by itself: a thread that is woken does so at least once.
    private func switches() throws -> [String: Int] {
        var counts: [String: Int] = [:]
        for thread in try FileManager.default.contentsOfDirectory(atPath: "/proc/\(id)/task") {
            // The thread may have ended meanwhile.
            guard let status = try? String(contentsOfFile: "/proc/\(id)/task/\(thread)/status", encoding: .utf8) else { continue }
            let line = status.split(separator: "\n").first { $0.hasPrefix("voluntary") }
            counts[thread] = line.flatMap { Int($0.split(separator: "\t")[1]) }
        }
        return counts
    }

    /// Returns how often the threads were woken between two counts; a thread that has ended meanwhile does not count.
    private static func woken(_ before: [String: Int], _ after: [String: Int]) -> Int {
        after.reduce(0) { $0 + $1.value - before[$1.key, default: 0] }
    }
}
#endif
