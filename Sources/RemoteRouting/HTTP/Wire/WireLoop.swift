#if os(Linux)
internal import CurlShim
internal import Foundation
internal import StoreCore

/// The engine's thread, which carries out the machine's decisions. No other thread accesses its state.
final class WireLoop {
    let library: WireLibrary
    private let mailbox: Mailbox
    var machine: WireMachine
    private let handle: OpaquePointer
    /// The maximum number of descriptors of connections.
    private let descriptors: Int
    private var transfers: [WireMachine.Ticket: WireTransfer] = [:]
    private var commands: [Mailbox.Command] = []
    /// The transfers that have received enough in their turn, and continue in the next one.
    private var waiting: [WireTransfer] = []
    private var protocols = KnownProtocols()
    /// The transfers with a head or a chunk that is not yet reported.
    private var unreported: [WireTransfer] = []
    private var isDraining = false
    /// The time of this part of a turn; `nil` before its first use.
    private var time: MonotonicInstant?
    private(set) var turn = 0

    /// Takes ownership of a libcurl loop, which no other thread may use afterward.
    init(_ library: WireLibrary, _ mailbox: Mailbox, _ handle: OpaquePointer, width: Int, connections: Int) {
        self.library = library
        self.mailbox = mailbox
        machine = WireMachine(width: width, connections: connections, cannotAsk: !library.build.asksBeforeSending)
        self.handle = handle
        descriptors = connections
    }

    deinit { wire_loop_free(handle) }

    /// Whether lookups of ended exchanges still run.
    var hasLookups: Bool { wire_loop_lookups(handle) > 0 }

    func run() {
        wire_thread_prepare()
        while true {
            mailbox.take(into: &commands)
            time = nil
            turn += 1
            // A transfer may wait again.
            let continued = waiting
            waiting = []
            for transfer in continued { transfer.continueReceiving() }
            for command in commands { perform(command) }
            commands.removeAll(keepingCapacity: true)
            for (ticket, part) in machine.late(at: now) { end(ticket, late: part) }
            while hasDescriptors, let (ticket, isFresh) = machine.beginNext(at: now) { begin(ticket, onFreshConnection: isFresh) }
            report()
            // Freed earlier, libcurl would wait for its threads.
            if isDraining, machine.count == 0, !hasLookups { return }
            let limit = mailbox.mayFallAsleep(known: machine.count) ? waitingTime : 0
            // The callbacks of libcurl follow the wait.
            time = nil
            wire_loop_turn(handle, limit)
            collect()
        }
    }

    /// The time, which is read once before the wait of a turn, and once after it.
    var now: MonotonicInstant {
        let now = time ?? SystemTime().now
        time = now
        return now
    }

    /// Whether another exchange may open a connection; idle connections alone never prevent it.
    private var hasDescriptors: Bool { machine.isIdle || Int(wire_loop_descriptors(handle)) < descriptors }

    /// The number of milliseconds until the next deadline, rounded up; −1 if there is none.
    private var waitingTime: Int32 {
        guard let next = machine.nextDeadline else { return -1 }
        let nanoseconds = now.duration(to: next).saturatedNanoseconds
        return Int32(clamping: max(0, nanoseconds / 1_000_000 + 1))
    }

    // MARK: Commands

    private func perform(_ command: Mailbox.Command) {
        switch command {
        case .start(let ticket, let request, let exchange): start(ticket, request, exchange)
        case .cancel(let ticket): end(ticket)
        case .resume(let ticket): if machine.resumed(ticket, at: now) { transfers[ticket]?.resumeReceiving() }
        case .read(let ticket, let piece): transfers[ticket]?.take(piece)
        case .drain: isDraining = true
        }
    }

