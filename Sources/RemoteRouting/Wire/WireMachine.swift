package import StoreCore

/// The decisions of the engine: which exchange begins, which one is late, and what may be sent how often.
///
/// Pure: facts and the time go in, actions come out. The loop carries them out.
package struct WireMachine {
    /// The number of an exchange.
    package typealias Ticket = UInt64

    /// The answer to libcurl right before a request goes out.
    package enum SendAction: Hashable {
        /// The request goes out.
        case send
        /// The server has closed the connection, or has sent bytes that no request asked for: a fresh connection replaces it.
        case restart
        /// The request has gone out before and must not again.
        case refuse
    }

    /// What follows the end of a transfer.
    package enum EndAction: Hashable {
        /// Nothing has been sent, so the same request begins again on a fresh connection.
        case beginAgain
        /// The exchange is over.
        case conclude(mayHaveArrived: Bool)
        /// The exchange is unknown: it was canceled.
        case ignore
    }

    private struct Entry {
        var isRunning = false
        var isPaused = false
        let mayRepeat: Bool
        let isStream: Bool
        var sends = 0
        var restarts = false
        var needsFreshConnection: Bool
        var deadlines: Deadlines
    }

    /// How many exchanges run at once; paused ones do not count, or a few streams that are not read would stop all others.
    private let width: Int
    /// How many exchanges hold a connection, the paused ones included.
    private let connections: Int
    /// Whether unsafe requests need a fresh connection, since the library cannot ask before it sends.
    private let cannotAsk: Bool
    private var entries: [Ticket: Entry] = [:]
    /// The waiting exchanges in the order of their arrival; a canceled one is skipped.
    private var queue: ArraySlice<Ticket> = []
    /// The waiting streams, likewise.
    private var streams: ArraySlice<Ticket> = []
    private var runningCount = 0
    /// How many streams hold a connection.
    private var streamCount = 0
    private var pausedCount = 0
    /// No deadline comes before this.
    private var nextCheck = MonotonicInstant.distantFuture

    package init(width: Int, connections: Int, cannotAsk: Bool = false) {
        self.width = max(1, width)
        self.connections = max(1, connections)
        self.cannotAsk = cannotAsk
    }

    /// How many exchanges are known, the waiting ones included.
    package var count: Int { entries.count }

    /// When ``late(at:)`` has work at the earliest.
    package var nextDeadline: MonotonicInstant? { nextCheck == .distantFuture ? nil : nextCheck }

    // MARK: Beginning and ending

    /// How many connections streams may hold: readers may leave all of them paused, and other exchanges need the rest.
    private var streamLimit: Int { max(1, connections - min(width, connections / 2)) }

    /// A caller submitted an exchange; the tickets of later ones are larger.
    ///
    /// - Parameter isStream: Whether the reader takes the body in its own time, and perhaps never.
    package mutating func submitted(
        _ ticket: Ticket, mayRepeat: Bool, isSecure: Bool, isStream: Bool = false, _ limits: Deadlines.Limits, at now: MonotonicInstant
    ) {
        // Over TLS a readable socket may hold a session ticket, so that a look at it says nothing.
        let isFresh = !mayRepeat && (isSecure || cannotAsk)
        entries[ticket] = Entry(
            mayRepeat: mayRepeat, isStream: isStream, needsFreshConnection: isFresh,
            deadlines: Deadlines(limits, started: now, isWaiting: true))
        if isStream { streams.append(ticket) } else { queue.append(ticket) }
        expect(ticket)
    }

    /// Takes out the next exchange that may begin; `nil` where there is none or no room.
    package mutating func beginNext(at now: MonotonicInstant) -> (ticket: Ticket, onFreshConnection: Bool)? {
        guard runningCount < width, runningCount + pausedCount < connections else { return nil }
        let stream = streamCount < streamLimit ? WireMachine.first(of: &streams, in: entries) : nil
        let other = WireMachine.first(of: &queue, in: entries)
        // No ticket is as large as the one for none.
        let ticket = min(stream ?? .max, other ?? .max)
        guard let isFresh = entries[ticket]?.needsFreshConnection else { return nil }
        entries[ticket]?.isRunning = true
        entries[ticket]?.deadlines.began(at: now)
        expect(ticket)
        runningCount += 1
        if ticket == stream {
            streams.removeFirst()
            streamCount += 1
        } else {
            queue.removeFirst()
        }
        return (ticket, isFresh)
    }

    /// The first that has not left; those before it are dropped.
    private static func first(of queue: inout ArraySlice<Ticket>, in entries: [Ticket: Entry]) -> Ticket? {
        while let ticket = queue.first {
            if entries[ticket] != nil { return ticket }
            queue.removeFirst()
        }
        return nil
    }

    /// The caller left, or the exchange failed by a decision of the loop; returns whether a transfer runs that has to end.
    package mutating func left(_ ticket: Ticket) -> Bool {
        guard let entry = entries.removeValue(forKey: ticket) else { return false }
        release(entry)
        // Bounds the list to twice its use, however many leave before their turn.
        if queue.count + streams.count > 2 * (entries.count - runningCount - pausedCount) + 64 {
            queue.removeAll { entries[$0] == nil }
            streams.removeAll { entries[$0] == nil }
        }
        return entry.isRunning
    }

    /// libcurl is done with the transfer.
    package mutating func ended(_ ticket: Ticket) -> EndAction {
        guard let entry = entries[ticket] else { return .ignore }
        if entry.restarts {
            entries[ticket]?.restarts = false
            entries[ticket]?.needsFreshConnection = true
            return .beginAgain
        }
        _ = left(ticket)
        return .conclude(mayHaveArrived: entry.sends > 0)
    }

    private mutating func release(_ entry: Entry) {
        guard entry.isRunning else { return }
        if entry.isStream { streamCount -= 1 }
        if entry.isPaused { pausedCount -= 1 } else { runningCount -= 1 }
    }

    // MARK: At most once

    /// libcurl has a connection and is about to send.
    package mutating func willSend(_ ticket: Ticket, isReused: Bool, isReadable: Bool) -> SendAction {
        guard let entry = entries[ticket] else { return .refuse }
        if !entry.mayRepeat, entry.sends > 0 { return .refuse }
        if isReused && isReadable {
            // libcurl would take bytes that arrived before the request for its response.
            entries[ticket]?.restarts = true
            return .restart
        }
        entries[ticket]?.sends += 1
        return .send
    }

    // MARK: Time and back-pressure

    /// A part of the request was sent, or a part of the body arrived.
    package mutating func moved(_ ticket: Ticket, at now: MonotonicInstant) { entries[ticket]?.deadlines.moved(at: now) }

    /// The head arrived.
    package mutating func headCame(_ ticket: Ticket, at now: MonotonicInstant) {
        entries[ticket]?.deadlines.headCame(at: now)
        // The idle time may end before the time for the head would have.
        expect(ticket)
    }

    /// The reader is behind.
    package mutating func paused(_ ticket: Ticket) {
        guard let entry = entries[ticket], entry.isRunning, !entry.isPaused else { return }
        entries[ticket]?.isPaused = true
        entries[ticket]?.deadlines.paused()
        runningCount -= 1
        pausedCount += 1
    }

    /// The reader wants more; returns whether the transfer has to go on.
    package mutating func resumed(_ ticket: Ticket, at now: MonotonicInstant) -> Bool {
        guard let entry = entries[ticket], entry.isPaused else { return false }
        entries[ticket]?.isPaused = false
        entries[ticket]?.deadlines.resumed(at: now)
        pausedCount -= 1
        runningCount += 1
        expect(ticket)
        return true
    }

    /// The exchanges whose deadline has passed; the loop ends each with ``left(_:)``.
    package mutating func late(at now: MonotonicInstant) -> [(ticket: Ticket, part: Deadlines.Part)] {
        guard now >= nextCheck else { return [] }
        // All are looked at, which happens once for many exchanges: deadlines move away while bytes arrive.
        var late: [(ticket: Ticket, part: Deadlines.Part)] = []
        nextCheck = .distantFuture
        for (ticket, entry) in entries {
            guard let next = entry.deadlines.next else { continue }
            if next.instant <= now { late.append((ticket, next.part)) } else { nextCheck = min(nextCheck, next.instant) }
        }
        return late
    }

    private mutating func expect(_ ticket: Ticket) {
        guard let instant = entries[ticket]?.deadlines.next?.instant, instant < nextCheck else { return }
        nextCheck = instant
    }
}
