import Foundation
import LoopbackOrigin
import RemoteRoutingTesting
import StoreCore
import StorePlatform
import Testing
import Trials

@testable import RemoteHTTP
@testable import RemoteRouting

/// Validation of options, and transports without support; needs neither OpenSSL nor libcurl.
@Suite
struct TLSOptionsTests {
    // MARK: Pins

    private static let digest = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="

    private static let digests =
        [digest] + ["", "/", "//", "sha256/"].map { $0.padding(toLength: 43, withPad: "A", startingAt: 0) + "=" }

    @Test(arguments: ["sha256/", "sha256//", ""], digests)
    func `W8: a pin is a SHA-256 digest in base64, which may begin with anything`(_ prefix: String, _ digest: String) throws {
        let pin = try TLSOptions.Pin(prefix + digest)
        #expect("\(pin)" == "sha256/" + digest)
        #expect(try pin == TLSOptions.Pin("sha256/" + digest))
    }

    @Test(arguments: [
        "", "sha256/", "sha256//", "hello", "sha1/" + digest, "sha256/" + digest.dropLast(), "sha256/" + digest + "=", digest + digest,
        "sha256/ " + digest, "sha256/" + digest + "\n", digest + ";sha256//" + digest, "SHA256/" + digest,
        // 31 and 33 bytes, hexadecimal, URL-safe base64, and a last character with unused bits.
        Data(count: 31).base64EncodedString(), Data(count: 33).base64EncodedString(), String(repeating: "ab", count: 32),
        "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU=", "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFV=", "sha256/\u{0}" + digest,
    ])
    func `W8: an invalid pin is refused with a remedy`(_ text: String) {
        let error = #expect(throws: RemoteError.self) { try TLSOptions.Pin(text) }
        #expect(error?.code == .invalidTLSOptions && error?.stage == .build && error?.operation == "read a pin")
        #expect(error?.message.contains("write sha256/ and 32 bytes in base64") == true && error?.mayHaveArrived == false)
    }

    // MARK: Authorities

    private static let certificate = SampleCertificate.pem

    private static let inner = certificate.split(separator: "\n").dropFirst().dropLast().joined()

    @Test func `W8: authorities are parsed from a text`() throws {
        let plain = try TLSOptions.Authorities(pem: Data(Self.certificate.utf8))
        let noisy =
            "# The authority\r\n  \(Self.certificate.replacingOccurrences(of: "\n", with: "\r\n"))  \r\nkey:\n-----BEGIN PRIVATE KEY-----\nxx\n"
        #expect(try TLSOptions.Authorities(pem: Data(noisy.utf8)) == plain)
        let twice = try TLSOptions.Authorities(pem: Data((Self.certificate + "\n" + Self.certificate).utf8))
        #expect(twice.pem.count == 2 * plain.pem.count)
    }

    @Test func `W8: the public key of a certificate is found`() throws {
        let whole = try #require(Data(base64Encoded: Self.inner))
        let key = try #require(DER.publicKey(ofCertificate: [UInt8](whole)))
        #expect(Data(SHA256.digest(of: key).bytes).base64EncodedString() == "KGvaVBuHSwN/ROnmnhNeR3NqPrJvzAIQ7UjsRk82bfU=")
    }

    /// Texts without authorities, and a part of the message.
    static let unusable: [(text: Data, remedy: String)] = [
        (Data(), "there is no certificate in PEM"),
        (Data("hello".utf8), "there is no certificate in PEM"), (Data(count: (1 << 20) + 1), "more than 1 MiB"),
        (Data((0..<255).map { UInt8($0) }), "there is no certificate in PEM"),
        (Data("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----".utf8), "a certificate block is malformed"),
        (Data("-----BEGIN CERTIFICATE-----\nhello\n-----END CERTIFICATE-----".utf8), "a certificate block is malformed"),
        (Data("-----BEGIN CERTIFICATE-----\n\(Data(count: 300).base64EncodedString())\n-----END CERTIFICATE-----".utf8), "is malformed"),
        (Data("-----BEGIN CERTIFICATE-----\n\(inner)".utf8), "a certificate block is malformed"),
        (Data("-----BEGIN CERTIFICATE-----\n\(inner)\n-----END X509 CRL-----".utf8), "a certificate block is malformed"),
        (Data("-----BEGIN PRIVATE KEY-----\n\(inner)\n-----END PRIVATE KEY-----".utf8), "there is no certificate in PEM"),
        // The first certificate is complete; the second is truncated or has trailing bytes.
        (Data((certificate + "\n-----BEGIN CERTIFICATE-----\n\(inner.prefix(200))\n-----END CERTIFICATE-----").utf8), "is malformed"),
        (Data(base64Encoded: inner) ?? Data(), "convert it to PEM with openssl x509 -inform der"),
    ]

