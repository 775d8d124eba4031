package import Foundation

#if os(Linux)
internal import CurlShim
#endif

/// What a request demands of its secure connection, checked and in the form that libcurl takes.
package struct WireTLS: Hashable, Sendable {
    /// The authorities in PEM; `nil` for the system's.
    package var authorities: Data?
    /// The SHA-256 digests of public keys in base64; empty for any key.
    package var pins: [String] = []
    /// The client's certificate and its key in PEM.
    package var certificate: (chain: Data, key: Data)? {
        get { chain.flatMap { chain in key.map { (chain, $0) } } }
        set { (chain, key) = (newValue?.chain, newValue?.key) }
    }
    /// The password of the key.
    package var password = ""
    /// Whether TLS 1.2 is too old.
    package var needsTLS13 = false

    private var chain: Data?
    private var key: Data?

    package init() {}

    /// Why a build of libcurl cannot do this; `nil` where it can.
    ///
    /// - Parameters:
    ///   - version: The version as a number: `0x075801` is 7.88.1.
    ///   - backend: The library for TLS, as libcurl names it.
    package func problem(version: UInt32, backend: String) -> String? {
        // libcurl takes certificates from memory for some other libraries too, and ignores them silently.
        let hasOpenSSL = ["OpenSSL/", "LibreSSL/", "BoringSSL", "quictls/", "AWS-LC"].contains { backend.hasPrefix($0) }
        if !hasOpenSSL { return "libcurl is built with \(backend.isEmpty ? "no TLS" : backend), and the TLS options need OpenSSL" }
        if authorities != nil, version < 0x074D00 { return "libcurl is older than 7.77, which takes authorities of the app" }
        if chain != nil, version < 0x074700 { return "libcurl is older than 7.71, which takes client certificates from memory" }
        return nil
    }

    /// Hashes the pins, the key and its password; all of the key, of which `Data` hashes the beginning only.
    func hashSecrets(into hasher: inout Hasher) {
        hasher.combine(pins.sorted())
        key?.withUnsafeBytes { hasher.combine(bytes: $0) }
        hasher.combine(password)
    }

    /// Whether a libcurl before 7.83.1 might reuse connections of other options (CVE-2022-27782).
    static func mayMixConnections(version: UInt32) -> Bool { version < 0x075301 }
}

#if os(Linux)
extension WireTLS {
    /// Calls a function with the options as the shim wants them.
    func withWireForm(isAlone: Bool, _ body: (UnsafePointer<wire_tls>?) -> Int32) -> Int32 {
        func bytes(_ buffer: UnsafeRawBufferPointer) -> wire_bytes { wire_bytes(start: buffer.baseAddress, count: buffer.count) }
        let none = Data()
        return (authorities ?? none).withUnsafeBytes { authorities in
            (chain ?? none).withUnsafeBytes { chain in
                (key ?? none).withUnsafeBytes { key in
                    password.withCString { password in
                        // Sorted, since libcurl compares the text to find a connection.
                        pins.sorted().map { "sha256//" + $0 }.joined(separator: ";").withCString { text in
                            var tls = wire_tls(
                                authorities: bytes(authorities), certificate: bytes(chain), key: bytes(key), password: password,
                                pins: pins.isEmpty ? nil : text, needs_tls13: needsTLS13 ? 1 : 0, is_alone: isAlone ? 1 : 0)
                            return body(&tls)
                        }
                    }
                }
            }
        }
    }
}
#endif

// MARK: Failures

extension WireTLS {
    /// Why a connection could not be secured.
    package enum Fault: Hashable, Sendable {
        /// The server's certificate is out of date, untrusted, or for another host; or its key is none of the pins.
        case expired, untrusted, otherHost, otherKey
        /// The server refuses the client's certificate, or misses one.
        case clientRefused
        /// No version of TLS suits both sides.
        case otherVersion
        /// The options of the request cannot be used.
        case unusableAuthorities, unusableCertificate
        /// Any other reason.
        case other
    }
}

extension WireTLS.Fault {
    /// The kind of failure, and its message.
    var failure: (WireFailure.Code, String) { (.tls(self), message) }

    /// What happened and what to do about it.
    package var message: String {
        switch self {
        case .expired: "the server's certificate has expired or is not valid yet; renew it, or correct this system's clock"
        case .untrusted:
            "no trusted authority has signed the server's certificate; if it is right, give its authority in the host's TLS options"
        case .otherHost: "the server's certificate is for another host; check the address, or replace the certificate"
        case .otherKey:
            "the server's public key is none of the host's pins; check whether the key was replaced, or the connection is intercepted"
        case .clientRefused: "the server refuses the client's certificate or requires one; check the client certificate of the host"
        case .otherVersion: "the server offers no version of TLS that the host accepts; update the server, or accept an older version"
        case .unusableAuthorities: "the host's certificate authorities cannot be used; check that each certificate is whole"
        case .unusableCertificate:
            "the host's client certificate cannot be used; check that the private key belongs to it, and the key's password"
        case .other: "no secure connection could be made; check the server's certificate and the scheme"
        }
    }

    /// The alerts by which a server refuses a client's certificate (RFC 8446 §6.2), in OpenSSL's words.
    private static let refusals = [
        "certificate required", "bad certificate", "unsupported certificate", "certificate revoked", "certificate expired",
        "certificate unknown", "unknown ca", "access denied",
    ]

    /// Reads why libcurl could not secure a connection; `nil` where that is no matter of certificates or versions.
    ///
    /// - Parameters:
    ///   - code: The `CURLcode`.
    ///   - text: libcurl's own words.
    ///   - verification: OpenSSL's number for why it refused the certificate; 0 and 1 where it did not.
    ///   - tls: The demands on the connection.
    ///   - mayHaveArrived: Whether the request went out.
    package init?(_ code: Int32, _ text: String, _ verification: Int, _ tls: WireTLS?, mayHaveArrived: Bool) {
        switch (code, verification) {
        case (77, _) where tls?.authorities != nil: self = .unusableAuthorities
        // Newer versions call a wrong password or a foreign key a bad argument.
        case (58, _) where tls?.certificate != nil, (43, _) where tls?.certificate != nil && !mayHaveArrived: self = .unusableCertificate
        case (60, 9), (60, 10), (60, 13), (60, 14): self = .expired
        case (60, 62...64): self = .otherHost
        case (60, 2...): self = .untrusted
        // libcurl compares the names itself, behind OpenSSL's verification.
        case (60, _) where text.contains("match") || text.contains("cert name") || text.contains("common name"): self = .otherHost
        // An alert of the server, which newer versions give the code of a certificate that this side refuses.
        case (60, _) where tls?.certificate != nil && text == "SSL certificate verification failed": self = .clientRefused
        case (90, _): self = .otherKey
        case (98, _): self = .clientRefused
        case (35, _) where ["alert protocol version", "unsupported protocol", "no protocols available"].contains { text.contains($0) }:
            self = .otherVersion
        // The signature of a forged certificate is wrong, and libcurl before 8 passes on OpenSSL's first complaint instead of the last.
        case (35, _) where ["asn1 encoding routines", "rsa routines"].contains { text.contains($0) }: self = .untrusted
        // In TLS 1.3 the alert comes when the client has sent its request already.
        case (35, _), (55, _), (56, _):
            guard WireTLS.Fault.refusals.contains(where: { text.contains("alert " + $0) }) else { return nil }
            self = .clientRefused
        default: return nil
        }
    }
}
