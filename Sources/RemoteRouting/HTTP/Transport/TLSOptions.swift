public import Foundation

/// The trust requirements of a host for secure connections, beyond the system's defaults.
///
/// ```swift
/// var tls = TLSOptions()
/// // Replaces the system's authorities.
/// tls.authorities = try TLSOptions.Authorities(contentsOf: file)
/// tls.minimumVersion = .tls13
/// let api = RemoteHost("intranet.example.com").with { $0.tls = tls }
/// ```
///
/// All parts are validated when they are created. Hosts with different options never share connections or sessions. The options also apply
/// to redirects to other origins, except the client certificate, which only the host's own origin receives.
///
/// ``CurlTransport`` supports all options if libcurl is 7.77 or newer and built with OpenSSL. A transport that cannot fulfill an option
/// throws ``RemoteError/Code/unsupported`` before anything is sent. So does a host with options that uses plain http.
public struct TLSOptions: Hashable, Sendable {
    /// The certificate authorities that replace the system's; `nil` for the system's.
    public var authorities: Authorities?
    /// The accepted public keys, required in addition to a valid certificate; empty for any key.
    public var pins: Set<Pin> = []
    /// The certificate for the host's own origin, sent if the server requests it; `nil` for none.
    public var clientCertificate: ClientCertificate?
    /// The oldest accepted version of TLS; `nil` for the transport's oldest version.
    ///
    /// ``CurlTransport`` accepts TLS 1.2 and 1.3.
    public var minimumVersion: Version?

    /// Creates the default options: the system's authorities, any key, no client certificate.
    public init() {}

    /// The least version of TLS that a connection accepts.
    public enum Version: Hashable, Sendable {
        /// TLS 1.2 (RFC 5246).
        case tls12
        /// TLS 1.3 (RFC 8446).
        case tls13
    }
}

extension TLSOptions {
    /// Certificate authorities in PEM (RFC 7468).
    public struct Authorities: Hashable, Sendable {
        /// The certificates in PEM, without other text.
        let pem: Data

        /// The certificates in DER, as the system's frameworks take them.
        var certificates: [Data] { PEM.certificates(in: pem) }

        /// Parses certificates in memory; text around them is ignored.
        ///
        /// - Parameter pem: One or more blocks that begin with `-----BEGIN CERTIFICATE-----`; at most 1 MiB.
        /// - Throws: ``RemoteError`` with ``RemoteError/Code/invalidTLSOptions`` if the text contains no certificate or a malformed one.
        public init(pem: Data) throws(RemoteError) {
            self.pem = try PEM.certificates(in: pem, "read the certificate authorities")
        }

        /// Parses certificates in a file; blocks the thread until the file is read.
        ///
        /// - Parameter file: A file with one or more certificates in PEM, at most 1 MiB.
        /// - Throws: ``RemoteError`` with ``RemoteError/Code/invalidTLSOptions`` if the file cannot be read, or contains no certificate or
        ///   a malformed one.
        public init(contentsOf file: URL) throws(RemoteError) {
            let operation = "read the certificate authorities in \(file.lastPathComponent)"
            pem = try PEM.certificates(in: try PEM.contents(of: file, operation), operation)
        }
    }

    /// The SHA-256 digest of a public key (the certificate's `SubjectPublicKeyInfo`, RFC 7469 §2.4).
    public struct Pin: Hashable, Sendable, CustomStringConvertible {
        /// The digest, 32 bytes.
        let digest: Data

        /// Parses the digest in base64 after the optional prefix `sha256/` or `sha256//`.
        ///
        /// - Parameter text: The pin, such as `sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=`.
        /// - Throws: ``RemoteError`` with ``RemoteError/Code/invalidTLSOptions`` if the text is not a SHA-256 digest in base64.
        public init(_ text: String) throws(RemoteError) {
            // Chooses the prefix by the length of the digest, because a digest may begin with a slash.
            let digits = ["", "sha256/", "sha256//"].filter { text.hasPrefix($0) }.map { text.dropFirst($0.count) }.first {
                $0.utf8.count == 44
            }
            // Accepts only the canonical encoding, because unused bits would allow several texts for one pin.
            guard let digits, let digest = Data(base64Encoded: String(digits)), digest.count == 32,
                digest.base64EncodedString() == digits
            else {
                throw RemoteError.invalidTLSOptions(
                    "read a pin", "the text is not a SHA-256 digest; write sha256/ and 32 bytes in base64 (44 characters)")
            }
            self.digest = digest
        }

        /// The pin as `sha256/` and the digest in base64.
        public var description: String { "sha256/" + digest.base64EncodedString() }
    }

    /// A certificate with its private key, which identifies the client to a server.
    ///
    /// Its description and its mirror contain neither the key nor the password.
    public struct ClientCertificate: Hashable, Sendable {
        /// The certificate in PEM, followed by its intermediate certificates.
        let certificate: Data
        let key: Data
        /// The password of the key; empty for none.
        let password: String

        /// Parses a certificate and its key.
        ///
        /// The first secure connection checks whether the key and the password are right. If they are not, the request throws
        /// ``RemoteError/Code/invalidTLSOptions``.
        ///
        /// - Parameters:
        ///   - pem: The certificate in PEM, optionally followed by the intermediate certificates.
        ///   - key: The private key in PEM; may be the same data as `pem`.
        ///   - password: The password of an encrypted key.
        /// - Throws: ``RemoteError`` with ``RemoteError/Code/invalidTLSOptions`` if a certificate is missing or malformed, or the key is
        ///   missing. The same error is thrown for an encrypted key without a password, and for a password with a NUL character.
        public init(pem: Data, key: Data, password: String? = nil) throws(RemoteError) {
            let operation = "read the client certificate"
            certificate = try PEM.certificates(in: pem, operation)
            self.key = try PEM.key(in: key, hasPassword: password != nil, operation)
            self.password = password ?? ""
            guard !self.password.utf8.contains(0) else {
                throw RemoteError.invalidTLSOptions(operation, "the password contains a NUL character; use another password")
            }
        }
    }
}

extension TLSOptions.ClientCertificate: CustomReflectable {
    /// A mirror without the key and the password, so that neither a description nor `dump` contains a secret.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension RemoteError {
    static func invalidTLSOptions(_ operation: String, _ message: String, underlyingError: (any Error)? = nil) -> RemoteError {
        RemoteError(.build, .invalidTLSOptions, operation: operation, message, underlyingError: underlyingError)
    }
}
