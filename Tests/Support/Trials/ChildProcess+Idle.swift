#if os(Linux)
internal import Foundation

extension ChildProcess {
    /// Returns how often this process and another were woken during a few seconds without work.
    ///
    /// On a busy machine, the work before may end late, so the first quiet period counts. A process that polls has none.
    ///
    /// - Parameter control: A process with nothing to wait for: the runtime wakes every process about once a second.
    public func wakes(beside control: ChildProcess) async throws -> (Int, control: Int) {
        // The threads of the pool end after some seconds without work.
        try await leaveIdle(seconds: 7)
        var counts = (0, control: 0)
        for _ in 0..<10 {
            let (own, other) = (try switches(), try control.switches())
            try await leaveIdle(seconds: isLongRun ? 10 : 4)
            counts = (try switches() - own, control: try control.switches() - other)
            if counts.0 <= counts.control + 2 { break }
        }
        return counts
    }

    /// Whether this process has locked a file.
    public func holdsLock() throws -> Bool {
        let locks = try String(contentsOfFile: "/proc/locks", encoding: .utf8)
        return locks.split(separator: "\n").contains { $0.split(separator: " ").contains { $0 == "\(id)" } }
    }

    /// Returns how often the threads have given up the processor by themselves: a thread that is woken does so at least once.
    private func switches() throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/\(id)/task").reduce(0) { sum, task in
            let status = try String(contentsOfFile: "/proc/\(id)/task/\(task)/status", encoding: .utf8)
            return sum
                + status.split(separator: "\n").filter { $0.hasPrefix("voluntary") }.compactMap { Int($0.split(separator: "\t")[1]) }
                .reduce(0, +)
        }
    }
}
#endif
