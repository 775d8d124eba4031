internal import Foundation
internal import RemoteHTTP
internal import StoreCore

extension RouteCall {
    /// Sends a request and follows redirects.
    func follow(_ first: HTTPRequest) async throws -> HTTPResponse {
        var request = first
        var redirects = 0
        // The addresses that redirected, for the jar; empty without a jar.
        var hops: [URL] = []
        while true {
            // Checks before each request, including redirects, because a custom transport may not check.
            try Task.checkCancellation()
            if let cookies { request = try await adding(cookies, to: request, after: hops) }
            let began = willSend(request, isFirst: redirects == 0)
            let response = try await perform(request)
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

    /// Performs one exchange, with the connection options that apply to the request's origin.
    @inline(never)
    private func perform(_ request: HTTPRequest) async throws -> HTTPResponse {
        try await host.transport.perform(request, over: connection(for: request), limits: limits)
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

    /// Reads the body of a redirect, which the caller does not wait for: without an idle deadline, for as long as a head may
    /// take.
    private func skip(_ response: HTTPResponse) async {
        guard limits.idle == nil, let limit = limits.head else { return await response.skipShortBody() }
        try? await within(host.time.now.advanced(by: limit), of: host.time) { await response.skipShortBody() }
    }

    /// Records a request that is about to be sent and returns the current moment.
    @inline(never)
    private func willSend(_ request: HTTPRequest, isFirst: Bool) -> MonotonicInstant {
        let now = host.time.now
        sent.withLock { sent in
            sent.request = request
            sent.began = now
            if isFirst { (sent.redirects, sent.redirectedFields) = ([], nil) }
            sent.mayHaveArrivedBefore = sent.mayHaveArrived
            sent.mayHaveArrived = true
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
        switch RedirectPolicy(limit: host.limits.redirects).decide(response, to: request, after: redirects) {
        case .stay: return nil
        case .follow(var next):
            // The validators of a store belong to the address that it asked (RFC 9110 §8.8).
            if options.isConditional { next.fields.removeConditions() }
            let hop = RedirectFreshness(
                response, to: request, changing: changingFields(request.fields, variedBy: response.fields), at: host.time.date)
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

    /// Reads the body as far as the call needs it.
    private func delivered(_ arriving: HTTPResponse) async throws -> HTTPResponse {
        var response = arriving
        if !isSuccess(response.status) {
            response.body = HTTPResponse.Body(
                try await arriving.body.beginning(RemoteError.keptBodyBytes, within: limits.idle ?? limits.head, of: host.time))
        } else if case .whole = delivery {
            response = arriving.with(try await arriving.body.collect())
        }
        return response
    }

    /// Runs the response interceptors, the last one first.
    @inline(never)
    func intercepted(_ original: HTTPResponse) async throws -> HTTPResponse {
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

    /// Logs a response that is ready for its caller.
    @inline(never)
    func completed(_ response: HTTPResponse) -> HTTPResponse {
        host.log?.completed(response, of: sentRequest)
        return response
    }
}

extension HTTPResponse {
    /// The same response with its whole body in memory.
    @inline(never)
    fileprivate func with(_ whole: Data) -> HTTPResponse {
        var copy = self
        copy.body = Body(whole)
        copy.metrics = metrics
        return copy
    }
}

extension HTTPResponse.Body {
    /// Returns the first bytes, as far as they arrive within a limit, and ends the exchange if there are more.
    ///
    /// - Parameters:
    ///   - count: The maximum number of bytes.
    ///   - limit: The maximum time, which also limits a body that never ends; `nil` for no limit.
    ///   - time: The source of time.
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

extension ConnectionOptions {
    /// The options for another origin after a redirect, without the client certificate.
    fileprivate var forOtherOrigin: ConnectionOptions {
        var copy = self
        copy.tls.clientCertificate = nil
        return copy
    }
}
