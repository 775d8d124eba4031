/// Who is measured.
enum Contestant: String, CaseIterable, Sendable, Codable {
    /// The loop with nothing in it or, where a figure says so, the bare thing that no design can undercut.
    case floor
    /// The sixty lines an experienced engineer would write instead of taking a library, around a `Mutex`.
    case mutex
    /// The same around an actor.
    case actor
    case storehouse
}

/// What a number means.
enum Unit: String, Sendable, Codable {
    case nanoseconds
    case bytes
    case count
}

/// One row of the table.
struct Figure: Sendable {
    /// What budgets and `--filter` call it.
    var name: String
    var title: String
    var unit: Unit
}

/// One round of one contestant: a number for each figure of the experiment.
typealias Round = @Sendable () async throws -> [Double]

/// Something that all contestants do, and the figures that come of it.
struct Experiment: Sendable {
    var section: Section
    var figures: [Figure]
    /// Whether rounds differ by more than noise, so that a few are enough.
    var isSteady = false
    /// What other programs need for the same work, one run each.
    var peers: @Sendable (_ scale: Scale) async throws -> [Peer] = { _ in [] }
    /// Makes the contestants ready; what they hold is released when the experiment has ended.
    var prepare: @Sendable (_ scale: Scale) async throws -> [(Contestant, Round)]

    /// The parts of the table.
    enum Section: String, CaseIterable, Sendable {
        case reading = "Reading"
        case observing = "Observing"
        case lists = "Lists"
        case memory = "Memory"
        case files = "Files"
        case wire = "Wire"
        case texts = "Texts"
        case sync = "Synchronizing"
    }
}

/// How long to measure.
enum Scale: Sendable {
    case full
    case quick

    /// Nine is the least whose order statistics give an interval of 95 % that is not the whole range.
    func rounds(of experiment: Experiment) -> Int { experiment.isSteady ? 3 : self == .full ? 11 : 9 }

    /// How often to do a thing in one round.
    func times(_ full: Int, quick: Int) -> Int { self == .full ? full : quick }
}
