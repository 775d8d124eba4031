internal import Foundation
internal import StoreCore
internal import Wire

/// One call: sends a route with attempts, redirects and refreshes until it succeeds or fails.
///
/// Each step waits for the next, so the frames of the waiting functions are the memory cost of a call in flight. The call is an object,
/// because a frame with one reference is smaller than one with host and request. Decisions between two waits are synchronous and not
/// inlined, so their frames end when they return.
final class RouteCall: Sendable {
    /// The form in which the caller receives a successful body.
    enum Delivery: Sendable {
        /// All bytes, within the limit of the host or the route.
        case whole
        /// Chunks as they arrive, up to a number of bytes.
        case stream(limit: Int = .max)
    }

    let host: RemoteHost
    /// The request before credentials and interceptors.
    let request: HTTPRequest
    let options: RouteOptions
    private let delivery: Delivery
    /// The cookies of all requests of the call; `nil` without a jar.
    private let cookies: CookieCall?
    /// A status outside 2xx that counts as a success of this call.
    private let acceptedStatus: Int?
    private let started: MonotonicInstant
    /// The deadline of the whole call.
    private let deadline: MonotonicInstant?
    /// Whether the call takes time only for exchanges and the delays between them, which keep the deadline themselves.
    ///
    /// Otherwise a task group watches the deadline, which costs as much as the rest of the call.
    private let keepsOwnDeadline: Bool
    /// The limits of each exchange.
    private let limits: ExchangeLimits
    /// Guards the record of sent requests.
    private let sent: Lock<Sent>

    private struct Sent {
        /// The request that was sent last, after credentials, interceptors and redirects.
        var request: HTTPRequest
        /// Whether any request of the call may have reached the server.
        var mayHaveArrived = false
        /// The value of `mayHaveArrived` before the last request.
        var mayHaveArrivedBefore = false
    }

    /// Builds the request of a route.
    ///
    /// Not inlined: the parts of a request would otherwise stay in the caller's frame until the response arrives.
    ///
    /// - Throws: ``RemoteError`` of the stage ``RemoteError/Stage/build``.
    @inline(never)
    convenience init(
        _ original: some Routable, at host: RemoteHost, _ delivery: Delivery,
        onSent: (@Sendable (_ sent: Int64, _ total: Int64?) -> Void)? = nil
    ) throws(RemoteError) {
        let route = Route(original)
        let options = route.options
        let request = try RouteCall.request(of: route, at: host)
        self.init(
            request, options, at: host, delivery, host.cookies?.call(), accepting: options.isConditional ? 304 : nil, onSent: onSent)
    }

    /// Creates the same call, starting now, with other header fields.
    ///
    /// The new call keeps the cookie generation of the old one, so clearing the jar in between ends both.
    ///
    /// - Parameters:
    ///   - call: The call that has the request.
    ///   - host: The host whose settings apply.
    ///   - delivery: The form of the body.
    ///   - status: A status outside 2xx that counts as a success.
    ///   - change: Changes the header of the request.
    /// - Throws: ``RemoteError`` if a field is invalid.
    convenience init(
        repeating call: RouteCall, at host: RemoteHost, _ delivery: Delivery, accepting status: Int? = nil,
        _ change: (inout HTTPFields) throws(RouteFault) -> Void
    ) throws(RemoteError) {
        var request = call.request
        do throws(RouteFault) {
            try change(&request.fields)
        } catch {
            throw call.error(for: error, request)
        }
        self.init(request, call.options, at: host, delivery, call.cookies, accepting: status, onSent: nil)
    }

