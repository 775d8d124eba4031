internal import Foundation
internal import StoreCore
internal import Wire

/// One call: a route as a request, sent with attempts, redirects and refreshes until a response of success or an error.
///
/// Each step waits for the next, so that their frames are the cost of a call in flight. The call is an object, because a frame that holds a
/// reference is smaller than one that holds host and request. Decisions between two waits are functions that do not wait and are not
/// inlined, so that their frames are gone when they return.
final class RouteCall: Sendable {
    /// The form in which a caller wants the body of a success.
    enum Delivery: Sendable {
        /// All bytes, within the host's or the route's limit.
        case whole
        /// Pieces as they arrive, up to a number of bytes.
        case stream(limit: Int = .max)
    }

    let host: RemoteHost
    /// The request before credentials and interceptors.
    let request: HTTPRequest
    let options: RouteOptions
    private let delivery: Delivery
    /// The cookies of all requests of the call; `nil` without a jar.
    private let cookies: CookieCall?
    /// A status outside 2xx that is a success of this call.
    private let acceptedStatus: Int?
    private let started: MonotonicInstant
    /// The moment at which the call must be over.
    private let deadline: MonotonicInstant?
    /// Whether nothing takes time but exchanges and the waits between them, which keep the deadline by themselves. Watching over all of a
    /// call takes a group of tasks, which costs as much as the rest of it.
    private let keepsOwnDeadline: Bool
    /// The limits of each exchange.
    private let limits: ExchangeLimits
    /// Guards what was sent so far.
    private let sent: Lock<Sent>

    private struct Sent {
        /// The request that was sent last, with all that credentials, interceptors and redirects made of it.
        var request: HTTPRequest
        /// Whether the call may have reached the server.
        var mayHaveArrived = false
        /// The same before the last request.
        var mayHaveArrivedBefore = false
    }

    /// Builds the request of a route.
    ///
    /// Not inlined: the parts of a request would stay in the caller's frame until the response arrives.
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

    /// The same call, from now, with other header fields.
    ///
    /// It keeps the generation of the call's cookies: a clearing between the two ends both.
    ///
    /// - Parameters:
    ///   - call: The call with the request.
    ///   - host: The host with the settings to use.
    ///   - delivery: The form of the body.
    ///   - status: A status outside 2xx that is a success.
    ///   - change: Changes the header of the request.
    /// - Throws: ``RemoteError`` where a field is invalid.
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

    /// Whether a transport ends every exchange at its deadline, as only those of this module are known to.
    private static func keepsDeadlines(_ transport: any Transport) -> Bool {
        #if os(Linux)
        transport is CurlTransport || transport is URLSessionTransport
        #else
        transport is URLSessionTransport
        #endif
    }

    /// The request that was sent last, with all that credentials, interceptors and redirects made of it.
    var sentRequest: HTTPRequest { sent.withLock(\.request) }

    /// Whether the call, in this attempt or an earlier one, may have reached the server.
    var mayHaveArrived: Bool { sent.withLock(\.mayHaveArrived) }

    /// Notes that the server did not act on the last request: nothing was sent, or the response refuses it.
    private func lastRequestHadNoEffect() {
        sent.withLock { $0.mayHaveArrived = $0.mayHaveArrivedBefore }
    }

    private func isSuccess(_ status: Int) -> Bool { (200..<300).contains(status) || status == acceptedStatus }

    // MARK: Attempts

    /// Sends until a response of success or a final failure.
    ///
    /// - Returns: The response with its body: all bytes, or a stream, as the call's delivery says.
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

    /// When the next attempt begins; throws what is final.
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

    /// One attempt, whose answer is one of success.
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

    /// Whether other credentials may help.
    private func isRejected(_ response: HTTPResponse, _ request: HTTPRequest) -> Bool {
        // 403 says that the one who is known may not: other credentials for the same one would not help.
        // Nor does a 401 of another origin, which a redirect led to and which never saw these.
        response.status == 401 && request.body.isReplayable && WebOrigin(of: sentRequest.url) == WebOrigin(of: request.url)
    }

    // MARK: One exchange, redirects included

    private func exchange(_ original: HTTPRequest) async throws -> HTTPResponse {
        let first = try await intercepted(original)
        let permit = try await permit()
        do {
            let response = try await follow(first)
            // A stream holds its place until it ends.
            if response.body.isArriving { response.body.onEnd { permit.release() } } else { permit.release() }
            return response
        } catch {
            permit.release()
            if let failure = error as? TransportFailure, !failure.mayHaveArrived { lastRequestHadNoEffect() }
            throw self.error(for: error, first)
        }
    }

    /// Waits for a place among the host's exchanges.
    private func permit() async throws -> ExchangeGate.Permit {
        let gate = host.gate
        if let permit = gate.tryToEnter() { return permit }
        return try await within(keepsOwnDeadline ? deadline : nil, of: host.time) { try await gate.enter() }
    }

    private func follow(_ first: HTTPRequest) async throws -> HTTPResponse {
        var request = first
        var redirects = 0
        // The addresses that redirected, for the jar; stays empty without one.
        var hops: [URL] = []
        while true {
            // Before each request, a redirect's too: a transport of the user need not check.
            try Task.checkCancellation()
            if let cookies { request = try await adding(cookies, to: request, after: hops) }
            let began = willSend(request)
            let response = try await host.transport.perform(request, over: connection(for: request), limits: limits)
            // Before the next hop, which may send them.
            if let cookies { await cookies.receive(response.fields.values(of: "Set-Cookie"), from: request.url) }
            guard let next = try redirection(by: response, began, request, after: redirects) else {
                return try await delivered(response, to: request)
            }
            // Reads a short body, since leaving it would cost the connection.
            if let length = response.fields["Content-Length"].flatMap({ Int($0) }), length <= 65_536 {
                // How it ends does not matter: only the head counts. A canceled call ends before the next request.
                _ = try? await response.body.collect()
            }
            if cookies != nil { hops.append(request.url) }
            request = next
            redirects += 1
        }
    }

