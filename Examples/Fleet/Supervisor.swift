import Console
import Foundation
import StoreCore
import Trials

/// Starts the processes, shows them as a table, kills one of them, and checks the outcome.
struct Supervisor {
    let options: FleetOptions
    private let console: Console
    private let directory: URL

    init(_ options: FleetOptions) throws {
        self.options = options
        console = Console(isPlain: options.isPlain)
        directory = FileManager.default.temporaryDirectory.appending(path: "fleet-\(UUID().uuidString)", directoryHint: .isDirectory)
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        guard options.postgres != nil else { return }
        for number in 0..<Self.groups {
            try FileManager.default.createDirectory(
                at: directory.appending(path: "group-\(number)", directoryHint: .isDirectory), withIntermediateDirectories: true)
        }
    }

    /// The number of groups on a database. Each has a directory of its own, as if it were another machine.
    private static let groups = 2

    private func log(of worker: Int) -> String {
        path(options.postgres == nil ? "worker-\(worker)" : "group-\(worker % Self.groups)/worker-\(worker)")
    }

    /// The file beside a log that tells the workers that all of them have saved their last changes.
    static func endFile(beside log: String) -> URL { URL(filePath: log).deletingLastPathComponent().appending(path: "end") }

    private func path(_ name: String) -> String { directory.appending(path: name).path(percentEncoded: false) }

    /// - Returns: Whether all checks passed.
    func run() async throws -> Bool {
        // A directory that remains does no harm, because nothing else uses it.
        defer { try? FileManager.default.removeItem(at: directory) }
        let table = "fleet_\(UInt32.random(in: 0...UInt32.max))"
        if let url = options.postgres { try await FleetTable.check(url, table) }
        let origin = try ChildProcess("fleet", ["origin", path("fetches")])
        guard let port = origin.readLine() else { throw FleetOptions.Mistake(description: "the origin did not start") }
        let start = Date().timeIntervalSince1970
        func worker(_ number: Int) throws -> ChildProcess {
            let log = log(of: number)
            return try ChildProcess(
                "fleet",
                [
                    "worker", "\(number)", options.postgres ?? path("cache"), "http://127.0.0.1:\(port)", log, "\(start)",
                    "\(options.seconds)", options.postgres == nil ? "" : table,
                ])
        }
        if !console.isLive { say("\(title)\n\n\(Self.header)") }
        var workers = try (0..<options.workers).map { try worker($0) }
        var (wasKilled, isOver) = (false, false)
        while workers.contains(where: \.isRunning) {
            try await Task.sleep(for: .milliseconds(500))
            if !wasKilled, Date().timeIntervalSince1970 - start > Double(options.seconds) / 2 {
                wasKilled = true
                workers[0].kill()
                workers.append(try worker(options.workers))
                if !console.isLive { say("killed worker 0, started worker \(options.workers)") }
            }
            let latest = statuses()
            show(latest)
            let saved = Set(latest.filter(\.hasSaved).map(\.worker))
            if wasKilled, !isOver, workers.indices.allSatisfy({ !workers[$0].isRunning || saved.contains($0) }) {
                isOver = true
                for number in workers.indices { try Data().write(to: Self.endFile(beside: log(of: number))) }
            }
        }
        origin.kill()
        if let url = options.postgres {
            // The database may be unavailable for a moment.
            try await until("the table is removed") { (try? await FleetTable.remove(url, table)) != nil }
        }
        return check(statuses())
    }

    /// The latest status of each worker.
    private func statuses() -> [Status] {
        (0...options.workers).compactMap { number in
            // The last line may still be incomplete, or the worker has not begun.
            guard let log = try? String(contentsOfFile: log(of: number), encoding: .utf8) else { return nil }
            return log.split(separator: "\n").reversed().lazy.compactMap { line in
                try? JSONDecoder().decode(Status.self, from: Data(line.utf8))
            }.first
        }
    }

    /// The program in a sentence.
    private var title: String {
        "\(options.workers) processes share one cache. Each key is fetched once, and all see each change."
    }

    private static let header = row("worker", "keys", "requests", "fetches", "changes", "seen after", "additions")

    private static func row(_ cells: String...) -> String {
        let widths = [6, 8, 10, 9, 9, 13, 11]
        return zip(cells, widths).map { String(repeating: " ", count: max(1, $1 - $0.count)) + $0 }.joined()
    }

    private func show(_ statuses: [Status]) {
        let rows = statuses.map { status in
            Self.row(
                "\(status.worker)", "\(status.rounds)", "\(status.answers)", "\(status.fetches)", "\(status.changes)",
                status.percentile(0.5).map { "\($0) µs" } ?? "–", "\(status.additions)")
        }
        if console.isLive {
            say("\u{1B}[2J\u{1B}[H" + ([title, "", Self.header] + rows).map { console.fitted($0) }.joined(separator: "\n"))
        } else if let last = rows.last {
            say(last)
        }
    }

    private func check(_ statuses: [Status]) -> Bool {
        let fetches = ((try? String(contentsOfFile: path("fetches"), encoding: .utf8)) ?? "").split(separator: "\n")
        let counts = Dictionary(fetches.map { ($0, 1) }, uniquingKeysWith: +)
        // While the database is unavailable, each worker fetches for itself.
        let faulty = statuses.reduce(into: Set<String>()) { $0.formUnion($1.faultyKeys) }
        let repeated = counts.filter { !faulty.contains(String($0.key)) }.values.reduce(0) { $0 + $1 - 1 }
        let additions = statuses.reduce(0) { $0 + $1.additions }
        let unsure = statuses.reduce(0) { $0 + $1.unsureAdditions }
        let finals = statuses.filter { $0.isFinal && $0.worker != 0 }
        let sum = finals.first?.sum ?? -1
        let answers = statuses.reduce(0) { $0 + $1.answers }
        let delays = statuses.flatMap(\.delays).sorted()
        let tail = delays.isEmpty ? 0 : delays[min(delays.count - 1, delays.count * 99 / 100)]
        let median = delays.isEmpty ? 0 : delays[delays.count / 2]
        let endText =
            "all workers end with the same content"
            + (options.postgres == nil ? "" : ", in \(Self.groups) groups that share nothing but the database")
        let checks: [(Bool, String)] = [
            (finals.count == options.workers, "\(finals.count) of \(options.workers) workers finished; one was killed and replaced"),
            // Another worker may repeat the fetch of the killed worker.
            (
                repeated <= 1 && !counts.isEmpty,
                "\(counts.count) keys\(faulty.isEmpty ? "" : " (\(faulty.count) during outages)"), \(answers) requests, \(fetches.count) fetches"
            ),
            // The killed worker may have saved an addition without reporting it.
            (
                sum >= additions && sum <= additions + unsure + 1,
                "\(additions) additions\(unsure == 0 ? "" : " and \(unsure) during outages"), sum \(sum)"
            ),
            (Set(finals.map(\.shared)).count == 1 && Set(finals.map(\.sum)).count == 1, endText),
            (
                !options.checksFigures || tail <= (options.postgres == nil ? 20_000 : 50_000),
                "changes seen after \(median) µs (median), \(tail) µs (99th percentile)"
            ),
        ]
        for (holds, text) in checks {
            say((holds ? console.paint(.green, "ok    ") : console.paint(.red, "FAILED")) + " " + text)
        }
        return checks.allSatisfy(\.0)
    }
}
