internal import Foundation
internal import StoreCore

/// One call: a route on its way, with its attempts, redirects and refreshes, until there is an answer of success or an error.
struct RouteSending: Sendable {
    /// How the body of a success is wanted.
    enum Delivery: Sendable {
        /// All of it, within the limit.
        case whole
        /// Piece by piece.
        case stream
    }

    /// An answer of success.
    struct Outcome: Sendable {
        var response: RemoteResponse<Void>
        /// The whole body; empty where it is streamed.
        var body = Data()
        /// The body still coming, where that was wanted.
        var stream: HTTPReplyBody?
        /// What was sent last, with everything that interceptors and redirects made of it.
        var request: HTTPRequest
    }

    var host: RemoteHost
    var request: HTTPRequest
    let options: RouteOptions
    var started: MonotonicInstant
    /// Told of the bytes sent.
    var onSent: (@Sendable (_ sent: Int64, _ total: Int64?) -> Void)?
    /// How many bytes a streamed answer may have.
    var streamBytes = Int.max
    /// Other statuses that are answers and no failures.
    var acceptedStatuses: Set<Int> = []

    /// Builds the request.
    ///
    /// - Throws: ``RemoteError`` of the stage ``RemoteError/Stage/build``.
    init(_ route: some Routable, at host: RemoteHost) throws(RemoteError) {
        self.host = host
        options = route.options
        started = host.time.now
        do throws(RouteFault) {
            var defaults: Headers = ["Accept": "application/json, */*;q=0.1"]
            defaults.append(contentsOf: host.defaults)
            let builder = RequestBuilder(
                origin: try host.configuration.origin(), basePath: host.configuration.basePath, defaults: defaults,
                parameterStyle: host.parameterStyle, makeJSONEncoder: host.makeEncoder)
            request = try builder.request(for: route)
        } catch {
            let operation = "\(route.method.rawValue) \(host.configuration.name)"
            throw RemoteError(.build, .invalidRoute, operation: operation, "nothing was sent: \(error.message)", underlyingError: error)
        }
        if options.isConditional { acceptedStatuses.insert(304) }
    }

    private var timeouts: RouteOptions.Timeouts {
        let own = options.timeouts
        let ours = host.timeouts
        return RouteOptions.Timeouts(
            head: own.head ?? ours.head, idle: own.idle ?? ours.idle, attempt: own.attempt ?? ours.attempt,
            overall: own.overall ?? ours.overall)
    }

    // MARK: Attempts

    /// Sends until there is a success, or a failure that is final.
    func run(_ delivery: Delivery) async throws -> Outcome {
        let deadline = timeouts.overall.map { started.advanced(by: $0) }
        do {
            return try await within(deadline, of: host.time) { try await attempts(delivery, until: deadline) }
        } catch is DeadlinePassed {
            throw error(.overall)
        } catch let error as RemoteError {
            throw error
        } catch {
            throw self.error(for: error, request)
        }
    }

    private func attempts(_ delivery: Delivery, until deadline: MonotonicInstant?) async throws -> Outcome {
        let decision = RetryDecision(policy: host.retry, deadline: deadline)
        var attempt = 1
        while true {
            do {
                var outcome = try await authorizedAttempt(delivery, until: deadline)
                outcome.response.attempts = attempt
                outcome.response.duration = started.duration(to: host.time.now)
                return outcome
            } catch var failure as RemoteError {
                failure.attempts = attempt
                guard let delay = decision.delay(after: failure, attempt: attempt, now: host.time.now, unit: host.random()) else {
                    throw failure
                }
                host.log?.note(.waiting(delay), failure.operation, attempt: attempt)
                try await host.time.sleep(until: host.time.now.advanced(by: delay))
                attempt += 1
            }
        }
    }

    // MARK: Credentials

