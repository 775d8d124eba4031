import Console
import Foundation
import StoreCore
import Trials

extension Figures {
    private static let keys = 16

    /// The writers of a figure, and what they have acknowledged.
    private struct Writers {
        var running: [(number: Int, process: ChildProcess)] = []
        /// The writers that were killed.
        var killed: Set<Int> = []
        var next = 0
        var logs: [String] = []

        /// The number of acknowledged writes.
        var count: Int {
            logs.reduce(0) { sum, log in
                let size = (try? FileManager.default.attributesOfItem(atPath: log)[.size] as? Int) ?? 0
                return sum + size / (FigureProcess.line(ofWriteTo: 0).utf8.count + 1)
            }
        }

        /// The acknowledged writes of each writer, by key.
        var acknowledged: [[Int: Int]] {
            logs.map { log in
                let lines = ((try? String(contentsOfFile: log, encoding: .utf8)) ?? "").split(separator: "\n")
                return Dictionary(lines.compactMap { Int($0) }.map { ($0, 1) }, uniquingKeysWith: +)
            }
        }
    }

    /// Processes write at random, are killed at random moments, and are replaced. Others observe.
    func writes() async throws -> Bool {
        let store = try place.store()
        for number in 0..<Self.keys { await store[FigureProcess.key(number)].update(Tally()) }
        let readers = try (0..<2).map { _ in try launch("read", "\(Self.keys)") }
        for reader in readers { _ = try await line(of: reader) }
        var writers = Writers()
        func startWriter() async throws {
            let (number, log) = (writers.next, path("writer-\(writers.next)"))
            writers.next += 1
            writers.logs.append(log)
            writers.running.append((number, try launch("write", "\(number)", "\(Self.keys)", log)))
        }
        for _ in 0..<size.writers { try await startWriter() }
        let start = ContinuousClock.now
        var (shown, done) = (start, 0)
        while done < size.writes {
            try await Task.sleep(for: .milliseconds(Int.random(in: 50...500)))
            let victim = writers.running.remove(at: Int.random(in: 0..<writers.running.count))
            victim.process.kill()
            writers.killed.insert(victim.number)
            try await startWriter()
            done = writers.count
            guard ContinuousClock.now - shown > .seconds(console.isLive ? 1 : 10) else { continue }
            shown = .now
            show("writes: \(Self.grouped(done)) of \(Self.grouped(size.writes)), \(writers.killed.count) kills")
        }
        var faults = 0
        for (_, process) in writers.running {
            // Each has printed that it is ready.
            _ = try await line(of: process)
            faults += Int(try await ask(process, "stop")) ?? 1
        }
        let seconds = Int((ContinuousClock.now - start) / .seconds(1))
        return try await check(writers, readers, faults: faults, seconds: seconds)
    }

    private func check(_ writers: Writers, _ readers: [ChildProcess], faults: Int, seconds: Int) async throws -> Bool {
        // A store that has followed nothing reads what is saved.
        let fresh = try place.store()
        var saved: [Tally?] = []
        for number in 0..<Self.keys { saved.append(await fresh[FigureProcess.key(number)].getData(from: .cache)) }
        let acknowledged = writers.acknowledged
        let (lost, surplus) = compare(saved, acknowledged)
        // The last changes are under way.
        var differing = 0
        for process in readers + writers.running.map(\.process) {
            if try await !ends(process, with: saved) { differing += 1 }
        }
        var (seen, older) = (0, 0)
        for reader in readers {
            let counts = try await ask(reader, "stop").split(separator: " ").compactMap { Int($0) }
            guard counts.count == 2 else { continue }
            (seen, older) = (seen + counts[0], older + counts[1])
        }
        let done = acknowledged.reduce(0) { $0 + $1.values.reduce(0, +) }
        let isKept = report(
            lost == 0 && surplus <= writers.killed.count && faults == 0,
            "\(Self.grouped(done)) acknowledged writes, \(writers.killed.count) kills: \(lost) lost, \(surplus) saved without a word of it, "
                + "\(faults) faults, \(seconds) s")
        let isOrdered = report(older == 0 && seen > 0, "\(Self.grouped(seen)) contents seen by readers: \(older) older than the one before")
        let isEqual = report(differing == 0, "\(differing) of \(readers.count + writers.running.count) processes end with other content")
        return isKept && isOrdered && isEqual
    }

    /// Compares the saved counts with the acknowledged ones.
    ///
    /// - Returns: The writes that were lost, and those that were saved although their writer was killed before it acknowledged them.
    private func compare(_ saved: [Tally?], _ acknowledged: [[Int: Int]]) -> (lost: Int, surplus: Int) {
        var (lost, surplus) = (0, 0)
        for (writer, counts) in acknowledged.enumerated() {
            for key in 0..<Self.keys {
                let difference = (saved[key]?.counts[writer, default: 0] ?? 0) - counts[key, default: 0]
                if difference < 0 { lost -= difference } else { surplus += difference }
            }
        }
        return (lost, surplus)
    }

    /// Whether a process has the same content as the others, at the latest after five minutes.
    private func ends(_ process: ChildProcess, with saved: [Tally?]) async throws -> Bool {
        for _ in 0..<3_000 {
            let own = try JSONDecoder().decode([Tally?].self, from: Data(try await ask(process, "tallies").utf8))
            if own == saved { return true }
            try await Task.sleep(for: .milliseconds(100))
        }
        return false
    }
}
