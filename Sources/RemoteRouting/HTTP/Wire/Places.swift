/// The places of running exchanges and the exchanges that wait for one, fairly by origin.
///
/// A free place goes to the origin with the fewest running exchanges, in order of arrival among equals. An origin with running exchanges
/// leaves the last places to others, so that silent servers cannot hold all of them. It is a part of the machine, and pure.
struct Places {
    typealias Ticket = WireMachine.Ticket

    /// The reasons why an exchange waits.
    enum Kind: CaseIterable {
        /// It has not begun, and waits for a place.
        case exchange, stream
        /// It waited for the connection of another exchange, and may begin.
        case follower
    }

    private struct Lane {
        /// The waiting exchanges of each kind in order of arrival; canceled ones are skipped.
        private var exchanges: ArraySlice<Ticket> = []
        private var waitingStreams: ArraySlice<Ticket> = []
        private var followers: ArraySlice<Ticket> = []
        var running = 0
        var paused = 0
        var streams = 0

        subscript(kind: Kind) -> ArraySlice<Ticket> {
            get {
                switch kind {
                case .exchange: exchanges
                case .stream: waitingStreams
                case .follower: followers
                }
            }
            _modify {
                switch kind {
                case .exchange: yield &exchanges
                case .stream: yield &waitingStreams
                case .follower: yield &followers
                }
            }
        }

        var waits: Bool { !exchanges.isEmpty || !waitingStreams.isEmpty || !followers.isEmpty }
        var isEmpty: Bool { !waits && running + paused == 0 }

        /// Removes canceled exchanges from the front of each queue.
        mutating func skip(_ isKnown: (Ticket) -> Bool) {
            for kind in Kind.allCases {
                while let first = self[kind].first, !isKnown(first) { self[kind].removeFirst() }
            }
        }
    }

    /// The maximum number of running exchanges of one origin. Paused ones do not count; otherwise a few unread streams would block all
    /// others.
    private let width: Int
    /// The maximum number of exchanges with a connection, including paused ones.
    private let connections: Int
    /// The number of places beyond the width, which an origin with running exchanges leaves to others.
    private let reserve: Int
    private var lanes: [String: Lane] = [:]
    /// The number of origins at which those without exchanges are forgotten.
    private var laneLimit = 1000
    /// The origins with waiting exchanges, among which a free place is given.
    private var waiting: Set<String> = []
    private(set) var running = 0
    private(set) var paused = 0
    /// The number of streams with a connection.
    private var streams = 0
    /// The number of tickets in all queues, including canceled ones.
    private var queued = 0

    init(width: Int, connections: Int) {
        self.width = max(1, width)
        self.connections = max(1, connections)
        reserve = self.width / 8
    }

    /// The maximum number of streams with a connection. Readers may pause all of them, and other exchanges need the rest.
    private var streamLimit: Int { max(1, connections - min(width, connections / 2)) }

    /// Adds a waiting exchange; later exchanges have larger tickets.
    mutating func append(_ ticket: Ticket, _ kind: Kind, of origin: String) {
        if lanes.count > laneLimit {
            lanes = lanes.filter { !$0.value.isEmpty }
            laneLimit = max(1000, 2 * lanes.count)
        }
        lanes[origin, default: Lane()][kind].append(ticket)
        waiting.insert(origin)
        queued += 1
    }

    /// Removes and returns the exchange that begins next; `nil` if there is none or no place.
    mutating func next(_ isKnown: (Ticket) -> Bool) -> (ticket: Ticket, kind: Kind)? {
        guard !waiting.isEmpty, running + paused < connections else { return nil }
        var best: (origin: String, running: Int, ticket: Ticket, kind: Kind)?
        for origin in waiting {
            lanes[origin]?.skip(isKnown)
            guard let lane = lanes[origin], lane.waits else {
                waiting.remove(origin)
                continue
            }
            guard mayBegin(lane) else { continue }
            for kind in Kind.allCases {
                guard let ticket = lane[kind].first, kind != .stream || mayStream(lane) else { continue }
                if let best, (best.running, best.ticket) < (lane.running, ticket) { continue }
                best = (origin, lane.running, ticket, kind)
            }
        }
        guard let best else { return nil }
        lanes[best.origin]?[best.kind].removeFirst()
        queued -= 1
        return (best.ticket, best.kind)
    }

    private func mayBegin(_ lane: Lane) -> Bool {
        width + reserve - running > min(lane.running, reserve)
            && connections - running - paused > min(lane.running + lane.paused, reserve, max(0, connections - width))
    }

    private func mayStream(_ lane: Lane) -> Bool {
        streamLimit - streams > min(lane.streams, streamLimit / 8)
    }

    /// Counts an exchange that takes a place.
    mutating func began(_ origin: String, isStream: Bool) {
        running += 1
        lanes[origin, default: Lane()].running += 1
        if isStream {
            streams += 1
            lanes[origin]?.streams += 1
        }
    }

    /// Records that a running or paused exchange has left its place.
    mutating func ended(_ origin: String, isStream: Bool, isPaused: Bool) {
        if isPaused {
            paused -= 1
            lanes[origin]?.paused -= 1
        } else {
            running -= 1
            lanes[origin]?.running -= 1
        }
        if isStream {
            streams -= 1
            lanes[origin]?.streams -= 1
        }
    }

    /// Records that the reader of an exchange is behind.
    mutating func paused(_ origin: String) {
        running -= 1
        paused += 1
        lanes[origin]?.running -= 1
        lanes[origin]?.paused += 1
    }

    /// Records that the reader of an exchange wants more.
    mutating func resumed(_ origin: String) {
        paused -= 1
        running += 1
        lanes[origin]?.paused -= 1
        lanes[origin]?.running += 1
    }

    /// Bounds the queues to twice their use, even if many exchanges are canceled before their turn.
    mutating func compact(waitingCount: Int, _ isKnown: (Ticket) -> Bool) {
        guard queued > 2 * waitingCount + 64 else { return }
        queued = 0
        for (origin, var lane) in lanes {
            for kind in Kind.allCases {
                lane[kind].removeAll { !isKnown($0) }
                queued += lane[kind].count
            }
            lanes[origin] = lane
        }
    }
}
