import StoreCore
import Testing
import Trials

@testable import RemoteHTTP

/// The decisions about shared connections, without sockets.
@Suite
struct ConnectionSharingTests {
    private let start = MonotonicInstant(nanoseconds: 0)
    private static let key = ConnectionSharing.Key(origin: "a.example", tls: nil, proxy: .system)

    private func machine(
        _ tickets: ClosedRange<UInt64>, width: Int = 256, _ limits: ExchangeLimits.Timeouts = ExchangeLimits.Timeouts()
    ) -> WireMachine {
        var machine = WireMachine(width: width, connections: 1000)
        for ticket in tickets { submit(ticket, to: &machine, limits) }
        return machine
    }

    private func submit(
        _ ticket: UInt64, to machine: inout WireMachine, _ limits: ExchangeLimits.Timeouts = ExchangeLimits.Timeouts(),
        key: ConnectionSharing.Key = ConnectionSharingTests.key
    ) {
        machine.submitted(ticket, mayRepeat: true, isSecure: true, isStream: false, sharing: key, limits, at: start)
    }

    /// The first exchange connects and sends.
    private func connect(_ ticket: UInt64, _ machine: inout WireMachine) {
        #expect(machine.mayConnect(ticket) == true)
        #expect(machine.willSend(ticket, isReused: false, isReadable: false) == true)
    }

    /// The exchanges are refused a connection, and wait for that of another one.
    private func refuse(_ tickets: ClosedRange<UInt64>, _ machine: inout WireMachine) {
        for ticket in tickets {
            #expect(machine.mayConnect(ticket) == false)
            #expect(machine.ended(ticket) == .wait)
        }
    }

    /// Makes a machine after its first exchange has opened a connection that the others share.
    private func sharingMachine(_ tickets: ClosedRange<UInt64>) -> WireMachine {
        var machine = machine(tickets)
        #expect(machine.begun() == [1])
        connect(1, &machine)
        machine.headArrived(1, isShared: true, at: start)
        return machine
    }

    @Test func `W9: exchanges follow the first one onto its connection`() {
        var machine = machine(1...200)
        #expect(machine.begun() == [1])
        connect(1, &machine)
        #expect(machine.begun() == [2])
        #expect(machine.begun() == [])
        #expect(machine.willSend(2, isReused: true, isReadable: false) == true)
        // As many as every server allows; the rest once its settings are known.
        #expect(machine.begun() == Array(3...100))
        machine.headArrived(2, isShared: true, at: start)
        #expect(machine.begun() == Array(101...200))
    }

