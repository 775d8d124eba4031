#if os(Linux)
internal import CurlShim
internal import Foundation
internal import StoreCore

/// An engine that performs HTTP exchanges with libcurl on a thread of its own.
///
/// Commands pass through a lock to the thread; an event descriptor wakes the thread if it sleeps. After the engine is released, exchanges
/// in flight end normally. Then the thread and its connections end.
package final class WireEngine: Sendable {
    package typealias Ticket = WireMachine.Ticket

    private let mailbox: Mailbox
    /// The process of the engine's thread; a forked child does not have that thread.
    private let process = getpid()

    /// Creates an engine and starts its thread; throws if no file descriptor is left.
    ///
    /// The connections include those of paused exchanges. Idle ones are at most three quarters of the number.
    package init(_ library: WireLibrary, width: Int, connections: Int) throws(TransportFailure) {
        // Created here, because the thread could report a failure only through each exchange.
        let idle = max(1, min(connections / 2, max(width, 64)))
        // Each lookup has two descriptors, so half of them are left. A few slow lookups prevent no other one.
        let lookups = Int32(clamping: max(8, connections / 4))
        guard let mailbox = Mailbox(), let handle = wire_loop_make(library.number, mailbox.event, idle, lookups) else {
            throw TransportFailure(
                .engineFailed, "no file descriptor is left for the network thread; close some, or raise the limit"
            ).beforeSending
        }
        self.mailbox = mailbox
        let address = UInt(bitPattern: handle)
        let thread = Thread {
            guard let handle = OpaquePointer(bitPattern: address) else { return }
            WireLoop(library, mailbox, handle, width: width, connections: connections).run()
        }
        thread.stackSize = 1 << 20
        thread.start()
    }

    deinit {
        // In a forked process the mailbox may be locked forever, and its descriptor would wake the parent process.
        if isUsable { mailbox.post(.drain) }
    }

    /// Whether the engine's thread runs in this process, rather than in a parent process.
    package var isUsable: Bool { getpid() == process }

    /// The number of exchanges that the engine's thread knows, for tests.
    package var count: Int { mailbox.known }

    /// Submits a request, and returns its number; the engine feeds its exchange on its own thread.
    package func start(_ request: WireRequest, _ exchange: Exchange) -> Ticket {
        mailbox.post { .start($0, request, exchange) }
    }

    /// Ends an exchange on the wire; it is not fed again, except for a call already in progress.
    package func cancel(_ ticket: Ticket) { mailbox.post(.cancel(ticket)) }

    package func resume(_ ticket: Ticket) { mailbox.post(.resume(ticket)) }
}

/// The commands for the loop's thread.
final class Mailbox: Sendable {
    enum Command: Sendable {
        case start(WireMachine.Ticket, WireRequest, Exchange)
        case cancel(WireMachine.Ticket)
        case resume(WireMachine.Ticket)
        /// A chunk of a request body was read; `nil` is its end.
        case read(WireMachine.Ticket, Result<Data?, any Error>)
        /// End once nothing is in flight.
        case drain
    }

    private struct State {
        var commands: [Command] = []
        var isAsleep = false
        var lastTicket: WireMachine.Ticket = 0
        var known = 0
    }

    /// The descriptor that wakes the loop.
    let event: Int32
    private let state = Lock(State())

    init?() {
        event = wire_event_make()
        if event < 0 { return nil }
    }

    deinit { wire_event_close(event) }

    var known: Int { state.withLock { $0.known + $0.commands.count } }

    func post(_ command: Command) { post { _ in command } }

    /// Posts a command that may take a new number for its exchange; returns the number.
    @discardableResult
    func post(_ command: (WireMachine.Ticket) -> Command) -> WireMachine.Ticket {
        let (ticket, isAsleep) = state.withLock { state in
            state.lastTicket += 1
            state.commands.append(command(state.lastTicket))
            defer { state.isAsleep = false }
            return (state.lastTicket, state.isAsleep)
        }
        if isAsleep { wire_event_post(event) }
        return ticket
    }

    func take(into commands: inout [Command]) {
        commands.removeAll(keepingCapacity: true)
        state.withLock { state in
            state.isAsleep = false
            swap(&state.commands, &commands)
        }
    }

    /// Returns whether the loop may sleep because there are no commands; the next command then wakes it.
    func mayFallAsleep(known: Int) -> Bool {
        state.withLock { state in
            state.known = known
            state.isAsleep = state.commands.isEmpty
            return state.isAsleep
        }
    }
}
#endif
