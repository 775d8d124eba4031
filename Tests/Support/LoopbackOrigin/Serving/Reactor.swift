/// The origin's thread: waits for sockets, letters, and deadlines, and serves the ready ones.
///
/// Created on that thread and confined to it, so its state needs no guard; all external input arrives as letters.
final class Reactor {
    private enum Phase {
        case up
        case down
        case stopped
    }

    private let service: Service
    private let mailbox: Mailbox
    private let port: UInt16
    /// The bound socket: listens while the origin is up, and reserves the port while it is down.
    private var listener: Socket?
    private var phase = Phase.up
    private var poller = Poller()
    private var connections: [Int: Connection] = [:]
    /// The connections with a deadline.
    private var deadlines: [Int: ContinuousClock.Instant] = [:]
    /// The time of the next attempt to accept after the process ran out of descriptors.
    private var acceptsAgain: ContinuousClock.Instant?

    init(listener: Socket, port: UInt16, service: Service, mailbox: Mailbox) {
        self.listener = listener
        self.port = port
        self.service = service
        self.mailbox = mailbox
    }

    /// Serves until a letter stops the thread.
    func run() {
        poller.watch(mailbox.descriptor, for: .reading, as: .mailbox)
        listener.map { poller.watch($0.descriptor, for: .reading, as: .listener) }
        withUnsafeTemporaryAllocation(byteCount: 65_536, alignment: 16) { buffer in
            while phase != .stopped {
                for readiness in poller.wait(for: timeout) { serve(readiness, buffer: buffer) }
                keepDeadlines()
            }
        }
        cutConnections { $0.hangUp() }
        listener?.stopListening()
        for letter in mailbox.close() { returnToSender(letter) }
        service.journal.close()
    }

    /// The time until the next deadline; `nil` without one.
    private var timeout: Duration? {
        [deadlines.values.min(), acceptsAgain].compactMap(\.self).min().map { ContinuousClock.now.duration(to: $0) }
    }

    private func serve(_ readiness: Poller.Readiness, buffer: UnsafeMutableRawBufferPointer) {
        switch readiness.token {
        case .mailbox: readLetters()
        case .listener: acceptConnections()
        case .connection(let number): serve(number) { $0.becameReady(readiness, buffer: buffer) }
        }
    }

    /// Passes an event to a connection, and updates its deadline and interest.
    private func serve(_ number: Int, _ event: (Connection) -> Void) {
        guard let connection = connections[number] else { return }
        event(connection)
        deadlines[number] = connection.wake
        if connection.isClosed {
            connections[number] = nil
            poller.forget(.connection(number))
        } else {
            poller.watch(connection.socket.descriptor, for: connection.interest, as: .connection(number))
        }
    }

    private func keepDeadlines() {
        let now = ContinuousClock.now
        for (number, _) in deadlines.filter({ $0.value <= now }) { serve(number) { $0.deadlinePassed() } }
        if let moment = acceptsAgain, moment <= now {
            acceptsAgain = nil
            if phase == .up, let listener { poller.watch(listener.descriptor, for: .reading, as: .listener) }
        }
    }

    private func acceptConnections() {
        while phase == .up, let listener {
            switch listener.acceptConnection() {
            case .noConnection: return
            case .exhausted:
                poller.watch(listener.descriptor, for: [], as: .listener)
                acceptsAgain = .now + .milliseconds(10)
                return
            case .connection(let socket):
                guard connections.count < service.limits.connections else {
                    socket.hangUp()
                    continue
                }
                let number = service.journal.connectionOpened()
                connections[number] = Connection(number: number, socket: socket, service: service, mailbox: mailbox)
                deadlines[number] = connections[number]?.wake
                poller.watch(socket.descriptor, for: .reading, as: .connection(number))
            }
        }
    }
}

// MARK: Letters
extension Reactor {
    private func readLetters() {
        for letter in mailbox.empty() {
            switch letter {
            case .job(let job): mailbox.run(job)
            case .answer(let response, let number, let connection): serve(connection) { $0.answered(response, number: number) }
            case .goDown(let reply):
                goDown()
                reply.send()
            case .comeBack(let reply): reply.send(comeBack())
            case .settle(let reply): reply.send()
            case .stop: phase = .stopped
            }
        }
    }

    /// Handles a letter that arrives too late: a job must still run, and a reply must still be sent.
    private func returnToSender(_ letter: Mailbox.Letter) {
        switch letter {
        case .job(let job): mailbox.runElsewhere(job)
        case .goDown(let reply), .comeBack(let reply), .settle(let reply): reply.send(.stopped)
        case .answer, .stop: return
        }
    }

    private func goDown() {
        guard phase == .up else { return }
        phase = .down
        poller.forget(.listener)
        listener?.stopListening()
        // The bound socket reserves the port. If the port is lost in between, coming back fails with the reason.
        listener = try? Socket.bound(to: port)
        cutConnections { $0.reset() }
    }

    private func comeBack() -> LoopbackOrigin.Failure? {
        guard phase == .down else { return nil }
        do throws(LoopbackOrigin.Failure) {
            let socket = if let listener { listener } else { try Socket.bound(to: port) }
            listener = socket
            try socket.startListening()
            poller.watch(socket.descriptor, for: .reading, as: .listener)
            phase = .up
            return nil
        } catch {
            return error
        }
    }

    private func cutConnections(by closing: (Socket) -> Void) { for number in connections.keys { serve(number) { $0.cut(by: closing) } } }
}
