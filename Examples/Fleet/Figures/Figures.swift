import Console
import Foundation
import StoreCore
import Trials

/// Measures the figures that the sharing of a cache promises, and checks each of them.
struct Figures {
    struct Size: Sendable {
        /// The processes and the callers of each that request one missing key in each round.
        var processes = 8
        var callers = 1000
        var rounds = 1000
        /// The acknowledged writes, of this many processes at a time.
        var writes = 100_000
        var writers = 4
        /// The duration of each measurement of the latency, and the saves per second.
        var seconds = 5
        var rate = 1000
        /// The duration of the idle time.
        var idleSeconds = 10
    }

    let place: FigurePlace
    let size: Size
    let console: Console
    /// Makes a path for a file of the figures.
    let path: (_ name: String) -> String

    /// Measures all figures in a directory of their own.
    ///
    /// - Returns: Whether all are met.
    static func run(_ options: FleetOptions) async throws -> Bool {
        let directory = FileManager.default.temporaryDirectory.appending(path: "figures-\(UUID().uuidString)", directoryHint: .isDirectory)
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        // A process of a figure that still runs makes the directory again, so all have ended before.
        defer { try? FileManager.default.removeItem(at: directory) }
        let path = { (name: String) in directory.appending(path: name).path(percentEncoded: false) }
        var size = Size()
        (size.rounds, size.writes) = (options.rounds, options.writes)
        let place = try FigurePlace(named: "directory:" + path("cache"))
        return try await Figures(place: place, size: size, console: Console(isPlain: options.isPlain), path: path).run()
    }

    /// Measures all figures.
    ///
    /// - Returns: Whether all are met.
    func run() async throws -> Bool {
        if console.isLive { say("") }
        var isMet = try await requests()
        isMet = try await writes() && isMet
        isMet = try await latency() && isMet
        #if os(Linux)
        isMet = try await idle() && isMet
        #else
        say("idle processes are measured on Linux only")
        #endif
        return isMet
    }

    // MARK: Processes

    func launch(_ role: String, _ arguments: String...) throws -> ChildProcess {
        try ChildProcess("fleet", ["figure", role, place.name] + arguments)
    }

    /// The next line of a process.
    func line(of process: ChildProcess) async throws -> String {
        guard let line = try await process.nextLine() else { throw FleetOptions.Mistake(description: "a process of a figure has ended") }
        return line
    }

    func ask(_ process: ChildProcess, _ command: String) async throws -> String {
        try process.write(command)
        return try await line(of: process)
    }

    func show(_ progress: String) {
        if console.isLive { say("\u{1B}[A\u{1B}[2K" + console.fitted(progress)) } else { say(progress) }
    }

    func report(_ isMet: Bool, _ text: String) -> Bool {
        show((isMet ? console.paint(.green, "ok    ") : console.paint(.red, "FAILED")) + " " + text)
        // A line for the progress of the next figure.
        if console.isLive { say("") }
        return isMet
    }

    static func grouped(_ number: Int) -> String {
        var digits = Array(String(number).reversed())
        for index in stride(from: 3, to: digits.count, by: 3).reversed() { digits.insert(" ", at: index) }
        return String(digits.reversed())
    }

    // MARK: One fetch

    /// Many processes request one missing key at the same time, in many rounds. The origin counts.
    private func requests() async throws -> Bool {
        let log = path("figure-fetches")
        let origin = try ChildProcess("fleet", ["origin", log])
        let port = try await line(of: origin)
        let all = try (0..<size.processes).map { _ in try launch("request", "\(size.callers)", "http://127.0.0.1:\(port)") }
        for process in all { _ = try await line(of: process) }
        var failures = 0
        let start = ContinuousClock.now
        var shown = start
        for round in 1...size.rounds {
            for process in all { try process.write("round-\(round)") }
            for process in all { failures += Int(try await line(of: process)) ?? size.callers }
            guard ContinuousClock.now - shown > .seconds(console.isLive ? 1 : 10) else { continue }
            shown = .now
            show("one fetch: \(round) of \(size.rounds) rounds")
        }
        let seconds = Int((ContinuousClock.now - start) / .seconds(1))
        let fetches = ((try? String(contentsOfFile: log, encoding: .utf8)) ?? "").split(separator: "\n")
        let keys = Set(fetches).count
        return report(
            keys == size.rounds && fetches.count == size.rounds && failures == 0,
            "\(fetches.count) fetches of \(keys) missing keys in \(size.rounds) rounds of \(size.processes) processes with \(size.callers) callers, "
                + "\(failures) failures, \(seconds) s")
    }

    // MARK: Latency

    /// A process saves at an even rate, another one observes.
    private func latency() async throws -> Bool {
        let keys = 100
        let saver = try launch("save", "\(keys)", "\(size.rate)")
        _ = try await line(of: saver)
        _ = try await ask(saver, "\(keys)")
        let observer = try launch("see", "\(keys)")
        _ = try await line(of: observer)
        let saves = size.rate * size.seconds
        // All keys have been read, and the pages of both programs are in memory.
        _ = try await ask(saver, "\(size.rate)")
        try await Task.sleep(for: .seconds(1))
        _ = try await ask(observer, "delays")
        var runs: [(median: Int, tail: Int, seen: Int, rate: Int)] = []
        for number in 1...3 {
            show("latency: run \(number) of 3")
            let time = Int(try await ask(saver, "\(saves)")) ?? .max
            // The last changes are under way.
            try await Task.sleep(for: .seconds(1))
            let delays = try JSONDecoder().decode([Int].self, from: Data(try await ask(observer, "delays").utf8)).sorted()
            guard !delays.isEmpty else { return report(false, "no save was seen by another process") }
            let tail = delays[delays.count * 99 / 100]
            runs.append((delays[delays.count / 2], tail, delays.count, Int(Double(saves) / (Double(time) / 1e9))))
        }
        // Another program may have used the machine during one of the runs.
        let best = runs.min { $0.tail < $1.tail } ?? (.max, .max, 0, 0)
        let all = runs.map { "\($0.median)/\($0.tail)" }.joined(separator: ", ")
        return report(
            .microseconds(best.tail) <= place.latency && best.seen * 10 >= saves * 9 && best.rate * 10 >= size.rate * 9,
            "a save is seen by another process after \(best.median) µs (median), \(best.tail) µs (99th percentile) at \(best.rate) saves a second; "
                + "\(best.seen) of \(saves) seen; 3 runs: \(all)")
    }
}
