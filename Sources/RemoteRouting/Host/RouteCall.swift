internal import Foundation
internal import StoreCore
internal import Wire

/// One call on its way, with its attempts, redirects and refreshes, until there is an answer of success or an error.
///
/// Each of its steps waits for the next, so that their frames are what a call under way costs: this is an object, since a frame that holds
/// a reference is smaller than one that holds host and request, and what is decided between two waits stands in functions that do not wait
/// and are not inlined, whose frames are gone when they return.
final class RouteCall: Sendable {
    private let sending: RouteSending
    private let delivery: RouteSending.Delivery
    /// When all must be over.
    private let deadline: MonotonicInstant?
    /// Whether nothing takes time but exchanges and the waiting between them, which keep the deadline by themselves. Watching over all of a
    /// call takes a group of tasks, which costs as much as the rest of it.
    private let keepsOwnDeadline: Bool
    /// Those of each exchange.
    private let limits: ExchangeLimits

    /// Not inlined: what a request is built with would lie in the frame of its caller until the answer is there.
    @inline(never)
    convenience init(_ route: some Routable, at host: RemoteHost, _ delivery: RouteSending.Delivery) throws(RemoteError) {
        self.init(try RouteSending(route, at: host), delivery)
    }

    init(_ sending: RouteSending, _ delivery: RouteSending.Delivery) {
        self.sending = sending
        self.delivery = delivery
        let (host, timeouts) = (sending.host, sending.timeouts)
        deadline = timeouts.overall.map { sending.started.advanced(by: $0) }
        // A stream may outlive the call.
        keepsOwnDeadline =
            delivery == .whole && RouteCall.keepsDeadlines(host.transport) && host.authorization == nil && host.requestInterceptors.isEmpty
            && host.responseInterceptors.isEmpty
        var limits = ExchangeLimits(
            head: timeouts.head, idle: timeouts.idle, attempt: timeouts.attempt, deadline: keepsOwnDeadline ? deadline : nil,
            bodyBytes: sending.options.responseLimit ?? (delivery == .whole ? host.limits.responseBytes : sending.streamBytes),
            memoryBytes: host.limits.memoryBytes, spillBytes: host.limits.spillBytes, time: host.time)
        limits.onSent = sending.onSent
        self.limits = limits
    }

    /// Whether a transport ends every exchange at its deadline, as only those of this module are known to.
    private static func keepsDeadlines(_ transport: any Transport) -> Bool {
        #if os(Linux)
        transport is CurlTransport || transport is URLSessionTransport
        #else
        transport is URLSessionTransport
        #endif
    }

    /// What is sent, before credentials and interceptors.
    var request: HTTPRequest { sending.request }

    // MARK: Attempts

    /// Sends until there is a success, or a failure that is final.
    func run() async throws -> RouteSending.Outcome {
        do {
            if keepsOwnDeadline { return try await attempts() }
            return try await within(deadline, of: sending.host.time) { [self] in try await attempts() }
        } catch {
            throw failure(error)
        }
    }

    private func attempts() async throws -> RouteSending.Outcome {
        var attempt = 1
        while true {
            do {
                return outcome(of: try await authorizedAttempt(), attempt)
            } catch {
                let next = try nextAttempt(after: error, attempt)
                try await sending.host.time.sleep(until: next)
                attempt += 1
            }
        }
    }

    /// When the next attempt begins; throws what is final.
    @inline(never)
    private func nextAttempt(after error: any Error, _ attempt: Int) throws -> MonotonicInstant {
        guard var failure = error as? RemoteError else { throw error }
        failure.attempts = attempt
        let host = sending.host
        let now = host.time.now
        let decision = RetryDecision(policy: host.retry, deadline: deadline)
        guard let delay = decision.delay(after: failure, attempt: attempt, now: now, unit: host.random()) else { throw failure }
        host.log?.note(.waiting(delay), failure.operation, attempt: attempt)
        return now.advanced(by: delay)
    }

    // MARK: Credentials

    /// One attempt, whose answer is one of success.
    private func authorizedAttempt() async throws -> Received {
        guard let authorization = sending.host.authorization, sending.options.requiresAuth ?? true else {
            return try success(await exchange(sending.request))
        }
        return try await attempt(authorizedBy: authorization)
    }

