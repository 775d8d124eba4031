internal import Foundation
internal import RemoteHTTP
internal import StoreCore

extension RouteCall {
    /// Returns a successful response; throws for any other.
    @inline(never)
    func success(_ response: HTTPResponse) throws -> HTTPResponse {
        guard isSuccess(response.status) else { throw failure(of: response) }
        if isUnrequestedPart(response.status, response.fields), ContentRange(response.fields["Content-Range"])?.first != nil {
            throw error(
                .transport, .wrongRange, sentRequest,
                "the server sent a part of the content, but the request was for the whole; check the server and any cache in between",
                status: response.status, fields: response.fields)
        }
        return response
    }

    /// Whether the response is less than the content of a request without a range. Some APIs use 206 with units of their own.
    private func isUnrequestedPart(_ status: Int, _ fields: HTTPFields) -> Bool {
        guard status == 206, request.method == .get, sentRequest.fields["Range"] == nil else { return false }
        guard let range = ContentRange(fields["Content-Range"]), let last = range.last, let total = range.total else { return true }
        return range.first != 0 || last != total - 1
    }

    @inline(never)
    private func failure(of response: HTTPResponse) -> RemoteError {
        let status = response.status
        // An origin has no proxy to authenticate to; from it, the status is one of many.
        let isFromProxy = status == 407 && sentRequest.url.scheme == "http" && host.proxy.forwards(to: sentRequest.url.host() ?? "")
        let name = StatusName.of(status).map { "\(status) \($0)" } ?? "\(status)"
        var failure = self.error(
            .status, isFromProxy ? .proxyUnauthorized : .badStatus, sentRequest,
            "the server responded with \(name); \(StatusName.advice(for: status))", status: status,
            fields: response.fields)
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

    /// The metadata that a store needs to cache the response.
    private func cachedExchange(_ status: Int, _ fields: HTTPFields) -> CachedExchange {
        let (last, began, redirects, first) = self.sent.withLock { ($0.request, $0.began, $0.redirects, $0.redirectedFields) }
        let sent = last.fields
        let now = host.time.date
        // Earlier attempts, refreshes and redirects do not age the response (RFC 9111 §4.2.3).
        let duration = (began ?? started).duration(to: host.time.now)
        var exchange = CachedExchange(
            request: sent, response: fields, requestedAt: now.addingTimeInterval(-duration.timeInterval), respondedAt: now,
            changingFields: changingFields(sent, variedBy: fields), policy: options.cachePolicy)
        exchange.redirects = redirects
        if let first { exchange.selecting = first }
        exchange.isPart = isUnrequestedPart(status, fields)
        return exchange
    }

    /// The fields of a request that credentials and interceptors wrote, if a response varies.
    func changingFields(_ sent: HTTPFields, variedBy response: HTTPFields) -> Set<String> {
        guard response["Vary"] != nil else { return [] }
        var changing = sent.names(differingFrom: request.fields)
        // An empty jar may have cookies at the next request.
        if host.cookies != nil { changing.insert("cookie") }
        return changing
    }
}

extension RemoteError {
    /// The maximum number of body bytes that an error keeps.
    static let keptBodyBytes = 65_536
}
