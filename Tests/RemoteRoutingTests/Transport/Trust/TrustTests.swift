#if os(Linux)
import Foundation
import LoopbackOrigin
import RemoteRouting
import StoreCore
import Testing
import Trials

/// Hosts with TLS options and servers with various certificates, over real connections.
@Suite(.enabled(if: TrustBench.problem == nil, "\(TrustBench.problem ?? "")"), .timeLimit(.minutes(hangMinutes)))
struct TrustTests {
    private static let post = Route(path: "/x", method: .post, body: .data(Data("abc".utf8)))

    // MARK: The server's certificate

    @Test(arguments: [TestCertificates.Name.good, .rotated, .chained], ["127.0.0.1", "localhost"])
    func `W8: a host trusts certificates of its own authority`(_ certificate: TestCertificates.Name, _ name: String) async throws {
        let bench = try TrustBench(certificate)
        let host = try bench.host(named: name)
        #expect(try await host.data(for: Self.post) == Data("POST /x 3".utf8))
        #expect(bench.origin.requests.count == 1)
    }

    @Test(arguments: [
        (TestCertificates.Name.expired, RemoteError.Code.certificateExpired), (.selfSigned, .certificateUntrusted),
        (.foreign, .certificateUntrusted), (.chainless, .certificateUntrusted), (.forged, .certificateUntrusted),
        (.misnamed, .certificateNameMismatch),
        // Its name is only in the common name.
        (.nameless, .certificateNameMismatch),
    ])
    func `W8: an unacceptable certificate has a separate error code, and nothing is sent`(
        _ certificate: TestCertificates.Name, _ code: RemoteError.Code
    ) async throws {
        let bench = try TrustBench(certificate)
        let host = try bench.host(named: certificate == .nameless ? "localhost" : "127.0.0.1")
        for route in [Self.post, Route(path: "/x")] {
            let error = try await remoteError { try await host.send(route) }
            #expect(error.code == code, "\(error)")
            #expect(error.stage == .transport && !error.mayHaveArrived && !error.isRetryable, "\(error)")
        }
        #expect(bench.front.record.receivedBytes == 0 && bench.origin.requests.isEmpty)
    }

    @Test func `W8: an authority of the host replaces all authorities of the system`() async throws {
        let bench = try TrustBench(.foreign)
        let code = try await remoteError { try await bench.host().send(Self.post) }.code
        #expect(code == .certificateUntrusted)
        var both = try Data(contentsOf: bench.certificates.authority)
        both.append(try Data(contentsOf: bench.certificates.otherAuthority))
        let tls = try bench.options { $0.authorities = try TLSOptions.Authorities(pem: both) }
        #expect(try await bench.host(tls).data(for: Self.post) == Data("POST /x 3".utf8))
    }

    /// The issuer has the name of a public authority, so OpenSSL finds it and fails to verify the signature with its key.
    @Test(.enabled(if: FileManager.default.fileExists(atPath: "/etc/ssl/certs/ISRG_Root_X2.pem"), "the public authority is missing"))
    func `W8: the system's authorities are not consulted in addition to those of a host`() async throws {
        let bench = try TrustBench(.impostor)
        let system = try await remoteError { try await bench.host(TLSOptions()).send(Self.post) }
        let own = try await remoteError { try await bench.host().send(Self.post) }
        #expect(own.code == .certificateUntrusted)
        // A host with authorities does not find the issuer; other hosts do.
        #expect(!"\(String(describing: system.underlyingError))".contains("unable to get local issuer certificate"))
        #expect("\(String(describing: own.underlyingError))".contains("unable to get local issuer certificate"))
    }

