public import Foundation
import StoreCore

/// A real HTTP/1.1 origin on 127.0.0.1 for tests and examples, which records what it gets and misbehaves on command.
///
/// ```swift
/// let origin = try LoopbackOrigin()
/// origin.on(.get, "/users") { request in
///     .pages(of: ["Ada", "Grace", "Edsger"], for: request, size: 2).tagged().revalidated(by: request)
/// }
/// origin.on(.get, "/flaky", inTurn: .status(503), .text("well again"))
///
/// // … requests to origin.url …
///
/// origin.goDown()
/// try origin.comeBack()
/// print(origin.requests(to: "/users").count)
/// origin.stop()
/// ```
///
/// One thread serves all connections and runs the handlers, which may therefore wait but must not block. A client that closes its
/// side of a connection counts as gone, even if it would still read.
public final class LoopbackOrigin: Sendable {
    /// Makes the response to a request; cancelled when the client leaves.
    public typealias Handler = @Sendable (Request) async -> Response

    /// The port on 127.0.0.1.
    public let port: UInt16
    /// The address without a path, such as `http://127.0.0.1:8080`.
    public let url: URL

    let service: Service
    let mailbox: Mailbox
    private let thread: JoinableThread
    /// Guards that the thread is joined only once.
    private let isRunning = Lock(true)

    /// Starts an origin; when this returns, connections are accepted.
    ///
    /// - Parameters:
    ///   - port: The port to listen on; 0 for one that is free.
    ///   - limits: How much a request may bring.
    ///   - handler: Answers what no route does; without it that is a 404.
    /// - Throws: `Failure` when the port is taken or the system refuses a socket or a thread.
    public init(
        port: UInt16 = 0, limits: Limits = Limits(), handler: @escaping Handler = { .notFound(for: $0) }
    ) throws(Failure) {
        let listener = try Socket.bound(to: port)
        do throws(Failure) {
            try listener.startListening()
            let port = listener.localPort
            guard let url = URL(string: "http://127.0.0.1:\(port)") else {
                throw Failure(code: .system, description: "port \(port) makes no URL")
            }
            let service = Service(fallback: handler, limits: limits)
            let mailbox = try Mailbox()
            thread = try JoinableThread {
                Reactor(listener: listener, port: port, service: service, mailbox: mailbox).run()
            }
            self.port = port
            self.url = url
            self.service = service
            self.mailbox = mailbox
        } catch {
            listener.hangUp()
            throw error
        }
    }

    deinit {
        stop()
    }

    /// Closes the port and all connections, cancels the handlers, ends the thread and waits for its end; further calls do nothing.
    public func stop() {
        let wasRunning = isRunning.withLock { isRunning in
            defer { isRunning = false }
            return isRunning
        }
        guard wasRunning else { return }
        mailbox.post(.stop)
        thread.join()
    }

    /// Begins an outage: connections are refused, and those that are open have been reset when this returns.
    ///
    /// The port stays reserved. From a handler or a hook the outage begins only after the call has returned.
    public func goDown() {
        // The only failure is that the origin has been stopped, and then it is down already.
        try? ask(Mailbox.Letter.goDown)
    }

    /// Ends an outage: connections to the same port are accepted when this returns.
    ///
    /// - Throws: `Failure` when the origin has been stopped or the port was lost.
    public func comeBack() throws(Failure) {
        try ask(Mailbox.Letter.comeBack)
    }

    /// Has the origin's thread do something, and waits until it has; the thread itself cannot wait for itself.
    func ask(_ letter: (Mailbox.Reply) -> Mailbox.Letter) throws(Failure) {
        let reply = Mailbox.Reply()
        guard mailbox.post(letter(reply)) else { throw .stopped }
        if !thread.isCurrent { try reply.wait() }
    }
}
