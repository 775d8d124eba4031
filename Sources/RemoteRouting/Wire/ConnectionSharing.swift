internal import StoreCore

/// The decisions about connections that several exchanges may share: which exchange begins, and which one may make a connection.
///
/// libcurl knows the protocol of a connection once it is secured, and how many streams a server takes once its settings have arrived. Until
/// then it would make a connection for each exchange. So one exchange goes ahead, and the others follow it.
struct ConnectionSharing {
    /// The exchanges that may share connections: same origin, same demands.
    struct Key: Hashable {
        let origin: String
        let tls: WireTLS?
        let proxy: WireProxy
    }

    /// The decision about an exchange that is to begin.
    enum Entrance: Hashable {
        case begins
        /// It follows once ``ConnectionSharing`` releases it.
        case waits
    }

    private enum Sharing {
        /// No response has arrived.
        case unknown
        /// The server speaks HTTP/2.
        case shared
        /// Each exchange has a connection of its own.
        case exclusive
    }

    private struct Group {
        var sharing = Sharing.unknown
        /// The exchange that makes a connection, and whether the connection is there.
        var scout: WireMachine.Ticket?
        var isConnected = false
        /// The exchange that shows whether a connection that is there can be shared.
        var probe: WireMachine.Ticket?
        /// Whether a response has arrived, so that the number of streams is known.
        var hasHead = false
        var running = 0
        var waiting: [WireMachine.Ticket] = []
        /// The time since which others wait for the scout's connection.
        var waitingSince: MonotonicInstant?

        /// Whether exchanges wait for a connection that is being made.
        var awaitsScout: Bool { scout != nil && !isConnected && !waiting.isEmpty }
    }

    /// The fewest streams that a server should take (RFC 9113 §6.5.2), and libcurl's number until it knows.
    private static let fewestStreams = 100
    /// How many groups without exchanges are remembered.
    private static let idleGroups = 1000

    /// How long others wait for a connection before the next exchange tries to make one; a handshake that never ends holds up no other.
    static let patience = Duration.seconds(5)

    private var groups: [Key: Group] = [:]
    /// The groups whose exchanges may wait for a connection.
    private var awaiting: Set<Key> = []

    /// An exchange is to begin.
    mutating func enter(_ ticket: WireMachine.Ticket, _ key: Key, at now: MonotonicInstant) -> Entrance {
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
        return begins ? .begins : .waits
    }

    /// When ``impatient(at:)`` has work at the earliest.
    var nextCheck: MonotonicInstant? {
        awaiting.compactMap { groups[$0]?.waitingSince }.min()?.advanced(by: ConnectionSharing.patience)
    }

    /// The exchanges that no longer wait for a connection that takes long to make, one of each group.
    mutating func impatient(at now: MonotonicInstant) -> [WireMachine.Ticket] {
        var released: [WireMachine.Ticket] = []
        for key in awaiting {
            guard var group = groups[key], group.awaitsScout else {
                groups[key]?.waitingSince = nil
                awaiting.remove(key)
                continue
            }
            if let since = group.waitingSince, since.advanced(by: ConnectionSharing.patience) <= now {
                // It goes on, and whichever is there first is used.
                (group.scout, group.waitingSince) = (nil, nil)
                released += ConnectionSharing.release(1, &group)
            }
            if group.waitingSince == nil { group.waitingSince = now }
            groups[key] = group
        }
        return released
    }

    /// libcurl needs a new connection for an exchange; false makes it wait for the one that is being made.
    mutating func mayConnect(_ ticket: WireMachine.Ticket, _ key: Key) -> (isAllowed: Bool, released: [WireMachine.Ticket]) {
        guard var group = groups[key] else { return (true, []) }
        defer { groups[key] = group }
        if group.sharing == .exclusive || group.scout == ticket { return (true, []) }
        if group.sharing == .unknown, group.isConnected {
            // There is a connection, and it is not shared.
            group.sharing = .exclusive
            return (true, ConnectionSharing.releaseAll(&group))
        }
        if group.scout != nil, !group.isConnected { return (false, []) }
        (group.scout, group.isConnected, group.waitingSince) = (ticket, false, nil)
        awaiting.insert(key)
        return (true, [])
    }

