package import StoreCore

/// The state machine of the engine, which decides which exchange begins, which is late, and which request may be sent again.
///
/// It is pure: events and times go in, actions come out. The loop performs the actions.
package struct WireMachine {
    /// The number of an exchange, in the order of submission.
    package typealias Ticket = UInt64

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
        /// The origin, which shares the places with others.
        let origin: String
        var isRunning = false
        var isPaused = false
        let mayRepeat: Bool
        let isStream: Bool
        var sends = 0
        /// Whether the server has refused to process the request.
        var isRefused = false
        var restarts = false
        /// The exchanges that may share a connection with it; `nil` if it shares none.
        let sharing: ConnectionSharing.Key?
        var isDeferred = false
        /// Whether it was sent on a connection that was opened for it.
        var isOnNewConnection = false
        var needsFreshConnection: Bool
        var deadlines: Deadlines
    }

    /// Whether unsafe requests need a fresh connection, because the library cannot ask before sending.
    private let cannotAsk: Bool
    private var entries: [Ticket: Entry] = [:]
    private var places: Places
    private var sharing = ConnectionSharing()
    /// A lower bound for all deadlines.
    private var nextCheck = MonotonicInstant.distantFuture

    package init(width: Int, connections: Int, cannotAsk: Bool = false) {
        places = Places(width: width, connections: connections)
        self.cannotAsk = cannotAsk
    }

    /// The number of known exchanges, including waiting ones.
    package var count: Int { entries.count }

    /// The earliest moment at which `late(at:)` may return exchanges.
    package var nextDeadline: MonotonicInstant? {
        let next = min(nextCheck, sharing.nextCheck ?? .distantFuture)
        return next == .distantFuture ? nil : next
    }

    // MARK: Beginning and ending

    package var isIdle: Bool { places.isIdle }

    /// Records a submitted exchange; later exchanges have larger tickets.
    ///
    /// The reader of a stream consumes the body at its own pace, which may mean never.
    mutating func submitted(
        _ ticket: Ticket, to origin: String = "", mayRepeat: Bool, isSecure: Bool, isStream: Bool = false,
        sharing: ConnectionSharing.Key? = nil, _ timeouts: ExchangeLimits.Timeouts, until overall: MonotonicInstant? = nil,
        at now: MonotonicInstant
    ) {
        // Over TLS a readable socket may hold a session ticket, so readability does not show that it was closed.
        let isFresh = !mayRepeat && (isSecure || cannotAsk)
        // Streams have no end that a further one could rely on, and often no other deadline.
        let waitsForHead = isStream && overall == nil
        entries[ticket] = Entry(
            origin: origin, mayRepeat: mayRepeat, isStream: isStream, sharing: isFresh ? nil : sharing, needsFreshConnection: isFresh,
            deadlines: Deadlines(timeouts, until: overall, started: now, isWaiting: !waitsForHead))
        places.append(ticket, isStream ? .stream : .exchange, of: origin)
        expect(ticket)
    }

    /// Removes and returns the next exchange that may begin; `nil` if there is none or no capacity.
    package mutating func beginNext(at now: MonotonicInstant) -> (ticket: Ticket, onFreshConnection: Bool)? {
        while let (ticket, kind) = takePlace() {
            guard let entry = entries[ticket] else { return nil }
            // Waiting for another exchange's connection counts toward the time for the head.
            if kind != .follower { entries[ticket]?.deadlines.began(at: now) }
            expect(ticket)
            if let key = entry.sharing, !entry.needsFreshConnection, !sharing.enter(ticket, key, at: now) { continue }
            entries[ticket]?.isRunning = true
            places.began(entry.origin, isStream: entry.isStream)
            return (ticket, entry.needsFreshConnection)
        }
        return nil
    }

    private mutating func takePlace() -> (ticket: Ticket, kind: Places.Kind)? {
        let known = entries
        return places.next { known[$0] != nil }
    }

    /// Lets exchanges begin that waited for the connection of another one.
    private mutating func release(_ tickets: [Ticket]) {
        for ticket in tickets {
            if let origin = entries[ticket]?.origin { places.append(ticket, .follower, of: origin) }
        }
    }

    /// Records that a running exchange begins again, so that it waits for another head.
    package mutating func beganAgain(_ ticket: Ticket, at now: MonotonicInstant) {
        entries[ticket]?.deadlines.began(at: now)
        expect(ticket)
    }

    /// Removes an exchange that was canceled or that the loop failed.
    package mutating func left(_ ticket: Ticket) { remove(ticket, isOver: false) }

    private mutating func remove(_ ticket: Ticket, isOver: Bool) {
        guard let entry = entries.removeValue(forKey: ticket) else { return }
        if let key = entry.sharing {
            release(
                entry.isRunning
                    ? sharing.ended(ticket, key, hasFailed: isOver && entry.sends == 0) : sharing.left(ticket, key))
        }
        release(entry)
        let known = entries
        places.compact(waitingCount: entries.count - places.count) { known[$0] != nil }
    }

    package mutating func ended(_ ticket: Ticket) -> EndAction {
        guard let entry = entries[ticket] else { return .ignore }
        if entry.restarts {
            entries[ticket]?.restarts = false
            entries[ticket]?.needsFreshConnection = true
            return .beginAgain
        }
        if let key = entry.sharing, entry.isDeferred {
            release(entry)
            entries[ticket]?.isDeferred = false
            entries[ticket]?.isRunning = false
            entries[ticket]?.isPaused = false
            release(sharing.deferred(ticket, key))
            return .wait
        }
        remove(ticket, isOver: true)
        // A library that cannot ask sends without a trace.
        return .conclude(mayHaveArrived: !entry.isRefused && (entry.sends > 0 || cannotAsk))
    }

    private mutating func release(_ entry: Entry) {
        guard entry.isRunning else { return }
        places.ended(entry.origin, isStream: entry.isStream, isPaused: entry.isPaused)
    }

    // MARK: At most once

    /// Decides whether libcurl may send a request on a connection; `ended(_:)` says how a refused exchange continues.
    package mutating func willSend(_ ticket: Ticket, isReused: Bool, isReadable: Bool) -> Bool {
        guard let entry = entries[ticket] else { return false }
        if !entry.mayRepeat, entry.sends > 0 {
            // On a new connection, libcurl repeats only what the server has not processed: a refused stream, or one above the last stream of a
            // GOAWAY (RFC 9113 §8.7).
            entries[ticket]?.isRefused = entry.isOnNewConnection
            return false
        }
        if isReused && isReadable {
            // libcurl would treat bytes that arrived before the request as its response.
            entries[ticket]?.restarts = true
            return false
        }
        entries[ticket]?.sends += 1
        entries[ticket]?.isOnNewConnection = !isReused
        if let key = entry.sharing { release(sharing.sent(ticket, key, isReused: isReused)) }
        return true
    }

    /// Decides whether libcurl may open a connection for an exchange; a refused exchange waits for that of another.
    package mutating func mayConnect(_ ticket: Ticket) -> Bool {
        guard let entry = entries[ticket], let key = entry.sharing, !entry.needsFreshConnection else { return true }
        let (isAllowed, others) = sharing.mayConnect(ticket, key)
        release(others)
        // After one address of the host was refused, another may be allowed.
        entries[ticket]?.isDeferred = !isAllowed
        return isAllowed
    }

    // MARK: Time and back-pressure

    package mutating func moved(_ ticket: Ticket, at now: MonotonicInstant) { entries[ticket]?.deadlines.moved(at: now) }

    /// Records the arrival of the head; other exchanges may use a shared connection at the same time, as with HTTP/2.
    package mutating func headArrived(_ ticket: Ticket, isShared: Bool = false, at now: MonotonicInstant) {
        entries[ticket]?.deadlines.expectsBody(at: now)
        if let entry = entries[ticket], let key = entry.sharing {
            release(sharing.headArrived(ticket, key, isShared: isShared, isNew: entry.isOnNewConnection))
        }
        // The idle deadline may precede the head deadline.
        expect(ticket)
    }

    /// Records that the reader is behind.
    package mutating func paused(_ ticket: Ticket) {
        guard let entry = entries[ticket], entry.isRunning, !entry.isPaused else { return }
        entries[ticket]?.isPaused = true
        entries[ticket]?.deadlines.paused()
        places.moved(entry.origin, isPaused: true)
    }

    /// Records that the reader wants more; returns whether the transfer must resume.
    package mutating func resumed(_ ticket: Ticket, at now: MonotonicInstant) -> Bool {
        guard let entry = entries[ticket], entry.isPaused else { return false }
        entries[ticket]?.isPaused = false
        entries[ticket]?.deadlines.expectsBody(at: now)
        places.moved(entry.origin, isPaused: false)
        expect(ticket)
        return true
    }

    /// Returns the exchanges whose deadline has passed; the loop ends each with `left(_:)`.
    package mutating func late(at now: MonotonicInstant) -> [(ticket: Ticket, part: Deadlines.Part)] {
        release(sharing.impatient(at: now))
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
