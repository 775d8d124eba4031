#if os(Linux)
import Console
import Foundation
import StoreCore
import Trials

extension Figures {
    /// A process follows the changes of others while there are none.
    ///
    /// The runtime wakes each process once a second, so a process that shares nothing is measured beside it.
    func idle() async throws -> Bool {
        let store = try place.store()
        let key = FigureProcess.key(0)
        await store[key].update(Tally(counts: [0: 0]))
        let (follower, resting) = (try launch("follow"), try launch("rest"))
        for process in [follower, resting] { _ = try await line(of: process) }
        var isFollowing = try await sees(1, follower, store)
        show("idle: waiting until the threads of the pool have ended")
        try await Task.sleep(for: .seconds(10))
        let before = (try Self.switches(of: follower.id), try Self.switches(of: resting.id))
        var locks = 0
        for second in 1...size.idleSeconds {
            show("idle: \(second) of \(size.idleSeconds) s")
            try await Task.sleep(for: .seconds(1))
            locks += try Self.locks(of: follower.id)
        }
        let woken = Self.woken(before.0, try Self.switches(of: follower.id))
        let wokenResting = Self.woken(before.1, try Self.switches(of: resting.id))
        isFollowing = try await sees(2, follower, store) && isFollowing
        // The clock of the runtime is on one thread.
        let own = woken.dropFirst().reduce(0, +) + max(0, (woken.first ?? 0) - size.idleSeconds - 1)
        return report(
            own == 0 && locks == 0 && isFollowing,
            "\(own) wake-ups in \(size.idleSeconds) idle seconds, \(locks) locks; the runtime's clock woke the process \(woken.first ?? 0) times, "
                + "and \(wokenResting.first ?? 0) times that of a store that shares nothing")
    }

    /// Whether a process sees the next change.
    private func sees(_ count: Int, _ follower: ChildProcess, _ store: Store<String, Tally>) async throws -> Bool {
        await store[FigureProcess.key(0)].update(Tally(counts: [0: count]))
        return try await line(of: follower) == "\(count)"
    }

    /// The number of times that each thread began to wait: a thread that is woken begins to wait again.
    private static func switches(of id: Int32) throws -> [String: Int] {
        var counts: [String: Int] = [:]
        for thread in try FileManager.default.contentsOfDirectory(atPath: "/proc/\(id)/task") {
            let status = try String(contentsOfFile: "/proc/\(id)/task/\(thread)/status", encoding: .utf8)
            counts[thread] = status.firstMatch(of: /\nvoluntary_ctxt_switches:\s*(\d+)/).flatMap { Int($0.1) } ?? 0
        }
        return counts
    }

    /// The wake-ups of each thread between two counts, in descending order; a new thread counts in full, and at least once.
    private static func woken(_ before: [String: Int], _ after: [String: Int]) -> [Int] {
        after.map { thread, count in before[thread].map { count - $0 } ?? max(1, count) }.sorted(by: >)
    }

    /// The number of file locks that a process holds.
    private static func locks(of id: Int32) throws -> Int {
        try String(contentsOfFile: "/proc/locks", encoding: .utf8).split(separator: "\n").count { line in
            line.split(separator: " ").contains { $0 == "\(id)" }
        }
    }
}
#endif