    @inline(never)
    private func attempt(authorizedBy authorization: Authorization) async throws -> Received {
        var request = sending.request
        let generation = try await apply(authorization, to: &request)
        let received = try await exchange(request)
        guard isRejected(received, request), try await renew(authorization, generation, request) else { return try success(received) }
        request = sending.request
        _ = try await apply(authorization, to: &request)
        return try success(await exchange(request))
    }

    private func apply(_ authorization: Authorization, to request: inout HTTPRequest) async throws -> Int {
        do {
            return try await authorization.apply(&request.fields)
        } catch {
            throw failure(error, request, or: .refreshFailed)
        }
    }

    @inline(never)
    private func renew(_ authorization: Authorization, _ generation: Int, _ request: HTTPRequest) async throws -> Bool {
        do {
            return try await authorization.renew(generation, sending.host.unauthenticated)
        } catch {
            throw failure(error, request, or: .refreshFailed)
        }
    }

    /// Whether other credentials may help.
    private func isRejected(_ received: Received, _ request: HTTPRequest) -> Bool {
        // 403 says that the one who is known may not: other credentials for the same one would not help.
        // Nor does a 401 of another origin, which a redirect led to and which never saw these.
        received.head.status == 401 && request.body.isReplayable && WebOrigin(of: received.request.url) == WebOrigin(of: request.url)
    }

    // MARK: One exchange, redirects included

    /// An answer, whatever its status.
    private final class Received: Sendable {
        let head: HTTPHead
        let body: Data
        let stream: HTTPReplyBody?
        let request: HTTPRequest

        init(_ answer: HTTPAnswer, _ stream: HTTPReplyBody?, to request: HTTPRequest) {
            head = answer.head
            body = answer.body
            self.stream = stream
            self.request = request
        }
    }

    private func exchange(_ original: HTTPRequest) async throws -> Received {
        let first = try await intercepted(original)
        let permit = try await permit()
        do {
            let received = try await follow(first, permit)
            // What is streamed holds its place until it has ended.
            if received.stream == nil { permit.release() }
            return received
        } catch {
            permit.release()
            throw failure(error, first)
        }
    }

    /// Waits for a place among the host's exchanges.
    private func permit() async throws -> ExchangeGate.Permit {
        let gate = sending.host.gate
        if let permit = gate.tryToEnter() { return permit }
        return try await within(keepsOwnDeadline ? deadline : nil, of: sending.host.time) { try await gate.enter() }
    }

    private func follow(_ first: HTTPRequest, _ permit: ExchangeGate.Permit) async throws -> Received {
        var request = first
        var redirects = 0
        while true {
            // Before each request, a redirect's too: a transport of one's own need not look.
            try Task.checkCancellation()
            let began = willSend(request)
            let reply = try await sending.host.transport.perform(request, limits: limits)
            guard let next = try redirection(by: reply.head, began, request, after: redirects) else {
                return try await received(reply, to: request, permit)
            }
            // A short body is read, since letting go of it would cost the connection.
            if let length = reply.head.fields["Content-Length"].flatMap({ Int($0) }), length <= 65_536 {
                // How it ends does not matter: the head is all that counts. A canceled call ends before the next request.
                _ = try? await reply.body.collect()
            }
            request = next
            redirects += 1
        }
    }

    /// Tells the log, and when that was.
    private func willSend(_ request: HTTPRequest) -> MonotonicInstant {
        sending.host.log?.sent(request)
        return sending.host.time.now
    }

    /// Where an answer redirects to; `nil` where it stands as it is.
    @inline(never)
    private func redirection(
        by head: HTTPHead, _ began: MonotonicInstant, _ request: HTTPRequest, after redirects: Int
    ) throws(RemoteError) -> HTTPRequest? {
        sending.host.log?.received(head, to: request, after: began.duration(to: sending.host.time.now))
        switch RedirectPolicy(limit: sending.host.limits.redirects).decide(head, to: request, after: redirects) {
        case .stay: return nil
        case .follow(let next): return next
        case .refuse(let code, let message): throw sending.error(.transport, code, request, message, head)
        }
    }

