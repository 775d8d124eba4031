internal import Foundation
internal import RemoteHTTP
internal import StoreCore

/// One call: sends a route with attempts, redirects and refreshes until it succeeds or fails.
///
/// ``run()`` makes attempts, with delays between them. An attempt adds the credentials and performs an exchange, or two after a 401. An
/// exchange (`RouteCall+Exchange.swift`) takes a permit and follows redirects. Its outcome (`RouteCall+Outcome.swift`) is a response or an error.
///
/// Each step waits for the next, so the frames of the waiting functions are the memory cost of a call in flight. The call is an object,
/// because a frame with one reference is smaller than one with host and request. Decisions between two waits are synchronous and not
/// inlined, so their frames end when they return. They throw `any Error`, because a ``RemoteError`` would need 184 bytes in each frame.
final class RouteCall: Sendable {
    enum Delivery: Sendable {
        /// All bytes, within the limit of the host or the route.
        case whole
        /// Chunks as they arrive, up to a number of bytes.
        case stream(limit: Int = .max)
        /// The bytes of a WebSocket, after a response of 101.
        case upgrade(SocketUpgrade)
    }

    let host: RemoteHost
    /// The request before credentials and interceptors.
    let request: HTTPRequest
    let options: RouteOptions
    /// Whether the body, or the connection of a WebSocket, may outlive the call.
    let isStream: Bool
    let cookies: CookieCall?
    private let acceptedStatuses: Set<Int>
    private let retries: Bool
    let started: MonotonicInstant
    let deadline: MonotonicInstant?
    /// The limits of each exchange.
    ///
    /// They include the deadline of a call that takes time only for exchanges and the delays between them. Otherwise a task group watches
    /// the deadline, which costs as much as the rest of the call.
    let limits: ExchangeLimits
    let sent: Lock<Sent>

    struct Sent {
        /// The request that was sent last, after credentials, interceptors and redirects.
        var request: HTTPRequest
        var attempts = 1
        var mayHaveArrived = false
        var mayHaveArrivedBefore = false
        /// Whether each sent request may be repeated; interceptors and redirects change methods and fields.
        var mayRepeat = true
        var isQueued = false
        /// The fields of the first request of the attempt, if it was redirected.
        var redirectedFields: HTTPFields?
        /// The time at which the last request was sent; `nil` before the first.
        var began: MonotonicInstant?
        var redirects: [RedirectFreshness] = []
    }

    /// Builds the request of a route.
    ///
    /// Not inlined: the parts of a request would otherwise stay in the caller's frame until the response arrives.
    @inline(never)
    convenience init(
        _ original: some Routable, at host: RemoteHost, _ delivery: Delivery, accepting statuses: Set<Int> = [],
        onSent: (@Sendable (_ sent: Int64, _ total: Int64?) -> Void)? = nil
    ) throws(RemoteError) {
        let route = Route(original)
        let options = route.options
        let request = try RouteCall.request(of: route, at: host)
        self.init(
            request, options, at: host, delivery, host.cookies?.call(), within: host.timeouts,
            accepting: options.isConditional ? statuses.union([304]) : statuses, onSent: onSent)
    }

    /// Creates one attempt of the same call, starting now, with other header fields; a stream that `lasts` has a deadline only for the head.
    ///
    /// The new call keeps the cookie generation of the old one, so clearing the jar in between ends both. The host stays as it is, because
    /// a refresh of the credentials needs its deadlines and its retries.
    convenience init(
        repeating call: RouteCall, lasts: Bool, accepting statuses: Set<Int> = [],
        _ change: (inout HTTPFields) throws(RouteFault) -> Void
    ) throws(RemoteError) {
        var request = call.request
        do throws(RouteFault) {
            try change(&request.fields)
        } catch {
            throw call.error(for: error, request)
        }
        var timeouts = call.host.timeouts
        timeouts.endAttemptWithHead()
        if lasts { timeouts = .init(head: timeouts.head) }
        self.init(request, call.options, at: call.host, .stream(), call.cookies, within: timeouts, accepting: statuses, retries: false)
    }

