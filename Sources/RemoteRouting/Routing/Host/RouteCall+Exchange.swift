internal import Foundation
internal import RemoteHTTP
internal import StoreCore

// One exchange of a call, in the order of its steps: the interceptors and checks of the request, the permit, the request and its redirects,
// the body, and the interceptors of the response.

extension RouteCall {
    func exchange(_ original: HTTPRequest) async throws -> HTTPResponse {
        let first = host.requestInterceptors.isEmpty ? original : try await intercepted(original)
        try check(first, madeOf: original)
        let permit = if let free = gate.takeIfFree() { free } else { try await permit() }
        do {
            let response = try await follow(first)
            release(permit, after: response)
            return host.responseInterceptors.isEmpty ? completed(response) : try await intercepted(response)
        } catch {
            permit?.release()
            throw failure(of: first, error)
        }
    }

    /// Returns a permit once the body has arrived; a stream keeps its permit until it ends.
    ///
    /// Precedes the response interceptors, which may send requests of their own.
    @inline(never)
    private func release(_ permit: Permits.Permit?, after response: HTTPResponse) {
        if response.body.isArriving { response.body.onEnd { permit?.release() } } else { permit?.release() }
    }

    @inline(never)
    private func failure(of request: HTTPRequest, _ thrown: any Error) -> any Error {
        if let failure = thrown as? TransportFailure, !failure.mayHaveArrived { lastRequestHadNoEffect() }
        return error(for: thrown, request)
    }

    // MARK: The request

    /// Runs the request interceptors, the outermost first.
    @inline(never)
    func intercepted(_ original: HTTPRequest) async throws -> HTTPRequest {
        var request = original
        for interceptor in host.requestInterceptors {
            do {
                try await interceptor.intercept(&request)
            } catch {
                throw self.error(for: error, original, or: .interceptorFailed)
            }
            // An interceptor may have replaced the request.
            request.source = original.source
        }
        return request
    }

    /// Throws if interceptors changed a request into one that must not be sent.
    @inline(never)
    private func check(_ request: HTTPRequest, madeOf original: HTTPRequest) throws {
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
            || request.fields.fields.contains { FieldRules.of($0.name).contains(.secret) || host.log?.redacts($0) == true }
        if isSecret { throw insecureCredentials(original) }
    }

    /// Whether credentials must not be sent to an origin: unencrypted, to another machine, without the host's permission.
    private func forbidsCredentials(to origin: WebOrigin?) -> Bool {
        guard let origin else { return true }
        guard origin.scheme == .http, !host.allowsInsecureCredentials else { return false }
        if host.unixSocketPath != nil, origin == WebOrigin(of: request.url) { return false }
        return !origin.isLoopback || host.proxy.leadsAway(from: origin.host)
    }

    private func insecureCredentials(_ request: HTTPRequest) -> RemoteError {
        error(
            .build, .insecureCredentials, request,
            "credentials would travel without encryption; use https, or set allowsInsecureCredentials if the network is trusted")
    }

    // MARK: The permit

    /// The permits that the caller of an interceptor holds; `nil` after the interceptor, because a task that it started may run on.
    @TaskLocal private static var held: [WatchedState<Permits?>] = []

    private var gate: Permits { isStream ? host.streamGate : host.gate }

    /// Waits for a permit of the host; returns `nil` for a call that an interceptor makes while its own stream has a permit.
    ///
    /// Throws an error that names the limit if a stream waits longer than a head may take.
    @inline(never)
    private func permit() async throws -> Permits.Permit? {
        // Such a call would wait for itself.
        let gate = gate
        if RouteCall.held.contains(where: { $0.current === gate }) { return nil }
        sent.withLock { $0.isQueued = true }
        // Streams have no end that a further stream could rely on, and often no overall deadline.
        let limit = isStream ? limits.timeouts.head.map { host.time.now.advanced(by: $0) } : nil
        let end = [limits.deadline, limit].compactMap { $0 }.min()
        do {
            let permit = try await within(end, of: host.time) { try await gate.take() }
            sent.withLock { $0.isQueued = false }
            return permit
        } catch is DeadlinePassed where end == limit {
            // A further attempt may find a place, and then meet the deadline of the call.
            sent.withLock { $0.isQueued = false }
            throw error(.timeout, .headTimedOut, request, limitReached)
        }
    }

