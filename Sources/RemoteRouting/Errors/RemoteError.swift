public import Foundation
public import StoreCore

/// Why a route did not give what it was sent for: where it failed, what the server said, and what to do.
///
/// ```swift
/// do {
///     user = try await api.send("/users/\(id)")
/// } catch let error as RemoteError where error.status == 404 {
///     user = nil
/// }
/// ```
///
/// A description never has a query, a field's value or a byte of a body: these may be secrets.
public struct RemoteError: LocalizedError, Sendable, CustomStringConvertible {
    /// Where it failed.
    public enum Stage: String, Hashable, Sendable {
        /// While the request was made; nothing was sent.
        case build
        /// On the way.
        case transport
        /// The answer is not one of success.
        case status
        /// The answer could not be made into a value.
        case decode
        /// A deadline passed.
        case timeout
        /// The task was cancelled.
        case cancelled
    }

    /// Where it failed.
    public var stage: Stage
    /// What kind of failure this is.
    public var code: Code
    /// What was attempted: the method, and the address without its query.
    public var operation: String
    /// What happened and what to do about it.
    public var message: String
    /// The status of the answer, where there is one.
    public var status: Int?
    /// The header of the answer, where there is one.
    public var fields: HTTPFields
    /// The beginning of the answer's body, at most 64 KiB.
    public var body: Data
    /// How long the server asked to be left alone.
    public var retryAfter: Duration?
    /// How many attempts were made.
    public var attempts: Int
    /// Whether the request may be sent again, as far as its method and body go.
    public var mayRepeat: Bool
    /// Whether the request, or a part of it, may have reached the server.
    ///
    /// `false` is certain: the server has seen nothing of the request, so sending it again is no second sending. `true` is the case after any
    /// response but a refusal (401 before new credentials, 307 and 308 before the redirect), and after a failure that does not exclude it.
    /// ``CurlTransport`` knows whether a request went out; ``URLSessionTransport`` reports `false` only where no connection was made.
    ///
    /// ```swift
    /// do {
    ///     try await api.send(Route(path: "/orders", method: .post, body: .json(order)))
    /// } catch let error as RemoteError where error.mayHaveArrived {
    ///     showOrders()  // the order may be there: look before ordering again
    /// }
    /// ```
    public var mayHaveArrived: Bool
    /// What it comes from, where something below failed.
    public var underlyingError: (any Error)?
    /// Reads the body as the host reads values; `nil` without a response.
    var reader: ErrorReader?

    /// Makes an error.
    ///
    /// - Parameters:
    ///   - stage: Where it failed.
    ///   - code: What kind of failure this is.
    ///   - operation: What was attempted.
    ///   - message: What happened and what to do about it.
    ///   - underlyingError: What it comes from.
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
        // These have a response.
        mayHaveArrived = stage == .status || stage == .decode
    }

    /// How much of an answer's body an error keeps, in bytes.
    static let keptBodyBytes = 65_536

    /// What the server calls this request in its own logs, where it says so.
    public var requestID: String? {
        fields["X-Request-Id"] ?? fields["Request-Id"] ?? fields["X-Correlation-Id"]
    }

    /// What the server says went wrong, in the form of RFC 9457; `nil` where it said it otherwise.
    public var problem: Problem? {
        Problem(data: body, type: fields["Content-Type"].flatMap { MimeType(rawValue: $0) })
    }

    /// The body as an error type of your API.
    ///
    /// - Parameters:
    ///   - type: The type that describes the API's errors.
    ///   - decoder: The decoder to use; by default the route's or the host's ``ResponseParser``, which is ``RemoteHost/makeDecoder`` for JSON.
    /// - Returns: `nil` where the body is something else, as that of a proxy in between may be.
    public func details<Details: Decodable>(as type: Details.Type = Details.self, decoder: JSONDecoder? = nil) -> Details? {
        // The reason does not matter: a caller has the error itself if nothing can be read.
        guard decoder == nil, let reader else { return try? (decoder ?? JSONDecoder()).decode(type, from: body) }
        return try? reader.read(body, as: type)
    }

    /// Whether the same request may well succeed next time.
    public var isRetryable: Bool { mayRepeat && isPassing }

    /// The failed operation, what happened, what to do, and how to find it in the server's logs.
    public var description: String {
        var text = "RemoteError.\(code.rawValue) (\(stage.rawValue)): \(operation): \(message)"
        if attempts > 1 { text += " (after \(attempts) attempts)" }
        if let requestID { text += " (request id \(requestID.prefix(100)))" }
        // Its words are in the message already.
        if let fault = underlyingError as? RouteFault { text += " (RouteFault.\(fault.code.rawValue))" }
        // Some of the words are the server's, and the text may go to a terminal.
        return text.escapedForDisplay()
    }

    /// The description, also as `localizedDescription`.
    public var errorDescription: String? { description }

    /// Whether the cause is one that passes by itself: a lost connection, an overloaded server.
    var isPassing: Bool {
        switch stage {
        case .transport: Code.passing.contains(code)
        case .timeout: code == .headTimedOut || code == .idleTimedOut || code == .attemptTimedOut
        case .status: status.map { [408, 429, 502, 503, 504].contains($0) } ?? false
        case .build, .decode, .cancelled: false
        }
    }
}

extension RemoteError: FailureAdvising {
    /// What kind of failure this is for whoever might try again.
    public var failureKind: FailureKind {
        if stage == .cancelled { return .cancelled }
        return isRetryable ? .transient : .permanent
    }

    /// Whether a store may serve expired content in the place of this failure: RFC 5861 §4 as far as it goes, and no further.
    ///
    /// True of the statuses 500, 502, 503 and 504, and where no response was received: no connection, a deadline, a response that broke
    /// off. False of every other status and of responses that could not be decoded. A failed refresh of credentials and a failed
    /// interceptor are judged by their cause, if that gives advice.
    public var allowsStale: Bool {
        switch code {
        case .refreshFailed, .interceptorFailed: return (underlyingError as? any FailureAdvising)?.allowsStale ?? false
        // A response came, and was longer than wanted; or the server refuses the client, as by a 403.
        case .bodyTooLarge, .clientCertificateRefused: return false
        default: break
        }
        if let status { return [500, 502, 503, 504].contains(status) }
        return switch stage {
        case .transport, .timeout, .cancelled: true
        case .build, .status, .decode: false
        }
    }
}
