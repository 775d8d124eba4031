/// The places of running exchanges and the exchanges that wait for one, fairly by origin.
///
/// A free place goes to the origin with the fewest running exchanges, in order of arrival among equals. An origin with running exchanges
/// leaves the last places to others, so that silent servers cannot hold all of them. It is a part of the machine, and pure.
struct Places {
    typealias Ticket = WireMachine.Ticket

    enum Kind: Int, CaseIterable {
        /// It has not begun, and waits for a place.
        case exchange, stream
        /// It waited for the connection of another exchange, and may begin.
        case follower
    }

    /// The numbers of exchanges with a connection, and of the streams among them.
    private struct Counts {
        var running = 0
        var paused = 0
        var streams = 0
    }

    private struct Lane {
        /// The waiting exchanges of each kind in order of arrival; canceled ones are skipped.
        var queues = [ArraySlice<Ticket>](repeating: [], count: Kind.allCases.count)
        var counts = Counts()

        var waits: Bool { !queues.allSatisfy(\.isEmpty) }
        var isEmpty: Bool { !waits && counts.running + counts.paused == 0 }

        /// Removes canceled exchanges from the front of each queue.
        mutating func skip(_ isKnown: (Ticket) -> Bool) {
            for kind in queues.indices { queues[kind] = queues[kind].drop { !isKnown($0) } }
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
    private var total = Counts()
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
        lanes[origin, default: Lane()].queues[kind.rawValue].append(ticket)
        waiting.insert(origin)
        queued += 1
    }

    var isIdle: Bool { total.running == 0 }

    var count: Int { total.running + total.paused }

    /// Removes and returns the exchange that begins next; `nil` if there is none or no place.
    mutating func next(_ isKnown: (Ticket) -> Bool) -> (ticket: Ticket, kind: Kind)? {
        guard !waiting.isEmpty, count < connections else { return nil }
        var best: (origin: String, running: Int, ticket: Ticket, kind: Kind)?
        for origin in waiting {
            lanes[origin]?.skip(isKnown)
            guard let lane = lanes[origin], lane.waits else {
                waiting.remove(origin)
                continue
            }
            guard mayBegin(lane) else { continue }
            for kind in Kind.allCases {
                guard let ticket = lane.queues[kind.rawValue].first, kind != .stream || mayStream(lane) else { continue }
                if let best, (best.running, best.ticket) < (lane.counts.running, ticket) { continue }
                best = (origin, lane.counts.running, ticket, kind)
            }
        }
        guard let best else { return nil }
        lanes[best.origin]?.queues[best.kind.rawValue].removeFirst()
        queued -= 1
        return (best.ticket, best.kind)
    }

    private func mayBegin(_ lane: Lane) -> Bool {
        width + reserve - total.running > min(lane.counts.running, reserve)
            && connections - count > min(lane.counts.running + lane.counts.paused, reserve, max(0, connections - width))
    }

    private func mayStream(_ lane: Lane) -> Bool {
        streamLimit - total.streams > min(lane.counts.streams, streamLimit / 8)
    }

    mutating func began(_ origin: String, isStream: Bool) {
        update(origin) { counts in
            counts.running += 1
            if isStream { counts.streams += 1 }
        }
    }

    mutating func ended(_ origin: String, isStream: Bool, isPaused: Bool) {
        update(origin) { counts in
            if isPaused { counts.paused -= 1 } else { counts.running -= 1 }
            if isStream { counts.streams -= 1 }
        }
    }

    /// Counts a running exchange as paused, or a paused one as running.
    mutating func moved(_ origin: String, isPaused: Bool) {
        update(origin) { counts in
            counts.running += isPaused ? -1 : 1
            counts.paused += isPaused ? 1 : -1
        }
    }

    private mutating func update(_ origin: String, _ change: (inout Counts) -> Void) {
        change(&total)
        change(&lanes[origin, default: Lane()].counts)
    }

    /// Bounds the queues to twice their use, even if many exchanges are canceled before their turn.
    mutating func compact(waitingCount: Int, _ isKnown: (Ticket) -> Bool) {
        guard queued > 2 * waitingCount + 64 else { return }
        queued = 0
        for (origin, var lane) in lanes {
            for kind in lane.queues.indices {
                lane.queues[kind].removeAll { !isKnown($0) }
                queued += lane.queues[kind].count
            }
            lanes[origin] = lane
        }
    }
}