    /// Runs an operation of an interceptor. Its calls need no permit that this call already has.
    private func holdingPermit<Value>(_ operation: () async throws -> Value) async rethrows -> Value {
        guard isStream else { return try await operation() }
        let own = WatchedState<Permits?>(gate)
        defer { own.update { $0 = nil } }
        return try await RouteCall.$held.withValue(RouteCall.held + [own], operation: operation)
    }

    var limitReached: String {
        isStream
            ? "all \(host.limits.concurrentStreams) streams of the host are open; end one of them, or raise limits.concurrentStreams"
            : "all \(host.limits.concurrentExchanges) exchanges of the host were in use until the deadline; try again later, or raise "
                + "limits.concurrentExchanges"
    }

    // MARK: Redirects and the body

    private func follow(_ first: HTTPRequest) async throws -> HTTPResponse {
        var request = first
        var redirects = 0
        // The addresses that redirected, for the jar; empty without a jar.
        var hops: [URL] = []
        while true {
            // Checks before each request, including redirects, because a custom transport may not check.
            try Task.checkCancellation()
            if let cookies { request = try await adding(cookies, to: request, after: hops) }
            let began = willSend(request, isFirst: redirects == 0)
            let response = try await perform(request, began)
            // Stores cookies before the next hop, which may send them.
            if let cookies { await cookies.receive(response.fields.values(of: "Set-Cookie"), from: request.url) }
            guard let next = try redirection(by: response, began, request, after: redirects) else {
                return try await delivered(response)
            }
            // Reads a short body to keep the connection reusable. Ignores errors, because only the head counts. A canceled call stops
            // before the next request.
            if response.hasShortBody { await skip(response) }
            if cookies != nil { hops.append(request.url) }
            request = next
            redirects += 1
        }
    }

    @inline(never)
    private func perform(_ request: HTTPRequest, _ began: MonotonicInstant) async throws -> HTTPResponse {
        let number = host.recent.begin(request, at: began)
        do {
            let response = try await host.transport.perform(request, over: connection(for: request), limits: limits)
            host.recent.end(number, at: host.time.now, status: response.status)
            return response
        } catch {
            let failure = (error as? TransportFailure)?.code ?? (error is CancellationError ? .cancelled : .connectionLost)
            host.recent.end(number, at: host.time.now, failure: failure)
            throw error
        }
    }

    /// The host's connection options; without the client certificate and the Unix domain socket after a redirect to another origin.
    private func connection(for next: HTTPRequest) -> ConnectionOptions {
        var connection = host.connection
        guard connection.tls.clientCertificate != nil || connection.unixSocketPath != nil,
            WebOrigin(of: next.url) != WebOrigin(of: request.url)
        else { return connection }
        (connection.tls.clientCertificate, connection.unixSocketPath) = (nil, nil)
        return connection
    }

