public import Foundation

/// The trust that a host demands of a secure connection, beyond the system's defaults.
///
/// ```swift
/// var tls = TLSOptions()
/// tls.authorities = try TLSOptions.Authorities(contentsOf: file)  // instead of the system's
/// tls.minimumVersion = .tls13
/// let api = RemoteHost("intranet.example.com").with { $0.tls = tls }
/// ```
///
/// Everything is checked when it is made. Connections and sessions are never shared between hosts with different options. The options hold
/// for redirects to other origins as well, except the client certificate, which only the host's own origin gets.
///
/// ``CurlTransport`` does all of it with a libcurl that is built with OpenSSL. A transport that cannot do what the options ask for throws
/// ``RemoteError/Code/unsupported`` before anything is sent, and so does a host with options that is reached by plain http.
public struct TLSOptions: Hashable, Sendable {
    /// The authorities that sign the certificates of servers, instead of the system's; `nil` for the system's.
    public var authorities: Authorities?
    /// The public keys of which the server must have one, in addition to a valid certificate; empty for any key.
    public var pins: Set<Pin> = []
    /// The certificate that the host's own origin gets when it asks for one; `nil` for none.
    public var clientCertificate: ClientCertificate?
    /// The oldest version of TLS to accept; `nil` for the oldest that the transport accepts.
    ///
    /// ``CurlTransport`` accepts TLS 1.2 and 1.3.
    public var minimumVersion: Version?

    /// Makes the default options: the authorities of the system, any key, and no client certificate.
    public init() {}

    /// A version of TLS.
    public enum Version: Hashable, Sendable {
        /// TLS 1.2 (RFC 5246).
        case tls12
        /// TLS 1.3 (RFC 8446).
        case tls13
    }
}

// MARK: Authorities

extension TLSOptions {
    /// Certificate authorities, from one or more certificates in PEM (RFC 7468).
    public struct Authorities: Hashable, Sendable {
        /// The certificates and nothing else, in PEM.
        let pem: Data

        /// The certificates in DER.
        var certificates: [Data] { PEM.certificates(in: pem) }

        /// Reads certificates from memory; text around them is ignored.
        ///
        /// - Parameter pem: One or more blocks that begin with `-----BEGIN CERTIFICATE-----`; at most 1 MiB.
        /// - Throws: ``RemoteError`` with ``RemoteError/Code/invalidTLSOptions`` where there is no certificate, or a block that is none.
        public init(pem: Data) throws(RemoteError) {
            self.pem = try PEM.certificates(in: pem, "read the certificate authorities")
        }

        /// Reads certificates from a file, which blocks the thread until it is read.
        ///
        /// - Parameter file: A file of one or more certificates in PEM, at most 1 MiB.
        /// - Throws: ``RemoteError`` with ``RemoteError/Code/invalidTLSOptions`` where the file cannot be read, holds no certificate, or a
        ///   block that is none.
        public init(contentsOf file: URL) throws(RemoteError) {
            let operation = "read the certificate authorities in \(file.lastPathComponent)"
            pem = try PEM.certificates(in: try PEM.contents(of: file, operation), operation)
        }
    }
}

// MARK: Pins

extension TLSOptions {
    /// The SHA-256 digest of a public key (the certificate's `SubjectPublicKeyInfo`, RFC 7469 §2.4).
    public struct Pin: Hashable, Sendable, CustomStringConvertible {
        /// The digest, 32 bytes.
        let digest: Data

        /// Reads a pin as `sha256/` or `sha256//` and the digest in base64, which may lack the prefix.
        ///
        /// - Parameter text: The pin, such as `sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=`.
        /// - Throws: ``RemoteError`` with ``RemoteError/Code/invalidTLSOptions`` where the text is no SHA-256 digest in base64.
        public init(_ text: String) throws(RemoteError) {
            // By the length, since a digest may begin with a slash.
            let digits = ["", "sha256/", "sha256//"].filter { text.hasPrefix($0) }.map { text.dropFirst($0.count) }.first {
                $0.utf8.count == 44
            }
            // The form that is written is the only one: other bits behind the last byte would make two texts of one pin.
            guard let digits, let digest = Data(base64Encoded: String(digits)), digest.count == 32,
                digest.base64EncodedString() == digits
            else {
                throw RemoteError.invalidTLSOptions(
                    "read a pin", "it is no SHA-256 digest; write sha256/ and 32 bytes in base64, 44 characters with the final =")
            }
            self.digest = digest
        }

        /// The pin as `sha256/` and the digest in base64.
        public var description: String { "sha256/" + digest.base64EncodedString() }
    }
}

// MARK: Client certificates

extension TLSOptions {
    /// A certificate with its private key, which says to a server which client this is.
    ///
    /// Its description and its mirror hold neither the key nor the password.
    public struct ClientCertificate: Hashable, Sendable {
        /// The certificate, followed by those up to its authority, in PEM.
        let certificate: Data
        /// The private key in PEM.
        let key: Data
        /// The password of the key; empty for none.
        let password: String

        /// Reads a certificate and its key.
        ///
        /// Whether key and password fit is checked before the first connection is secured: a request fails with
        /// ``RemoteError/Code/invalidTLSOptions`` where they do not.
        ///
        /// - Parameters:
        ///   - pem: The certificate in PEM; the intermediate certificates may follow it.
        ///   - key: The private key in PEM, which may be the same data as `pem` where that holds both.
        ///   - password: The password of an encrypted key.
        /// - Throws: ``RemoteError`` with ``RemoteError/Code/invalidTLSOptions`` where there is no certificate or no key, or an encrypted
        ///   key without a password.
        public init(pem: Data, key: Data, password: String? = nil) throws(RemoteError) {
            let operation = "read the client certificate"
            certificate = try PEM.certificates(in: pem, operation)
            self.key = try PEM.key(in: key, hasPassword: password != nil, operation)
            self.password = password ?? ""
            guard !self.password.utf8.contains(0) else {
                throw RemoteError.invalidTLSOptions(operation, "the password holds a NUL character; use another password")
            }
        }
    }
}

extension TLSOptions.ClientCertificate: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The name of the type; key and password are left out.
    public var description: String { "ClientCertificate" }

    /// The same as the description.
    public var debugDescription: String { description }

    /// A mirror without the key and the password, so that `dump` writes no secret.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension RemoteError {
    /// Options that cannot be used.
    static func invalidTLSOptions(_ operation: String, _ message: String, underlyingError: (any Error)? = nil) -> RemoteError {
        RemoteError(.build, .invalidTLSOptions, operation: operation, message, underlyingError: underlyingError)
    }
}
