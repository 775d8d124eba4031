import StoreCore
import Testing

@testable import RemoteHTTP

/// The engine's decisions, without sockets.
@Suite
struct MachineTests {
    private let start = MonotonicInstant(nanoseconds: 0)

    private func at(_ seconds: Int) -> MonotonicInstant { start.advanced(by: .seconds(seconds)) }

    private func machine(
        width: Int = 2, connections: Int = 4, cannotAsk: Bool = false, _ tickets: ClosedRange<UInt64> = 1...1, mayRepeat: Bool = false,
        isSecure: Bool = false, _ timeouts: ExchangeLimits.Timeouts = ExchangeLimits.Timeouts(), until overall: MonotonicInstant? = nil
    ) -> WireMachine {
        var machine = WireMachine(width: width, connections: connections, cannotAsk: cannotAsk)
        for ticket in tickets { machine.submitted(ticket, mayRepeat: mayRepeat, isSecure: isSecure, timeouts, until: overall, at: start) }
        return machine
    }

    @Test func `exchanges above the width wait in order`() {
        var machine = machine(1...5)
        #expect(machine.begun() == [1, 2])
        #expect(machine.ended(2) == .conclude(mayHaveArrived: false))
        #expect(machine.begun() == [3])
        machine.left(4)
        machine.left(1)
        #expect(machine.begun() == [5])
        #expect(machine.count == 2)
    }

    @Test(arguments: [true, false])
    func `H18: a library that cannot ask before sending excludes nothing`(_ cannotAsk: Bool) {
        var machine = machine(cannotAsk: cannotAsk)
        #expect(machine.begun() == [1])
        #expect(machine.ended(1) == .conclude(mayHaveArrived: cannotAsk))
    }

    @Test func `W5: paused exchanges make way for others, within the limit of connections`() {
        var machine = machine(1...9)
        #expect(machine.begun() == [1, 2])
        machine.paused(1)
        machine.paused(1)
        machine.paused(2)
        #expect(machine.begun() == [3, 4])
        machine.paused(3)
        machine.paused(4)
        #expect(machine.begun() == [])
        #expect(machine.resumed(1, at: start) == true)
        #expect(machine.resumed(1, at: start) == false)
        machine.left(2)
        #expect(machine.begun() == [5])
        _ = machine.ended(1)
        _ = machine.ended(5)
        #expect(machine.begun() == [6, 7])
    }

    @Test func `W5: streams that are never read leave connections for other exchanges, in the order of arrival`() {
        var machine = WireMachine(width: 2, connections: 6)
        for ticket in UInt64(1)...10 {
            machine.submitted(ticket, mayRepeat: true, isSecure: false, isStream: true, ExchangeLimits.Timeouts(), at: start)
        }
        func beginAndPause() -> [UInt64] {
            let tickets = machine.begun()
            for ticket in tickets { machine.paused(ticket) }
            return tickets
        }
        #expect([beginAndPause(), beginAndPause(), beginAndPause()] == [[1, 2], [3, 4], []])
        for ticket in UInt64(11)...14 { machine.submitted(ticket, mayRepeat: true, isSecure: false, ExchangeLimits.Timeouts(), at: start) }
        #expect(machine.begun() == [11, 12])
        _ = machine.ended(11)
        #expect(machine.begun() == [13])
        // The next stream may begin, because it arrived before the waiting exchange.
        machine.left(2)
        _ = machine.ended(12)
        #expect(machine.begun() == [5])
        _ = machine.ended(13)
        #expect(machine.begun() == [14])
        for ticket in UInt64(1)...14 { machine.left(ticket) }
        #expect(machine.count == 0)
        machine.submitted(15, mayRepeat: true, isSecure: false, isStream: true, ExchangeLimits.Timeouts(), at: start)
        #expect(machine.begun() == [15])
    }

    @Test(arguments: [(1, 1), (1, 2), (256, 1), (256, 512)])
    func `W5: a stream begins under any limits`(_ width: Int, _ connections: Int) {
        var machine = WireMachine(width: width, connections: connections)
        machine.submitted(1, mayRepeat: true, isSecure: false, isStream: true, ExchangeLimits.Timeouts(), at: start)
        #expect(machine.begun() == [1])
    }

