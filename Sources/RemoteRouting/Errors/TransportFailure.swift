internal import StoreCore
internal import Wire

/// Why one exchange came to nothing; `RemoteError` carries it, with what was being attempted.
public struct TransportFailure: Error, Sendable, CustomStringConvertible {
    /// What kind of failure this is.
    public var code: RemoteError.Code
    /// What happened and what to do about it; no addresses and no field values.
    public var message: String
    /// Whether the request, or a part of it, may have reached the server.
    public var mayHaveArrived: Bool
    /// What the failure comes from, where something below failed.
    public var underlyingError: (any Error)?

    /// Makes a failure.
    ///
    /// The request may have arrived, unless the code excludes it: ``RemoteError/Code/unsupported``, ``RemoteError/Code/offline``,
    /// ``RemoteError/Code/hostNotFound``, ``RemoteError/Code/connectionRefused``, and those of the server's certificate. A transport that
    /// knows more sets ``mayHaveArrived``.
    ///
    /// - Parameters:
    ///   - code: What kind of failure this is.
    ///   - message: What happened and what to do about it.
    ///   - underlyingError: What it comes from.
    public init(_ code: RemoteError.Code, _ message: String, underlyingError: (any Error)? = nil) {
        self.code = code
        self.message = message
        mayHaveArrived = !RemoteError.Code.precedingSending.contains(code)
        self.underlyingError = underlyingError
    }

    /// The kind of failure, what happened, and what to do about it.
    public var description: String { "TransportFailure.\(code.rawValue): \(message.escapedForDisplay())" }

    /// The same failure of a request of which nothing was sent.
    var beforeSending: TransportFailure {
        var copy = self
        copy.mayHaveArrived = false
        return copy
    }

    static let cancelled = TransportFailure(.cancelled, "the task was canceled, and the exchange ended with it")
    static let abandoned = TransportFailure(.cancelled, "nobody reads the body any more, so the exchange was ended")

    /// The body to send could not be read.
    static func unreadableBody(_ error: any Error) -> TransportFailure {
        if let failure = error as? TransportFailure { return failure }
        return TransportFailure(
            .bodyUnreadable, "the body to send could not be read to its end; look at its source", underlyingError: error)
    }

    init(_ part: Deadlines.Part, _ limits: ExchangeLimits) {
        func said(_ duration: Duration?) -> String { duration.map { " within \($0)" } ?? "" }
        switch part {
        case .head: self.init(.headTimedOut, "no answer came\(said(limits.head)); try again later, or allow more time for the head")
        case .idle: self.init(.idleTimedOut, "the answer stopped coming\(said(limits.idle)); try again, or allow longer pauses")
        case .attempt: self.init(.attemptTimedOut, "the answer was not complete\(said(limits.attempt)); allow more time for an attempt")
        case .overall: self.init(.overallTimedOut, "the time for all attempts is over; allow more, or try again later")
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
            case .unreachable, .engineFailed: .unreachable
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
