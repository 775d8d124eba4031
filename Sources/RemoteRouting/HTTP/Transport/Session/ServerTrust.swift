#if canImport(Darwin)
internal import Foundation
internal import Security
internal import StoreCore
internal import StorePlatform

/// The certificate chain of a server, as the system represents it.
struct ServerTrust {
    private let trust: SecTrust

    init(_ trust: SecTrust) { self.trust = trust }

    /// Returns the reason to refuse the connection; `nil` if the certificates fulfill the options.
    func failure(under tls: TLSOptions) -> TransportFailure? {
        if let authorities = tls.authorities {
            let certificates = authorities.certificates.compactMap { SecCertificateCreateWithData(nil, $0 as CFData) }
            guard SecTrustSetAnchorCertificates(trust, certificates as CFArray) == errSecSuccess,
                SecTrustSetAnchorCertificatesOnly(trust, true) == errSecSuccess
            else { return .unusableAuthorities }
        }
        var error: CFError?
        guard SecTrustEvaluateWithError(trust, &error) else {
            return ServerTrust.fault(error.map { CFErrorGetCode($0) } ?? 0).caused(by: error)
        }
        if tls.pins.isEmpty { return nil }
        guard let chain = SecTrustCopyCertificateChain(trust) as? [SecCertificate], let certificate = chain.first,
            let key = DER.publicKey(ofCertificate: [UInt8](SecCertificateCopyData(certificate) as Data)),
            tls.pins.contains(where: { $0.digest == Data(SHA256.digest(of: key).bytes) })
        else { return .otherKey }
        return nil
    }

    private static func fault(_ status: Int) -> TransportFailure {
        switch OSStatus(truncatingIfNeeded: status) {
        case errSecCertificateExpired, errSecCertificateNotValidYet: .expiredCertificate
        case errSecHostNameMismatch: .certificateOfOtherHost
        default: .untrustedCertificate
        }
    }
}
#endif