    /// Returns the request with the jar's cookies, which are looked up again for each hop.
    @inline(never)
    func adding(_ cookies: CookieCall, to original: HTTPRequest, after hops: [URL]) async throws -> HTTPRequest {
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

    /// Reads the body of a redirect, which the caller does not wait for: without another deadline, for as long as a head may take.
    private func skip(_ response: HTTPResponse) async {
        // A body that arrives byte by byte meets no idle deadline.
        let isBounded = limits.timeouts.idle != nil && deadline != nil
        guard !isBounded, let limit = limits.timeouts.head else { return await response.skipShortBody() }
        try? await within(host.time.now.advanced(by: limit), of: host.time) { await response.skipShortBody() }
    }

    @inline(never)
    private func willSend(_ request: HTTPRequest, isFirst: Bool) -> MonotonicInstant {
        let now = host.time.now
        sent.withLock { sent in
            sent.request = request
            sent.began = now
            if isFirst { (sent.redirects, sent.redirectedFields) = ([], nil) }
            sent.mayHaveArrivedBefore = sent.mayHaveArrived
            sent.mayHaveArrived = true
            if !request.mayRepeat { sent.mayRepeat = false }
        }
        host.log?.sent(request)
        return now
    }

    /// Returns the request that a response redirects to; `nil` if the call does not follow a redirect.
    @inline(never)
    private func redirection(
        by response: HTTPResponse, _ began: MonotonicInstant, _ request: HTTPRequest, after redirects: Int
    ) throws -> HTTPRequest? {
        host.log?.received(response, to: request, after: began.duration(to: host.time.now))
        // A WebSocket's handshake is not redirected, because its server has to be the one that the app named.
        if limits.upgrade != nil { return nil }
        switch RedirectPolicy(limit: host.limits.redirects).decide(response, to: request, after: redirects) {
        case .stay: return nil
        case .follow(var next):
            // The validators of a store belong to the address that it asked (RFC 9110 §8.8).
            if options.isConditional { next.fields.removeConditions() }
            let changing = changingFields(request.fields, isVaried: response.fields["Vary"] != nil)
            let hop = RedirectFreshness(response, to: request, changing: changing, at: host.time.date)
            sent.withLock { sent in
                sent.redirects.append(hop)
                if redirects == 0 { sent.redirectedFields = request.fields }
            }
            // 307 and 308 mean that the server did not act on the request; the other statuses do not exclude it (RFC 9110 §15.4).
            if response.status == 307 || response.status == 308 { lastRequestHadNoEffect() }
            return next
        case .refuse(let code, let message):
            throw self.error(.transport, code, request, message, status: response.status, fields: response.fields)
        }
    }

    private func delivered(_ arriving: HTTPResponse) async throws -> HTTPResponse {
        guard isSuccess(arriving.status) else {
            return arriving.with(
                try await arriving.body.beginning(
                    RemoteError.keptBodyBytes, within: limits.timeouts.idle ?? limits.timeouts.head, of: host.time))
        }
        return isStream ? arriving : arriving.with(try await arriving.body.collect())
    }

    // MARK: The response

    /// Runs the response interceptors, the last one first.
    @inline(never)
    private func intercepted(_ original: HTTPResponse) async throws -> HTTPResponse {
        let request = sentRequest
        var response = original
        for interceptor in host.responseInterceptors.reversed() {
            do {
                let before = response
                response = try await holdingPermit {
                    var changed = before
                    try await interceptor.intercept(&changed, to: request)
                    return changed
                }
            } catch {
                throw self.error(for: error, request, or: .interceptorFailed)
            }
        }
        return completed(response)
    }

    @inline(never)
    private func completed(_ response: HTTPResponse) -> HTTPResponse {
        host.log?.completed(response, of: sentRequest)
        return response
    }
}

extension HTTPResponse {
    @inline(never)
    fileprivate func with(_ whole: Data) -> HTTPResponse {
        var copy = self
        copy.body = Body(whole)
        copy.metrics = metrics
        return copy
    }
}

extension HTTPResponse.Body {
    /// Returns the first bytes, as far as they arrive within a limit, because the body may never end; ends the exchange if there are more.
    fileprivate func beginning(_ count: Int, within limit: Duration?, of time: any TimeSource) async throws -> Data {
        if let data { return data.prefix(count) }
        let arrived = Lock(Data())
        let read = { @Sendable [self] in
            var iterator = makeAsyncIterator()
            do {
                while arrived.withLock(\.count) < count, let piece = try await iterator.next() {
                    arrived.withLock { $0.append(piece) }
                }
            } catch let failure as TransportFailure where failure.code != .cancelled {
                // Only the status matters here; a truncated or oversized body does not change it.
            }
        }
        do {
            try await RemoteRouting.within(limit.map { time.now.advanced(by: $0) }, of: time, read)
        } catch is DeadlinePassed {
            // The rest is of no interest.
        }
        return arrived.withLock { $0.prefix(count) }
    }
}
