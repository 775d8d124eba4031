internal import Foundation
internal import StoreCore

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

/// The delegate of a session, which forwards each task's events to its exchange and follows no redirects.
///
/// It is a session delegate, because on Linux task delegates receive no redirects.
final class SessionDelegate: NSObject, URLSessionDataDelegate, Sendable {
    /// The options of a session with one task only, which ends with it; `nil` for the shared session.
    private let ownTLS: TLSOptions?
    private let exchanges = Lock<[Int: Exchange]>([:])

    init(_ ownTLS: TLSOptions?) {
        self.ownTLS = ownTLS
        super.init()
    }

    var count: Int { exchanges.withLock(\.count) }

    func add(_ exchange: Exchange, for task: URLSessionTask) {
        exchanges.withLock { $0[task.taskIdentifier] = exchange }
    }

    private func exchange(of task: URLSessionTask) -> Exchange? {
        exchanges.withLock { $0[task.taskIdentifier] }
    }

    // MARK: Callbacks of URLSession

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        completionHandler(nil)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        #if canImport(Darwin)
        if let trust = challenge.protectionSpace.serverTrust, let tls = ownTLS, tls.authorities != nil || !tls.pins.isEmpty {
            guard let failure = ServerTrust(trust).failure(under: tls) else {
                return completionHandler(.useCredential, URLCredential(trust: trust))
            }
            exchange(of: task)?.stop(failure)
            return completionHandler(.cancelAuthenticationChallenge, nil)
        }
        switch challenge.protectionSpace.authenticationMethod {
        case NSURLAuthenticationMethodNegotiate, NSURLAuthenticationMethodNTLM:
            // The default would send the credentials of the system's user.
            completionHandler(.rejectProtectionSpace, nil)
        default:
            // Without credentials, the 401 becomes the response, with its body.
            completionHandler(.performDefaultHandling, nil)
        }
        #else
        guard let response = challenge.failureResponse as? HTTPURLResponse, let exchange = exchange(of: task) else {
            // The challenge concerns the connection (a server certificate or a proxy), not a response.
            return completionHandler(.performDefaultHandling, nil)
        }
        // The 401 is the response. Its head and body precede the challenge, and an unresolved challenge would hang.
        exchange.receive(HTTPResponse(response, fallback: task.originalRequest?.url))
        exchange.finish()
        completionHandler(.cancelAuthenticationChallenge, nil)
        #endif
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        // A body is sent once; the host decides whether to send it again.
        completionHandler(nil)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        exchange(of: task)?.sent(totalBytesSent, of: totalBytesExpectedToSend > 0 ? totalBytesExpectedToSend : nil)
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        if let exchange = exchange(of: dataTask) {
            if let response = response as? HTTPURLResponse {
                // Linux also reports interim responses (RFC 9110 §15.2); the final response follows.
                guard !(100..<200).contains(response.statusCode) || response.statusCode == 101 else { return completionHandler(.allow) }
                exchange.receive(HTTPResponse(response, fallback: dataTask.originalRequest?.url))
            } else {
                exchange.stop(TransportFailure(.protocolViolation, "the response is not HTTP; check the address"))
            }
        }
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        exchange(of: dataTask)?.receive(data)
    }

    #if canImport(Darwin)
    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        guard let transaction = metrics.transactionMetrics.last else { return }
        exchange(of: task)?.note(ExchangeMetrics(transaction))
    }
    #endif

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        guard let exchange = exchanges.withLock({ $0.removeValue(forKey: task.taskIdentifier) }) else { return }
        let response = task.response as? HTTPURLResponse
        // For the system, a response that refuses a WebSocket is an error.
        let refusesSocket = exchange.limits.upgrade != nil && (response?.statusCode ?? 101) != 101
        if let error, !refusesSocket {
            exchange.fail(TransportFailure(sessionError: error))
        } else {
            // Linux reports a 3xx without a location only here; a second head is ignored.
            if let response { exchange.receive(HTTPResponse(response, fallback: task.originalRequest?.url)) }
            exchange.finish()
        }
        if ownTLS != nil { session.finishTasksAndInvalidate() }
    }
}

#if canImport(Darwin)
extension SessionDelegate: URLSessionWebSocketDelegate {
    func urlSession(_ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?) {
        var response = HTTPResponse(status: 101, url: webSocketTask.originalRequest?.url ?? URL(filePath: "/"))
        if let system = webSocketTask.response as? HTTPURLResponse { response.fields = HTTPResponse(system, fallback: nil).fields }
        exchange(of: webSocketTask)?.receive(response)
    }
}
#endif

extension HTTPResponse {
    init(_ response: HTTPURLResponse, fallback: URL?) {
        var fields = HTTPFields()
        for (name, value) in response.allHeaderFields {
            guard let name = name as? String, let value = value as? String else { continue }
            // `URLSession` joins fields of the same name with commas, which are ambiguous in `Set-Cookie` (RFC 9110 §5.3).
            let lines = name.equalsIgnoringCase("Set-Cookie") ? SetCookieLines.separate(value) : [value]
            // Ignores malformed header fields instead of failing the response (RFC 9110 §5).
            for line in lines { try? fields.append(name, line[...].withoutBlanksAtEnds) }
        }
        self.init(status: response.statusCode, fields: fields, url: response.url ?? fallback ?? URL(filePath: "/"))
    }
}

#if canImport(Darwin)
extension ExchangeMetrics {
    /// Converts the system's metrics of a task's only exchange; redirects are not followed.
    init(_ system: URLSessionTaskTransactionMetrics) {
        func time(_ start: Date?, _ end: Date?) -> Duration? {
            guard let start, let end else { return nil }
            return .seconds(max(0, end.timeIntervalSince(start)))
        }
        version = system.networkProtocolName.flatMap { Version(alpn: $0) }
        isReused = system.isReusedConnection
        if !system.isReusedConnection {
            nameLookup = time(system.domainLookupStartDate, system.domainLookupEndDate)
            // The system's `connectEndDate` includes TLS.
            connect = time(system.connectStartDate, system.secureConnectionStartDate ?? system.connectEndDate)
            secure = time(system.secureConnectionStartDate, system.secureConnectionEndDate)
        }
        firstByte = time(system.fetchStartDate, system.responseStartDate)
        total = time(system.fetchStartDate, system.responseEndDate)
        sentHeadBytes = system.countOfRequestHeaderBytesSent
        sentBodyBytes = system.countOfRequestBodyBytesSent
        receivedHeadBytes = system.countOfResponseHeaderBytesReceived
        receivedBodyBytes = system.countOfResponseBodyBytesReceived
    }
}
#endif

enum SetCookieLines {
    /// Splits lines that a transport joined with commas, as `URLSession` does.
    ///
    /// A comma begins a new line only if a token and an equals sign follow. Commas in dates, and most commas in values, therefore do not
    /// split a line.
    static func separate(_ joined: String) -> [String] {
        let bytes = joined.utf8
        var lines: [String] = []
        var start = bytes.startIndex
        var index = start
        while let comma = bytes[index...].firstIndex(of: UInt8(ascii: ",")) {
            index = bytes.index(after: comma)
            let next = bytes[index...].drop(while: \.isBlank)
            let token = next.prefix { $0.isTokenByte }
            guard !token.isEmpty, token.endIndex < bytes.endIndex, bytes[token.endIndex] == UInt8(ascii: "=") else { continue }
            lines.append(String(joined[start..<comma]))
            start = next.startIndex
        }
        return lines + [String(joined[start...])]
    }
}
