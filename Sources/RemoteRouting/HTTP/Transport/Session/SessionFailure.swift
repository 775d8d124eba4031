internal import Foundation

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

extension TransportFailure {
    /// Converts an error of `URLSession`.
    ///
    /// On Linux most failures have the code −1, and only libcurl's text distinguishes them. A failure with an unknown text becomes
    /// ``RemoteError/Code/unreachable``.
    init(sessionError error: any Error) {
        let nsError = error as NSError
        // The error of a WebSocket is often that of its socket.
        let isLost = nsError.domain == NSPOSIXErrorDomain && TransportFailure.errorsOfLostSockets.contains(nsError.code)
        let code = nsError.domain == NSURLErrorDomain ? nsError.code : isLost ? NSURLErrorNetworkConnectionLost : -1
        self.init(urlErrorCode: code, text: nsError.localizedDescription, underlyingError: error)
    }

    private static let errorsOfLostSockets: Set<Int> = [Int(ECONNRESET), Int(ECONNABORTED), Int(ENOTCONN), Int(EPIPE)]

    /// The errors that precede sending. They include certificate errors, but other TLS failures may occur later.
    private static let errorsBeforeSending: Set<Int> = [
        NSURLErrorCannotConnectToHost,
        NSURLErrorServerCertificateHasBadDate, NSURLErrorServerCertificateUntrusted, NSURLErrorServerCertificateHasUnknownRoot,
        NSURLErrorServerCertificateNotYetValid, NSURLErrorAppTransportSecurityRequiresSecureConnection,
    ]

    init(urlErrorCode: Int, text: String, underlyingError: (any Error)? = nil) {
        let text = text.lowercased()
        func says(_ words: String...) -> Bool { words.contains { text.contains($0) } }
        self =
            switch urlErrorCode {
            case NSURLErrorCancelled: .init(.cancelled, "the task was canceled")
            case NSURLErrorNotConnectedToInternet, NSURLErrorDataNotAllowed, NSURLErrorInternationalRoamingOff:
                .init(.offline, "there is no network connection; try again when it returns")
            case NSURLErrorCannotFindHost, NSURLErrorDNSLookupFailed: .unresolved
            case NSURLErrorServerCertificateHasBadDate, NSURLErrorServerCertificateNotYetValid: .expiredCertificate
            case NSURLErrorServerCertificateUntrusted, NSURLErrorServerCertificateHasUnknownRoot: .untrustedCertificate
            case NSURLErrorClientCertificateRejected, NSURLErrorClientCertificateRequired: .clientRefused
            case NSURLErrorSecureConnectionFailed, NSURLErrorAppTransportSecurityRequiresSecureConnection: .insecure
            case NSURLErrorTimedOut: .init(.unreachable, "the system timed out; check the network, then try again")
            // FoundationNetworking passes on libcurl's text.
            case _ where says("certificate has expired", "certificate is not yet valid"): .expiredCertificate
            case _ where says("does not match target", "subject name matches"): .certificateOfOtherHost
            case _ where says("self-signed certificate", "self signed certificate", "local issuer certificate"): .untrustedCertificate
            case _ where says("ssl", "tls", "certificate"): .insecure
            case _ where says("network is unreachable", "no route to host"): .unreached
            case _ where says("could not resolve", "couldn't resolve", "name or service not known"): .unresolved
            case NSURLErrorCannotConnectToHost: .refused
            case _ where says("transfer closed", "connection reset", "recv failure", "send failure", "broken pipe", "empty reply"):
                .lost
            case _ where says("http/0.9", "chunked", "content unencoding", "header", "illegal", "unsupported http", "weird", "invalid"),
                NSURLErrorBadServerResponse, NSURLErrorCannotDecodeRawData, NSURLErrorCannotDecodeContentData,
                NSURLErrorCannotParseResponse:
                .malformed
            case NSURLErrorNetworkConnectionLost: .lost
            default: .init(.unreachable, "the exchange failed for an unknown reason; check the network, then try again")
            }
        self.underlyingError = underlyingError
        if TransportFailure.errorsBeforeSending.contains(urlErrorCode) { mayHaveArrived = false }
    }
}
