extension RemoteError {
    /// A sentence for people, in English, such as “The server cannot be reached. Try again later.”
    ///
    /// The text depends on the code, the status, and whether a failed refresh of credentials may succeed later. It names neither an address
    /// nor the cause. Use ``description`` for logs, and ``code`` and ``status`` as keys of your own translations.
    public var notice: String {
        switch code {
        case .offline: "You are offline."
        case .cancelled: "Canceled."
        case .hostNotFound, .connectionRefused, .unreachable, .connectionLost, .proxyUnreachable, .proxyRefused, .proxyUnauthorized:
            "The server cannot be reached. Try again later."
        case .headTimedOut, .idleTimedOut, .attemptTimedOut, .overallTimedOut: "The server takes too long. Try again later."
        case .certificateExpired, .certificateUntrusted, .certificateNameMismatch, .pinMismatch, .clientCertificateRefused,
            .tlsVersionRefused, .tlsFailed, .insecureCredentials:
            "The connection to the server is not secure."
        case .refreshFailed where underlyingError?.passesByItself == true: "The server cannot be reached. Try again later."
        case .refreshFailed: "Sign in again."
        case .badStatus: statusNotice
        case .spillFailed, .fileFailed: "The data cannot be stored. Free some space."
        default: status == nil ? "Something went wrong." : "The response of the server cannot be read. Try again later."
        }
    }

    private var statusNotice: String {
        switch status ?? 0 {
        case 401: "Sign in again."
        case 403: "You are not allowed to do this."
        case 404, 410: "This is not available."
        case 408, 425, 429: "The server is busy. Try again later."
        case 409, 412: "This was changed elsewhere. Look at it again."
        case 413: "This is too large for the server."
        case 400..<500: "The server does not accept this."
        case 500...: "The server has a problem. Try again later."
        default: "The response of the server cannot be read. Try again later."
        }
    }
}
