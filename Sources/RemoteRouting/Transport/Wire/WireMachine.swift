package import StoreCore

/// The state machine of the engine, which decides which exchange begins, which is late, and which request may be sent again.
///
/// It is pure: events and times go in, actions come out. The loop performs the actions.
package struct WireMachine {
    /// The number of an exchange.
    package typealias Ticket = UInt64

    /// The action for a request right before it is sent.
    package enum SendAction: Hashable {
        /// Send the request.
        case send
        /// Replace the connection: the server has closed it, or has sent unrequested bytes.
        case restart
        /// Refuse, because the request was already sent and must not be repeated.
        case refuse
    }

    /// The action after the end of a transfer.
    package enum EndAction: Hashable {
        /// Begin the same request again on a fresh connection, because nothing was sent.
        case beginAgain
        /// Report the end of the exchange.
        case conclude(mayHaveArrived: Bool)
        /// Begin again later, because the exchange was refused a connection.
        case wait
        /// Do nothing, because the exchange was canceled.
        case ignore
    }

    private struct Entry {
        var isRunning = false
        var isPaused = false
        let mayRepeat: Bool
        let isStream: Bool
        var sends = 0
        var restarts = false
        /// The exchanges that may share a connection with it; `nil` if it shares none.
        let sharing: ConnectionSharing.Key?
        /// Whether it was refused a connection.
        var isDeferred = false
        /// Whether it was sent on a connection that was opened for it.
        var isOnNewConnection = false
        var needsFreshConnection: Bool
        var deadlines: Deadlines
    }

    /// The maximum number of running exchanges. Paused ones do not count; otherwise a few unread streams would block all others.
    private let width: Int
    /// The maximum number of exchanges with a connection, including paused ones.
    private let connections: Int
    /// Whether unsafe requests need a fresh connection, because the library cannot ask before sending.
    private let cannotAsk: Bool
    private var entries: [Ticket: Entry] = [:]
    /// The waiting exchanges in order of arrival; canceled ones are skipped.
    private var queue: ArraySlice<Ticket> = []
    /// The waiting streams in order of arrival; canceled ones are skipped.
    private var streams: ArraySlice<Ticket> = []
    /// The exchanges that waited for the connection of another exchange and may begin.
    private var released: ArraySlice<Ticket> = []
    private var sharing = ConnectionSharing()
    private var runningCount = 0
    /// The number of streams with a connection.
    private var streamCount = 0
    private var pausedCount = 0
    /// A lower bound for all deadlines.
    private var nextCheck = MonotonicInstant.distantFuture

    package init(width: Int, connections: Int, cannotAsk: Bool = false) {
        self.width = max(1, width)
        self.connections = max(1, connections)
        self.cannotAsk = cannotAsk
    }

    /// The number of known exchanges, including waiting ones.
    package var count: Int { entries.count }

    /// The earliest moment at which ``late(at:)`` may return exchanges.
    package var nextDeadline: MonotonicInstant? {
        let next = min(nextCheck, sharing.nextCheck ?? .distantFuture)
        return next == .distantFuture ? nil : next
    }

    // MARK: Beginning and ending

    /// The maximum number of streams with a connection. Readers may pause all of them, and other exchanges need the rest.
    private var streamLimit: Int { max(1, connections - min(width, connections / 2)) }

    /// Records a submitted exchange; later exchanges have larger tickets.
    ///
    /// - Parameter isStream: Whether the reader consumes the body at its own pace, which may mean never.
    package mutating func submitted(
        _ ticket: Ticket, mayRepeat: Bool, isSecure: Bool, isStream: Bool = false, _ limits: Deadlines.Limits, at now: MonotonicInstant
    ) {
        submitted(ticket, mayRepeat: mayRepeat, isSecure: isSecure, isStream: isStream, sharing: nil, limits, at: now)
    }

    /// Records a submitted exchange that may share a connection with others.
    mutating func submitted(
        _ ticket: Ticket, mayRepeat: Bool, isSecure: Bool, isStream: Bool, sharing: ConnectionSharing.Key?, _ limits: Deadlines.Limits,
        at now: MonotonicInstant
    ) {
        // Over TLS a readable socket may hold a session ticket, so readability does not show that it was closed.
        let isFresh = !mayRepeat && (isSecure || cannotAsk)
        entries[ticket] = Entry(
            mayRepeat: mayRepeat, isStream: isStream, sharing: isFresh ? nil : sharing, needsFreshConnection: isFresh,
            deadlines: Deadlines(limits, started: now, isWaiting: true))
        if isStream { streams.append(ticket) } else { queue.append(ticket) }
        expect(ticket)
    }

    /// Removes and returns the next exchange that may begin; `nil` if there is none or no capacity.
    package mutating func beginNext(at now: MonotonicInstant) -> (ticket: Ticket, onFreshConnection: Bool)? {
        while runningCount < width, runningCount + pausedCount < connections {
            let stream = streamCount < streamLimit ? WireMachine.first(of: &streams, in: entries) : nil
            let other = WireMachine.first(of: &queue, in: entries)
            let follower = WireMachine.first(of: &released, in: entries)
            // No ticket equals `.max`, the placeholder for none.
            let ticket = min(stream ?? .max, other ?? .max, follower ?? .max)
            guard let entry = entries[ticket] else { return nil }
            if ticket == stream {
                streams.removeFirst()
            } else if ticket == other {
                queue.removeFirst()
            } else {
                released.removeFirst()
            }
            // Waiting for another exchange's connection counts toward the time for the head.
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

    /// Returns the first exchange that was not canceled and drops those before it.
    private static func first(of queue: inout ArraySlice<Ticket>, in entries: [Ticket: Entry]) -> Ticket? {
        while let ticket = queue.first {
            if entries[ticket] != nil { return ticket }
            queue.removeFirst()
        }
        return nil
    }

    /// Removes an exchange that was canceled or that the loop failed; returns whether a running transfer must end.
    package mutating func left(_ ticket: Ticket) -> Bool { remove(ticket, isOver: false) }

    private mutating func remove(_ ticket: Ticket, isOver: Bool) -> Bool {
        guard let entry = entries.removeValue(forKey: ticket) else { return false }
        if let key = entry.sharing {
            released +=
                entry.isRunning
                ? sharing.ended(ticket, key, hasFailed: isOver && entry.sends == 0) : sharing.left(ticket, key)
        }
        release(entry)
        // Bounds the queues to twice their use, even if many exchanges are canceled before their turn.
        if queue.count + streams.count > 2 * (entries.count - runningCount - pausedCount) + 64 {
            queue.removeAll { entries[$0] == nil }
            streams.removeAll { entries[$0] == nil }
        }
        return entry.isRunning
    }

    /// Records that libcurl ended the transfer.
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
        // A library that cannot ask sends without a trace.
        return .conclude(mayHaveArrived: entry.sends > 0 || cannotAsk)
    }

    private mutating func release(_ entry: Entry) {
        guard entry.isRunning else { return }
        if entry.isStream { streamCount -= 1 }
        if entry.isPaused { pausedCount -= 1 } else { runningCount -= 1 }
    }

    // MARK: At most once

    /// Returns the action for a request that libcurl is about to send on a connection.
    package mutating func willSend(_ ticket: Ticket, isReused: Bool, isReadable: Bool) -> SendAction {
        guard let entry = entries[ticket] else { return .refuse }
        if !entry.mayRepeat, entry.sends > 0 { return .refuse }
        if isReused && isReadable {
            // libcurl would treat bytes that arrived before the request as its response.
            entries[ticket]?.restarts = true
            return .restart
        }
        entries[ticket]?.sends += 1
        entries[ticket]?.isOnNewConnection = !isReused
        if let key = entry.sharing { released += sharing.sent(ticket, key, isReused: isReused) }
        return .send
    }

    /// Decides whether libcurl may open a connection for an exchange; a refused exchange waits for that of another.
    package mutating func mayConnect(_ ticket: Ticket) -> Bool {
        guard let entry = entries[ticket], let key = entry.sharing, !entry.needsFreshConnection else { return true }
        let (isAllowed, others) = sharing.mayConnect(ticket, key)
        released += others
        // After one address of the host was refused, another may be allowed.
        entries[ticket]?.isDeferred = !isAllowed
        return isAllowed
    }

    // MARK: Time and back-pressure

    /// Records that a part of the request was sent or a part of the body arrived.
    package mutating func moved(_ ticket: Ticket, at now: MonotonicInstant) { entries[ticket]?.deadlines.moved(at: now) }

    /// Records the arrival of the head.
    ///
    /// - Parameter isShared: Whether other exchanges may use the connection at the same time, as with HTTP/2.
    package mutating func headArrived(_ ticket: Ticket, isShared: Bool = false, at now: MonotonicInstant) {
        entries[ticket]?.deadlines.headArrived(at: now)
        if let entry = entries[ticket], let key = entry.sharing {
            released += sharing.headArrived(ticket, key, isShared: isShared, isNew: entry.isOnNewConnection)
        }
        // The idle deadline may precede the head deadline.
        expect(ticket)
    }

    /// Records that the reader is behind.
    package mutating func paused(_ ticket: Ticket) {
        guard let entry = entries[ticket], entry.isRunning, !entry.isPaused else { return }
        entries[ticket]?.isPaused = true
        entries[ticket]?.deadlines.paused()
        runningCount -= 1
        pausedCount += 1
    }

    /// Records that the reader wants more; returns whether the transfer must resume.
    package mutating func resumed(_ ticket: Ticket, at now: MonotonicInstant) -> Bool {
        guard let entry = entries[ticket], entry.isPaused else { return false }
        entries[ticket]?.isPaused = false
        entries[ticket]?.deadlines.resumed(at: now)
        pausedCount -= 1
        runningCount += 1
        expect(ticket)
        return true
    }

    /// Returns the exchanges whose deadline has passed; the loop ends each with ``left(_:)``.
    package mutating func late(at now: MonotonicInstant) -> [(ticket: Ticket, part: Deadlines.Part)] {
        released += sharing.impatient(at: now)
        guard now >= nextCheck else { return [] }
        // Scans all exchanges, but rarely: arriving bytes postpone deadlines.
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