    @Test(arguments: unusable.indices)
    func `W8: a text without a certificate is refused with a remedy`(_ index: Int) throws {
        let (text, remedy) = Self.unusable[index]
        let file = temporaryURL("pem")
        try text.write(to: file)
        for isFile in [false, true] {
            let error = #expect(throws: RemoteError.self) {
                _ = isFile ? try TLSOptions.Authorities(contentsOf: file) : try TLSOptions.Authorities(pem: text)
            }
            #expect(error?.code == .invalidTLSOptions && error?.operation.hasPrefix("read the certificate authorities") == true)
            #expect(error?.message.contains(remedy) == true)
        }
    }

    @Test(arguments: ["/nowhere/ca.pem", "/tmp", "/dev/zero"])
    func `W8: a file without certificates is refused, and the error names the file`(_ path: String) {
        let url = URL(filePath: path)
        let error = #expect(throws: RemoteError.self) { try TLSOptions.Authorities(contentsOf: url) }
        #expect(error?.code == .invalidTLSOptions)
        #expect(error?.operation == "read the certificate authorities in \(url.lastPathComponent)")
    }

    @Test func `W8: damaged certificates are refused and do not end the process`() throws {
        let whole = [UInt8](Data(base64Encoded: Self.inner) ?? Data())
        try #require(whole.count > 300)
        for count in 0..<whole.count { #expect(DER.publicKey(ofCertificate: Array(whole.prefix(count))) == nil) }
        var found = 0
        for index in whole.indices {
            for value: UInt8 in [0, 0x30, 0x7F, 0x80, 0x84, 0xFF] {
                var copy = whole
                copy[index] = value
                if DER.publicKey(ofCertificate: copy) != nil { found += 1 }
            }
        }
        #expect(found > 0)
    }

    // MARK: Client certificates

    private static let key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----"

    @Test func `W8: a client certificate needs a certificate and a key`() throws {
        let certificate = Data(Self.certificate.utf8)
        let both = Data((Self.certificate + "\n" + Self.key).utf8)
        let made = try TLSOptions.ClientCertificate(pem: certificate, key: Data(Self.key.utf8))
        #expect(try TLSOptions.ClientCertificate(pem: both, key: both) == made)
        for (pem, key, password, words) in [
            (Data(Self.key.utf8), both, nil, "there is no certificate"), (certificate, certificate, nil, "there is no private key"),
            (certificate, Data(Self.key.replacingOccurrences(of: " PRIVATE", with: " ENCRYPTED PRIVATE").utf8), nil, "pass its password"),
            (
                certificate, Data(Self.key.replacingOccurrences(of: "AAAA", with: "Proc-Type: 4,ENCRYPTED\nAA").utf8), nil,
                "pass its password"
            ),
            (certificate, both, "a\u{0}b", "NUL"),
        ] {
            let error = #expect(throws: RemoteError.self) { try TLSOptions.ClientCertificate(pem: pem, key: key, password: password) }
            #expect(error?.code == .invalidTLSOptions && error?.operation == "read the client certificate")
            #expect(error?.message.contains(words) == true)
        }
    }

    @Test func `H12: no description of a host contains its key or its password`() throws {
        let certificate = try TLSOptions.ClientCertificate(pem: Data(Self.certificate.utf8), key: Data(Self.key.utf8), password: "secret")
        let host = RemoteHost("a.example").with { $0.tls.clientCertificate = certificate }
        for text in ["\(certificate)", "\(host.tls)", String(reflecting: host.tls), "\(host)", dumped(host.tls), dumped(certificate)] {
            #expect(!text.contains("secret") && !text.contains("AAAA") && !text.contains("clientCertificate: nil"))
        }
    }

    // MARK: Transports that cannot

    private static let changes: [@Sendable (inout TLSOptions) throws -> Void] = [
        { $0.authorities = try TLSOptions.Authorities(pem: Data(certificate.utf8)) }, { $0.pins = [try TLSOptions.Pin(digest)] },
        { $0.clientCertificate = try TLSOptions.ClientCertificate(pem: Data(certificate.utf8), key: Data(key.utf8)) },
        { $0.minimumVersion = .tls12 }, { $0.minimumVersion = .tls13 },
    ]

    @Test(arguments: changes.indices)
    func `H14: options that a transport cannot apply are refused before anything is sent`(_ index: Int) async throws {
        var changed = TLSOptions()
        try Self.changes[index](&changed)
        let tls = changed
        let memory = MemoryTransport { _ in .json("1") }
        let custom = CustomTransport { try await memory.perform($0, limits: $1) }
        var hosts = [
            RemoteHost("a.example", transport: custom),
            // It forwards the options to a transport that must fulfill them.
            RemoteHost("a.example", transport: ExchangeRecorder(recording: custom)),
            RemoteHost(HostConfiguration("a.example", scheme: .http), transport: memory),
        ]
        #if os(Linux)
        let server = try RawServer { _ in }
        hosts.append(RemoteHost(HostConfiguration("127.0.0.1", port: Int(server.port)), transport: URLSessionTransport()))
        #endif
        for host in hosts {
            let error = try await remoteError { try await host.with { $0.tls = tls }.send("/x", method: .post) }
            #expect(error.code == .unsupported && error.stage == .build && !error.mayHaveArrived, "\(error)")
            #expect(host.configuration.scheme == .https || error.message.contains("use https"), "\(error)")
        }
        #expect(memory.requests.isEmpty)
        #if os(Linux)
        #expect(server.acceptedConnections == 0)
        #endif
        #expect(try await hosts[0].send("/x") as Int == 1)
        let recorder = ExchangeRecorder(recording: memory)
        let accepting = RemoteHost("a.example", transport: recorder).with { $0.tls = tls }
        #expect(try await accepting.send("/x") as Int == 1)
        #expect(try await accepting.with { $0.transport = recorder.exchanges.transport() }.send("/x") as Int == 1)
    }

    #if os(Linux)
    // MARK: libcurl

    private static var clientCertificate: TLSOptions.ClientCertificate {
        get throws { try TLSOptions.ClientCertificate(pem: Data(certificate.utf8), key: Data(key.utf8)) }
    }

    @Test(arguments: [
        (0x074200, "OpenSSL/1.1.1", [false, true, false, true]), (0x074700, "OpenSSL/3.0.17", [false, true, true, true]),
        (0x074D00, "OpenSSL/3.0.17", [true, true, true, true]), (0x075801, "LibreSSL/3.8", [true, true, true, true]),
        (0x081700, "BoringSSL", [true, true, true, true]), (0x075801, "GnuTLS/3.7.9", [false, false, false, false]),
        (0x075801, "(SecureTransport) OpenSSL/3.0.17", [false, false, false, false]), (0x075801, "", [false, false, false, false]),
    ])
    func `H14: a libcurl without support for an option names the reason`(_ version: UInt32, _ backend: String, _ can: [Bool]) throws {
        var all = [TLSOptions(), TLSOptions(), TLSOptions(), TLSOptions()]
        all[0].authorities = try TLSOptions.Authorities(pem: Data(Self.certificate.utf8))
        all[1].pins = [try TLSOptions.Pin(Self.digest)]
        all[2].clientCertificate = try Self.clientCertificate
        all[3].minimumVersion = .tls13
        for (tls, can) in zip(all, can) { #expect((tls.problem(version: version, backend: backend) == nil) == can) }
    }

    @Test(
        arguments: [
            // The messages of libcurl 7.88, and of 8.23 for the same failures.
            (60, "SSL certificate problem: certificate has expired", 10, RemoteError.Code.certificateExpired),
            (60, "SSL certificate OpenSSL verify result: certificate has expired (10)", 10, .certificateExpired),
            (60, "SSL certificate problem: certificate is not yet valid", 9, .certificateExpired),
            (60, "SSL certificate problem: self-signed certificate", 18, .certificateUntrusted),
            (60, "SSL certificate problem: self-signed certificate in certificate chain", 19, .certificateUntrusted),
            (60, "SSL certificate problem: unable to get local issuer certificate", 20, .certificateUntrusted),
            (60, "SSL certificate problem: hostname mismatch", 62, .certificateNameMismatch),
            (60, "SSL: no alternative certificate subject name matches target host name '127.0.0.1'", 1, .certificateNameMismatch),
            (60, "SSL: no alternative certificate subject name matches target IPv4 address '127.0.0.1'", 1, .certificateNameMismatch),
            (60, "SSL: certificate subject name 'x' does not match target host name 'y'", 0, .certificateNameMismatch),
            (60, "SSL: unable to obtain common name from peer certificate", 1, .certificateNameMismatch),
            // A name that the server chose must not influence the result.
            (60, "SSL certificate problem: self-signed certificate, does not match", 18, .certificateUntrusted),
            (60, "SSL certificate verification failed", 1, .clientCertificateRefused),
            (90, "SSL: public key does not match pinned public key", 0, .pinMismatch), (98, "", 1, .clientCertificateRefused),
            (58, "", 1, .invalidTLSOptions), (77, "", 1, .invalidTLSOptions),
            (43, "unable to set private key file: '(memory blob)' type PEM", 1, .invalidTLSOptions),
            (35, "error:0A00042E:SSL routines::tlsv1 alert protocol version", 1, .tlsVersionRefused),
            (35, "error:0A000102:SSL routines::unsupported protocol", 1, .tlsVersionRefused),
            (35, "error:0A000418:SSL routines::tlsv1 alert unknown ca", 1, .clientCertificateRefused),
            (56, "OpenSSL SSL_read: error:0A00045C:SSL routines::tlsv13 alert certificate required, errno 0", 0, .clientCertificateRefused),
            (55, "SSL_write() error:0A000412:SSL routines::sslv3 alert bad certificate", 0, .clientCertificateRefused),
            (35, "OpenSSL/3.0.22: error:0200008A:rsa routines::invalid padding", 1, .certificateUntrusted),
            (35, "OpenSSL/3.0.22: error:06880006:asn1 encoding routines::EVP lib", 1, .certificateUntrusted),
            (35, "error:0A00010B:SSL routines::wrong version number", 1, .tlsFailed),
            (35, "error:0A000410:SSL routines::sslv3 alert handshake failure", 1, .tlsFailed),
            (35, "OpenSSL SSL_connect: SSL_ERROR_SYSCALL in connection to 127.0.0.1:1", 1, .connectionLost),
            (35, "error:0A000126:SSL routines::unexpected eof while reading", 1, .connectionLost),
            (56, "OpenSSL SSL_read: error:0A000126:SSL routines::unexpected eof while reading, errno 0", 0, .connectionLost),
        ] as [(Int32, String, Int, RemoteError.Code)])
    func `W8: libcurl's failures are distinguished`(number: Int32, _ text: String, _ verification: Int, _ code: RemoteError.Code) throws {
        var tls = TLSOptions()
        tls.authorities = try TLSOptions.Authorities(pem: Data(Self.certificate.utf8))
        tls.clientCertificate = try Self.clientCertificate
        let failure = TransportFailure(
            curlCode: number, text: text, systemError: 0, verification: verification, tls: tls, mayHaveArrived: false)
        #expect(failure.code == code)
    }

    @Test func `W8: a failure is attributed to options only if the host has any`() {
        func code(_ curlCode: Int32, arrived: Bool = false) -> RemoteError.Code {
            TransportFailure(curlCode: curlCode, text: "", systemError: 0, mayHaveArrived: arrived).code
        }
        #expect(code(77) == .tlsFailed)
        #expect(code(58) == .tlsFailed)
        #expect(code(43, arrived: true) == .protocolViolation)
    }
    #endif
}

/// Pins and own authorities on the transport that applies them on each system, against OpenSSL's own server.
@Suite(.enabled(if: TestCertificates.problem == nil, "\(TestCertificates.problem ?? "")"), .timeLimit(.minutes(hangMinutes)))
struct SystemTrustTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.made.get() }

    private func body(of server: OpenSSLServer, _ change: (inout TLSOptions) throws -> Void) async throws -> Data {
        var tls = TLSOptions()
        tls.authorities = try TLSOptions.Authorities(contentsOf: certificates.authority)
        try change(&tls)
        // libcurl where it is available; URLSession applies these options on other systems.
        let transport: any Transport = try #require(RealTransport.available.last).make()
        let host = RemoteHost(HostConfiguration("127.0.0.1", port: server.port), transport: transport).with {
            $0.tls = tls
            // The server may still be starting.
            $0.retry = RetryPolicy(attempts: .max, base: .milliseconds(10), multiplier: 1)
            $0.timeouts = .untilHang
        }
        return try await host.data(for: Route(path: "/page"))
    }

    @Test func `W8: an own authority and a pinned key are trusted, and no others`() async throws {
        let server = try OpenSSLServer(certificates.certificate(.good), key: certificates.key(.good))
        #expect(try await body(of: server) { _ in } == OpenSSLServer.body)
        let error = try await remoteError {
            _ = try await body(of: server) { $0.authorities = try TLSOptions.Authorities(contentsOf: certificates.otherAuthority) }
        }
        #expect(error.code == .certificateUntrusted && !error.mayHaveArrived)
        // Without an own authority, the system's are trusted.
        #expect(try await remoteError { _ = try await body(of: server) { $0.authorities = nil } }.code == .certificateUntrusted)
        let (right, wrong) = (try certificates.pin(.good), try certificates.pin(.rotated))
        #expect(try await body(of: server) { $0.pins = [wrong, right] } == OpenSSLServer.body)
        let mismatch = try await remoteError { _ = try await body(of: server) { $0.pins = [wrong] } }
        #expect(mismatch.code == .pinMismatch && !mismatch.mayHaveArrived)
    }

    @Test(arguments: [
        (TestCertificates.Name.misnamed, RemoteError.Code.certificateNameMismatch), (.selfSigned, .certificateUntrusted),
        (.foreign, .certificateUntrusted),
    ])
    func `W8: a pin does not replace a valid certificate`(_ name: TestCertificates.Name, _ code: RemoteError.Code) async throws {
        let server = try OpenSSLServer(certificates.certificate(name), key: certificates.key(name))
        let pins: Set<TLSOptions.Pin> = name == .misnamed ? [] : [try certificates.pin(name)]
        #expect(try await remoteError { _ = try await body(of: server) { $0.pins = pins } }.code == code)
    }
}

/// OpenSSL's server for TLS with one file, which runs on every system.
private final class OpenSSLServer {
    static let body = Data("hello".utf8)

    let port: Int
    private let folder = temporaryURL()
    private let process: ChildProcess
    #if os(Linux)
    /// The port, which stays reserved until the server is released.
    private let reserved: ClosedPort
    #endif

    init(_ certificate: URL, key: URL) throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let response = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"
        try Data(response.utf8).write(to: folder.appending(path: "page"))
        #if os(Linux)
        reserved = try ClosedPort()
        port = reserved.number
        #else
        // There, a port that is reserved would get the connections instead of a server that listens on all addresses.
        port = try ClosedPort().number
        #endif
        // Without a path, the server reads files of its working directory.
        process = try ChildProcess(
            "/bin/sh",
            [
                "-c", #"cd "$1" && exec openssl s_server -accept "$2" -cert "$3" -key "$4" -HTTP -quiet >/dev/null 2>&1"#, "sh",
                folder.path,
                "\(port)", certificate.path, key.path,
            ])
    }

    deinit {
        process.kill()
        // The folder is in the system's folder for temporary files.
        try? FileManager.default.removeItem(at: folder)
    }
}
