public import Foundation
import StoreCore

/// A real HTTP/1.1 origin on 127.0.0.1 for tests and examples, which records requests and misbehaves on command.
///
/// ```swift
/// let origin = try LoopbackOrigin()
/// origin.on(.get, "/users") { request in
///     .pages(of: ["Ada", "Grace", "Edsger"], for: request, size: 2).tagged().revalidated(by: request)
/// }
/// origin.on(.get, "/flaky", inTurn: .status(503), .text("recovered"))
///
/// // … requests to origin.url …
///
/// origin.goDown()
/// try origin.comeBack()
/// print(origin.requests(to: "/users").count)
/// origin.stop()
/// ```
///
/// One thread serves all connections and runs the handlers, which may therefore suspend but must not block. A client that closes its
/// side of a connection counts as gone, even if it would still read.
public final class LoopbackOrigin: Sendable {
    /// Makes the response to a request; canceled when the client leaves.
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

    /// Starts an origin that accepts connections when this initializer returns.
    ///
    /// - Parameters:
    ///   - port: The port to listen on; 0 for a free one.
    ///   - limits: The limits on the size of a request.
    ///   - handler: Responds to requests without a route; by default with 404.
    /// - Throws: `Failure` if the port is taken, or the system refuses a socket or a thread.
    public init(port: UInt16 = 0, limits: Limits = Limits(), handler: @escaping Handler = { .notFound(for: $0) }) throws(Failure) {
        let listener = try Socket.bound(to: port)
        do throws(Failure) {
            try listener.startListening()
            let port = localPort(of: listener.descriptor)
            guard let url = URL(string: "http://127.0.0.1:\(port)") else {
                throw Failure(code: .system, description: "cannot make a URL of port \(port)")
            }
            let service = Service(fallback: handler, limits: limits)
            let mailbox = try Mailbox()
            thread = try JoinableThread { Reactor(listener: listener, port: port, service: service, mailbox: mailbox).run() }
            self.port = port
            self.url = url
            self.service = service
            self.mailbox = mailbox
        } catch {
            listener.hangUp()
            throw error
        }
    }

    deinit { stop() }

    /// Closes the port and all connections, cancels the handlers, and waits for the thread to end; further calls do nothing.
    public func stop() {
        let wasRunning = isRunning.withLock { isRunning in
            defer { isRunning = false }
            return isRunning
        }
        guard wasRunning else { return }
        mailbox.post(.stop)
        thread.join()
    }

    /// Begins an outage: new connections are refused, and open ones have been reset when this method returns.
    ///
    /// The port stays reserved. If a handler or a hook calls this method, the outage begins after the call has returned.
    public func goDown() {
        // The call fails only if the origin has been stopped, and then it is down already.
        try? ask(Mailbox.Letter.goDown)
    }

    /// Ends an outage: the same port accepts connections again when this method returns.
    ///
    /// - Throws: `Failure` if the origin has been stopped, or if the port was lost.
    public func comeBack() throws(Failure) { try ask(Mailbox.Letter.comeBack) }

    /// Posts a letter to the origin's thread and waits for the reply, except on that thread itself.
    func ask(_ letter: (Mailbox.Reply) -> Mailbox.Letter) throws(Failure) {
        let reply = Mailbox.Reply()
        guard mailbox.post(letter(reply)) else { throw .stopped }
        if !thread.isCurrent { try reply.wait() }
    }
}
