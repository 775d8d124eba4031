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