    private func authorizedAttempt(_ delivery: Delivery, until deadline: MonotonicInstant?) async throws -> Outcome {
        guard let authorization = host.authorization, options.requiresAuth ?? true else {
            return try success(of: await exchange(request, delivery, until: deadline))
        }
        var isRenewed = false
        while true {
            var request = request
            let generation: Int
            do {
                generation = try await authorization.apply(&request.fields)
            } catch {
                throw self.error(for: error, request, or: .refreshFailed)
            }
            let received = try await exchange(request, delivery, until: deadline)
            // 403 says that the one who is known may not: other credentials for the same one would not help.
            // Nor does a 401 of another origin, which a redirect led to and which never saw these.
            let isOurs = WebOrigin(of: received.request.url) == WebOrigin(of: request.url)
            guard received.head.status == 401, isOurs, !isRenewed, request.body.isReplayable else { return try success(of: received) }
            do {
                guard try await authorization.renew(generation, host.unauthenticated) else { return try success(of: received) }
            } catch {
                throw self.error(for: error, request, or: .refreshFailed)
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

    private func exchange(_ original: HTTPRequest, _ delivery: Delivery, until deadline: MonotonicInstant?) async throws -> Received {
        let first = try await intercepted(original)
        let permit = try await host.gate.enter()
        do {
            let received = try await follow(first, delivery, until: deadline, permit)
            // What is streamed holds its place until it has ended.
            if received.stream == nil { permit.release() }
            return received
        } catch {
            permit.release()
            throw self.error(for: error, first)
        }
    }

    private func follow(
        _ first: HTTPRequest, _ delivery: Delivery, until deadline: MonotonicInstant?, _ permit: ExchangeGate.Permit
    ) async throws -> Received {
        let policy = RedirectPolicy(limit: host.limits.redirects)
        var request = first
        var redirects = 0
        while true {
            host.log?.sent(request)
            let began = host.time.now
            let reply = try await host.transport.perform(request, limits: limits(delivery, until: deadline))
            host.log?.received(reply.head, to: request, after: began.duration(to: host.time.now))
            switch policy.decide(reply.head, to: request, after: redirects) {
            case .follow(let next):
                // A short body is read, since letting go of it would cost the connection.
                if let length = reply.head.fields["Content-Length"].flatMap({ Int($0) }), length <= 65_536 {
                    _ = try await reply.body.collect()
                }
                request = next
                redirects += 1
            case .refuse(let code, let message):
                throw error(.transport, code, request, message, reply.head)
            case .stay:
                return try await received(reply, to: request, delivery, permit)
            }
        }
    }

    /// Reads as much of an answer as is wanted, and shows it to the interceptors.
    private func received(
        _ reply: HTTPReply, to request: HTTPRequest, _ delivery: Delivery, _ permit: ExchangeGate.Permit
    ) async throws -> Received {
        var received = Received(head: reply.head, request: request)
        if !isSuccess(reply.head.status) {
            received.body = try await reply.body.beginning(RemoteError.keptBodyBytes)
        } else if delivery == .whole {
            received.body = try await reply.body.collect()
        } else {
            received.stream = reply.body
        }
        if !host.responseInterceptors.isEmpty {
            var answer = HTTPAnswer(head: received.head, body: received.body)
            for interceptor in host.responseInterceptors.reversed() {
                do {
                    try await interceptor.intercept(&answer, to: request)
                } catch {
                    throw self.error(for: error, request, or: .interceptorFailed)
                }
            }
            received.head = answer.head
            received.body = answer.body
        }
        host.log?.completed(received.head, body: received.body, of: request)
        if let stream = received.stream { stream.holder.exchange.onEnd { permit.release() } }
        return received
    }

    private func intercepted(_ original: HTTPRequest) async throws -> HTTPRequest {
        var request = original
        for interceptor in host.requestInterceptors {
            do {
                try await interceptor.intercept(&request)
            } catch {
                throw self.error(for: error, original, or: .interceptorFailed)
            }
        }
        guard let origin = WebOrigin(of: request.url), origin == WebOrigin(of: original.url) else {
            let fault = RouteFault(
                .foreignOrigin, in: "address", "an interceptor changed whom the request goes to; use another host for that")
            throw error(for: fault, original)
        }
        if let field = request.fields.fields.first(where: { ReservedFields.contains($0.name) }) {
            let fault = RouteFault(.reservedField, in: "header \(field.name)", "only the library writes this field; leave it out")
            throw error(for: fault, original)
        }
        let isSecret =
            request.fields.fields.contains { ExchangeLog.secretFields.contains($0.name.lowercased()) }
            || carriesCredentials(request, original)
        if isSecret, origin.scheme == .http, !origin.isLoopback, !host.allowsInsecureCredentials {
            throw error(
                .build, .insecureCredentials, original,
                "credentials would travel without encryption; use https, or set allowsInsecureCredentials where that is right")
        }
        return request
    }

    /// Whether the host's authorization wrote anything, be it called `Authorization` or not.
    private func carriesCredentials(_ request: HTTPRequest, _ original: HTTPRequest) -> Bool {
        original.fields != self.request.fields
    }

    private func limits(_ delivery: Delivery, until deadline: MonotonicInstant?) -> ExchangeLimits {
        let timeouts = timeouts
        var limits = ExchangeLimits(
            head: timeouts.head, idle: timeouts.idle, attempt: timeouts.attempt,
            // The whole call is watched above; a stream may outlive it.
            deadline: nil, bodyBytes: options.responseLimit ?? (delivery == .whole ? host.limits.responseBytes : streamBytes),
            memoryBytes: host.limits.memoryBytes, spillBytes: host.limits.spillBytes, time: host.time)
        limits.onSent = onSent
        return limits
    }

    // MARK: Conclusions

    private func isSuccess(_ status: Int) -> Bool {
        (200..<300).contains(status) || acceptedStatuses.contains(status)
    }

    private func success(of received: Received) throws(RemoteError) -> Outcome {
        let status = received.head.status
        guard isSuccess(status) else {
            let name = StatusName.of(status).map { "\(status) \($0)" } ?? "\(status)"
            var failure = error(
                .status, .badStatus, received.request, "the server answered \(name); \(StatusName.advice(for: status))", received.head)
            failure.body = received.body.prefix(RemoteError.keptBodyBytes)
            failure.retryAfter = RetryAfter.delay(in: received.head.fields, now: host.time.date)
            throw failure
        }
        return Outcome(
            response: RemoteResponse(value: (), head: received.head, attempts: 1, duration: .zero), body: received.body,
            stream: received.stream, request: received.request)
    }
}