    private init(
        _ request: HTTPRequest, _ options: RouteOptions, at host: RemoteHost, _ delivery: Delivery, _ cookies: CookieCall?,
        accepting status: Int?, onSent: (@Sendable (_ sent: Int64, _ total: Int64?) -> Void)?
    ) {
        self.host = host
        self.request = request
        self.options = options
        self.delivery = delivery
        self.cookies = cookies
        acceptedStatus = status
        started = host.time.now
        let (own, general) = (options.timeouts, host.timeouts)
        deadline = (own.overall ?? general.overall).map { [started] in started.advanced(by: $0) }
        let bodyBytes: Int
        switch delivery {
        case .whole:
            // A jar may wait for its cacher.
            keepsOwnDeadline =
                RouteCall.keepsDeadlines(host.transport) && host.authorization == nil && host.requestInterceptors.isEmpty
                && host.responseInterceptors.isEmpty && cookies == nil
            bodyBytes = host.limits.responseBytes
        case .stream(let limit):
            // A stream may outlive the call.
            keepsOwnDeadline = false
            bodyBytes = limit
        }
        var limits = ExchangeLimits(
            head: own.head ?? general.head, idle: own.idle ?? general.idle, attempt: own.attempt ?? general.attempt,
            deadline: keepsOwnDeadline ? deadline : nil, bodyBytes: options.responseLimit ?? bodyBytes,
            memoryBytes: host.limits.memoryBytes, spillBytes: host.limits.spillBytes, time: host.time)
        if let onSent {
            let length = request.body.length
            limits.onSent = { sent, total in onSent(sent, length ?? total) }
        }
        self.limits = limits
        sent = Lock(Sent(request: request))
    }

    private static func request(of route: some Routable, at host: RemoteHost) throws(RemoteError) -> HTTPRequest {
        if host.configuration.scheme == .http, host.tls != TLSOptions() {
            throw RemoteError(
                .build, .unsupported, operation: "\(route.method.rawValue) \(host.configuration.name)",
                "the host has TLS options, and plain http has no TLS; use https, or remove the options")
        }
        do throws(RouteFault) {
            let builder = RequestBuilder(
                origin: try host.configuration.origin(), basePath: host.configuration.basePath,
                defaults: host.defaults(for: route.options),
                parameterStyle: host.parameterStyle, makeJSONEncoder: host.makeEncoder)
            return try builder.request(for: route)
        } catch {
            let operation = "\(route.method.rawValue) \(host.configuration.name)"
            throw RemoteError(.build, .invalidRoute, operation: operation, error.refusal, underlyingError: error)
        }
    }

    /// Whether a transport ends every exchange at its deadline; only the transports of this module guarantee it.
    private static func keepsDeadlines(_ transport: any Transport) -> Bool {
        #if os(Linux)
        transport is CurlTransport || transport is URLSessionTransport
        #else
        transport is URLSessionTransport
        #endif
    }

    /// The request that was sent last, after credentials, interceptors and redirects.
    var sentRequest: HTTPRequest { sent.withLock(\.request) }

    /// Whether any request of the call, in this or an earlier attempt, may have reached the server.
    var mayHaveArrived: Bool { sent.withLock(\.mayHaveArrived) }

    /// Records that the server did not act on the last request: nothing was sent, or the response refused it.
    private func lastRequestHadNoEffect() {
        sent.withLock { $0.mayHaveArrived = $0.mayHaveArrivedBefore }
    }

    private func isSuccess(_ status: Int) -> Bool { (200..<300).contains(status) || status == acceptedStatus }

    // MARK: Attempts

    /// Sends the request until it succeeds or fails for good.
    ///
    /// - Returns: The response with its body, as bytes or as a stream according to the call's delivery.
    /// - Throws: ``RemoteError``.
    func run() async throws -> RemoteResponse<HTTPResponse.Body> {
        do {
            if keepsOwnDeadline { return try await attempts() }
            return try await within(deadline, of: host.time) { [self] in try await attempts() }
        } catch {
            throw error is DeadlinePassed ? self.error(.overall) : self.error(for: error, request)
        }
    }

    private func attempts() async throws -> RemoteResponse<HTTPResponse.Body> {
        var attempt = 1
        while true {
            do {
                return conclusion(try await authorizedAttempt(), attempt)
            } catch {
                let next = try nextAttempt(after: error, attempt)
                try await host.time.sleep(until: next)
                attempt += 1
            }
        }
    }