    @Test func `W9: exchanges with an HTTP 1 server get their own connections as soon as the version is known`() {
        var machine = machine(1...50)
        #expect(machine.begun() == [1])
        connect(1, &machine)
        #expect(machine.begun() == [2])
        // A connection exists, and the next exchange needs another one.
        #expect(machine.mayConnect(2) == true)
        #expect(machine.begun() == Array(3...50))
        for ticket in UInt64(3)...50 { #expect(machine.mayConnect(ticket) == true) }
    }

    @Test func `W9: a head shows whether the server shares connections`() {
        for isShared in [true, false] {
            var machine = machine(1...3)
            #expect(machine.begun() == [1])
            connect(1, &machine)
            machine.headArrived(1, isShared: isShared, at: start)
            #expect(machine.begun() == [2, 3])
            #expect(machine.mayConnect(2) == true)
            #expect(machine.mayConnect(3) == !isShared)
        }
    }

    @Test func `W9: an exchange without a free stream waits for another one's new connection`() {
        var machine = sharingMachine(1...6)
        #expect(machine.begun() == [2, 3, 4, 5, 6])
        #expect(machine.mayConnect(4) == true)
        refuse(5...6, &machine)
        #expect(machine.begun() == [])
        #expect(machine.willSend(4, isReused: false, isReadable: false) == true)
        #expect(machine.begun() == [5, 6])
        #expect(machine.mayConnect(5) == true)
        #expect(machine.mayConnect(6) == false)
    }

    @Test func `W9: an exchange that was refused a connection continues if that connection has failed meanwhile`() {
        var machine = sharingMachine(1...6)
        #expect(machine.begun() == [2, 3, 4, 5, 6])
        #expect(machine.ended(1) == .conclude(mayHaveArrived: true))
        #expect(machine.mayConnect(2) == true)
        for ticket in UInt64(3)...6 { #expect(machine.mayConnect(ticket) == false) }
        // All of it is known at once.
        #expect(machine.ended(2) == .conclude(mayHaveArrived: false))
        for ticket in UInt64(3)...6 { #expect(machine.ended(ticket) == .wait) }
        #expect(machine.begun() == [3, 4, 5, 6])
        // Not one failure after another.
        for ticket in UInt64(3)...6 {
            #expect(machine.mayConnect(ticket) == true)
            #expect(machine.ended(ticket) == .conclude(mayHaveArrived: false))
        }
        submit(7, to: &machine)
        submit(8, to: &machine)
        #expect(machine.begun() == [7])
    }

    @Test func `W9: exchanges that wait for the connection of another exchange continue if that exchange is canceled`() {
        var machine = sharingMachine(1...5)
        _ = machine.begun()
        #expect(machine.mayConnect(2) == true)
        refuse(3...5, &machine)
        machine.left(2)
        // The first connection may have room for them by now, and then none of them would release another one.
        #expect(machine.begun() == [3, 4, 5])
    }

    @Test func `W9: an exchange that was refused one address but allowed another ends normally`() {
        var machine = sharingMachine(1...3)
        _ = machine.begun()
        #expect(machine.mayConnect(2) == true)
        #expect(machine.mayConnect(3) == false)
        #expect(machine.willSend(2, isReused: false, isReadable: false) == true)
        connect(3, &machine)
        #expect(machine.ended(3) == .conclude(mayHaveArrived: true))
    }

    @Test func `W9: a failure to connect delays no other exchange`() {
        var machine = machine(1...5)
        #expect(machine.begun() == [1])
        #expect(machine.mayConnect(1) == true)
        #expect(machine.ended(1) == .conclude(mayHaveArrived: false))
        #expect(machine.begun() == [2, 3, 4, 5])
        for ticket in UInt64(2)...5 {
            #expect(machine.mayConnect(ticket) == true)
            #expect(machine.ended(ticket) == .conclude(mayHaveArrived: false))
        }
        // The next exchanges try sharing again.
        submit(6, to: &machine)
        submit(7, to: &machine)
        #expect(machine.begun() == [6])
        #expect(machine.count == 2)
    }

    @Test func `W9: a canceled exchange makes way for the next one`() {
        var machine = machine(1...6)
        #expect(machine.begun() == [1])
        machine.left(3)
        #expect(machine.mayConnect(1) == true)
        machine.left(1)
        #expect(machine.begun() == [2])
        connect(2, &machine)
        // The exchange that would follow is canceled before it begins.
        machine.left(4)
        #expect(machine.begun() == [5])
        machine.left(5)
        #expect(machine.begun() == [6])
        #expect(machine.mayConnect(6) == true)
        machine.left(2)
        machine.left(6)
        #expect(machine.count == 0)
    }

    @Test func `W4, W9: exchanges with other origins do not wait`() {
        var machine = machine(1...3)
        submit(4, to: &machine, key: ConnectionSharing.Key(origin: "b.example", tls: nil, proxy: .system))
        submit(5, to: &machine, key: ConnectionSharing.Key(origin: "a.example", tls: nil, proxy: .none))
        machine.submitted(6, mayRepeat: true, isSecure: false, ExchangeLimits.Timeouts(), at: start)
        machine.submitted(7, mayRepeat: true, isSecure: true, isStream: true, ExchangeLimits.Timeouts(), at: start)
        #expect(machine.begun() == [1, 4, 5, 6, 7])
    }

    @Test func `W9: an HTTP 1 connection of an earlier stream does not describe the server`() {
        var machine = machine(1...4)
        #expect(machine.begun() == [1])
        #expect(machine.willSend(1, isReused: true, isReadable: false) == true)
        #expect(machine.begun() == [2])
        connect(2, &machine)
        machine.headArrived(1, isShared: false, at: start)
        #expect(machine.begun() == [3])
        machine.headArrived(2, isShared: true, at: start)
        #expect(machine.begun() == [4])
        #expect(machine.mayConnect(3) == true)
        #expect(machine.mayConnect(4) == false)
    }

    @Test(arguments: [false, true])
    func `W4, W9: a connection that takes long to open delays no other exchange`(_ isShared: Bool) throws {
        var machine = machine(1...5)
        #expect(machine.begun() == [1])
        #expect(machine.late(at: start).isEmpty)
        if isShared {
            connect(1, &machine)
            machine.headArrived(1, isShared: true, at: start)
            #expect(machine.begun() == [2, 3, 4, 5])
            #expect(machine.ended(1) == .conclude(mayHaveArrived: true))
            #expect(machine.mayConnect(2) == true)
            refuse(3...5, &machine)
            #expect(machine.late(at: start).isEmpty)
        }
        // One after another.
        for round in 1...3 {
            let next = try #require(machine.nextDeadline)
            #expect(next == start.advanced(by: ConnectionSharing.patience * round))
            #expect(machine.late(at: next).isEmpty)
            #expect(machine.begun(at: next) == [UInt64(round + (isShared ? 2 : 1))])
            if isShared { #expect(machine.mayConnect(UInt64(round + 2)) == true) }
            #expect(machine.late(at: next).isEmpty)
        }
    }

    @Test func `H6, W9: waiting for the connection of another exchange counts as waiting for the head`() {
        var machine = machine(1...2, ExchangeLimits.Timeouts(head: .seconds(3)))
        #expect(machine.begun() == [1])
        #expect(machine.late(at: start.advanced(by: .seconds(3))).map(\.ticket).sorted() == [1, 2])
    }

    @Test(arguments: part(of: [1, 2, 7, 42] as [UInt64], each: 3))
    func `W9: no exchange waits forever`(_ seed: UInt64) {
        var generator = SplitMix(seed: seed)
        func number(_ count: Int) -> Int { Int(generator.next() % UInt64(count)) }
        var machine = WireMachine(width: 8, connections: 40)
        var (running, connected, sent): (Set<UInt64>, Set<UInt64>, Set<UInt64>) = ([], [], [])
        // Those that libcurl has ended, which the machine learns later.
        var (refused, failed): (Set<UInt64>, Set<UInt64>) = ([], [])
        var next: UInt64 = 0
        let isHTTP2 = number(2) == 0
        for step in 0..<20_000 {
            if step < 10_000, number(3) == 0, next < 3000 {
                next += 1
                submit(next, to: &machine)
            }
            if number(40) == 0, next > 0 {
                let ticket = UInt64(number(Int(next))) + 1
                machine.left(ticket)
                running.remove(ticket)
                connected.remove(ticket)
                sent.remove(ticket)
                refused.remove(ticket)
                failed.remove(ticket)
            }
            for ticket in machine.begun() { running.insert(ticket) }
            let all = running.union(connected).union(sent).union(refused).union(failed)
            guard let ticket = all.sorted().dropFirst(number(max(1, all.count))).first else { continue }
            if running.remove(ticket) != nil {
                if !isHTTP2 || sent.isEmpty || number(5) == 0 {
                    if !machine.mayConnect(ticket) {
                        refused.insert(ticket)
                    } else if number(10) == 0 {
                        failed.insert(ticket)
                    } else {
                        connected.insert(ticket)
                    }
                } else {
                    #expect(machine.willSend(ticket, isReused: true, isReadable: false) == true)
                    sent.insert(ticket)
                }
            } else if refused.remove(ticket) != nil {
                #expect(machine.ended(ticket) == .wait)
            } else if failed.remove(ticket) != nil {
                #expect(machine.ended(ticket) == .conclude(mayHaveArrived: false))
            } else if connected.remove(ticket) != nil {
                #expect(machine.willSend(ticket, isReused: false, isReadable: false) == true)
                sent.insert(ticket)
            } else {
                sent.remove(ticket)
                if number(4) > 0 { machine.headArrived(ticket, isShared: isHTTP2, at: start) }
                #expect(machine.ended(ticket) == .conclude(mayHaveArrived: true))
            }
        }
        let left = running.count + connected.count + sent.count + refused.count + failed.count
        #expect(machine.count == left, "exchanges wait, but none runs")
        #expect(left == 0 && next > 1000)
    }

    @Test func `W9: a response on a known connection does not release the exchanges that wait for a new one`() {
        var machine = sharingMachine(1...4)
        #expect(machine.begun() == [2, 3, 4])
        #expect(machine.mayConnect(3) == true)
        refuse(4...4, &machine)
        machine.headArrived(2, isShared: true, at: start)
        #expect(machine.begun() == [])
        #expect(machine.willSend(3, isReused: false, isReadable: false) == true)
        #expect(machine.begun() == [4])
    }
}
