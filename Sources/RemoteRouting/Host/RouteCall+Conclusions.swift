internal import Foundation
internal import StoreCore

extension RouteCall {
    /// Returns a successful response; throws for any other.
    @inline(never)
    func success(_ response: HTTPResponse) throws -> HTTPResponse {
        if isSuccess(response.status) { return response }
        throw failure(of: response)
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
        failure.reader = ErrorReader(parser: host.parser(for: options), response: conclusion(response).map(()))
        return failure
    }

    @inline(never)
    func conclusion(_ response: HTTPResponse) -> RemoteResponse<HTTPResponse.Body> {
        let duration = started.duration(to: host.time.now)
        return RemoteResponse(
            value: response.body, status: response.status, fields: response.fields, url: response.url, attempts: sent.withLock(\.attempts),
            duration: duration, ownMetrics: response.ownMetrics, exchange: cachedExchange(response.fields))
    }

    /// The metadata that a store needs to cache the response.
    private func cachedExchange(_ fields: HTTPFields) -> CachedExchange {
        let (last, began, redirects) = self.sent.withLock { ($0.request, $0.began, $0.redirects) }
        let sent = last.fields
        let now = host.time.date
        // Earlier attempts, refreshes and redirects do not age the response (RFC 9111 §4.2.3).
        let duration = (began ?? started).duration(to: host.time.now)
        var changing: Set<String> = []
        if fields["Vary"] != nil {
            changing = sent.names(differingFrom: request.fields)
            // An empty jar may have cookies at the next request.
            if host.cookies != nil { changing.insert("cookie") }
        }
        var exchange = CachedExchange(
            request: sent, response: fields, requestedAt: now.addingTimeInterval(-duration.timeInterval), respondedAt: now,
            changingFields: changing, policy: options.cachePolicy)
        exchange.redirects = redirects
        return exchange
    }
}
