/// A client's connection, which handles one request at a time. Lives on the origin's thread and never blocks it.
final class Connection {
    /// An exchange in progress: from the complete request to the last byte of its response.
    private struct Exchange {
        var record: LoopbackOrigin.RecordedRequest
        /// The running handler; canceled when the client leaves.
        let handler: Task<Void, Never>
        var plan: AnswerPlan?
    }

    private enum Phase {
        case open
        /// Everything is sent, and the sending side is closed; further bytes are discarded, because a close would reset the connection.
        case lingering
        case closed
    }

    let number: Int
    let socket: Socket
    private let service: Service
    private let mailbox: Mailbox
    private var phase = Phase.open
    private var parser: RequestParser
    private var outbound: (bytes: ArraySlice<UInt8>, isBody: Bool) = ([], false)
    private var exchange: Exchange?
    private var closesOnNextRequest = false
    /// Whether the deadline closes an idle connection.
    private var closesAtDeadline = false
    /// Whether the connection closes after the response to a malformed request, because no further request can be found.
    private var closesWhenSent = false

    /// The time at which the connection continues even if nothing arrives.
    private var deadline: ContinuousClock.Instant?
    /// The time at which a connection without progress closes; `nil` without a limit, and while a handler runs.
    private var idleEnd: ContinuousClock.Instant?

    /// The next time at which the connection has to act.
    var wake: ContinuousClock.Instant? {
        guard let deadline, let idleEnd else { return deadline ?? idleEnd }
        return min(deadline, idleEnd)
    }

    var isClosed: Bool { phase == .closed }

    /// The events to poll for; a client with too many pipelined requests is not read until its responses are sent.
    var interest: Poller.Interest {
        var interest: Poller.Interest = exchange == nil || parser.queue.count < 1_048_576 ? .reading : []
        if hasOutbound { interest.insert(.writing) }
        return interest
    }

    private var hasOutbound: Bool { !outbound.bytes.isEmpty }

    init(number: Int, socket: Socket, service: Service, mailbox: Mailbox) {
        self.number = number
        self.socket = socket
        self.service = service
        self.mailbox = mailbox
        parser = RequestParser(limits: service.limits)
        noteProgress()
    }
}

// MARK: Events
extension Connection {
    func becameReady(_ readiness: Poller.Readiness, buffer: UnsafeMutableRawBufferPointer) {
        if readiness.canRead {
            read(into: buffer)
        } else if readiness.isBroken {
            leave(.clientLeft)
        }
        if !isClosed, readiness.canWrite { proceed() }
    }

    func deadlinePassed() {
        let now = ContinuousClock.now
        if let idleEnd, idleEnd <= now { return leave(.originLeft) }
        guard let due = deadline, due <= now else { return }
        deadline = nil
        if phase == .lingering || closesAtDeadline { close() } else { proceed() }
    }

    /// Takes the handler's response; drops it if the exchange has ended.
    func answered(_ response: LoopbackOrigin.Response, number: Int) {
        guard let current = exchange, current.record.number == number, current.plan == nil else { return }
        exchange?.plan = AnswerPlan(response, to: current.record.request)
        noteProgress()
        proceed()
    }

    /// Closes the connection because the origin goes down or is stopped.
    func cut(by closing: (Socket) -> Void) { leave(.originLeft, by: closing) }
}

// MARK: Reading
extension Connection {
    private func read(into buffer: UnsafeMutableRawBufferPointer) {
        switch socket.receive(into: buffer) {
        case .wouldBlock: return
        case .ended: leave(.clientLeft)
        case .bytes(let count):
            guard phase == .open, !closesWhenSent else { return }
            parser.append(buffer.prefix(count))
            understand()
        }
    }

