/// The number of a fetch, a load, a change, or an epoch. A store has one counter for all of them. Therefore the later of two events has the
/// higher number, even if they concern different keys.
struct Ticket: Hashable, Comparable, Sendable {
    let number: UInt64

    static func < (lhs: Ticket, rhs: Ticket) -> Bool { lhs.number < rhs.number }
}

struct TicketCounter: Hashable, Sendable {
    private(set) var last: UInt64 = 0

    mutating func next() -> Ticket {
        last += 1
        return Ticket(number: last)
    }
}

/// The number of a caller or an observer.
typealias CallerID = UInt64
