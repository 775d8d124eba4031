internal import Foundation
internal import StoreCore

/// One call on its way, with its attempts, redirects and refreshes, until there is an answer of success or an error.
///
/// An object: each of its steps waits for the next, and a frame that holds a reference is smaller than one that holds host and request.
final class RouteCall: Sendable {
    private let sending: RouteSending
    private let delivery: RouteSending.Delivery
    /// When all must be over.
    private let deadline: MonotonicInstant?
    /// Whether nothing takes time but exchanges and the waiting between them, which keep the deadline by themselves. Watching over all of a
    /// call takes a group of tasks, which costs as much as the rest of it.
    private let keepsOwnDeadline: Bool

    init(_ sending: RouteSending, _ delivery: RouteSending.Delivery) {
        self.sending = sending
        self.delivery = delivery
        deadline = sending.timeouts.overall.map { sending.started.advanced(by: $0) }
        let host = sending.host
        // A stream may outlive the call.
        keepsOwnDeadline =
            delivery == .whole && host.transport is URLSessionTransport && host.authorization == nil && host.requestInterceptors.isEmpty
            && host.responseInterceptors.isEmpty
    }

    // MARK: Attempts

    /// Sends until there is a success, or a failure that is final.
    func run() async throws -> RouteSending.Outcome {
        do {
            if keepsOwnDeadline { return try await attempts() }
            return try await within(deadline, of: sending.host.time) { [self] in try await attempts() }
        } catch is DeadlinePassed {
            throw sending.error(.overall)
        } catch let error as RemoteError {
            throw error
        } catch {
            throw sending.error(for: error, sending.request)
        }
    }

    private func attempts() async throws -> RouteSending.Outcome {
        let decision = RetryDecision(policy: sending.host.retry, deadline: deadline)
        var attempt = 1
        while true {
            do {
                var outcome = try await authorizedAttempt()
                outcome.response.attempts = attempt
                outcome.response.duration = sending.started.duration(to: sending.host.time.now)
                return outcome
            } catch var failure as RemoteError {
                failure.attempts = attempt
                let (time, now) = (sending.host.time, sending.host.time.now)
                guard let delay = decision.delay(after: failure, attempt: attempt, now: now, unit: sending.host.random()) else {
                    throw failure
                }
                sending.host.log?.note(.waiting(delay), failure.operation, attempt: attempt)
                try await time.sleep(until: now.advanced(by: delay))
                attempt += 1
            }
        }
    }

    // MARK: Credentials

    private func authorizedAttempt() async throws -> RouteSending.Outcome {
        guard let authorization = sending.host.authorization, sending.options.requiresAuth ?? true else {
            return try success(of: await exchange(sending.request))
        }
        var isRenewed = false
        while true {
            var request = sending.request
            let generation: Int
            do {
                generation = try await authorization.apply(&request.fields)
            } catch {
                throw sending.error(for: error, request, or: .refreshFailed)
            }
            let received = try await exchange(request)
            // 403 says that the one who is known may not: other credentials for the same one would not help.
            // Nor does a 401 of another origin, which a redirect led to and which never saw these.
            let isOurs = WebOrigin(of: received.request.url) == WebOrigin(of: request.url)
            guard received.head.status == 401, isOurs, !isRenewed, request.body.isReplayable else { return try success(of: received) }
            do {
                guard try await authorization.renew(generation, sending.host.unauthenticated) else { return try success(of: received) }
            } catch {
                throw sending.error(for: error, request, or: .refreshFailed)
            }
            isRenewed = true
        }
    }

    // MARK: One exchange, redirects included