    /// Begins the next exchange if its request is complete.
    private func understand() {
        do throws(MalformedRequest) {
            while phase == .open, exchange == nil, let output = try parser.next() {
                switch output {
                case .continueExpected: send(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8))
                case .request(let parsed): begin(parsed)
                }
            }
        } catch {
            refuse(error)
        }
    }

    private func begin(_ parsed: ParsedRequest) {
        if closesAtDeadline {
            closesAtDeadline = false
            deadline = nil
        }
        idleEnd = nil
        let request = service.journal.requestArrived(parsed, on: number)
        guard !closesOnNextRequest else {
            var record = LoopbackOrigin.RecordedRequest(request: request)
            record.ending = .cut
            service.journal.exchangeChanged(record)
            return close()
        }
        let handler = Task(executorPreference: mailbox) { [service, mailbox, number] in
            let response = await service.routes.respond(to: request)
            mailbox.post(.answer(response, number: request.number, connection: number))
        }
        exchange = Exchange(record: LoopbackOrigin.RecordedRequest(request: request), handler: handler)
    }

    private func refuse(_ error: MalformedRequest) {
        service.journal.requestRefused(.init(connection: number, status: error.status, reason: error.reason))
        closesWhenSent = true
        let body = Array("\(error.reason)\n".utf8)
        let fields = "Content-Type: text/plain\r\nContent-Length: \(body.count)\r\nConnection: close\r\n\r\n"
        send(StatusLine.bytes(status: error.status) + Array(fields.utf8) + body)
    }
}

// MARK: Writing
extension Connection {
    /// Sends bytes outside any exchange.
    private func send(_ bytes: [UInt8]) {
        outbound = (outbound.bytes + bytes, false)
        proceed()
    }

    /// Sends the outbound bytes and performs the steps of the response until one has to wait.
    private func proceed() {
        while phase == .open, flush(), deadline == nil {
            if closesWhenSent { return linger() }
            guard let step = exchange?.plan?.next() else { return }
            take(step)
        }
    }

    private func take(_ step: AnswerPlan.Step) {
        switch step {
        case .pause(let duration): deadline = .now + duration
        case .head(let bytes):
            noteStatus()
            outbound = (bytes[...], false)
        case .body(var body, let pace):
            noteStatus()
            outbound = (body.take(upTo: pace.bytes)[...], true)
            if body.count > 0 { exchange?.plan?.putBack(.body(body, pace: pace), after: pace.pause) }
        case .end(let end): finish(end)
        }
    }

    /// Records the status before its bytes are sent, so that a client that has read the response also finds it in the record.
    private func noteStatus() {
        guard let status = exchange?.plan?.status, exchange?.record.status != status else { return }
        exchange?.record.status = status
        if let exchange { service.journal.exchangeChanged(exchange.record) }
    }

    /// Sends the outbound bytes; returns whether all of them are gone.
    private func flush() -> Bool {
        while hasOutbound {
            switch socket.transmit(outbound.bytes) {
            case .bytes(let count):
                outbound.bytes = outbound.bytes.dropFirst(count)
                noteProgress()
                if outbound.isBody { exchange?.record.bodyBytesSent += count }
            case .wouldBlock: return false
            case .ended:
                leave(.clientLeft)
                return false
            }
        }
        return true
    }

    private func finish(_ end: AnswerPlan.End) {
        guard end != .hang else { return }
        conclude(exchange?.plan?.isComplete == true ? .complete : .cut)
        switch end {
        case .keepAlive: understand()
        case .closeOnNextRequest:
            closesOnNextRequest = true
            understand()
        case .closeIdle(let patience):
            deadline = .now + patience
            closesAtDeadline = true
            understand()
        case .close: linger()
        case .hangUp: close()
        case .reset: close { $0.reset() }
        case .hang: break
        }
    }
}

// MARK: Leaving
extension Connection {
    private func leave(_ ending: LoopbackOrigin.RecordedRequest.Ending, by closing: (Socket) -> Void = { $0.hangUp() }) {
        guard !isClosed else { return }
        conclude(ending)
        close(by: closing)
    }

    private func noteProgress() { idleEnd = service.limits.idle.map { .now + $0 } }

    /// Records the end of the current exchange, if any.
    private func conclude(_ ending: LoopbackOrigin.RecordedRequest.Ending) {
        guard let ended = exchange else { return }
        exchange = nil
        noteProgress()
        ended.handler.cancel()
        var record = ended.record
        record.ending = ending
        service.journal.exchangeChanged(record)
    }

    /// Closes the sending side, and gives the client a second to read the response.
    private func linger() {
        socket.finishSending()
        phase = .lingering
        deadline = .now + .seconds(1)
    }

    private func close(by closing: (Socket) -> Void = { $0.hangUp() }) {
        phase = .closed
        (deadline, idleEnd) = (nil, nil)
        closing(socket)
        service.journal.connectionClosed()
    }
}