    private func start(_ ticket: WireMachine.Ticket, _ request: WireRequest, _ exchange: Exchange) {
        guard request.fits else {
            return exchange.fail(
                TransportFailure(
                    .unsupported,
                    "the address and the fields of the request exceed \(WireRequest.headLimit) bytes; send large values in the body"))
        }
        let origin = request.origin
        let keeps = exchange.source.keepsDeadlines
        let timeouts = keeps ? exchange.limits.timeouts : ExchangeLimits.Timeouts()
        let isOffered =
            request.mayUseHTTP2
            && library.build.mayOfferHTTP2(isSecure: request.isSecure, isStream: request.isStream, protocols[origin])
        transfers[ticket] = WireTransfer(ticket, request, exchange, loop: self, mailbox: mailbox, offersHTTP2: isOffered)
        machine.submitted(
            ticket, to: origin, mayRepeat: request.message.mayRepeat, isSecure: request.hidesClosing, isStream: request.isStream,
            sharing: isOffered && !request.isStream ? request.sharingKey : nil, timeouts,
            until: keeps ? exchange.limits.deadline : nil, at: now)
    }

    private func begin(_ ticket: WireMachine.Ticket, onFreshConnection isFresh: Bool) {
        guard let transfer = transfers[ticket] else { return }
        let code = transfer.begin(on: handle, onFreshConnection: isFresh)
        guard code != 0 else { return }
        end(ticket, transfer.refusal(code))
    }

    /// Ends an exchange before libcurl does. Without a failure or a deadline, the exchange is not notified, because its caller was canceled.
    private func end(_ ticket: WireMachine.Ticket, _ failure: TransportFailure? = nil, late part: Deadlines.Part? = nil) {
        machine.left(ticket)
        guard let transfer = transfers.removeValue(forKey: ticket) else { return }
        let isWaiting = transfer.isWaiting
        transfer.end(isLate: part != nil)
        guard var failure = part.map({ TransportFailure($0, transfer.exchange.limits) }) ?? failure else { return }
        if part == .head, isWaiting, transfer.request.isStream {
            failure.message = "no connection is left for another stream; end some streams, or raise the process's limit of file descriptors"
        }
        failure.mayHaveArrived = transfer.hasSent || part != nil && !isWaiting && !library.build.asksBeforeSending
        transfer.exchange.fail(failure)
    }

    // MARK: Callbacks of libcurl

    func headArrived(_ transfer: WireTransfer, isShared: Bool) {
        if transfer.request.isSecure { protocols.responded(transfer, isShared: isShared) }
        machine.headArrived(transfer.ticket, isShared: isShared, at: now)
    }

    /// Reports the transfer at the end of this turn, so that a small response wakes its reader only once.
    func reportLater(_ transfer: WireTransfer) { unreported.append(transfer) }

    /// Continues receiving with the next turn, so that other transfers proceed.
    func continueLater(_ transfer: WireTransfer) { waiting.append(transfer) }

    private func collect() {
        var code: Int32 = 0
        while let context = wire_loop_finished(handle, &code) {
            conclude(Unmanaged<WireTransfer>.fromOpaque(context).takeUnretainedValue(), code)
        }
        report()
    }

    private func report() {
        guard !unreported.isEmpty else { return }
        for transfer in unreported { transfer.report() }
        unreported.removeAll(keepingCapacity: true)
    }

    private func beginAgain(_ transfer: WireTransfer, offeringHTTP2 isOffered: Bool) {
        transfer.end()
        transfer.repeats(offeringHTTP2: isOffered)
        machine.beganAgain(transfer.ticket, at: now)
        begin(transfer.ticket, onFreshConnection: false)
    }

    private func conclude(_ transfer: WireTransfer, _ code: Int32) {
        let (isCut, isFlood) = (transfer.isCut(code), transfer.wasFlooded(code))
        if isCut || isFlood { protocols.broke(transfer, byFlood: isFlood) }
        if isCut, transfer.mayBeginAgain, protocols[transfer.request.origin] == .brokenHTTP2 {
            return beginAgain(transfer, offeringHTTP2: false)
        }
        if isCut { transfer.failCut() }
        if protocols.needsHTTP2(transfer, after: code, library.build) {
            if !transfer.isRepeated { return beginAgain(transfer, offeringHTTP2: true) }
            transfer.failCut()
        }
        switch machine.ended(transfer.ticket) {
        case .ignore, .wait: transfer.end()
        case .beginAgain:
            transfer.end()
            begin(transfer.ticket, onFreshConnection: true)
        case .conclude(let mayHaveArrived):
            transfers[transfer.ticket] = nil
            transfer.conclude(code, mayHaveArrived: mayHaveArrived && !transfer.isUnprocessed)
        }
    }
}
#endif
