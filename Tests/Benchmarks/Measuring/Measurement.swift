/// Runs experiments round by round.
struct Measurement: Sendable {
    var scale: Scale
    /// Called before each round.
    var onRound: @Sendable (_ experiment: Experiment, _ round: Int, _ rounds: Int) -> Void

    func run(_ experiment: Experiment) async throws -> [Outcome] {
        let entrants = try await experiment.prepare(scale)
        let rounds = scale.rounds(of: experiment)
        var samples: [Contestant: [[Double]]] = [:]
        onRound(experiment, 0, rounds)
        for entrant in entrants { _ = try await detached(entrant.round) }
        try await Machine.rest(within: scale == .full ? .seconds(10) : .seconds(2))
        for number in 1...rounds {
            onRound(experiment, number, rounds)
            // A B B A: the first contestant in one round is the last in the next.
            for entrant in number.isMultiple(of: 2) ? entrants.reversed() : entrants {
                samples[entrant.contestant, default: []].append(try await detached(entrant.round))
            }
        }
        return experiment.figures.enumerated().map { place, figure in
            Outcome(
                section: experiment.section, figure: figure, samples: samples.mapValues { $0.map { $0[place] } },
                budget: Budget.of(figure.name))
        }
    }

    /// Runs a round outside the caller's actor, which would add a hop to each call of an actor.
    private func detached(_ round: @escaping Round) async throws -> [Double] { try await Task.detached { try await round() }.value }
}
