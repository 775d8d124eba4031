internal import Wire

extension TransportFailure {
    init(_ failure: WireFailure) {
        if let failure = failure.underlyingError as? TransportFailure {
            self = failure
            return
        }
        let code: RemoteError.Code =
            switch failure.code {
            case .invalidRequest: .unsupported
            case .bodyUnreadable: .bodyUnreadable
            case .hostNotFound: .hostNotFound
            case .connectionRefused: .connectionRefused
            case .unreachable, .engineFailed: .unreachable
            case .connectionLost: .connectionLost
            case .tlsFailed: .tlsFailed
            case .protocolViolation, .headTooLarge: .protocolViolation
            case .timedOut(.head): .headTimedOut
            case .timedOut(.idle): .idleTimedOut
            case .timedOut(.attempt): .attemptTimedOut
            case .timedOut(.overall): .overallTimedOut
            }
        self.init(code, failure.message, underlyingError: failure.underlyingError)
    }
}
