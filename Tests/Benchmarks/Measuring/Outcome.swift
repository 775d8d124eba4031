/// The result of one row.
struct Outcome: Sendable {
    var section: Experiment.Section
    var figure: Figure
    var spreads: [Contestant: Spread]
    var budget: Budget?
    /// The value that the budget limits: a ratio, a difference, or the figure itself.
    var judged: Spread?
    /// The contestant in the comparison; `nil` if the budget limits the figure itself.
    var reference: Contestant?

    enum Verdict: String, Sendable, Codable {
        case met
        /// Over the budget within the uncertainty, which counts as met.
        case unsure
        case broken
        /// Over the budget for a known reason, which the budget states.
        case open
        case noBudget
    }

    var verdict: Verdict {
        guard let budget, let judged else { return .noBudget }
        if judged.low > budget.limit { return Budget.open[budget.figure] == nil ? .broken : .open }
        return judged.median > budget.limit ? .unsure : .met
    }

    init(section: Experiment.Section, figure: Figure, samples: [Contestant: [Double]], budget: Budget?) {
        self.section = section
        self.figure = figure
        self.budget = budget
        spreads = samples.mapValues { Spread($0) }
        guard let budget, let ours = samples[.storehouse] else { return }
        reference = budget.reference.contestant(in: spreads)
        guard let reference, let theirs = samples[reference] else {
            if budget.kind == .absolute { judged = spreads[.storehouse] }
            return
        }
        // Pairs from one round were measured close together, which eliminates slow drift.
        let pairs = zip(ours, theirs)
        switch budget.kind {
        case .ratio: judged = Spread(pairs.map { $0 / max($1, .leastNonzeroMagnitude) })
        case .difference: judged = Spread(pairs.map { $0 - $1 })
        case .absolute: judged = spreads[.storehouse]
        }
    }
}