    /// An exchange was refused a connection, and waits; returns it where the connection that it would wait for is made or has failed.
    mutating func deferred(_ ticket: WireMachine.Ticket, _ key: Key) -> [WireMachine.Ticket] {
        guard var group = groups[key] else { return [ticket] }
        defer { groups[key] = group }
        group.running -= 1
        guard group.scout != nil, !group.isConnected else { return [ticket] }
        group.waiting.append(ticket)
        awaiting.insert(key)
        return []
    }

    /// A request goes out; returns the exchanges that follow.
    mutating func sent(_ ticket: WireMachine.Ticket, _ key: Key, isReused: Bool) -> [WireMachine.Ticket] {
        guard var group = groups[key] else { return [] }
        defer { groups[key] = group }
        if group.scout == ticket, !group.isConnected {
            if isReused, group.sharing == .unknown {
                // An older connection says nothing, since it may be one of a stream. Another exchange goes ahead.
                group.scout = nil
                return ConnectionSharing.release(1, &group)
            }
            group.isConnected = true
            return group.sharing == .unknown ? ConnectionSharing.release(1, &group) : ConnectionSharing.releaseAll(&group)
        }
        if group.sharing == .unknown, isReused, group.scout != nil {
            group.sharing = .shared
            return ConnectionSharing.releaseAll(&group)
        }
        return []
    }

    /// A head arrived; returns the exchanges that follow.
    ///
    /// - Parameters:
    ///   - isShared: Whether the response came by HTTP/2.
    ///   - isNew: Whether the connection was made for the exchange; one of HTTP/1 that was not may be that of a stream.
    mutating func headCame(_ ticket: WireMachine.Ticket, _ key: Key, isShared: Bool, isNew: Bool) -> [WireMachine.Ticket] {
        guard var group = groups[key] else { return [] }
        defer { groups[key] = group }
        if group.scout == ticket { group.scout = nil }
        guard isShared || isNew else { return [] }
        let isNews = !group.hasHead || (group.sharing == .shared) != isShared
        group.hasHead = true
        group.sharing = isShared ? .shared : .exclusive
        return isNews ? ConnectionSharing.releaseAll(&group) : []
    }

    /// A running exchange ended, or its caller left; returns the exchanges that follow.
    ///
    /// - Parameter hasFailed: Whether it ended before a request went out, which may hold for all others as well.
    mutating func ended(_ ticket: WireMachine.Ticket, _ key: Key, hasFailed: Bool) -> [WireMachine.Ticket] {
        guard var group = groups[key] else { return [] }
        group.running -= 1
        if group.probe == ticket { group.probe = nil }
        var released: [WireMachine.Ticket] = []
        if group.scout == ticket {
            group.scout = nil
            // One after another, each would wait for the same failure, or for a stream of a connection that has none left.
            if hasFailed || group.sharing == .shared { released = ConnectionSharing.releaseAll(&group) }
            if hasFailed { (group.sharing, group.hasHead) = (.exclusive, false) }
        }
        if released.isEmpty { released = ConnectionSharing.release(1, &group) }
        // The next exchanges find out anew whether the failure holds.
        if group.running == 0, group.waiting.isEmpty, released.isEmpty, !group.hasHead { group.sharing = .unknown }
        groups[key] = group
        if groups.count > ConnectionSharing.idleGroups { groups = groups.filter { $0.value.running > 0 || !$0.value.waiting.isEmpty } }
        return released
    }

    /// An exchange left before it began; returns another one to begin in its place.
    mutating func left(_ ticket: WireMachine.Ticket, _ key: Key) -> [WireMachine.Ticket] {
        guard var group = groups[key] else { return [] }
        defer { groups[key] = group }
        if let index = group.waiting.firstIndex(of: ticket) {
            group.waiting.remove(at: index)
            return []
        }
        return ConnectionSharing.release(1, &group)
    }

    /// How many exchanges wait; for tests.
    var waitingCount: Int { groups.values.reduce(0) { $0 + $1.waiting.count } }

    private static func releaseAll(_ group: inout Group) -> [WireMachine.Ticket] { release(group.waiting.count, &group) }

    private static func release(_ count: Int, _ group: inout Group) -> [WireMachine.Ticket] {
        let released = Array(group.waiting.prefix(count))
        group.waiting.removeFirst(released.count)
        return released
    }
}
