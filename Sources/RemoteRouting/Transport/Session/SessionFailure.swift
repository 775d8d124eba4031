internal import Foundation
internal import Wire

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

extension TransportFailure {
    /// Reads an error of `URLSession`.
    ///
    /// On Linux most failures have the code −1, and only the text of the library below tells them apart; where it is not known the
    /// failure is called unreachable.
    init(sessionError error: any Error) {
        let nsError = error as NSError
        let known = nsError.domain == NSURLErrorDomain
        self.init(urlErrorCode: known ? nsError.code : -1, text: nsError.localizedDescription, underlyingError: error)
    }

    /// The errors that come before the request is sent. A certificate is checked then; other failures of TLS may come later.
    private static let errorsBeforeSending: Set<Int> = [
        NSURLErrorCannotConnectToHost,
        NSURLErrorServerCertificateHasBadDate, NSURLErrorServerCertificateUntrusted, NSURLErrorServerCertificateHasUnknownRoot,
        NSURLErrorServerCertificateNotYetValid, NSURLErrorAppTransportSecurityRequiresSecureConnection,
    ]

    /// The pure part: a code of `NSURLErrorDomain` and the text beside it.
    init(urlErrorCode: Int, text: String, underlyingError: (any Error)? = nil) {
        let text = text.lowercased()
        func reason(_ fault: WireTLS.Fault) -> (RemoteError.Code, String) { (RemoteError.Code(fault), fault.message) }
        func says(_ words: String...) -> Bool { words.contains { text.contains($0) } }
        let (code, message): (RemoteError.Code, String) =
            switch urlErrorCode {
            case NSURLErrorCancelled: (.cancelled, "the task was canceled")
            case NSURLErrorNotConnectedToInternet, NSURLErrorDataNotAllowed, NSURLErrorInternationalRoamingOff:
                (.offline, "there is no network; try again once there is")
            case NSURLErrorCannotFindHost, NSURLErrorDNSLookupFailed:
                (.hostNotFound, "the host's name is not known; check it, and the network")
            case NSURLErrorServerCertificateHasBadDate, NSURLErrorServerCertificateNotYetValid: reason(.expired)
            case NSURLErrorServerCertificateUntrusted, NSURLErrorServerCertificateHasUnknownRoot: reason(.untrusted)
            case NSURLErrorClientCertificateRejected, NSURLErrorClientCertificateRequired: reason(.clientRefused)
            case NSURLErrorSecureConnectionFailed, NSURLErrorAppTransportSecurityRequiresSecureConnection:
                (.tlsFailed, "no secure connection could be made; check the server's certificate and the scheme")
            case NSURLErrorTimedOut: (.unreachable, "the system gave up waiting; check the network, then try again")
            // Where FoundationNetworking passes on libcurl's words.
            case _ where says("certificate has expired", "certificate is not yet valid"): reason(.expired)
            case _ where says("does not match target", "subject name matches"): reason(.otherHost)
            case _ where says("self-signed certificate", "self signed certificate", "local issuer certificate"): reason(.untrusted)
            case _ where says("ssl", "tls", "certificate"):
                (.tlsFailed, "no secure connection could be made; check the server's certificate and the scheme")
            case _ where says("network is unreachable", "no route to host"):
                (.unreachable, "the host cannot be reached; check the network")
            case _ where says("could not resolve", "couldn't resolve", "name or service not known"):
                (.hostNotFound, "the host's name is not known; check it, and the network")
            case NSURLErrorCannotConnectToHost:
                (.connectionRefused, "the host does not accept connections there; check the port, and whether the server runs")
            case _ where says("transfer closed", "connection reset", "recv failure", "send failure", "broken pipe", "empty reply"):
                (.connectionLost, "the connection ended in the middle; try again")
            case _ where says("http/0.9", "chunked", "content unencoding", "header", "illegal", "unsupported http", "weird", "invalid"),
                NSURLErrorBadServerResponse, NSURLErrorCannotDecodeRawData, NSURLErrorCannotDecodeContentData,
                NSURLErrorCannotParseResponse:
                (.protocolViolation, "what came is not proper HTTP; look at the server, or at what stands in between")
            case NSURLErrorNetworkConnectionLost: (.connectionLost, "the connection ended in the middle; try again")
            default: (.unreachable, "the exchange failed, and the system does not say why; check the network, then try again")
            }
        self.init(code, message, underlyingError: underlyingError)
        if TransportFailure.errorsBeforeSending.contains(urlErrorCode) { mayHaveArrived = false }
    }
}
