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

    /// The same failure for a request that was not sent.
    var beforeSending: TransportFailure {
        var copy = self
        copy.mayHaveArrived = false
        return copy
    }

    package static let cancelled = TransportFailure(.cancelled, "the task was canceled, which ended the exchange")
    static let abandoned = TransportFailure(.cancelled, "the body was released before its end, which ended the exchange")

    /// The failure of a request body that could not be read.
    static func unreadableBody(_ error: any Error) -> TransportFailure {
        if let failure = error as? TransportFailure { return failure }
        return TransportFailure(
            .bodyUnreadable, "the request body could not be read to its end; check its source", underlyingError: error)
    }

    package init(_ part: Deadlines.Part, _ limits: ExchangeLimits) {
        func said(_ duration: Duration?) -> String { duration.map { " within \($0)" } ?? "" }
        switch part {
        case .head: self.init(.headTimedOut, "no response arrived\(said(limits.head)); try again later, or allow more time for the head")
        case .idle: self.init(.idleTimedOut, "the response stopped arriving\(said(limits.idle)); try again, or allow longer pauses")
        case .attempt: self.init(.attemptTimedOut, "the response was not complete\(said(limits.attempt)); allow more time for an attempt")
        case .overall: self.init(.overallTimedOut, "all attempts together took too long; allow more time, or try again later")
        }
    }
}

extension TransportFailure {
    init(_ failure: WireFailure) {
        if let known = failure.underlyingError as? TransportFailure {
            self = known
            mayHaveArrived = failure.mayHaveArrived
            return
        }
        let code: RemoteError.Code =
            switch failure.code {
            case .invalidRequest: .unsupported
            case .bodyUnreadable: .bodyUnreadable
            case .proxyUnreachable: .proxyUnreachable
            case .proxyRefused: .proxyRefused
            case .proxyUnauthorized: .proxyUnauthorized
            case .hostNotFound: .hostNotFound
            case .connectionRefused: .connectionRefused
            case .unreachable: .unreachable
            case .engineFailed: .engineFailed
            case .connectionLost: .connectionLost
            case .tls(let fault): RemoteError.Code(fault)
            case .protocolViolation, .headTooLarge: .protocolViolation
            case .timedOut(.head): .headTimedOut
            case .timedOut(.idle): .idleTimedOut
            case .timedOut(.attempt): .attemptTimedOut
            case .timedOut(.overall): .overallTimedOut
            }
        self.init(code, failure.message, underlyingError: failure.underlyingError)
        mayHaveArrived = failure.mayHaveArrived
    }
}

extension TransportFailure {
    init(_ fault: WireTLS.Fault, underlyingError: (any Error)? = nil) {
        self.init(RemoteError.Code(fault), fault.message, underlyingError: underlyingError)
    }
}

extension RemoteError.Code {
    init(_ fault: WireTLS.Fault) {
        switch fault {
        case .expired: self = .certificateExpired
        case .untrusted: self = .certificateUntrusted
        case .otherHost: self = .certificateNameMismatch
        case .otherKey: self = .pinMismatch
        case .clientRefused: self = .clientCertificateRefused
        case .otherVersion: self = .tlsVersionRefused
        case .unusableAuthorities, .unusableCertificate: self = .invalidTLSOptions
        case .other: self = .tlsFailed
        }
    }
}
