internal import StoreCore

/// The state machine of shared connections, which decides which exchange begins and which may open a connection.
///
/// libcurl learns the protocol of a connection from its TLS handshake, and the stream limit from the server's settings. Until then it
/// would open a connection for each exchange. Therefore the first exchange goes ahead, and the others follow it.
struct ConnectionSharing {
    /// The key of exchanges that may share connections: their origin and their options.
    struct Key: Hashable {
        let origin: String
        let tls: TLSOptions?
        let proxy: ProxyOptions
    }

    private enum Sharing {
        /// No response has shown the server's protocol yet.
        case unknown
        /// The server uses HTTP/2, so exchanges share its connection.
        case shared
        /// Each exchange has its own connection.
        case exclusive
    }

    private struct Group {
        var sharing = Sharing.unknown
        /// The exchange that opens a connection, and whether the connection exists.
        var scout: WireMachine.Ticket?
        var isConnected = false
        /// The exchange that finds out whether an existing connection can be shared.
        var probe: WireMachine.Ticket?
        /// Whether a response has arrived, so that the stream limit is known.
        var hasHead = false
        var running = 0
        var waiting: [WireMachine.Ticket] = []
        /// The time at which other exchanges began to wait for the scout's connection.
        var waitingSince: MonotonicInstant?

        /// Whether exchanges wait for a connection that is being opened.
        var awaitsScout: Bool { scout != nil && !isConnected && !waiting.isEmpty }

        /// Removes and returns exchanges that may begin, all of them unless their number is limited.
        mutating func release(_ limit: Int = .max) -> [WireMachine.Ticket] {
            let released = Array(waiting.prefix(limit))
            waiting.removeFirst(released.count)
            return released
        }
    }

    /// The recommended minimum number of concurrent streams (RFC 9113 §6.5.2), which libcurl assumes initially.
    private static let fewestStreams = 100
    private static let idleGroups = 1000

    /// The time that exchanges wait for a connection before the next one opens its own; an endless handshake then blocks no other exchange.
    static let patience = Duration.seconds(5)

    private var groups: [Key: Group] = [:]
    /// The groups whose exchanges may wait for a connection.
    private var awaiting: Set<Key> = []

    /// Decides whether a new exchange begins; otherwise, it waits until `ConnectionSharing` releases it.
    mutating func enter(_ ticket: WireMachine.Ticket, _ key: Key, at now: MonotonicInstant) -> Bool {
        var group = groups[key] ?? Group()
        defer { groups[key] = group }
        let begins: Bool
        switch group.sharing {
        case .exclusive: begins = true
        case .shared: begins = group.hasHead || group.running < ConnectionSharing.fewestStreams
        case .unknown where group.scout == nil:
            (group.scout, group.isConnected, group.probe) = (ticket, false, nil)
            begins = true
        case .unknown where group.isConnected && group.probe == nil:
            group.probe = ticket
            begins = true
        case .unknown: begins = false
        }
        if begins { group.running += 1 } else { group.waiting.append(ticket) }
        if group.awaitsScout {
            awaiting.insert(key)
            if group.scout == ticket || group.waitingSince == nil { group.waitingSince = now }
        }
        return begins
    }

    /// The earliest moment at which `impatient(at:)` may return exchanges.
    var nextCheck: MonotonicInstant? {
        awaiting.compactMap { groups[$0]?.waitingSince }.min()?.advanced(by: ConnectionSharing.patience)
    }

    /// Returns one exchange of each group whose connection takes too long to open; that exchange tries to open another one.
    mutating func impatient(at now: MonotonicInstant) -> [WireMachine.Ticket] {
        var released: [WireMachine.Ticket] = []
        for key in awaiting {
            guard var group = groups[key], group.awaitsScout else {
                groups[key]?.waitingSince = nil
                awaiting.remove(key)
                continue
            }
            if let since = group.waitingSince, since.advanced(by: ConnectionSharing.patience) <= now {
                // The first attempt continues, and the connection that opens first is used.
                (group.scout, group.waitingSince) = (nil, nil)
                released += group.release(1)
            }
            if group.waitingSince == nil { group.waitingSince = now }
            groups[key] = group
        }
        return released
    }