    @Test func `W14: silent origins leave places to others, and one origin alone gets the whole width`() {
        var machine = WireMachine(width: 256, connections: 500)
        var ticket: UInt64 = 0
        func submit(_ origin: String, _ count: Int) {
            for _ in 0..<count {
                ticket += 1
                machine.submitted(ticket, to: origin, mayRepeat: true, isSecure: false, ExchangeLimits.Timeouts(), at: start)
            }
        }
        submit("a", 300)
        let alone = machine.begun()
        #expect(alone.count == 256)
        for ticket in alone { machine.left(ticket) }
        for ticket in UInt64(257)...300 { machine.left(ticket) }
        for number in 0..<40 { submit("silent \(number)", 32) }
        #expect(machine.begun().count >= 256)
        submit("quiet", 2)
        #expect(machine.begun() == [ticket - 1, ticket])
        for number in 0..<100 { submit("other \(number)", 1) }
        #expect(machine.begun().isEmpty == false)
    }

    @Test func `W14: a free place goes to the origin with the fewest exchanges`() {
        var machine = WireMachine(width: 4, connections: 100)
        for ticket in UInt64(1)...20 {
            machine.submitted(ticket, to: ticket <= 10 ? "a" : "b", mayRepeat: true, isSecure: false, ExchangeLimits.Timeouts(), at: start)
        }
        #expect(machine.begun() == [1, 11, 2, 12])
        _ = machine.ended(11)
        #expect(machine.begun() == [13])
        _ = machine.ended(1)
        _ = machine.ended(2)
        #expect(machine.begun() == [3, 4])
    }

    @Test func `H18: a request that the server has refused to process has not arrived`() {
        var machine = machine(isSecure: true)
        _ = machine.begun()
        #expect(machine.willSend(1, isReused: false, isReadable: false) == true)
        // libcurl repeats a request on a new connection only after a refused stream.
        #expect(machine.willSend(1, isReused: false, isReadable: false) == false)
        #expect(machine.ended(1) == .conclude(mayHaveArrived: false))
    }

    @Test func `W2: an unsafe request is sent once`() {
        var machine = machine()
        _ = machine.begun()
        #expect(machine.willSend(1, isReused: true, isReadable: false) == true)
        #expect(machine.willSend(1, isReused: false, isReadable: false) == false)
        #expect(machine.ended(1) == .conclude(mayHaveArrived: true))
        #expect(machine.willSend(1, isReused: false, isReadable: false) == false)
    }

    @Test func `W2: a connection that the server has closed is replaced before anything is sent`() {
        var machine = machine()
        #expect(machine.beginNext(at: start)?.onFreshConnection == false)
        #expect(machine.willSend(1, isReused: true, isReadable: true) == false)
        #expect(machine.ended(1) == .beginAgain)
        #expect(machine.willSend(1, isReused: false, isReadable: true) == true)
        #expect(machine.ended(1) == .conclude(mayHaveArrived: true))
        #expect(machine.ended(1) == .ignore)
    }

    @Test(arguments: [(true, false), (false, true)])
    func `W2: an unsafe request gets a fresh connection if the socket reveals nothing`(_ isSecure: Bool, _ cannotAsk: Bool) {
        var machine = machine(cannotAsk: cannotAsk, isSecure: isSecure)
        #expect(machine.beginNext(at: start)?.onFreshConnection == true)
        var repeatable = self.machine(cannotAsk: cannotAsk, mayRepeat: true, isSecure: isSecure)
        #expect(repeatable.beginNext(at: start)?.onFreshConnection == false)
        #expect(repeatable.willSend(1, isReused: true, isReadable: false) == true)
        #expect(repeatable.willSend(1, isReused: false, isReadable: false) == true)
    }

    @Test(arguments: [true, false])
    func `W2: no request is sent on a connection with unrequested bytes`(_ isSecure: Bool) {
        var machine = machine(mayRepeat: true, isSecure: isSecure)
        #expect(machine.beginNext(at: start)?.onFreshConnection == false)
        #expect(machine.willSend(1, isReused: true, isReadable: true) == false)
        #expect(machine.ended(1) == .beginAgain)
        #expect(machine.willSend(1, isReused: false, isReadable: true) == true)
        // libcurl repeats a repeatable request if a reused connection ends without a response.
        #expect(machine.willSend(1, isReused: true, isReadable: true) == false)
        #expect(machine.ended(1) == .beginAgain)
    }