    /// Returns the start of the next attempt, or throws a final error.
    @inline(never)
    private func nextAttempt(after error: any Error, _ attempt: Int) throws -> MonotonicInstant {
        guard var failure = error as? RemoteError else { throw error }
        failure.attempts = attempt
        let host = host
        let now = host.time.now
        let decision = RetryDecision(policy: host.retry, deadline: deadline)
        guard let delay = decision.delay(after: failure, attempt: attempt, now: now, unit: host.random()) else { throw failure }
        host.log?.note(.waiting(delay), failure.operation, attempt: attempt, of: request)
        return now.advanced(by: delay)
    }

    // MARK: Credentials

    /// Performs one attempt and returns its successful response.
    private func authorizedAttempt() async throws -> HTTPResponse {
        guard let authorization = host.authorization, options.requiresAuth ?? true else {
            return try success(await exchange(request))
        }
        return try await attempt(authorizedBy: authorization)
    }

    @inline(never)
    private func attempt(authorizedBy authorization: Authorization) async throws -> HTTPResponse {
        var request = self.request
        let generation = try await apply(authorization, to: &request)
        let response = try await exchange(request)
        guard isRejected(response, request), try await renew(authorization, generation, request) else { return try success(response) }
        // A 401 refuses the request (RFC 9110 §15.5.2).
        lastRequestHadNoEffect()
        request = self.request
        _ = try await apply(authorization, to: &request)
        return try success(await exchange(request))
    }

    private func apply(_ authorization: Authorization, to request: inout HTTPRequest) async throws -> Int {
        do {
            return try await authorization.apply(&request.fields)
        } catch {
            throw self.error(for: error, request, or: .refreshFailed)
        }
    }

    @inline(never)
    private func renew(_ authorization: Authorization, _ generation: Int, _ request: HTTPRequest) async throws -> Bool {
        do {
            return try await authorization.renew(generation, host.unauthenticated)
        } catch {
            throw self.error(for: error, request, or: .refreshFailed)
        }
    }

    /// Whether a rejected request may succeed with a new credential.
    private func isRejected(_ response: HTTPResponse, _ request: HTTPRequest) -> Bool {
        // A 403 rejects the user, not the credential (RFC 9110 §15.5.4). A 401 of another origin, reached by a redirect, never saw the
        // credential.
        response.status == 401 && request.body.isReplayable && WebOrigin(of: sentRequest.url) == WebOrigin(of: request.url)
    }

    // MARK: One exchange, redirects included

    private func exchange(_ original: HTTPRequest) async throws -> HTTPResponse {
        let first = try await intercepted(original)
        let permit = try await permit()
        do {
            let response = try await follow(first)
            // A stream keeps its permit until it ends.
            if response.body.isArriving { response.body.onEnd { permit.release() } } else { permit.release() }
            return response
        } catch {
            permit.release()
            if let failure = error as? TransportFailure, !failure.mayHaveArrived { lastRequestHadNoEffect() }
            throw self.error(for: error, first)
        }
    }

    /// Waits for a permit of the host.
    private func permit() async throws -> Permits.Permit {
        let gate = host.gate
        if let permit = gate.takeIfFree() { return permit }
        return try await within(keepsOwnDeadline ? deadline : nil, of: host.time) { try await gate.take() }
    }

    private func follow(_ first: HTTPRequest) async throws -> HTTPResponse {
        var request = first
        var redirects = 0
        // The addresses that redirected, for the jar; empty without a jar.
        var hops: [URL] = []
        while true {
            // Checks before each request, including redirects, because a custom transport may not check.
            try Task.checkCancellation()
            if let cookies { request = try await adding(cookies, to: request, after: hops) }
            let began = willSend(request)
            let response = try await host.transport.perform(request, over: connection(for: request), limits: limits)
            // Stores cookies before the next hop, which may send them.
            if let cookies { await cookies.receive(response.fields.values(of: "Set-Cookie"), from: request.url) }
            guard let next = try redirection(by: response, began, request, after: redirects) else {
                return try await delivered(response, to: request)
            }
            // Reads a short body to keep the connection reusable.
            if let length = response.fields["Content-Length"].flatMap({ Int($0) }), length <= 65_536 {
                // Ignores errors, because only the head counts. A canceled call stops before the next request.
                _ = try? await response.body.collect()
            }
            if cookies != nil { hops.append(request.url) }
            request = next
            redirects += 1
        }
    }

