/// A measured implementation.
enum Contestant: String, CaseIterable, Sendable, Codable {
    /// The empty loop, or the bare minimum that no design can undercut if the figure says so.
    case floor
    /// The sixty lines of a typical handwritten solution, based on a `Mutex`.
    case mutex
    /// The same, based on an actor.
    case actor
    case storehouse
}

/// The unit of a figure.
enum Unit: String, Sendable, Codable {
    case nanoseconds
    case bytes
    case count
}

/// A row of the table.
struct Figure: Sendable {
    /// The name for budgets and `--filter`.
    var name: String
    var title: String
    var unit: Unit
}

/// One round of one contestant, which returns a number for each figure of the experiment.
typealias Round = @Sendable () async throws -> [Double]

/// A contestant with its round.
struct Entrant: Sendable {
    let contestant: Contestant
    let round: Round

    static func floor(_ round: @escaping Round) -> Entrant { Entrant(contestant: .floor, round: round) }
    static func mutex(_ round: @escaping Round) -> Entrant { Entrant(contestant: .mutex, round: round) }
    static func actor(_ round: @escaping Round) -> Entrant { Entrant(contestant: .actor, round: round) }
    static func storehouse(_ round: @escaping Round) -> Entrant { Entrant(contestant: .storehouse, round: round) }
}

/// A task for all contestants, with the figures that it yields.
struct Experiment: Sendable {
    var section: Section
    var figures: [Figure]
    /// The number of full rounds: nine is the least with a 95 % interval that is narrower than the whole range.
    var rounds = 11
    /// The figures of other programs for the same work, one run each.
    var peers: @Sendable (_ scale: Scale) async throws -> [Peer] = { _ in [] }
    /// Prepares the contestants, which are released after the experiment.
    var prepare: @Sendable (_ scale: Scale) async throws -> [Entrant]

    /// The sections of the table.
    enum Section: String, CaseIterable, Sendable {
        case reading = "Reading"
        case observing = "Observing"
        case lists = "Lists"
        case memory = "Memory"
        case files = "Files"
        case database = "PostgreSQL"
        case wire = "Wire"
        case texts = "Texts"
        case sync = "Synchronizing"
    }
}

extension Experiment {
    /// Makes a task with one figure.
    init(
        _ section: Section, _ name: String, _ title: String, unit: Unit = .nanoseconds, rounds: Int? = nil,
        prepare: @escaping @Sendable (_ scale: Scale) async throws -> [Entrant]
    ) {
        self.init(section: section, figures: [Figure(name: name, title: title, unit: unit)], prepare: prepare)
        if let rounds { self.rounds = rounds }
    }
}

/// The extent of the measurement.
enum Scale: Sendable {
    case full
    case quick

    /// Returns the number of rounds.
    func rounds(of experiment: Experiment) -> Int { self == .full ? experiment.rounds : min(9, experiment.rounds) }

    /// Returns the number of repetitions in one round.
    func times(_ full: Int, quick: Int) -> Int { self == .full ? full : quick }
}