    @Test func `H6: deadlines follow events, and the idle time stops while the reader is behind`() {
        var machine = machine(
            1...1, ExchangeLimits.Timeouts(head: .seconds(3), idle: .seconds(5)), until: start.advanced(by: .seconds(100)))
        _ = machine.begun()
        #expect(machine.nextDeadline == at(3))
        machine.moved(1, at: at(1))
        #expect(machine.late(at: at(3)).isEmpty)
        #expect(machine.nextDeadline == at(4))
        machine.headArrived(1, at: at(3))
        #expect(machine.late(at: at(4)).isEmpty)
        #expect(machine.nextDeadline == at(8))
        machine.paused(1)
        #expect(machine.late(at: at(8)).isEmpty)
        #expect(machine.nextDeadline == at(100))
        _ = machine.resumed(1, at: at(50))
        #expect(machine.nextDeadline == at(55))
        #expect(machine.late(at: at(55)).map(\.part) == [.idle])
        #expect(machine.late(at: at(200)).map(\.part) != [.head])
    }

    @Test func `H6: the time for the head begins with the exchange, not while it waits`() {
        let limits = ExchangeLimits.Timeouts(head: .seconds(3), attempt: .seconds(20))
        var machine = machine(width: 1, 1...2, limits)
        #expect(machine.beginNext(at: at(0))?.ticket == 1)
        #expect(machine.nextDeadline == at(3))
        machine.headArrived(1, at: at(2))
        #expect(machine.late(at: at(10)).isEmpty)
        #expect(machine.nextDeadline == at(20))
        #expect(machine.ended(1) == .conclude(mayHaveArrived: false))
        #expect(machine.beginNext(at: at(10))?.ticket == 2)
        #expect(machine.nextDeadline == at(13))
        #expect(machine.late(at: at(13)).map(\.part) == [.head])
        // Waiting counts toward the attempt.
        var waiting = self.machine(width: 1, 1...2, limits)
        _ = waiting.beginNext(at: at(0))
        _ = waiting.late(at: at(3))
        waiting.headArrived(1, at: at(3))
        #expect(waiting.late(at: at(20)).map(\.part) == [.attempt, .attempt])
    }

    @Test func `H6: an exchange that begins again after a broken response has the time for another head`() {
        var machine = machine(mayRepeat: true, ExchangeLimits.Timeouts(head: .seconds(3)))
        #expect(machine.begun() == [1])
        machine.headArrived(1, isShared: true, at: at(1))
        #expect(machine.late(at: at(10)).isEmpty)
        machine.beganAgain(1, at: at(10))
        #expect(machine.nextDeadline == at(13))
        #expect(machine.late(at: at(13)).map(\.part) == [.head])
    }

    @Test func `W15: a stream waits for a place no longer than for a head`() {
        var machine = WireMachine(width: 1, connections: 2)
        for ticket in UInt64(1)...3 {
            machine.submitted(
                ticket, mayRepeat: true, isSecure: false, isStream: true, ExchangeLimits.Timeouts(head: .seconds(3)),
                until: ticket == 3 ? at(100) : nil, at: start)
        }
        #expect(machine.begun() == [1])
        machine.headArrived(1, at: start)
        machine.paused(1)
        #expect(machine.begun() == [])
        #expect(machine.late(at: at(2)).isEmpty)
        #expect(machine.late(at: at(3)).map(\.ticket) == [2])
        machine.left(2)
        machine.left(1)
        // Another deadline ends the wait of the third one. Its time for the head begins with the exchange.
        #expect(machine.late(at: at(10)).isEmpty)
        #expect(machine.beginNext(at: at(10))?.ticket == 3)
        #expect(machine.nextDeadline == at(13))
    }

    @Test func `H6: deadlines of many exchanges pass in order`() {
        var machine = WireMachine(width: 1000, connections: 1000)
        for ticket in UInt64(1)...1000 {
            machine.submitted(
                ticket, mayRepeat: true, isSecure: false, ExchangeLimits.Timeouts(head: .milliseconds(Int(ticket * 7919 % 1000) + 1)),
                at: start)
        }
        #expect(machine.begun().count == 1000)
        var seen: [Int64] = []
        while let next = machine.nextDeadline {
            for late in machine.late(at: next) {
                seen.append(next.nanoseconds)
                machine.left(late.ticket)
            }
        }
        #expect(seen.count == 1000)
        #expect(seen == seen.sorted())
        #expect(machine.count == 0)
    }
}

extension WireMachine {
    /// Begins all exchanges that may begin.
    mutating func begun(at now: MonotonicInstant = MonotonicInstant(nanoseconds: 0)) -> [UInt64] {
        var tickets: [UInt64] = []
        while let next = beginNext(at: now) { tickets.append(next.ticket) }
        return tickets
    }
}