    /// The host's connection options, reduced to those that apply to the request's origin.
    private func connection(for request: HTTPRequest) -> ConnectionOptions {
        let connection = host.connection
        guard connection.tls.clientCertificate != nil, WebOrigin(of: request.url) != WebOrigin(of: self.request.url) else {
            return connection
        }
        return connection.forOtherOrigin
    }

    /// Returns the request with the jar's cookies, which are looked up again for each hop.
    @inline(never)
    private func adding(_ cookies: CookieCall, to original: HTTPRequest, after hops: [URL]) async throws -> HTTPRequest {
        var request = original
        // A redirect within one origin copies the previous `Cookie` field.
        if !hops.isEmpty { request.fields.remove("Cookie") }
        // The caller's own field replaces the jar's (H3).
        guard request.fields["Cookie"] == nil,
            let value = try await cookies.header(for: request.url, method: request.method, redirectedFrom: hops)
        else { return request }
        if forbidsCredentials(to: WebOrigin(of: request.url)) { throw insecureCredentials(request) }
        try request.fields.set("Cookie", value)
        return request
    }

    /// Records a request that is about to be sent and returns the current moment.
    private func willSend(_ request: HTTPRequest) -> MonotonicInstant {
        sent.withLock { sent in
            sent.request = request
            sent.mayHaveArrivedBefore = sent.mayHaveArrived
            sent.mayHaveArrived = true
        }
        host.log?.sent(request)
        return host.time.now
    }

    /// Returns the request that a response redirects to; `nil` if the call does not follow a redirect.
    @inline(never)
    private func redirection(
        by response: HTTPResponse, _ began: MonotonicInstant, _ request: HTTPRequest, after redirects: Int
    ) throws(RemoteError) -> HTTPRequest? {
        host.log?.received(response, to: request, after: began.duration(to: host.time.now))
        switch RedirectPolicy(limit: host.limits.redirects).decide(response, to: request, after: redirects) {
        case .stay: return nil
        case .follow(let next):
            // 307 and 308 mean that the server did not act on the request; the other statuses do not exclude it (RFC 9110 §15.4).
            if response.status == 307 || response.status == 308 { lastRequestHadNoEffect() }
            return next
        case .refuse(let code, let message):
            throw self.error(.transport, code, request, message, status: response.status, fields: response.fields)
        }
    }

    /// Reads the body as far as the call needs it and runs the response interceptors.
    private func delivered(_ arriving: HTTPResponse, to request: HTTPRequest) async throws -> HTTPResponse {
        var response = arriving
        if !isSuccess(response.status) {
            response.body = HTTPResponse.Body(try await arriving.body.beginning(RemoteError.keptBodyBytes))
        } else if case .whole = delivery {
            response.body = HTTPResponse.Body(try await arriving.body.collect())
            response.metrics = arriving.metrics
        }
        for interceptor in host.responseInterceptors.reversed() {
            do {
                try await interceptor.intercept(&response, to: request)
            } catch {
                throw self.error(for: error, request, or: .interceptorFailed)
            }
        }
        host.log?.completed(response, of: request)
        return response
    }

    private func intercepted(_ original: HTTPRequest) async throws -> HTTPRequest {
        var request = original
        for interceptor in host.requestInterceptors {
            do {
                try await interceptor.intercept(&request)
            } catch {
                throw self.error(for: error, original, or: .interceptorFailed)
            }
            // An interceptor may have replaced the request.
            request = request.made(like: original)
        }
        try check(request, madeOf: original)
        return request
    }

    /// Throws if interceptors changed a request into one that must not be sent.
    @inline(never)
    private func check(_ request: HTTPRequest, madeOf original: HTTPRequest) throws(RemoteError) {
        guard let origin = WebOrigin(of: request.url), request.url == original.url || origin == WebOrigin(of: original.url) else {
            let fault = RouteFault(
                .foreignOrigin, in: "address", "an interceptor changed the request's origin; use another host instead")
            throw self.error(for: fault, original)
        }
        if let field = request.fields.fields.first(where: { FieldRules.of($0.name).contains(.reserved) }) {
            let fault = RouteFault(.reservedField, in: "header \(field.name)", "only the library writes this field; leave it out")
            throw self.error(for: fault, original)
        }
        guard forbidsCredentials(to: origin) else { return }
        // Fields that the authorization wrote are secret under any name.
        let isSecret =
            original.fields != self.request.fields
            || request.fields.fields.contains { FieldRules.of($0.name).contains(.secret) }
        if isSecret { throw insecureCredentials(original) }
    }

