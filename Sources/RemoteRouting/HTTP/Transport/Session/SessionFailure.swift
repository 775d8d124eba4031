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
        let known = nsError.domain == NSURLErrorDomain
        self.init(urlErrorCode: known ? nsError.code : -1, text: nsError.localizedDescription, underlyingError: error)
    }

    /// The errors that precede sending. They include certificate errors, but other TLS failures may occur later.
    private static let errorsBeforeSending: Set<Int> = [
        NSURLErrorCannotConnectToHost,
        NSURLErrorServerCertificateHasBadDate, NSURLErrorServerCertificateUntrusted, NSURLErrorServerCertificateHasUnknownRoot,
        NSURLErrorServerCertificateNotYetValid, NSURLErrorAppTransportSecurityRequiresSecureConnection,
    ]

    /// Converts a code of `NSURLErrorDomain` and its text.
    init(urlErrorCode: Int, text: String, underlyingError: (any Error)? = nil) {
        let text = text.lowercased()
        func reason(_ failure: TransportFailure) -> (RemoteError.Code, String) { (failure.code, failure.message) }
        func says(_ words: String...) -> Bool { words.contains { text.contains($0) } }
        let (code, message): (RemoteError.Code, String) =
            switch urlErrorCode {
            case NSURLErrorCancelled: (.cancelled, "the task was canceled")
            case NSURLErrorNotConnectedToInternet, NSURLErrorDataNotAllowed, NSURLErrorInternationalRoamingOff:
                (.offline, "there is no network connection; try again when it returns")
            case NSURLErrorCannotFindHost, NSURLErrorDNSLookupFailed:
                (.hostNotFound, "the host's name cannot be resolved; check the name and the network")
            case NSURLErrorServerCertificateHasBadDate, NSURLErrorServerCertificateNotYetValid: reason(.expiredCertificate)
            case NSURLErrorServerCertificateUntrusted, NSURLErrorServerCertificateHasUnknownRoot: reason(.untrustedCertificate)
            case NSURLErrorClientCertificateRejected, NSURLErrorClientCertificateRequired: reason(.clientRefused)
            case NSURLErrorSecureConnectionFailed, NSURLErrorAppTransportSecurityRequiresSecureConnection:
                (.tlsFailed, "no secure connection could be established; check the server's certificate and the scheme")
            case NSURLErrorTimedOut: (.unreachable, "the system timed out; check the network, then try again")
            // FoundationNetworking passes on libcurl's text.
            case _ where says("certificate has expired", "certificate is not yet valid"): reason(.expiredCertificate)
            case _ where says("does not match target", "subject name matches"): reason(.certificateOfOtherHost)
            case _ where says("self-signed certificate", "self signed certificate", "local issuer certificate"):
                reason(.untrustedCertificate)
            case _ where says("ssl", "tls", "certificate"):
                (.tlsFailed, "no secure connection could be established; check the server's certificate and the scheme")
            case _ where says("network is unreachable", "no route to host"):
                (.unreachable, "the host cannot be reached; check the network")
            case _ where says("could not resolve", "couldn't resolve", "name or service not known"):
                (.hostNotFound, "the host's name cannot be resolved; check the name and the network")
            case NSURLErrorCannotConnectToHost:
                (.connectionRefused, "the host refused the connection; check the port and that the server is running")
            case _ where says("transfer closed", "connection reset", "recv failure", "send failure", "broken pipe", "empty reply"):
                (.connectionLost, "the connection ended before the response was complete; try again")
            case _ where says("http/0.9", "chunked", "content unencoding", "header", "illegal", "unsupported http", "weird", "invalid"),
                NSURLErrorBadServerResponse, NSURLErrorCannotDecodeRawData, NSURLErrorCannotDecodeContentData,
                NSURLErrorCannotParseResponse:
                (.protocolViolation, "the response is not valid HTTP; check the server and any proxy in between")
            case NSURLErrorNetworkConnectionLost: (.connectionLost, "the connection ended before the response was complete; try again")
            default: (.unreachable, "the exchange failed for an unknown reason; check the network, then try again")
            }
        self.init(code, message, underlyingError: underlyingError)
        if TransportFailure.errorsBeforeSending.contains(urlErrorCode) { mayHaveArrived = false }
    }
}
