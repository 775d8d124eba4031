import StoreCore

extension LoopbackOrigin {
    /// Sets the handler of a method and a path pattern, in place of an earlier one; requests in progress are unaffected.
    ///
    /// ```swift
    /// origin.on(.get, "/users/:id") { request in .json(["id": request.parameter("id")]) }
    /// origin.on(.get, "/files/*") { request in .text(request.parameter("*")) }
    /// ```
    ///
    /// The most specific matching pattern is used: a word takes precedence over a parameter, and a parameter over `*`. `HEAD` falls back to
    /// `GET`. A path with routes for other methods only leads to 405.
    ///
    /// - Parameters:
    ///   - method: The method.
    ///   - pattern: Words, parameters that begin with a colon, and optionally `*` at the end for the rest.
    ///   - handler: Makes the response; runs on the origin's own thread, so it may suspend but must not block.
    public func on(_ method: Method, _ pattern: String, _ handler: @escaping Handler) {
        service.routes.set(method, RoutePattern(pattern), handler)
    }

    /// Responds to each request with the next of `responses`; the last one repeats.
    ///
    /// ```swift
    /// origin.on(.get, "/flaky", inTurn: .status(503), .text("too busy", status: 429), .json([1, 2, 3]))
    /// ```
    public func on(_ method: Method, _ pattern: String, inTurn responses: Response...) {
        let sequence = ResponseSequence(responses)
        on(method, pattern) { request in sequence.next() ?? .notFound(for: request) }
    }

    private final class ResponseSequence: Sendable {
        /// Guards the remaining responses; the last one stays.
        private let waiting: Lock<[Response]>

        init(_ responses: [Response]) { waiting = Lock(responses.reversed()) }

        func next() -> Response? { waiting.withLock { $0.count > 1 ? $0.removeLast() : $0.last } }
    }
}
