public import Foundation
public import StoreCore

/// The error of a route: where the call failed, the server's response, and the remedy.
///
/// ```swift
/// do {
///     user = try await api.send("/users/\(id)")
/// } catch let error as RemoteError where error.status == 404 {
///     user = nil
/// }
/// ```
///
/// A description never contains a query, a header value or body bytes, because they may be secrets.
public struct RemoteError: LocalizedError, Sendable, CustomStringConvertible {
    /// The stage at which a call failed.
    public enum Stage: String, Hashable, Sendable {
        /// Building the request; nothing was sent.
        case build
        /// Exchanging the request and the response.
        case transport
        /// The response has a status other than success.
        case status
        /// Decoding the response into a value.
        case decode
        /// A deadline of the exchange, the attempt or the call passed.
        case timeout
        /// The task was canceled, which ended the exchange.
        case cancelled
    }

    /// The stage at which the call failed.
    public var stage: Stage
    /// The reason for the failure. The set of codes is open, so a `switch` needs a `default`.
    public var code: Code
    /// The method and the address without its query.
    public var operation: String
    /// The reason and the remedy, without a query, a header value or body bytes.
    public var message: String
    /// The status of the response, if there is one.
    public var status: Int?
    /// The header fields of the response; empty without a response.
    public var fields: HTTPFields
    /// The beginning of the response body, at most 64 KiB.
    public var body: Data
    /// The delay that the server requested with `Retry-After`.
    public var retryAfter: Duration?
    /// The number of attempts, including the one that failed last.
    public var attempts: Int
    /// Whether the method and the body permit sending the request again.
    public var mayRepeat: Bool
    /// Whether the request, or a part of it, may have reached the server.
    ///
    /// `false` is certain: the server has received nothing of the request, so sending it again is safe. `true` is the default. It follows
    /// any response, even a broken one, except a refusal: 401 before new credentials, 307 and 308 before the redirect. It also follows any
    /// failure that does not exclude arrival. ``CurlTransport`` knows whether a request was sent. ``URLSessionTransport`` reports `false`
    /// only if no connection was made.
    ///
    /// ```swift
    /// do {
    ///     try await api.send(
    ///         Route(path: "/orders", method: .post, body: .json(order)))
    /// } catch let error as RemoteError where error.mayHaveArrived {
    ///     showOrders()  // the order may be there: look before ordering again
    /// }
    /// ```
    public var mayHaveArrived: Bool
    /// The error of a lower layer that caused this one.
    public var underlyingError: (any Error)?
    /// The reader that parses the body as the host parses values; `nil` without a response.
    package var reader: (any ErrorReader)?
    /// The kind of failure of a request with an idempotency key; `nil` for other requests.
    package var changeKind: FailureKind?
    /// Whether the host's own rules find the failure worth another attempt; `nil` for the default rules.
    package var isWorthRetrying: Bool?
    /// The text that replaces the description of a failed delivery.
    package var explanation: String?

    /// Creates an error.
    ///
    /// - Parameters:
    ///   - stage: The stage at which the call failed.
    ///   - code: The kind of failure.
    ///   - operation: The method and the address without its query.
    ///   - message: The reason and the remedy.
    ///   - underlyingError: The error of a lower layer that caused this one.
    public init(_ stage: Stage, _ code: Code, operation: String, _ message: String, underlyingError: (any Error)? = nil) {
        self.stage = stage
        self.code = code
        self.operation = operation
        self.message = message
        self.underlyingError = underlyingError
        fields = HTTPFields()
        body = Data()
        attempts = 1
        mayRepeat = false
        mayHaveArrived = stage != .build && !Code.precedingSending.contains(code)
    }

    /// The server's identifier of this request in its logs, if the response contains one.
    public var requestID: String? {
        fields["X-Request-Id"] ?? fields["Request-Id"] ?? fields["X-Correlation-Id"]
    }

    /// The problem description of the response (RFC 9457); `nil` if there is none.
    public var problem: Problem? {
        let type = fields["Content-Type"].flatMap { MimeType(rawValue: $0) }
        return type?.essence == MimeType.problemJSON.essence ? Problem(json: body) : nil
    }

    /// Decodes the body as an error type of your API.
    ///
    /// - Parameters:
    ///   - type: The type that describes the API's errors.
    ///   - decoder: The decoder; by default the route's or the host's ``ResponseParser``, which uses ``RemoteHost/makeDecoder`` for JSON.
    /// - Returns: The decoded error; `nil` for any other body, such as the error page of a proxy.
    public func details<Details: Decodable>(as type: Details.Type = Details.self, decoder: JSONDecoder? = nil) -> Details? {
        // Ignores the reason, because the caller still has this error.
        guard decoder == nil, let reader else { return try? (decoder ?? JSONDecoder()).decode(type, from: body) }
        return try? reader.read(body, as: type)
    }

