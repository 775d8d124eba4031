import Console
import Foundation
import StoreCore
import Trials

/// Several processes with one cache: workers that share fetches, see each other's changes, and replace a worker that is killed.
@main
enum Fleet {
    static func main() async {
        var arguments = Array(CommandLine.arguments.dropFirst())
        do {
            switch arguments.first {
            case "origin" where arguments.count == 2:
                try await FleetOrigin.run(log: arguments[1])
            case "worker":
                try await Worker(Array(arguments.dropFirst())).run()
            case "figure":
                try await FigureProcess.run(Array(arguments.dropFirst()))
            default:
                let options = try FleetOptions(&arguments)
                guard !options.helps else { return say(FleetOptions.usage) }
                var isPassed = try await Supervisor(options).run()
                if options.checksFigures, options.postgres == nil { isPassed = try await Figures.run(options) && isPassed }
                if options.checksFigures, let url = options.postgres { isPassed = try await Figures.run(options, on: url) && isPassed }
                exit(isPassed ? 0 : 1)
            }
        } catch let mistake as FleetOptions.Mistake {
            complain("\(mistake); see fleet --help")
            exit(64)
        } catch {
            complain("\(error)")
            exit(2)
        }
    }

    private static func complain(_ text: String) {
        try? FileHandle.standardError.write(contentsOf: Data("fleet: \(text)\n".utf8))
    }
}

/// The parsed command line.
struct FleetOptions {
    var workers = 4
    var seconds = 10
    /// The database to share instead of a directory.
    var postgres: String?
    var checksFigures = false
    /// The keys that are requested, and the writes that are made, for the figures.
    var rounds = 1000
    var writes = 100_000
    var isPlain = false
    var helps = false

    struct Mistake: Error, CustomStringConvertible {
        var description: String
    }

    static let usage = """
        usage: fleet [--workers <count>] [--seconds <count>] [--postgres <url>]
                     [--check [--rounds <count>] [--writes <count>]] [--plain]

        Starts worker processes on one directory, or on one PostgreSQL database,
        and an origin that counts fetches. Kills a worker halfway, and checks at
        the end that each key was fetched once, that no update was lost, and that
        all workers have the same content.

            --workers <count>   the number of workers, 2 to 64; 4 by default
            --seconds <count>   the duration, 2 to 3600; 10 by default
            --postgres <url>    shares a table of the database instead of a
                                directory; the server may restart meanwhile
            --check             also fails if the 99th percentile of the time
                                until another worker sees a change exceeds
                                20 ms, or 50 ms on PostgreSQL. Then the program
                                measures more, for some minutes: the fetches of
                                8 processes with 1000 callers each, the writes
                                of processes that are killed, the time until
                                another process sees a save, and the wake-ups of
                                an idle process
            --rounds <count>    the missing keys that are fetched; 1000 by
                                default
            --writes <count>    the writes of the killed processes; 100000 by
                                default
            --plain             prints plain lines, as if the output were not a
                                terminal

        exit codes: 0 all checks passed, 1 a check failed,
                    2 the fleet could not run, 64 invalid arguments.
        """

    init(_ arguments: inout [String]) throws {
        func value(_ option: String, in range: ClosedRange<Int>) throws -> Int {
            guard !arguments.isEmpty else { throw Mistake(description: "\(option) needs a value") }
            let text = arguments.removeFirst()
            guard let number = Int(text), range.contains(number) else {
                throw Mistake(description: "\(option) \(text): use a number from \(range.lowerBound) to \(range.upperBound)")
            }
            return number
        }
        while !arguments.isEmpty {
            switch arguments.removeFirst() {
            case "--workers": workers = try value("--workers", in: 2...64)
            case "--seconds": seconds = try value("--seconds", in: 2...3600)
            case "--postgres":
                guard !arguments.isEmpty else { throw Mistake(description: "--postgres needs a URL") }
                postgres = arguments.removeFirst()
            case "--check": checksFigures = true
            case "--rounds": rounds = try value("--rounds", in: 1...1_000_000)
            case "--writes": writes = try value("--writes", in: 1...100_000_000)
            case "--plain": isPlain = true
            case "--help", "-h": helps = true
            case let other: throw Mistake(description: "unknown option \(other)")
            }
        }
    }
}

/// The status of a worker, which it appends to its log as a line of JSON.
struct Status: Codable, Sendable {
    var worker: Int
    /// Whether the worker changes nothing any more, and everything is saved.
    var hasSaved = false
    var isFinal = false
    /// The number of requested keys, and the number of completed requests.
    var rounds = 0
    var answers = 0
    /// The fetches of this worker, and the changes of others that its observer has seen.
    var fetches = 0
    var changes = 0
    /// The saved additions, and the additions that may be lost because the database was unavailable during their saves.
    var additions = 0
    var unsureAdditions = 0
    /// The keys for which the cacher has failed, so that each worker fetches for itself.
    var faultyKeys: Set<String> = []
    /// The times until the changes arrived, in microseconds.
    var delays: [Int] = []
    /// The content at the end.
    var shared: Item?
    var sum: Int?

    func percentile(_ share: Double) -> Int? {
        let sorted = delays.sorted()
        return sorted.isEmpty ? nil : sorted[min(sorted.count - 1, Int(Double(sorted.count) * share))]
    }
}

/// The content of a key.
struct Item: Codable, Hashable, Sendable {
    var value: Int
    var writer = 0
    /// The time of the change on the machine's monotonic clock, in nanoseconds.
    var time: Int64 = 0
}