    /// The host's demands on the connection, as far as they hold for the origin of a request.
    private func connection(for request: HTTPRequest) -> ConnectionOptions {
        let connection = host.connection
        guard connection.tls.clientCertificate != nil, WebOrigin(of: request.url) != WebOrigin(of: self.request.url) else {
            return connection
        }
        return connection.forOtherOrigin
    }

    /// The request with the jar's cookies, which each hop gets anew.
    @inline(never)
    private func adding(_ cookies: CookieCall, to original: HTTPRequest, after hops: [URL]) async throws -> HTTPRequest {
        var request = original
        // Within one origin a redirect keeps the field of the request before.
        if !hops.isEmpty { request.fields.remove("Cookie") }
        // The caller's own field replaces the jar's (H3).
        guard request.fields["Cookie"] == nil,
            let value = try await cookies.header(for: request.url, method: request.method, redirectedFrom: hops)
        else { return request }
        if forbidsCredentials(to: WebOrigin(of: request.url)) { throw insecureCredentials(request) }
        try request.fields.set("Cookie", value)
        return request
    }

    /// Notes a request that goes out, and the moment.
    private func willSend(_ request: HTTPRequest) -> MonotonicInstant {
        sent.withLock { sent in
            sent.request = request
            sent.mayHaveArrivedBefore = sent.mayHaveArrived
            sent.mayHaveArrived = true
        }
        host.log?.sent(request)
        return host.time.now
    }

    /// The request that a response redirects to; `nil` if the call does not follow it.
    @inline(never)
    private func redirection(
        by response: HTTPResponse, _ began: MonotonicInstant, _ request: HTTPRequest, after redirects: Int
    ) throws(RemoteError) -> HTTPRequest? {
        host.log?.received(response, to: request, after: began.duration(to: host.time.now))
        switch RedirectPolicy(limit: host.limits.redirects).decide(response, to: request, after: redirects) {
        case .stay: return nil
        case .follow(let next):
            // These two refuse a request (RFC 9110 §15.4.8); the others may come after it was carried out.
            if response.status == 307 || response.status == 308 { lastRequestHadNoEffect() }
            return next
        case .refuse(let code, let message):
            throw self.error(.transport, code, request, message, status: response.status, fields: response.fields)
        }
    }

    /// Reads the body as far as the call wants it, and shows the response to the interceptors.
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
            // An interceptor may have made a new request.
            request = request.made(like: original)
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
            throw self.error(for: fault, original)
        }
        if let field = request.fields.fields.first(where: { FieldRules.of($0.name).contains(.reserved) }) {
            let fault = RouteFault(.reservedField, in: "header \(field.name)", "only the library writes this field; leave it out")
            throw self.error(for: fault, original)
        }
        guard forbidsCredentials(to: origin) else { return }
        // What the host's authorization wrote is secret, be it called `Authorization` or not.
        let isSecret =
            original.fields != self.request.fields
            || request.fields.fields.contains { FieldRules.of($0.name).contains(.secret) }
        if isSecret { throw insecureCredentials(original) }
    }

    /// Whether credentials may not travel to an origin: without encryption, to another machine, and without the host's permission.
    private func forbidsCredentials(to origin: WebOrigin?) -> Bool {
        guard let origin else { return true }
        return origin.scheme == .http && !origin.isLoopback && !host.allowsInsecureCredentials
    }

    private func insecureCredentials(_ request: HTTPRequest) -> RemoteError {
        error(
            .build, .insecureCredentials, request,
            "credentials would travel without encryption; use https, or set allowsInsecureCredentials where that is right")
    }

    // MARK: Conclusions

    /// A response of success; throws for any other.
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
            "the server answered \(name); \(StatusName.advice(for: status))", status: status,
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

    /// What a store has to know of the exchange.
    private func cachedExchange(_ fields: HTTPFields, _ duration: Duration) -> CachedExchange {
        let sent = sentRequest.fields
        let now = host.time.date
        var changing: Set<String> = []
        if fields["Vary"] != nil {
            changing = sent.names(differingFrom: request.fields)
            // A jar without cookies today may have some at the next request.
            if host.cookies != nil { changing.insert("cookie") }
        }
        return CachedExchange(
            request: sent, response: fields, requestedAt: now.addingTimeInterval(-duration.timeInterval), respondedAt: now,
            changingFields: changing, policy: options.cachePolicy)
    }
}

/// The time for an operation is over.
private struct DeadlinePassed: Error {}

/// Lets an operation run until a moment, and cancels it then.
///
/// Not inlined: its group would lie in the frames of those too who have no deadline to watch over.
///
/// - Parameters:
///   - deadline: The moment; `nil` waits for ever.
///   - time: The clock.
///   - operation: What to do; it must end soon after it is cancelled.
/// - Throws: ``DeadlinePassed``, or what the operation threw.
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
        // Two children were added, so there is a first to end.
        guard let first = try await group.next(), let value = first else { throw DeadlinePassed() }
        return value
    }
}
