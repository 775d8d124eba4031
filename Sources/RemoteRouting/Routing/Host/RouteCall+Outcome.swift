internal import Foundation
internal import RemoteHTTP
internal import StoreCore

// The outcome of a call: its response, or its error.

extension RouteCall {
    @inline(never)
    func success(_ response: HTTPResponse) throws -> HTTPResponse {
        guard isSuccess(response.status) else { throw failure(of: response) }
        if request.method == .get, isUnrequestedPart(response.status, response.fields),
            ContentRange(response.fields["Content-Range"])?.first != nil
        {
            throw error(
                .transport, .wrongRange, sentRequest,
                "the server sent a part of the content, but the request was for the whole; check the server and any cache in between",
                status: response.status, fields: response.fields)
        }
        return response
    }

    /// Whether the response has only a part of the content, although the request had no range. Some APIs use 206 with units of their own,
    /// or to confirm a part of an upload.
    private func isUnrequestedPart(_ status: Int, _ fields: HTTPFields) -> Bool {
        guard status == 206, sentRequest.fields["Range"] == nil else { return false }
        guard let range = ContentRange(fields["Content-Range"]), let last = range.last, let total = range.total else { return true }
        return range.first != 0 || last != total - 1
    }

    @inline(never)
    private func failure(of response: HTTPResponse) -> RemoteError {
        let status = response.status
        // An origin has no proxy to authenticate to; from it, the status is one of many.
        let isFromProxy = status == 407 && sentRequest.url.scheme == "http" && host.proxy.forwards(to: sentRequest.url.host() ?? "")
        let name = StatusName.names[status].map { "\(status) \($0)" } ?? "\(status)"
        let advice =
            limits.upgrade == nil || status >= 400
            ? "; \(StatusName.advice(for: status))" : " instead of 101; check that the address is that of a WebSocket, without a redirect"
        var failure = self.error(
            .status, isFromProxy ? .proxyUnauthorized : .badStatus, sentRequest, "the server responded with \(name)\(advice)",
            status: status, fields: response.fields)
        failure.body = (response.body.data ?? Data()).prefix(RemoteError.keptBodyBytes)
        failure.retryAfter = RetryAfter.delay(in: response.fields, now: host.time.date)
        failure.reader = ParsingErrorReader(parser: host.parser(for: options), response: conclusion(response).map(()))
        return failure
    }

    @inline(never)
    func conclusion(_ response: HTTPResponse) -> RemoteResponse<HTTPResponse.Body> {
        let duration = started.duration(to: host.time.now)
        return RemoteResponse(
            value: response.body, status: response.status, fields: response.fields, url: response.url, attempts: sent.withLock(\.attempts),
            duration: duration, ownMetrics: response.ownMetrics, exchange: cachedExchange(response.status, response.fields))
    }

    private func cachedExchange(_ status: Int, _ fields: HTTPFields) -> CachedExchange {
        let (sent, began, redirects, first) = self.sent.withLock { ($0.request.fields, $0.began, $0.redirects, $0.redirectedFields) }
        let now = host.time.date
        // Earlier attempts, refreshes and redirects do not age the response (RFC 9111 §4.2.3).
        let duration = (began ?? started).duration(to: host.time.now)
        return CachedExchange(
            request: sent, response: fields, requestedAt: now.addingTimeInterval(-duration.timeInterval), respondedAt: now,
            // A 304 may omit the `Vary` of the stored response.
            changingFields: changingFields(sent, isVaried: status == 304 || fields["Vary"] != nil), policy: options.cachePolicy,
            redirectedFields: first, isPart: isUnrequestedPart(status, fields), redirects: redirects)
    }

    /// The fields of a request that credentials and interceptors wrote, if a response varies.
    func changingFields(_ sent: HTTPFields, isVaried: Bool) -> Set<String> {
        guard isVaried else { return [] }
        var changing = sent.names(differingFrom: request.fields)
        // An empty jar may have cookies at the next request.
        if host.cookies != nil { changing.insert("cookie") }
        return changing
    }

    // MARK: Errors

    func error(
        _ stage: RemoteError.Stage, _ code: RemoteError.Code, _ request: HTTPRequest, _ message: String, status: Int? = nil,
        fields: HTTPFields = HTTPFields(), underlyingError: (any Error)? = nil
    ) -> RemoteError {
        let operation = "\(request.method.rawValue) \(request.url.withoutSecrets)"
        var error = RemoteError(stage, code, operation: operation, message, underlyingError: underlyingError)
        error.status = status
        error.fields = fields
        error.retryAfter = (underlyingError as? any FailureAdvising)?.retryAfter
        // Checks all: a redirect may turn a POST into a GET or drop its key, and an interceptor may turn a GET into a POST.
        error.mayRepeat = mayRepeat && request.mayRepeat
        error.mayHaveArrived = mayHaveArrived
        if host.retryRules != RetryRules() { error.isWorthRetrying = host.retryRules.allow(error, of: request.method) }
        return error
    }

