internal import StoreCore

/// The failure of one exchange; `RemoteError` wraps it and adds the operation.
public struct TransportFailure: Error, Sendable, CustomStringConvertible {
    /// The reason for the failure, which the `RemoteError` takes over.
    public var code: RemoteError.Code
    /// The reason and the remedy, without addresses or header values.
    public var message: String
    /// Whether the request, or a part of it, may have reached the server.
    public var mayHaveArrived: Bool
    /// The error of a lower layer that caused this one.
    public var underlyingError: (any Error)?

    /// Creates a failure.
    ///
    /// The request counts as possibly arrived, unless the code excludes it. The codes for invalid or unsupported options, for a
    /// host or proxy without a connection, and for a refused tunnel exclude it. So do the codes for an unacceptable server certificate and
    /// a refused TLS version. A transport with better knowledge sets ``mayHaveArrived``.
    ///
    /// - Parameters:
    ///   - code: The kind of failure.
    ///   - message: The reason and the remedy.
    ///   - underlyingError: The error of a lower layer that caused this one.
    public init(_ code: RemoteError.Code, _ message: String, underlyingError: (any Error)? = nil) {
        self.code = code
        self.message = message
        mayHaveArrived = !RemoteError.Code.precedingSending.contains(code)
        self.underlyingError = underlyingError
    }

    /// The kind of failure, the reason and the remedy.
    public var description: String { "TransportFailure.\(code.rawValue): \(message.escapedForDisplay())" }

    var beforeSending: TransportFailure {
        var copy = self
        copy.mayHaveArrived = false
        return copy
    }

    package static let cancelled = TransportFailure(.cancelled, "the task was canceled, which ended the exchange")
    static let abandoned = TransportFailure(.cancelled, "the body was released before its end, which ended the exchange")

    static func unreadableBody(_ error: any Error) -> TransportFailure {
        if let failure = error as? TransportFailure { return failure }
        return TransportFailure(
            .bodyUnreadable, "the request body could not be read to its end; check its source", underlyingError: error)
    }

    static let shortBody = TransportFailure(
        .bodyUnreadable, "the request body is shorter than its announced length; check its source")
    static let longBody = TransportFailure(
        .bodyUnreadable, "the request body is longer than its announced length; check its source")

    static let closedSocket = TransportFailure(.connectionLost, "the WebSocket is closed; open another one")

    static func tooLarge(_ limit: Int) -> TransportFailure {
        TransportFailure(.bodyTooLarge, "the response is larger than \(limit) bytes; stream or download it, or raise responseBytes")
    }

    package init(_ part: Deadlines.Part, _ limits: ExchangeLimits) {
        func said(_ duration: Duration?) -> String { duration.map { " within \($0)" } ?? "" }
        switch part {
        case .head:
            self.init(.headTimedOut, "no response arrived\(said(limits.timeouts.head)); try again later, or allow more time for the head")
        case .idle:
            self.init(.idleTimedOut, "the response stopped arriving\(said(limits.timeouts.idle)); try again, or allow longer pauses")
        case .attempt:
            self.init(.attemptTimedOut, "the response was not complete\(said(limits.timeouts.attempt)); allow more time for an attempt")
        case .overall: self.init(.overallTimedOut, "all attempts together took too long; allow more time, or try again later")
        }
    }

    /// The failures of a connection, which are the same for every transport.
    static let unresolved = TransportFailure(.hostNotFound, "the host's name cannot be resolved; check the name and the network")
    static let refused = TransportFailure(
        .connectionRefused, "the host refused the connection; check the port and that the server is running")
    static let unreached = TransportFailure(.unreachable, "the host cannot be reached; check the network")
    static let lost = TransportFailure(.connectionLost, "the connection ended before the response was complete; try again")
    static let malformed = TransportFailure(
        .protocolViolation, "the response is not valid HTTP; check the server and any proxy in between")

    /// The failures of a connection that could not be secured.
    static let expiredCertificate = TransportFailure(
        .certificateExpired, "the server's certificate has expired or is not valid yet; renew it, or correct this system's clock")
    static let untrustedCertificate = TransportFailure(
        .certificateUntrusted,
        "no trusted authority signed the server's certificate; if the server is genuine, add its authority to the host's TLS options")
    static let certificateOfOtherHost = TransportFailure(
        .certificateNameMismatch, "the server's certificate is for another host; check the address, or replace the certificate")
    static let otherKey = TransportFailure(
        .pinMismatch,
        "the server's public key matches none of the host's pins; check whether the key was replaced or the connection is intercepted")
    static let clientRefused = TransportFailure(
        .clientCertificateRefused,
        "the server refuses the client's certificate or requires one; check the client certificate of the host")
    static let otherTLSVersion = TransportFailure(
        .tlsVersionRefused,
        "the server offers no version of TLS that the host accepts; update the server, or accept an older version")
    static let unusableAuthorities = TransportFailure(
        .invalidTLSOptions, "the host's certificate authorities cannot be used; check that each certificate is complete")
    static let unusableClientCertificate = TransportFailure(
        .invalidTLSOptions, "the host's client certificate cannot be used; check that the private key and its password match it")
    static let insecure = TransportFailure(
        .tlsFailed, "no secure connection could be established; check the server's certificate and the scheme")

    func caused(by error: (any Error)?) -> TransportFailure {
        var copy = self
        copy.underlyingError = error
        return copy
    }
}