    private init(
        _ request: HTTPRequest, _ options: RouteOptions, at host: RemoteHost, _ delivery: Delivery, _ cookies: CookieCall?,
        within timeouts: RouteOptions.Timeouts, accepting statuses: Set<Int>, retries: Bool = true,
        onSent: (@Sendable (_ sent: Int64, _ total: Int64?) -> Void)? = nil
    ) {
        self.host = host
        self.request = request
        self.options = options
        isStream = if case .whole = delivery { false } else { true }
        self.cookies = cookies
        acceptedStatuses = statuses
        self.retries = retries
        started = host.time.now
        let timeouts = options.timeouts.or(timeouts)
        deadline = timeouts.overall.map { [started] in started.advanced(by: $0) }
        // A jar may wait for its cacher.
        let keepsOwnDeadline =
            !isStream && SystemTransport.keepsDeadlines(host.transport) && host.authorization == nil && host.requestInterceptors.isEmpty
            && host.responseInterceptors.isEmpty && cookies == nil
        var limits = ExchangeLimits(
            head: timeouts.head, idle: timeouts.idle, attempt: timeouts.attempt, deadline: keepsOwnDeadline ? deadline : nil,
            bodyBytes: options.responseLimit ?? host.limits.responseBytes, memoryBytes: host.limits.memoryBytes,
            spillBytes: host.limits.spillBytes, time: host.time)
        switch delivery {
        case .whole: break
        case .stream(let limit): limits.bodyBytes = options.responseLimit ?? limit
        case .upgrade(let upgrade):
            limits.upgrade = upgrade
            limits.bodyBytes = .max
            limits.memoryBytes = min(limits.memoryBytes, 131_072)
            limits.timeouts.endAttemptWithHead()
            limits.timeouts.idle = upgrade.silence
        }
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

    var sentRequest: HTTPRequest { sent.withLock(\.request) }

    /// Whether any request of the call, in this or an earlier attempt, may have reached the server.
    var mayHaveArrived: Bool { sent.withLock(\.mayHaveArrived) }

    /// Whether the call may be repeated, with all requests that it has sent so far.
    var mayRepeat: Bool { request.mayRepeat && sent.withLock(\.mayRepeat) }

    /// Records that the server did not act on the last request: nothing was sent, or the response refused it.
    func lastRequestHadNoEffect() {
        sent.withLock { $0.mayHaveArrived = $0.mayHaveArrivedBefore }
    }

    func isSuccess(_ status: Int) -> Bool {
        limits.upgrade == nil ? (200..<300).contains(status) || acceptedStatuses.contains(status) : status == 101
    }

    // MARK: Attempts

    /// Sends the request until it succeeds or fails for good with a ``RemoteError``.
    func run() async throws -> RemoteResponse<HTTPResponse.Body> {
        do {
            return conclusion(try await limits.deadline == deadline ? attempts() : attemptsUntilDeadline())
        } catch {
            throw finalError(for: error)
        }
    }

    func decoding() async throws -> ResponseDecoding {
        decoding(of: try await run())
    }

    @inline(never)
    private func decoding(of response: RemoteResponse<HTTPResponse.Body>) -> ResponseDecoding {
        ResponseDecoding(response.whole, request.method, options, at: host)
    }

    func value<Value: Decodable & SendableMetatype>(as type: Value.Type) async throws -> sending Value {
        try await decoding().decode(as: type)
    }

    @inline(never)
    private func attemptsUntilDeadline() async throws -> HTTPResponse {
        try await within(deadline, of: host.time) { [self] in try await attempts() }
    }

    private func attempts() async throws -> HTTPResponse {
        while true {
            do {
                return try await authorizedAttempt()
            } catch {
                try await waitForNextAttempt(after: error)
            }
        }
    }

    @inline(never)
    private func waitForNextAttempt(after error: any Error) async throws {
        try await host.time.sleep(until: nextAttempt(after: error))
        sent.withLock { $0.attempts += 1 }
    }

    /// Returns the start of the next attempt, or throws a final error.
    @inline(never)
    private func nextAttempt(after error: any Error) throws -> MonotonicInstant {
        guard var failure = error as? RemoteError else { throw error }
        let attempt = sent.withLock(\.attempts)
        let now = host.time.now
        guard retries, let delay = host.delay(after: failure, attempt: attempt, at: now, until: deadline) else {
            failure.attempts = max(failure.attempts, attempt)
            throw failure
        }
        host.log?.record(.waiting(delay), request, operation: "\(failure.operation) (attempt \(attempt))")
        return now.advanced(by: delay)
    }

    // MARK: Credentials

    private func authorizedAttempt() async throws -> HTTPResponse {
        guard let authorization = host.authorization, options.requiresAuth ?? true else {
            return try success(await exchange(request))
        }
        return try await attempt(authorizedBy: authorization)
    }

    @inline(never)
    private func attempt(authorizedBy authorization: Authorization) async throws -> HTTPResponse {
        // If the server also rejects the credential of another process, it is refreshed once. The result of a refresh is tried once.
        var (renewals, mayRenew) = (0, true)
        while true {
            var request = self.request
            let generation = try await apply(authorization, to: &request)
            let response = try await exchange(request)
            guard mayRenew, isRejected(response, request) else { return try success(response) }
            let renewal = try await renew(authorization, generation, request)
            if renewal == .impossible { return try success(response) }
            // A 401 refuses the request (RFC 9110 §15.5.2).
            lastRequestHadNoEffect()
            // A body that cannot be sent again fails with the 401; the caller's next request has the new credentials. So does an unsafe
            // request that was redirected to the rejected one, because the server may have acted on it.
            guard request.body.isReplayable, mayRepeat || !mayHaveArrived else { return try success(response) }
            renewals += 1
            mayRenew = renewal == .taken && renewals == 1
        }
    }

    private func apply(_ authorization: Authorization, to request: inout HTTPRequest) async throws -> Int {
        do {
            return try await authorization.apply(&request.fields, true)
        } catch {
            // Other credentials may complete the request.
            var fault = error as? RouteFault
            fault?.changeKind = .fatal
            throw self.error(for: fault ?? error, request, or: .refreshFailed)
        }
    }

    @inline(never)
    private func renew(
        _ authorization: Authorization, _ generation: Int, _ request: HTTPRequest
    ) async throws -> Authorization.Renewal {
        do {
            return try await authorization.renew(generation, host.unauthenticated)
        } catch {
            throw self.error(for: error, request, or: .refreshFailed)
        }
    }

    /// Whether a rejected request may succeed with a new credential.
    private func isRejected(_ response: HTTPResponse, _ request: HTTPRequest) -> Bool {
        // A 403 rejects the user, not the credential (RFC 9110 §15.5.4). A 401 of another origin, reached by a redirect, never saw the
        // credential. Neither did a 401 of this origin after a redirect there and back.
        let last = sentRequest
        guard response.status == 401, WebOrigin(of: last.url) == WebOrigin(of: request.url) else { return false }
        let credentials = request.fields.names(differingFrom: self.request.fields)
        return credentials.isEmpty || credentials.contains { last.fields[$0] != nil }
    }
}

extension ExchangeLimits.Timeouts {
    /// Lets the deadline of an attempt limit only the head, because the body may take longer.
    fileprivate mutating func endAttemptWithHead() {
        head = [head, attempt].compactMap { $0 }.min()
        attempt = nil
    }
}

struct DeadlinePassed: Error {}

/// Runs an operation, and cancels it at a deadline and throws ``DeadlinePassed``; the operation must end soon after it is canceled.
///
/// Not inlined: the task group would otherwise enlarge the frames of callers without a deadline.
@inline(never)
func within<Value: Sendable>(
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

extension RemoteHost {
    /// The delay before the next attempt after the failure of an attempt, numbered from 1; `nil` if the failure is final.
    func delay(after error: RemoteError, attempt: Int, at now: MonotonicInstant, until deadline: MonotonicInstant?) -> Duration? {
        // An error with several attempts comes from a call of an interceptor, which has retried already.
        guard error.isRetryable, error.attempts == 1, let delay = retry.delay(after: error, attempt: attempt, unit: random()) else {
            return nil
        }
        // Fails at once if the delay exceeds the deadline; the error carries the server's `Retry-After`.
        if let deadline, now.advanced(by: delay) >= deadline { return nil }
        return delay
    }
}
