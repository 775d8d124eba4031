internal import StoreCore

struct LiveScriptState<Param: Hashable & Sendable, Content: Sendable>: Recounted {
    /// A value, the end of the stream for `nil`, or its error.
    typealias Passage = Result<LiveValue<Content>?, any Error>

    struct Line: Sendable {
        var isCancelled = false
        /// Set while the store waits for a value.
        var suspension: Suspension?
        /// The value that the store will take.
        var passage: Passage?
        /// Whether the store has a value and has not requested the next one.
        var isAccepting = false
    }

    private(set) var connections: [ScriptedConnection<Param>] = []
    /// The connections that have not ended, by number.
    private(set) var lines: [Int: Line] = [:]
    private(set) var cancelledCount = 0
    var refusal: (any Error)?
    let cancellation: ScriptedCancellation

    var history: [String] {
        connections.map { connection in
            let phase = lines[connection.number].map { $0.suspension == nil ? "busy" : "waiting for a value" } ?? "ended"
            return "connection \(connection.number) of \(connection.param), \(phase)"
        }
    }

    mutating func begin(_ param: Param, _ last: Validator?) -> Int {
        let number = connections.count + 1
        connections.append(ScriptedConnection(number: number, param: param, last: last))
        lines[number] = Line(passage: refusal.map { .failure($0) })
        return number
    }

    mutating func end(_ number: Int) { lines[number] = nil }

    mutating func request(_ number: Int, _ suspension: Suspension) -> Bool {
        lines[number]?.isAccepting = false
        guard let line = lines[number], line.passage == nil, !line.isCancelled || cancellation == .ignored else { return false }
        lines[number]?.suspension = suspension
        return true
    }

    mutating func take(_ number: Int) -> Passage {
        let passage = lines[number]?.passage ?? .failure(CancellationError())
        lines[number]?.passage = nil
        if case .success(_?) = passage { lines[number]?.isAccepting = true } else { end(number) }
        return passage
    }

    mutating func cancel(_ number: Int) -> Suspension? {
        guard lines[number]?.isCancelled == false else { return nil }
        lines[number]?.isCancelled = true
        cancelledCount += 1
        return cancellation == .honored ? lines[number]?.suspension.take() : nil
    }

    /// Passes a value to the given connection, or to the newest one; `nil` while it does not wait for a value.
    mutating func pass(_ value: Passage, on number: Int?) -> (number: Int, suspension: Suspension)? {
        guard let number = number ?? lines.keys.max(), let suspension = lines[number]?.suspension.take() else { return nil }
        lines[number]?.passage = value
        return (number, suspension)
    }

    /// Whether a connection has a value that the store has not accepted.
    func isOccupied(_ number: Int) -> Bool { lines[number].map { $0.passage != nil || $0.isAccepting } ?? false }
}