    /// Whether the same request may succeed later, by the host's `retryRules`, and may be sent again.
    public var isRetryable: Bool { mayRepeat && (isWorthRetrying ?? isTransient) }

    /// The failed operation, the reason, the remedy, and the server's request identifier.
    ///
    /// For a delivery of an outbox, the text that the app's `explaining` closure has returned.
    public var description: String {
        if let explanation { return explanation.escapedForDisplay() }
        var text = "RemoteError.\(code.rawValue) (\(stage.rawValue)): \(operation): \(message)"
        if attempts > 1 { text += " (after \(attempts) attempts)" }
        if let requestID { text += " (request id \(requestID.prefix(100)))" }
        // The message already contains the fault's text.
        if let fault = underlyingError as? RouteFault { text += " (RouteFault.\(fault.code.rawValue))" }
        // Escaped, because parts of the text come from the server and the text may be written to a terminal.
        return text.escapedForDisplay()
    }

    /// The description, which is also the `localizedDescription`.
    public var errorDescription: String? { description }

    /// Whether the cause is transient, such as a lost connection or an overloaded server.
    fileprivate var isTransient: Bool {
        switch stage {
        case .transport: Code.passing.contains(code)
        case .timeout: code == .headTimedOut || code == .idleTimedOut || code == .attemptTimedOut
        case .status: status.map { [408, 429, 502, 503, 504].contains($0) } ?? false
        case .build, .decode, .cancelled: false
        }
    }

    /// Creates the error of a request that a failure has ended.
    fileprivate init(_ failure: TransportFailure) { self.init(failure.code.stage, failure.code, operation: "", failure.message) }

    /// Whether the server has not refused the request: it was not reached, as behind a captive portal, or it has failed (RFC 9110 §15.6).
    package var refusesNothing: Bool {
        switch stage {
        case .timeout, .cancelled: true
        case .transport: ![.bodyTooLarge, .redirectRefused, .tooManyRedirects, .clientCertificateRefused].contains(code)
        // A server that names a delay limits the client, and does not refuse the request.
        case .status where status == 403 || status == 413: retryAfter != nil
        case .status: status.map { [407, 408, 425, 429].contains($0) || (500..<600).contains($0) && $0 != 501 && $0 != 505 } ?? false
        case .build, .decode: false
        }
    }
}

/// A type that reads the body of an error the way the host reads values.
package protocol ErrorReader: AnyObject, Sendable {
    func read<Details: Decodable>(_ body: Data, as type: Details.Type) throws -> Details
}

extension RemoteError: FailureAdvising {
    /// The kind of failure for a layer that retries.
    ///
    /// A request that was sent with an idempotency key may be repeated at any time, so its failure is permanent only if repeating it is of no
    /// use. The article on errors and retries has the table.
    public var failureKind: FailureKind {
        // The request itself has not failed: a host with new credentials may send it later.
        if code == .refreshFailed, (underlyingError as? StoreError)?.code == .closed { return .cancelled }
        if let changeKind { return changeKind }
        if stage == .cancelled { return .cancelled }
        // The next request starts another refresh.
        if code == .refreshFailed, mayRepeat, underlyingError?.passesByItself == true { return .transient }
        return isRetryable ? .transient : .permanent
    }

    /// Whether a store may serve expired content instead of this failure (RFC 5861 §4).
    ///
    /// `true` for the statuses 500, 502, 503 and 504, and if no complete response was received: no connection, a deadline, cancellation,
    /// a truncated response. `false` for every other status and for undecodable responses. For a failed credential refresh or interceptor,
    /// the underlying error decides if it is a ``TransportFailure`` or `FailureAdvising`.
    public var allowsStale: Bool {
        switch code {
        case .refreshFailed, .interceptorFailed:
            if let failure = underlyingError as? TransportFailure { return RemoteError(failure).allowsStale }
            return (underlyingError as? any FailureAdvising)?.allowsStale ?? false
        // A response arrived but exceeded its limit, or the server refused the client, like a 403.
        case .bodyTooLarge, .clientCertificateRefused: return false
        default: break
        }
        if let status { return [500, 502, 503, 504].contains(status) }
        return [.transport, .timeout, .cancelled].contains(stage)
    }
}

extension Error {
    /// Whether a refresh that failed with this error may succeed later: the server did not refuse it.
    ///
    /// Judges the cause instead of ``FailureAdvising/failureKind``, which is permanent for every POST. A POST is never repeated
    /// automatically, but the next 401 starts a new refresh.
    package var passesByItself: Bool {
        switch self {
        case let error as RemoteError: return error.refusesNothing
        case let failure as TransportFailure: return RemoteError(failure).refusesNothing
        case is CancellationError: return true
        // The place of shared credentials has failed, and no server was asked.
        case let error as StoreError: return error.code == .cacherFailed
        case let advice as any FailureAdvising: return advice.failureKind == .transient || advice.failureKind == .cancelled
        default: return false
        }
    }
}
