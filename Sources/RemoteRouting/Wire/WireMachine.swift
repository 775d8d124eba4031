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
        /// The exchange was refused a connection, and begins again later.
        case wait
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
        /// The exchanges that it may share a connection with; `nil` where it shares none.
        let sharing: ConnectionSharing.Key?
        /// Whether it was refused a connection.
        var isDeferred = false
        /// Whether the connection that it went out on was made for it.
        var isOnNewConnection = false
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
    /// The exchanges that waited for another one's connection and may begin now.
    private var released: ArraySlice<Ticket> = []
    private var sharing = ConnectionSharing()
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
    package var nextDeadline: MonotonicInstant? {
        let next = min(nextCheck, sharing.nextCheck ?? .distantFuture)
        return next == .distantFuture ? nil : next
    }

    // MARK: Beginning and ending

    /// How many connections streams may hold: readers may leave all of them paused, and other exchanges need the rest.
    private var streamLimit: Int { max(1, connections - min(width, connections / 2)) }

    /// A caller submitted an exchange; the tickets of later ones are larger.
    ///
    /// - Parameter isStream: Whether the reader takes the body in its own time, and perhaps never.
    package mutating func submitted(
        _ ticket: Ticket, mayRepeat: Bool, isSecure: Bool, isStream: Bool = false, _ limits: Deadlines.Limits, at now: MonotonicInstant
    ) {
        submitted(ticket, mayRepeat: mayRepeat, isSecure: isSecure, isStream: isStream, sharing: nil, limits, at: now)
    }

    /// The same for an exchange that may share a connection with others.
    mutating func submitted(
        _ ticket: Ticket, mayRepeat: Bool, isSecure: Bool, isStream: Bool, sharing: ConnectionSharing.Key?, _ limits: Deadlines.Limits,
        at now: MonotonicInstant
    ) {
        // Over TLS a readable socket may hold a session ticket, so that a look at it says nothing.
        let isFresh = !mayRepeat && (isSecure || cannotAsk)
        entries[ticket] = Entry(
            mayRepeat: mayRepeat, isStream: isStream, sharing: isFresh ? nil : sharing, needsFreshConnection: isFresh,
            deadlines: Deadlines(limits, started: now, isWaiting: true))
        if isStream { streams.append(ticket) } else { queue.append(ticket) }
        expect(ticket)
    }

    /// Takes out the next exchange that may begin; `nil` where there is none or no room.
    package mutating func beginNext(at now: MonotonicInstant) -> (ticket: Ticket, onFreshConnection: Bool)? {
        while runningCount < width, runningCount + pausedCount < connections {
            let stream = streamCount < streamLimit ? WireMachine.first(of: &streams, in: entries) : nil
            let other = WireMachine.first(of: &queue, in: entries)
            let follower = WireMachine.first(of: &released, in: entries)
            // No ticket is as large as the one for none.
            let ticket = min(stream ?? .max, other ?? .max, follower ?? .max)
            guard let entry = entries[ticket] else { return nil }
            if ticket == stream {
                streams.removeFirst()
            } else if ticket == other {
                queue.removeFirst()
            } else {
                released.removeFirst()
            }
            // Waiting for the connection of another exchange counts as waiting for the head.
            if ticket != follower { entries[ticket]?.deadlines.began(at: now) }
            expect(ticket)
            if let key = entry.sharing, !entry.needsFreshConnection, sharing.enter(ticket, key, at: now) == .waits { continue }
            entries[ticket]?.isRunning = true
            runningCount += 1
            if ticket == stream { streamCount += 1 }
            return (ticket, entry.needsFreshConnection)
        }
        return nil
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
    package mutating func left(_ ticket: Ticket) -> Bool { remove(ticket, isOver: false) }

    private mutating func remove(_ ticket: Ticket, isOver: Bool) -> Bool {
        guard let entry = entries.removeValue(forKey: ticket) else { return false }
        if let key = entry.sharing {
            released +=
                entry.isRunning
                ? sharing.ended(ticket, key, hasFailed: isOver && entry.sends == 0) : sharing.left(ticket, key)
        }
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
        if let key = entry.sharing, entry.isDeferred {
            released += sharing.deferred(ticket, key)
            release(entry)
            entries[ticket]?.isDeferred = false
            entries[ticket]?.isRunning = false
            entries[ticket]?.isPaused = false
            return .wait
        }
        _ = remove(ticket, isOver: true)
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
        entries[ticket]?.isOnNewConnection = !isReused
        if let key = entry.sharing { released += sharing.sent(ticket, key, isReused: isReused) }
        return .send
    }

    /// libcurl is about to make a connection; returns whether it may, or the exchange has to wait for one that others make.
    package mutating func mayConnect(_ ticket: Ticket) -> Bool {
        guard let entry = entries[ticket], let key = entry.sharing, !entry.needsFreshConnection else { return true }
        let (isAllowed, others) = sharing.mayConnect(ticket, key)
        released += others
        // Another address of the host may be allowed after one was refused.
        entries[ticket]?.isDeferred = !isAllowed
        return isAllowed
    }

    // MARK: Time and back-pressure

    /// A part of the request was sent, or a part of the body arrived.
    package mutating func moved(_ ticket: Ticket, at now: MonotonicInstant) { entries[ticket]?.deadlines.moved(at: now) }

    /// The head arrived.
    ///
    /// - Parameter isShared: Whether other exchanges may use the connection at the same time, as with HTTP/2.
    package mutating func headCame(_ ticket: Ticket, isShared: Bool = false, at now: MonotonicInstant) {
        entries[ticket]?.deadlines.headCame(at: now)
        if let entry = entries[ticket], let key = entry.sharing {
            released += sharing.headCame(ticket, key, isShared: isShared, isNew: entry.isOnNewConnection)
        }
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
        released += sharing.impatient(at: now)
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