    /// Decides whether an exchange may open a connection; a refused exchange waits for that of another.
    mutating func mayConnect(_ ticket: WireMachine.Ticket, _ key: Key) -> (isAllowed: Bool, released: [WireMachine.Ticket]) {
        guard var group = groups[key] else { return (true, []) }
        defer { groups[key] = group }
        if group.sharing == .exclusive || group.scout == ticket { return (true, []) }
        if group.sharing == .unknown, group.isConnected {
            // The existing connection cannot be shared.
            group.sharing = .exclusive
            return (true, group.release())
        }
        if group.scout != nil, !group.isConnected { return (false, []) }
        (group.scout, group.isConnected, group.waitingSince) = (ticket, false, nil)
        awaiting.insert(key)
        return (true, [])
    }

    /// Records that an exchange was refused a connection; returns it if the scout's connection has opened or failed meanwhile.
    mutating func deferred(_ ticket: WireMachine.Ticket, _ key: Key) -> [WireMachine.Ticket] {
        guard var group = groups[key] else { return [ticket] }
        defer { groups[key] = group }
        group.running -= 1
        guard group.scout != nil, !group.isConnected else { return [ticket] }
        group.waiting.append(ticket)
        awaiting.insert(key)
        return []
    }

    /// Records that a request is sent; returns the exchanges that follow.
    mutating func sent(_ ticket: WireMachine.Ticket, _ key: Key, isReused: Bool) -> [WireMachine.Ticket] {
        guard var group = groups[key] else { return [] }
        defer { groups[key] = group }
        if group.scout == ticket, !group.isConnected {
            if isReused, group.sharing == .unknown {
                // A reused connection proves nothing, because a stream may have opened it. Another exchange goes ahead.
                group.scout = nil
                return group.release(1)
            }
            group.isConnected = true
            return group.sharing == .unknown ? group.release(1) : group.release()
        }
        if group.sharing == .unknown, isReused, group.scout != nil {
            group.sharing = .shared
            return group.release()
        }
        return []
    }

    /// Records the arrival of a head; returns the exchanges that follow.
    mutating func headArrived(_ ticket: WireMachine.Ticket, _ key: Key, isShared: Bool, isNew: Bool) -> [WireMachine.Ticket] {
        guard var group = groups[key] else { return [] }
        defer { groups[key] = group }
        if group.scout == ticket { group.scout = nil }
        // A reused HTTP/1 connection may belong to a stream.
        guard isShared || isNew else { return [] }
        let isNews = !group.hasHead || (group.sharing == .shared) != isShared
        group.hasHead = true
        group.sharing = isShared ? .shared : .exclusive
        return isNews ? group.release() : []
    }

    /// Records the end of an exchange, which may have failed before its request was sent; returns the exchanges that follow.
    mutating func ended(_ ticket: WireMachine.Ticket, _ key: Key, hasFailed: Bool) -> [WireMachine.Ticket] {
        guard var group = groups[key] else { return [] }
        group.running -= 1
        if group.probe == ticket { group.probe = nil }
        var released: [WireMachine.Ticket] = []
        if group.scout == ticket {
            group.scout = nil
            // Released one by one, each exchange would wait for the same failure, or for a connection without a free stream.
            if hasFailed || group.sharing == .shared { released = group.release() }
            if hasFailed { (group.sharing, group.hasHead) = (.exclusive, false) }
        }
        if released.isEmpty { released = group.release(1) }
        // The next exchange tries sharing again.
        if group.running == 0, group.waiting.isEmpty, released.isEmpty, !group.hasHead { group.sharing = .unknown }
        groups[key] = group
        if groups.count > ConnectionSharing.idleGroups { groups = groups.filter { $0.value.running > 0 || !$0.value.waiting.isEmpty } }
        return released
    }

    /// Records that a waiting exchange was canceled; returns another one to begin instead.
    mutating func left(_ ticket: WireMachine.Ticket, _ key: Key) -> [WireMachine.Ticket] {
        guard var group = groups[key] else { return [] }
        defer { groups[key] = group }
        if let index = group.waiting.firstIndex(of: ticket) {
            group.waiting.remove(at: index)
            return []
        }
        return group.release(1)
    }
}
