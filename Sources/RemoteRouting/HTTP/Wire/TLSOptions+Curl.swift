#if os(Linux)
internal import CurlShim
internal import Foundation

// The options as libcurl takes them.

extension TLSOptions {
    /// Returns the reason why a build of libcurl cannot fulfill the options; `nil` if it can.
    func problem(version: UInt32, backend: String) -> String? {
        // With some other TLS libraries, libcurl accepts certificates in memory but silently ignores them.
        let hasOpenSSL = ["OpenSSL/", "LibreSSL/", "BoringSSL", "quictls/", "AWS-LC"].contains { backend.hasPrefix($0) }
        if !hasOpenSSL { return "libcurl is built with \(backend.isEmpty ? "no TLS" : backend), and the TLS options need OpenSSL" }
        if authorities != nil, version < 0x074D00 { return "libcurl is older than 7.77 and does not accept the app's authorities" }
        if clientCertificate != nil, version < 0x074700 {
            return "libcurl is older than 7.71 and does not accept client certificates from memory"
        }
        return nil
    }

    /// Hashes the pins, the key and its password, as far as there are any; returns whether there are.
    func hashSecrets(into hasher: inout Hasher) -> Bool {
        hasher.combine(pins)
        guard let clientCertificate else { return !pins.isEmpty }
        // The whole key, because `Data` hashes only its first bytes.
        clientCertificate.key.withUnsafeBytes { hasher.combine(bytes: $0) }
        hasher.combine(clientCertificate.password)
        return true
    }

    func withWireForm(isAlone: Bool, _ body: (UnsafePointer<wire_tls>?) -> Int32) -> Int32 {
        func bytes(_ buffer: UnsafeRawBufferPointer) -> wire_bytes { wire_bytes(start: buffer.baseAddress, count: buffer.count) }
        let none = Data()
        return (authorities?.pem ?? none).withUnsafeBytes { authorities in
            (clientCertificate?.certificate ?? none).withUnsafeBytes { chain in
                (clientCertificate?.key ?? none).withUnsafeBytes { key in
                    (clientCertificate?.password ?? "").withCString { password in
                        // Sorted, because libcurl compares the text to find a connection.
                        pins.map { "sha256//" + $0.digest.base64EncodedString() }.sorted().joined(separator: ";").withCString { text in
                            var tls = wire_tls(
                                authorities: bytes(authorities), certificate: bytes(chain), key: bytes(key), password: password,
                                pins: pins.isEmpty ? nil : text, needs_tls13: minimumVersion == .tls13 ? 1 : 0, is_alone: isAlone ? 1 : 0)
                            return body(&tls)
                        }
                    }
                }
            }
        }
    }
}
#endif
