import StoreCore

extension LoopbackOrigin {
    /// Answers a method on a path from now on, in place of what answered it before; requests already begun are not affected.
    ///
    /// ```swift
    /// origin.on(.get, "/users/:id") { request in .json(["id": request.parameter("id")]) }
    /// origin.on(.get, "/files/*") { request in .text(request.parameter("*")) }
    /// ```
    ///
    /// Of several patterns that fit, the most specific answers: a word before a parameter, that before `*`. `HEAD` falls back on
    /// `GET`; a path that has routes but none for the method is answered with 405.
    ///
    /// - Parameters:
    ///   - method: The method to answer.
    ///   - pattern: Words, parameters that begin with a colon, and perhaps `*` for all the rest at the end.
    ///   - handler: Makes the response; runs on the origin's own thread, so it may wait with `await` but must not block.
    public func on(_ method: Method, _ pattern: String, _ handler: @escaping Handler) {
        service.routes.set(method, RoutePattern(pattern), handler)
    }

    /// Answers each request with the next of `responses`; the last answers all further ones.
    ///
    /// ```swift
    /// origin.on(.get, "/flaky", inTurn: .status(503), .text("too busy", status: 429), .json([1, 2, 3]))
    /// ```
    public func on(_ method: Method, _ pattern: String, inTurn responses: Response...) {
        let turn = Turn(responses)
        on(method, pattern) { request in turn.next() ?? .notFound(for: request) }
    }

    /// Stops answering a method on a path.
    public func off(_ method: Method, _ pattern: String) {
        service.routes.set(method, RoutePattern(pattern), nil)
    }

    private final class Turn: Sendable {
        /// Guards what is still to be answered; the last one stays.
        private let waiting: Lock<[Response]>

        init(_ responses: [Response]) {
            waiting = Lock(responses.reversed())
        }

        func next() -> Response? {
            waiting.withLock { $0.count > 1 ? $0.removeLast() : $0.last }
        }
    }
}
