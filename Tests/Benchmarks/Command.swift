internal import Console
internal import PostgresCacher
internal import Trials

@main
struct Command {
    static let experiments: [Experiment] =
        Experiment.hits + Experiment.inspecting + [.sharedFetch, .prefetch] + Experiment.observing + Experiment.links + [.pages]
        + Experiment.memory + Experiment.files
        + Experiment.outbox + Experiment.database + Experiment.exchanges + Experiment.outsideExchanges + Experiment.routes
        + Experiment.texts
        + Experiment.synchronizing
        + Experiment.mirroring + Experiment.outsideMirrors

    static func main() async {
        do {
            #if os(macOS) || os(Linux)
            let arguments = CommandLine.arguments.dropFirst()
            if arguments.first == OriginCommand.argument { try await OriginCommand(arguments.dropFirst())?.run() }
            if arguments.first == MirrorCommand.argument, let mirror = MirrorCommand(arguments.dropFirst()) {
                return try await mirror.run()
            }
            #endif
            let options = try Options(CommandLine.arguments.dropFirst())
            if options.helps {
                write(Options.usage, to: .output)
            } else if options.lists {
                write(list(options), to: .output)
            } else {
                try await run(options)
            }
        } catch let mistake as Options.Mistake {
            write("benchmarks: \(mistake)\n\n\(Options.usage)", to: .errors)
            end(2)
        } catch {
            write("benchmarks: \(error)\n", to: .errors)
            end(3)
        }
    }

    // Not on the main actor, where every wait costs two thread hops. On `main()` itself, the attribute would have no effect.
    @concurrent
    private static func run(_ options: Options) async throws {
        var chosen = experiments.filter { $0.figures.contains(where: options.selects) }
        if !HeapUsage.isKnown, chosen.contains(where: { $0.section == .memory }) {
            write("benchmarks: this allocator has no statistics, so the memory rows are skipped\n", to: .errors)
            chosen.removeAll { $0.section == .memory }
        }
        if chosen.contains(where: { $0.section == .database }), let obstacle = await databaseObstacle() {
            write("benchmarks: the rows of PostgreSQL are skipped: \(obstacle)\n", to: .errors)
            chosen.removeAll { $0.section == .database }
            if chosen.isEmpty { return }
        }
        if options.checks, options.scale == .quick {
            // The others cannot fail the check.
            chosen.removeAll { !$0.figures.contains { Budget.of($0.name)?.holdsOnNoisyMachines == true } }
        }
        guard !chosen.isEmpty else {
            throw Options.Mistake(description: "no row contains \(options.filters.joined(separator: " or ")); see --list")
        }
        let progress = Progress(experiments: chosen.count)
        #if DEBUG
        write("benchmarks: figures of a debug build mean nothing; use swift run -c release benchmarks\n", to: .errors)
        #endif
        let (outcomes, peers, failures) = await measure(chosen, options, progress)
        progress.clear()
        switch options.format {
        case .table: write(TextTable(outcomes, peers, isColored: Console().hasColours).text, to: .output)
        case .json: write(try JSONReport(outcomes).text, to: .output)
        case .markdown: write(MarkdownTable(outcomes).text, to: .output)
        }
        for failure in failures { write("benchmarks: \(failure)\n", to: .errors) }
        if options.checks { check(outcomes, options.scale) }
        if !failures.isEmpty { end(3) }
    }

    /// Measures the experiments one after the other; one that fails does not end the others.
    @concurrent
    private static func measure(
        _ experiments: [Experiment], _ options: Options, _ progress: Progress
    ) async -> (outcomes: [Outcome], peers: [Peer], failures: [String]) {
        defer { BenchmarkDirectory.removeAll() }
        let measurement = Measurement(scale: options.scale) { progress.show($0, round: $1, of: $2) }
        var outcomes: [Outcome] = []
        var peers: [Peer] = []
        var failures: [String] = []
        for experiment in experiments {
            do {
                outcomes += try await measurement.run(experiment).filter { options.selects($0.figure) }
                if options.format == .table, !(options.checks && options.scale == .quick) {
                    let figures = Set(outcomes.map(\.figure.name))
                    peers += try await experiment.peers(options.scale).filter { figures.contains($0.figure) }
                }
            } catch {
                failures.append("\(experiment.figures.map(\.name).joined(separator: ", ")) failed: \(error)")
            }
            progress.experimentEnded()
        }
        return (outcomes, peers, failures)
    }

    /// The reason why no database can be measured; `nil` if there is none.
    private static func databaseObstacle() async -> String? {
        #if os(macOS) || os(Linux)
        if let obstacle = PostgresServer.obstacle { return obstacle }
        do {
            _ = try PostgresDatabase(url: "postgresql://127.0.0.1")
            return nil
        } catch {
            return error.message
        }
        #else
        return "servers run on Linux and macOS only"
        #endif
    }

    private static func check(_ outcomes: [Outcome], _ scale: Scale) {
        let broken = outcomes.filter { outcome in
            outcome.verdict == .broken && (scale == .full || outcome.budget?.holdsOnNoisyMachines == true)
        }
        for outcome in broken {
            let row = Cells(outcome)
            write("benchmarks: \(outcome.figure.name): \(row.judged), and the budget is \(row.budget)\n", to: .errors)
        }
        if !broken.isEmpty { end(1) }
    }

    private static func list(_ options: Options) -> String {
        let figures = experiments.flatMap(\.figures).filter(options.selects)
        let width = figures.map(\.name.count).max() ?? 0
        return figures.map { figure in
            let budget = Budget.of(figure.name)
            let noise = budget.map { $0.holdsOnNoisyMachines ? "" : ", on a quiet machine" } ?? ""
            return "\(padded(figure.name, to: width))  \(figure.title)  [\(budget?.text(in: figure.unit) ?? "no budget")\(noise)]\n"
        }.joined()
    }
}
