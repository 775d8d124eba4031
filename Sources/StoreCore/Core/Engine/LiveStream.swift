/// The stream of a key whose origin pushes, from the first connection until the stream is over.
struct LiveStream<Content: Sendable> {
    /// The connection; `nil` while the stream waits to connect again.
    var ticket: Ticket?
    /// The time of the connection's first value; `nil` before it.
    var connectedAt: MonotonicInstant?
    /// The number of this attempt to connect, from 1. Starts over after a connection that has lasted for a while.
    var attempt = 1
    /// The time of the next connection.
    var reconnectsAt: MonotonicInstant?
    /// The time at which a silent connection ends.
    var silenceEnds: MonotonicInstant?

    /// Whether the stream has a last value: the accepted content, unless it is overtaken.
    var hasValue: Bool
    /// The stream's last value, after the accepted content was set by others (L3).
    var overtaken: (content: Content, validator: Validator?)?

    /// The revision of the stream's last value, which is saved at the pace of the policy (L6).
    var revision = Ticket(number: 0)
    var lastSave: MonotonicInstant?
    /// The time at which the last value is saved.
    var saveDue: MonotonicInstant?

    init(ticket: Ticket, hasValue: Bool) {
        self.ticket = ticket
        self.hasValue = hasValue
    }

    /// The time of the next step that no fact causes. An unwanted stream does not connect again.
    func nextWake(isWanted: Bool) -> MonotonicInstant? {
        let start = isWanted ? reconnectsAt : nil
        let wake = min(start ?? .distantFuture, silenceEnds ?? .distantFuture, saveDue ?? .distantFuture)
        return wake == .distantFuture ? nil : wake
    }
}

/// A value that is stored out of line, so that it costs its owner one word.
struct OutOfLine<Value> {
    private var cell: Cell<Value>

    init(_ value: Value) {
        cell = Cell(value)
    }

    var value: Value {
        _read { yield cell.value }
        _modify {
            if !isKnownUniquelyReferenced(&cell) { cell = Cell(cell.value) }
            yield &cell.value
        }
    }
}