    @Test func `W8: an authority that only OpenSSL finds damaged is an options error, and nothing is sent`() async throws {
        let bench = try TrustBench()
        let lines = try String(contentsOf: bench.certificates.authority, encoding: .utf8).split(separator: "\n")
        var bytes = [UInt8](try #require(Data(base64Encoded: lines.dropFirst().dropLast().joined())))
        // The key's algorithm is an integer instead of an identifier.
        let algorithm: [UInt8] = [0x30, 0x13, 0x06, 0x07]
        let place = try #require(bytes.indices.dropLast(4).first { Array(bytes[$0..<$0 + 4]) == algorithm })
        bytes[place + 2] = 0x02
        let text = "-----BEGIN CERTIFICATE-----\n\(Data(bytes).base64EncodedString())\n-----END CERTIFICATE-----"
        let tls = try bench.options { $0.authorities = try TLSOptions.Authorities(pem: Data(text.utf8)) }
        let error = try await remoteError { try await bench.host(tls).send(Self.post) }
        #expect(error.code == .invalidTLSOptions, "\(error) \(String(describing: error.underlyingError))")
        #expect(!error.mayHaveArrived && bench.front.record.handshakes == 0, "\(error)")
    }

    // MARK: Pins

    @Test(arguments: [HTTPMethod.get, .post, .put])
    func `W8: a wrong pin sends nothing`(_ method: HTTPMethod) async throws {
        let bench = try TrustBench()
        let host = try bench.host(bench.options { $0.pins = [try bench.certificates.pin(.rotated)] })
        let error = try await remoteError { try await host.send(Route(path: "/secret", method: method)) }
        #expect(error.code == .pinMismatch && !error.mayHaveArrived && !error.isRetryable, "\(error)")
        try await until("the connection has ended") { bench.front.record.ended == bench.front.record.accepted }
        #expect(bench.front.record.receivedBytes == 0 && bench.origin.requests.isEmpty)
    }

    // MARK: Connections are not shared

    @Test(arguments: [TLSFront.Settings.Version.tls12, .tls13])
    func `W8: a host with other options reuses neither connections nor sessions`(_ version: TLSFront.Settings.Version) async throws {
        let bench = try TrustBench { $0.versions = version.rawValue...version.rawValue }
        let transport = try RealTransport.curl.make()
        let trusting = try bench.host(over: transport)
        let strangers = [
            try bench.host(
                bench.options { $0.authorities = try TLSOptions.Authorities(contentsOf: bench.certificates.otherAuthority) },
                over: transport),
            try bench.host(TLSOptions(), over: transport),
        ]
        let pinned = try bench.host(bench.options { $0.pins = [try bench.certificates.pin(.rotated)] }, over: transport)
        let known = try bench.host(bench.client(), over: transport)
        for round in 1...5 {
            _ = try await trusting.data(for: Route(path: "/x"))
            for stranger in strangers {
                #expect(try await remoteError { try await stranger.send("/secret") }.code == .certificateUntrusted, "round \(round)")
            }
            #expect(try await remoteError { try await pinned.send("/secret") }.code == .pinMismatch, "round \(round)")
            let before = bench.front.record.accepted
            _ = try await known.data(for: Route(path: "/x"))
            if round == 1 { #expect(bench.front.record.accepted == before + 1) }
        }
        #expect(bench.origin.requests(to: "/secret").isEmpty)
    }

    @Test(arguments: [TLSFront.Settings.Version.tls12, .tls13])
    func `W8: a session is resumed only with the same options`(_ version: TLSFront.Settings.Version) async throws {
        let bench = try TrustBench { $0.versions = version.rawValue...version.rawValue }
        let transport = try RealTransport.curl.make()
        let trusting = try bench.host(over: transport)
        // Unsafe requests have their own connections.
        for _ in 0..<4 { _ = try await trusting.data(for: Self.post) }
        let resumed = bench.front.record.resumptions
        // Older versions bind sessions to a handle, which is new for each request.
        if try WireLibrary(path: ProcessInfo.processInfo.environment["STOREHOUSE_CURL"]).build.version >= 0x080200 { #expect(resumed > 0) }
        for pins in [[try bench.certificates.pin(.good)], [try bench.certificates.pin(.good), try bench.certificates.pin(.rotated)]]
            as [Set]
        {
            let other = try bench.host(bench.options { $0.pins = pins }, over: transport)
            let before = bench.front.record.resumptions
            _ = try await other.data(for: Self.post)
            #expect(bench.front.record.resumptions == before)
            // A resumed session sends no certificate, but the pin still applies.
            _ = try await other.data(for: Self.post)
        }
        let pinned = try bench.host(bench.options { $0.pins = [try bench.certificates.pin(.rotated)] }, over: transport)
        for _ in 0..<3 { #expect(try await remoteError { try await pinned.send(Self.post) }.code == .pinMismatch) }
    }

    // MARK: Client certificates

    @Test(arguments: [TLSFront.Settings.Version.tls12, .tls13])
    func `W8: a client certificate is sent on demand, and a refusal has its own code`(_ version: TLSFront.Settings.Version) async throws {
        let bench = try TrustBench.demanding(version)
        for name in [TestCertificates.Name.foreignClient, .expiredClient, .selfSigned] {
            let error = try await remoteError { try await bench.host(bench.client(name)).send(Self.post) }
            #expect(error.code == .clientCertificateRefused, "\(name): \(error) \(String(describing: error.underlyingError))")
            #expect(!error.isRetryable && !error.allowsStale, "\(name): \(error)")
        }
        let error = try await remoteError { try await bench.host().send(Self.post) }
        // In TLS 1.2 every failed handshake has the same alert.
        #expect(error.code == (version == .tls13 ? .clientCertificateRefused : .tlsFailed), "\(error)")
        #expect(version == .tls13 || error.message.contains("it may require a client certificate"))
        #expect(bench.origin.requests.isEmpty)
        let plain = try bench.host(bench.client())
        let encrypted = try bench.host(bench.client(key: bench.certificates.encryptedKey, password: "geheim"))
        for host in [plain, encrypted] { for _ in 0..<2 { #expect(try await host.data(for: Self.post) == Data("POST /x 3".utf8)) } }
    }

    @Test(arguments: [0, 3, 3_000_000])
    func `W8: in TLS 1.3, a refused client certificate is reported whenever the server closes the connection`(_ count: Int) async throws {
        let bench = try TrustBench.demanding(.tls13)
        let host = try bench.host(bench.client(.foreignClient))
        for _ in 0..<rounds(30, quick: 3) {
            let error = try await remoteError { try await host.send(Route(path: "/x", method: .post, body: .data(Data(count: count)))) }
            #expect(error.code == .clientCertificateRefused, "\(error) \(String(describing: error.underlyingError))")
            #expect(!error.allowsStale)
        }
    }

    @Test func `W8: a mismatched key or password is an options error`() async throws {
        let bench = try TrustBench.demanding(.tls13)
        let encrypted = bench.certificates.encryptedKey
        for tls in [
            try bench.client(key: bench.certificates.key(.good)), try bench.client(key: encrypted, password: "wrong"),
            try bench.client(key: encrypted, password: ""),
        ] {
            let error = try await remoteError { try await bench.host(tls).send(Self.post) }
            #expect(error.code == .invalidTLSOptions, "\(error) \(String(describing: error.underlyingError))")
            #expect(error.stage == .build && !error.mayHaveArrived, "\(error)")
            #expect(!"\(error) \(String(describing: error.underlyingError))".contains("wrong"))
        }
        #expect(bench.front.record.handshakes == 0)
    }

    @Test func `W8: a redirect to another origin gets no client certificate`() async throws {
        let target = try TrustBench.demanding(.tls13)
        let first = try LoopbackOrigin()
        first.on(.get, "/there") { _ in .status(302).setting("Location", to: "https://127.0.0.1:\(target.front.port)/x") }
        first.on(.get, "/here") { _ in .status(302).setting("Location", to: "/x") }
        first.on(.get, "/x") { _ in .text("here") }
        let bench = try TrustBench.demanding(.tls13, to: first)
        let transport = try RealTransport.curl.make()
        let host = try bench.host(bench.client(), over: transport)
        #expect(try await host.data(for: Route(path: "/here")) == Data("here".utf8))
        #expect(try await remoteError { try await host.send("/there") }.code == .clientCertificateRefused)
        #expect(target.origin.requests.isEmpty)
        // With the certificate, the other origin responds.
        _ = try await target.host(target.client(), over: transport).data(for: Route(path: "/x"))
    }

    @Test func `W8: pins apply to the origins of redirects`() async throws {
        let target = try TrustBench(.rotated)
        let first = try LoopbackOrigin { _ in .status(302).setting("Location", to: "https://127.0.0.1:\(target.front.port)/x") }
        let bench = try TrustBench(.good, to: first)
        let host = try bench.host(bench.options { $0.pins = [try bench.certificates.pin(.good)] })
        #expect(try await remoteError { try await host.send("/there") }.code == .pinMismatch)
        #expect(target.origin.requests.isEmpty)
        let both = try bench.host(bench.options { $0.pins = [try bench.certificates.pin(.good), try bench.certificates.pin(.rotated)] })
        #expect(try await both.data(for: Route(path: "/there")) == Data("GET /x 0".utf8))
    }

    @Test func `W8: a server that offers only older versions of TLS is refused`() async throws {
        let older = try TrustBench { $0.versions = 0x0303...0x0303 }
        let strict = try older.options { $0.minimumVersion = .tls13 }
        let error = try await remoteError { try await older.host(strict).send(Self.post) }
        #expect(error.code == .tlsVersionRefused, "\(error) \(String(describing: error.underlyingError))")
        #expect(!error.mayHaveArrived && older.front.record.handshakes == 0, "\(error)")
        let lenient = try older.options { $0.minimumVersion = .tls12 }
        #expect(try await older.host(lenient).data(for: Self.post) == Data("POST /x 3".utf8))
        let newer = try TrustBench { $0.versions = 0x0304...0x0304 }
        #expect(try await newer.host(strict).data(for: Self.post) == Data("POST /x 3".utf8))
    }

    @Test func `W2, W8: over TLS, hosts with the same options share a connection, except for unsafe requests`() async throws {
        let bench = try TrustBench()
        let transport = try RealTransport.curl.make()
        func send(_ route: Route) async throws { try await bench.host(over: transport).send(route) }
        for method in [HTTPMethod.get, .put, .delete, .get] { try await send(Route(path: "/x", method: method)) }
        #expect(bench.front.record.accepted == 1)
        for count in 2...4 {
            try await send(Self.post)
            #expect(bench.front.record.accepted == count)
        }
    }

    private static let ends: [(LoopbackOrigin.Misbehavior, Bool)] =
        [(.closeSilently, true), (.closeSilently, false)]
        + part(of: [0, 200, 1000, 5000], each: 3).map { (.closeLate(after: .microseconds($0)), true) }

    @Test(arguments: ReuseTests.unsafe, ends)
    func `W2: over TLS, an unsafe request arrives once, whenever the server closes the connection`(
        _ form: ReuseTests.Form, _ end: (way: LoopbackOrigin.Misbehavior, isAnnounced: Bool)
    ) async throws {
        let origin = try LoopbackOrigin { .text("\($0.body.count)") }
        origin.on(.get, "/warm") { _ in .text("warm").misbehaving(end.way) }
        let bench = try TrustBench(to: origin) { $0.announcesEnd = end.isAnnounced }
        for round in 1...rounds(10, quick: 2) {
            // Each round uses its own connections, which end with it.
            let host = try bench.host()
            _ = try await host.data(for: Route(path: "/warm"))
            if end.way == .closeSilently {
                try await until("the connection has ended") { bench.front.record.ended == bench.front.record.accepted }
            }
            origin.forget()
            _ = try await host.data(for: Route(path: "/x", method: form.method, body: form.body))
            #expect(origin.requests(to: "/x").count == 1, "round \(round)")
        }
    }
}
#endif