    /// Whether credentials must not be sent to an origin: unencrypted, to another machine, without the host's permission.
    private func forbidsCredentials(to origin: WebOrigin?) -> Bool {
        guard let origin else { return true }
        return origin.scheme == .http && !origin.isLoopback && !host.allowsInsecureCredentials
    }

    private func insecureCredentials(_ request: HTTPRequest) -> RemoteError {
        error(
            .build, .insecureCredentials, request,
            "credentials would travel without encryption; use https, or set allowsInsecureCredentials if the network is trusted")
    }

    // MARK: Conclusions

    /// Returns a successful response; throws for any other.
    private func success(_ response: HTTPResponse) throws(RemoteError) -> HTTPResponse {
        if isSuccess(response.status) { return response }
        throw failure(of: response)
    }

    @inline(never)
    private func failure(of response: HTTPResponse) -> RemoteError {
        let status = response.status
        let name = StatusName.of(status).map { "\(status) \($0)" } ?? "\(status)"
        var failure = self.error(
            .status, status == 407 ? .proxyUnauthorized : .badStatus, sentRequest,
            "the server responded with \(name); \(StatusName.advice(for: status))", status: status,
            fields: response.fields)
        failure.body = (response.body.data ?? Data()).prefix(RemoteError.keptBodyBytes)
        failure.retryAfter = RetryAfter.delay(in: response.fields, now: host.time.date)
        failure.reader = ErrorReader(parser: host.parser(for: options), response: conclusion(response, 1).map(()))
        return failure
    }

    private func conclusion(_ response: HTTPResponse, _ attempts: Int) -> RemoteResponse<HTTPResponse.Body> {
        let duration = started.duration(to: host.time.now)
        return RemoteResponse(
            value: response.body, status: response.status, fields: response.fields, url: response.url, attempts: attempts,
            duration: duration, ownMetrics: response.ownMetrics, exchange: cachedExchange(response.fields, duration))
    }

    /// The metadata that a store needs to cache the response.
    private func cachedExchange(_ fields: HTTPFields, _ duration: Duration) -> CachedExchange {
        let sent = sentRequest.fields
        let now = host.time.date
        var changing: Set<String> = []
        if fields["Vary"] != nil {
            changing = sent.names(differingFrom: request.fields)
            // An empty jar may have cookies at the next request.
            if host.cookies != nil { changing.insert("cookie") }
        }
        return CachedExchange(
            request: sent, response: fields, requestedAt: now.addingTimeInterval(-duration.timeInterval), respondedAt: now,
            changingFields: changing, policy: options.cachePolicy)
    }
}

/// The deadline of an operation passed.
private struct DeadlinePassed: Error {}

/// Runs an operation and cancels it at a deadline.
///
/// Not inlined: the task group would otherwise enlarge the frames of callers without a deadline.
///
/// - Parameters:
///   - deadline: The deadline; `nil` for none.
///   - time: The clock.
///   - operation: The operation; it must end soon after it is canceled.
/// - Throws: ``DeadlinePassed``, or the error of the operation.
@inline(never)
private func within<Value: Sendable>(
    _ deadline: MonotonicInstant?, of time: any TimeSource, _ operation: @escaping @Sendable () async throws -> Value
) async throws -> Value {
    guard let deadline else { return try await operation() }
    return try await withThrowingTaskGroup(of: Value?.self) { group in
        group.addTask { try await operation() }
        group.addTask {
            try await time.sleep(until: deadline)
            return nil
        }
        defer { group.cancelAll() }
        // The group has two children, so `next()` returns a value.
        guard let first = try await group.next(), let value = first else { throw DeadlinePassed() }
        return value
    }
}
