package import Foundation

#if os(Linux)
internal import CurlShim
#endif

/// The TLS requirements of a request, validated and in libcurl's form.
package struct WireTLS: Hashable, Sendable {
    /// The authorities in PEM; `nil` for the system's.
    package var authorities: Data?
    /// The SHA-256 digests of public keys in base64; empty for any key.
    package var pins: [String] = []
    /// The client certificate and its key in PEM.
    package var certificate: (chain: Data, key: Data)? {
        get { chain.flatMap { chain in key.map { (chain, $0) } } }
        set { (chain, key) = (newValue?.chain, newValue?.key) }
    }
    /// The password of the key; empty for none.
    package var password = ""
    /// Whether TLS 1.2 is refused.
    package var needsTLS13 = false

    private var chain: Data?
    private var key: Data?

    package init() {}

    /// Returns the reason why a build of libcurl cannot fulfill the options; `nil` if it can.
    ///
    /// - Parameters:
    ///   - version: The version as a number: `0x075801` is 7.88.1.
    ///   - backend: The TLS library, as libcurl names it.
    package func problem(version: UInt32, backend: String) -> String? {
        // With some other TLS libraries, libcurl accepts certificates in memory but silently ignores them.
        let hasOpenSSL = ["OpenSSL/", "LibreSSL/", "BoringSSL", "quictls/", "AWS-LC"].contains { backend.hasPrefix($0) }
        if !hasOpenSSL { return "libcurl is built with \(backend.isEmpty ? "no TLS" : backend), and the TLS options need OpenSSL" }
        if authorities != nil, version < 0x074D00 { return "libcurl is older than 7.77 and does not accept the app's authorities" }
        if chain != nil, version < 0x074700 { return "libcurl is older than 7.71 and does not accept client certificates from memory" }
        return nil
    }

    /// Hashes the pins, the key and its password. Hashes the whole key, because `Data` hashes only its first bytes.
    func hashSecrets(into hasher: inout Hasher) {
        hasher.combine(pins.sorted())
        key?.withUnsafeBytes { hasher.combine(bytes: $0) }
        hasher.combine(password)
    }

    /// Returns whether libcurl might reuse a connection made with other options, as before 7.83.1 (CVE-2022-27782).
    static func mayMixConnections(version: UInt32) -> Bool { version < 0x075301 }
}

#if os(Linux)
extension WireTLS {
    /// Calls a function with the options in the shim's form.
    func withWireForm(isAlone: Bool, _ body: (UnsafePointer<wire_tls>?) -> Int32) -> Int32 {
        func bytes(_ buffer: UnsafeRawBufferPointer) -> wire_bytes { wire_bytes(start: buffer.baseAddress, count: buffer.count) }
        let none = Data()
        return (authorities ?? none).withUnsafeBytes { authorities in
            (chain ?? none).withUnsafeBytes { chain in
                (key ?? none).withUnsafeBytes { key in
                    password.withCString { password in
                        // Sorted, because libcurl compares the text to find a connection.
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
    /// The reason why a connection could not be secured.
    package enum Fault: Hashable, Sendable {
        /// The server's certificate is expired, untrusted or for another host, or its key matches no pin.
        case expired, untrusted, otherHost, otherKey
        /// The server refuses the client certificate or requires one.
        case clientRefused
        /// The two sides support no common version of TLS.
        case otherVersion
        /// The options of the request are unusable.
        case unusableAuthorities, unusableCertificate
        /// Any other reason.
        case other
    }
}

extension WireTLS.Fault {
    /// The kind of failure and its message.
    var failure: (WireFailure.Code, String) { (.tls(self), message) }

    /// The reason and the remedy, for the failure's message.
    package var message: String {
        switch self {
        case .expired: "the server's certificate has expired or is not valid yet; renew it, or correct this system's clock"
        case .untrusted:
            "no trusted authority signed the server's certificate; if the server is genuine, add its authority to the host's TLS options"
        case .otherHost: "the server's certificate is for another host; check the address, or replace the certificate"
        case .otherKey:
            "the server's public key matches none of the host's pins; check whether the key was replaced or the connection is intercepted"
        case .clientRefused: "the server refuses the client's certificate or requires one; check the client certificate of the host"
        case .otherVersion: "the server offers no version of TLS that the host accepts; update the server, or accept an older version"
        case .unusableAuthorities: "the host's certificate authorities cannot be used; check that each certificate is complete"
        case .unusableCertificate:
            "the host's client certificate cannot be used; check that the private key and its password match it"
        case .other: "no secure connection could be established; check the server's certificate and the scheme"
        }
    }

    /// The TLS alerts that refuse a client certificate (RFC 8446 §6.2), in OpenSSL's words.
    private static let refusals = [
        "certificate required", "bad certificate", "unsupported certificate", "certificate revoked", "certificate expired",
        "certificate unknown", "unknown ca", "access denied",
    ]

    /// Converts a failure to secure a connection; `nil` if it concerns neither certificates nor versions.
    ///
    /// - Parameters:
    ///   - code: The `CURLcode`.
    ///   - text: libcurl's message.
    ///   - verification: OpenSSL's number for the reason of a refused certificate; 0 or 1 if it was not refused.
    ///   - tls: The TLS requirements of the request.
    ///   - mayHaveArrived: Whether the request was sent.
    package init?(_ code: Int32, _ text: String, _ verification: Int, _ tls: WireTLS?, mayHaveArrived: Bool) {
        switch (code, verification) {
        case (77, _) where tls?.authorities != nil: self = .unusableAuthorities
        // Newer versions of libcurl report a wrong password or a mismatched key as a bad argument.
        case (58, _) where tls?.certificate != nil, (43, _) where tls?.certificate != nil && !mayHaveArrived: self = .unusableCertificate
        case (60, 9), (60, 10), (60, 13), (60, 14): self = .expired
        case (60, 62...64): self = .otherHost
        case (60, 2...): self = .untrusted
        // libcurl compares the names itself, after OpenSSL's verification.
        case (60, _) where text.contains("match") || text.contains("cert name") || text.contains("common name"): self = .otherHost
        // An alert from the server, which newer versions report with the code of a refused server certificate.
        case (60, _) where tls?.certificate != nil && text == "SSL certificate verification failed": self = .clientRefused
        case (90, _): self = .otherKey
        case (98, _): self = .clientRefused
        case (35, _) where ["alert protocol version", "unsupported protocol", "no protocols available"].contains { text.contains($0) }:
            self = .otherVersion
        // A forged certificate has a wrong signature. Before libcurl 8, the message contains OpenSSL's first error instead of the last.
        case (35, _) where ["asn1 encoding routines", "rsa routines"].contains { text.contains($0) }: self = .untrusted
        // In TLS 1.3 the alert arrives after the client has sent its request.
        case (35, _), (55, _), (56, _):
            guard WireTLS.Fault.refusals.contains(where: { text.contains("alert " + $0) }) else { return nil }
            self = .clientRefused
        default: return nil
        }
    }
}