    /// Reads as much of an answer as is wanted, and shows it to the interceptors.
    private func received(
        _ reply: HTTPReply, to request: HTTPRequest, _ permit: ExchangeGate.Permit
    ) async throws -> Received {
        var answer = HTTPAnswer(head: reply.head)
        var stream: HTTPReplyBody?
        if !sending.isSuccess(reply.head.status) {
            answer.body = try await reply.body.beginning(RemoteError.keptBodyBytes)
        } else if delivery == .whole {
            answer.body = try await reply.body.collect()
        } else {
            stream = reply.body
        }
        for interceptor in sending.host.responseInterceptors.reversed() {
            do {
                try await interceptor.intercept(&answer, to: request)
            } catch {
                throw failure(error, request, or: .interceptorFailed)
            }
        }
        sending.host.log?.completed(answer.head, body: answer.body, of: request)
        stream?.holder.exchange.onEnd { permit.release() }
        return Received(answer, stream, to: request)
    }

    private func intercepted(_ original: HTTPRequest) async throws -> HTTPRequest {
        var request = original
        for interceptor in sending.host.requestInterceptors {
            do {
                try await interceptor.intercept(&request)
            } catch {
                throw failure(error, original, or: .interceptorFailed)
            }
        }
        try check(request, madeOf: original)
        return request
    }

    /// Throws where interceptors made of a request what may not be sent.
    @inline(never)
    private func check(_ request: HTTPRequest, madeOf original: HTTPRequest) throws(RemoteError) {
        guard let origin = WebOrigin(of: request.url), request.url == original.url || origin == WebOrigin(of: original.url) else {
            let fault = RouteFault(
                .foreignOrigin, in: "address", "an interceptor changed whom the request goes to; use another host for that")
            throw sending.error(for: fault, original)
        }
        if let field = request.fields.fields.first(where: { ReservedFields.contains($0.name) }) {
            let fault = RouteFault(.reservedField, in: "header \(field.name)", "only the library writes this field; leave it out")
            throw sending.error(for: fault, original)
        }
        guard origin.scheme == .http, !origin.isLoopback, !sending.host.allowsInsecureCredentials else { return }
        // What the host's authorization wrote is secret, be it called `Authorization` or not.
        let isSecret =
            original.fields != sending.request.fields
            || request.fields.fields.contains { ExchangeLog.secretFields.contains($0.name.lowercased()) }
        if isSecret {
            throw sending.error(
                .build, .insecureCredentials, original,
                "credentials would travel without encryption; use https, or set allowsInsecureCredentials where that is right")
        }
    }

    // MARK: Conclusions

    /// An answer that is one of success; throws where it is another one.
    private func success(_ received: Received) throws(RemoteError) -> Received {
        let status = received.head.status
        if sending.isSuccess(status) { return received }
        let name = StatusName.of(status).map { "\(status) \($0)" } ?? "\(status)"
        var failure = sending.error(
            .status, .badStatus, received.request, "the server answered \(name); \(StatusName.advice(for: status))", received.head)
        failure.body = received.body.prefix(RemoteError.keptBodyBytes)
        failure.retryAfter = RetryAfter.delay(in: received.head.fields, now: sending.host.time.date)
        throw failure
    }

    private func outcome(of received: Received, _ attempts: Int) -> RouteSending.Outcome {
        let duration = sending.started.duration(to: sending.host.time.now)
        return RouteSending.Outcome(
            response: RemoteResponse(value: (), head: received.head, attempts: attempts, duration: duration), body: received.body,
            stream: received.stream, request: received.request)
    }

    /// The error for what a call ends with.
    @inline(never)
    private func failure(_ thrown: any Error) -> RemoteError {
        thrown is DeadlinePassed ? sending.error(.overall) : failure(thrown, sending.request)
    }

    /// The error for what was thrown on the way.
    @inline(never)
    private func failure(_ thrown: any Error, _ request: HTTPRequest, or code: RemoteError.Code? = nil) -> RemoteError {
        sending.error(for: thrown, request, or: code)
    }
}