    /// An answer, whatever its status.
    struct Received {
        var head: HTTPHead
        var body = Data()
        var stream: HTTPReplyBody?
        var request: HTTPRequest
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
            throw sending.error(for: error, first)
        }
    }

    /// Waits for a place among the host's exchanges.
    private func permit() async throws -> ExchangeGate.Permit {
        let gate = sending.host.gate
        try Task.checkCancellation()
        if let permit = gate.tryToEnter() { return permit }
        return try await within(keepsOwnDeadline ? deadline : nil, of: sending.host.time) { try await gate.enter() }
    }

    private func follow(_ first: HTTPRequest, _ permit: ExchangeGate.Permit) async throws -> Received {
        let policy = RedirectPolicy(limit: sending.host.limits.redirects)
        var request = first
        var redirects = 0
        while true {
            sending.host.log?.sent(request)
            let began = sending.host.time.now
            let reply = try await sending.host.transport.perform(request, limits: limits())
            sending.host.log?.received(reply.head, to: request, after: began.duration(to: sending.host.time.now))
            switch policy.decide(reply.head, to: request, after: redirects) {
            case .follow(let next):
                // A short body is read, since letting go of it would cost the connection.
                if let length = reply.head.fields["Content-Length"].flatMap({ Int($0) }), length <= 65_536 {
                    _ = try await reply.body.collect()
                }
                request = next
                redirects += 1
            case .refuse(let code, let message):
                throw sending.error(.transport, code, request, message, reply.head)
            case .stay:
                return try await received(reply, to: request, permit)
            }
        }
    }

    /// Reads as much of an answer as is wanted, and shows it to the interceptors.
    private func received(
        _ reply: HTTPReply, to request: HTTPRequest, _ permit: ExchangeGate.Permit
    ) async throws -> Received {
        var received = Received(head: reply.head, request: request)
        if !sending.isSuccess(reply.head.status) {
            received.body = try await reply.body.beginning(RemoteError.keptBodyBytes)
        } else if delivery == .whole {
            received.body = try await reply.body.collect()
        } else {
            received.stream = reply.body
        }
        if !sending.host.responseInterceptors.isEmpty {
            var answer = HTTPAnswer(head: received.head, body: received.body)
            for interceptor in sending.host.responseInterceptors.reversed() {
                do {
                    try await interceptor.intercept(&answer, to: request)
                } catch {
                    throw sending.error(for: error, request, or: .interceptorFailed)
                }
            }
            received.head = answer.head
            received.body = answer.body
        }
        sending.host.log?.completed(received.head, body: received.body, of: request)
        if let stream = received.stream { stream.holder.exchange.onEnd { permit.release() } }
        return received
    }

    private func intercepted(_ original: HTTPRequest) async throws -> HTTPRequest {
        var request = original
        for interceptor in sending.host.requestInterceptors {
            do {
                try await interceptor.intercept(&request)
            } catch {
                throw sending.error(for: error, original, or: .interceptorFailed)
            }
        }
        guard let origin = WebOrigin(of: request.url), origin == WebOrigin(of: original.url) else {
            let fault = RouteFault(
                .foreignOrigin, in: "address", "an interceptor changed whom the request goes to; use another host for that")
            throw sending.error(for: fault, original)
        }
        if let field = request.fields.fields.first(where: { ReservedFields.contains($0.name) }) {
            let fault = RouteFault(.reservedField, in: "header \(field.name)", "only the library writes this field; leave it out")
            throw sending.error(for: fault, original)
        }
        let isSecret =
            request.fields.fields.contains { ExchangeLog.secretFields.contains($0.name.lowercased()) }
            || carriesCredentials(request, original)
        if isSecret, origin.scheme == .http, !origin.isLoopback, !sending.host.allowsInsecureCredentials {
            throw sending.error(
                .build, .insecureCredentials, original,
                "credentials would travel without encryption; use https, or set allowsInsecureCredentials where that is right")
        }
        return request
    }

    /// Whether the host's authorization wrote anything, be it called `Authorization` or not.
    private func carriesCredentials(_ request: HTTPRequest, _ original: HTTPRequest) -> Bool {
        original.fields != sending.request.fields
    }

    private func limits() -> ExchangeLimits {
        let timeouts = sending.timeouts
        var limits = ExchangeLimits(
            head: timeouts.head, idle: timeouts.idle, attempt: timeouts.attempt,
            deadline: keepsOwnDeadline ? deadline : nil,
            bodyBytes: sending.options.responseLimit ?? (delivery == .whole ? sending.host.limits.responseBytes : sending.streamBytes),
            memoryBytes: sending.host.limits.memoryBytes, spillBytes: sending.host.limits.spillBytes, time: sending.host.time)
        limits.onSent = sending.onSent
        return limits
    }

    // MARK: Conclusions

    private func success(of received: Received) throws(RemoteError) -> RouteSending.Outcome {
        let status = received.head.status
        guard sending.isSuccess(status) else {
            let name = StatusName.of(status).map { "\(status) \($0)" } ?? "\(status)"
            var failure = sending.error(
                .status, .badStatus, received.request, "the server answered \(name); \(StatusName.advice(for: status))", received.head)
            failure.body = received.body.prefix(RemoteError.keptBodyBytes)
            failure.retryAfter = RetryAfter.delay(in: received.head.fields, now: sending.host.time.date)
            throw failure
        }
        return RouteSending.Outcome(
            response: RemoteResponse(value: (), head: received.head, attempts: 1, duration: .zero), body: received.body,
            stream: received.stream, request: received.request)
    }
}