    /// Converts a thrown error; a `RemoteError` keeps all but its flags.
    @inline(never)
    func error(for thrown: any Error, _ request: HTTPRequest, or code: RemoteError.Code? = nil) -> RemoteError {
        // The task of an interceptor or a refresh may have been canceled, which does not cancel this call.
        let isOwn = code == nil || Task.isCancelled
        switch thrown {
        case var known as RemoteError where code != .refreshFailed || known.stage == .cancelled && isOwn:
            // The error of an interceptor or a refresh may be about a request of another call.
            known.mayHaveArrived = mayHaveArrived
            known.mayRepeat = known.mayRepeat && mayRepeat && request.mayRepeat
            known.changeKind = nil
            return known
        case is CancellationError where isOwn:
            return error(.cancelled, .cancelled, request, "the task was canceled")
        case let fault as RouteFault where code != .interceptorFailed:
            return error(.build, .invalidRoute, request, fault.refusal, underlyingError: fault)
        case let failure as TransportFailure where code == nil:
            return error(failure.code.stage, failure.code, request, failure.message, underlyingError: failure.underlyingError ?? failure)
        default:
            break
        }
        switch code {
        case .refreshFailed:
            let reason =
                (thrown as? StoreError)?.code == .closed
                ? "the scope of the credentials is closed; send the request with those of a new scope"
                : "the credentials are not accepted and could not be refreshed; "
                    + (thrown.passesByItself ? "try again later" : "sign in again")
            var failure = error(.status, .refreshFailed, request, reason, underlyingError: thrown)
            failure.status = 401
            return failure
        case .interceptorFailed:
            return error(
                .build, .interceptorFailed, request, "an interceptor failed with \(type(of: thrown)); see the underlying error",
                underlyingError: thrown)
        default:
            return error(
                .transport, .unreachable, request, "the transport failed with \(type(of: thrown)); see the underlying error",
                underlyingError: thrown)
        }
    }

    /// Converts the error that ended the call.
    @inline(never)
    func finalError(for thrown: any Error) -> any Error {
        // The error of an attempt has the number already.
        if thrown is RemoteError { return error(for: thrown, request) }
        var failure = error(for: thrown, request)
        if thrown is DeadlinePassed {
            let message = sent.withLock(\.isQueued) ? limitReached : TransportFailure(Deadlines.Part.overall, limits).message
            failure = error(.timeout, .overallTimedOut, request, message)
        }
        failure.attempts = sent.withLock(\.attempts)
        return failure
    }
}

extension RemoteError {
    static let keptBodyBytes = 65_536
}

extension RouteFault {
    var refusal: String { "nothing was sent because of the \(part): \(message)" }
}

/// Names of statuses, and advice on them (RFC 9110 §15 and its registry).
enum StatusName {
    static let names: [Int: String] = [
        300: "Multiple Choices", 301: "Moved Permanently", 302: "Found", 303: "See Other", 304: "Not Modified", 305: "Use Proxy",
        307: "Temporary Redirect", 308: "Permanent Redirect", 400: "Bad Request", 401: "Unauthorized", 402: "Payment Required",
        403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 406: "Not Acceptable", 407: "Proxy Authentication Required",
        408: "Request Timeout", 409: "Conflict", 410: "Gone", 411: "Length Required", 412: "Precondition Failed", 413: "Content Too Large",
        414: "URI Too Long", 415: "Unsupported Media Type", 416: "Range Not Satisfiable", 417: "Expectation Failed",
        421: "Misdirected Request", 422: "Unprocessable Content", 423: "Locked", 424: "Failed Dependency", 425: "Too Early",
        426: "Upgrade Required", 428: "Precondition Required", 429: "Too Many Requests", 431: "Request Header Fields Too Large",
        451: "Unavailable For Legal Reasons", 500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway",
        503: "Service Unavailable", 504: "Gateway Timeout", 505: "HTTP Version Not Supported", 507: "Insufficient Storage",
        508: "Loop Detected", 511: "Network Authentication Required",
    ]

    static func advice(for status: Int) -> String {
        switch status {
        case 401: "sign in, or check the credentials"
        case 407: "check the credentials of the proxy"
        case 403: "use credentials that permit the request"
        case 404, 410: "check the path; the resource does not exist"
        case 408, 425, 429, 502, 503, 504: "try again later"
        case 400..<500: "check the request; the body of the response may say more"
        case 500..<600: "check the server; the body of the response may say more"
        default: "check the route; the status is not a success"
        }
    }
}
