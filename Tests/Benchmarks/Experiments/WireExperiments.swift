internal import Foundation
internal import LoopbackOrigin
internal import RemoteRouting
internal import Synchronization
internal import Trials

#if os(macOS) || os(Linux)

/// Processor and wall time of exchanges with an origin in another process, which excludes the origin's work.
extension Experiment {
    static var outsideExchanges: [Experiment] {
        [
            wire("wire-64", "an exchange of 1 KB, 64 wide, transport alone", width: 64, count: 20_000, quick: 3_000, comparesCurl: true) {
                url in
                let host = RemoteHost(HostConfiguration("127.0.0.1", scheme: .http))
                let request = HTTPRequest(url: url)
                return { blackHole(try await host.transport.perform(request, limits: ExchangeLimits()).body.collect()) }
            },
            wire("host-64", "an exchange of 1 KB, 64 wide, through RemoteHost", width: 64, count: 20_000, quick: 3_000) { url in
                let host = host(of: url)
                return { blackHole(try await host.data(for: Route(path: "/profile"))) }
            },
            wire("host-1", "an exchange of 1 KB, one after another, through RemoteHost", width: 1, count: 2_000, quick: 500) { url in
                let host = host(of: url)
                return { blackHole(try await host.data(for: Route(path: "/profile"))) }
            },
            post,
        ] + secureExchanges
    }

    /// Exchanges over TLS at widths that need more connections than libcurl keeps by default.
    private static var secureExchanges: [Experiment] {
        #if os(Linux)
        [
            secure("secure-64", "an exchange of 1 KB over TLS, 64 wide", width: 64),
            secure("secure-128", "an exchange of 1 KB over TLS, 128 wide, compared with 64 wide", width: 128),
            secure("secure-256", "an exchange of 1 KB over TLS, 256 wide, compared with 64 wide", width: 256),
            secure(
                "secure-4-hosts", "an exchange of 1 KB over TLS with four hosts, each 32 wide, compared with 64 wide", width: 32, hosts: 4),
        ]
        #else
        []
        #endif
    }

    #if os(Linux)
    private static func secure(_ name: String, _ title: String, width: Int, hosts count: Int = 1) -> Experiment {
        Experiment(section: .wire, figures: figures(name, title)) { scale in
            let certificate = try madeCertificate()
            let origins = try (0..<count).map { _ in try OriginProcess(.secure(certificate: certificate.path())) }
            let times = scale.times(4_000, quick: 1_000)
            let authorities = try TLSOptions.Authorities(contentsOf: certificate)
            let transport = RemoteHost("localhost").transport
            /// The exchanges of a width with some of the origins.
            func exchanges(_ width: Int, with origins: [OriginProcess]) -> Round {
                let hosts = origins.map { origin in
                    RemoteHost(
                        HostConfiguration("localhost", port: origin.url.port), transport: transport,
                        limits: HostLimits(concurrentExchanges: width)
                    ).with { $0.tls.authorities = authorities }
                }
                let next = Atomic(0)
                return {
                    // The closure keeps the origins running.
                    defer { withExtendedLifetime(origins) {} }
                    return try await spent(times, over: width * hosts.count) {
                        let number = next.add(1, ordering: .relaxed).oldValue
                        blackHole(try await hosts[number % hosts.count].data(for: Route(path: "/profile")))
                    }
                }
            }
            var contestants: [Entrant] = [.storehouse(exchanges(width, with: origins))]
            if width != 64 { contestants.append(.mutex(exchanges(64, with: [origins[0]]))) }
            let curl = ["/usr/bin/curl", "/usr/local/bin/curl"].first { FileManager.default.isExecutableFile(atPath: $0) }
            if count == 1, let curl {
                let address = "\(origins[0].url.absoluteString)/profile?[1-\(times)]"
                let words = ["-Z", "--no-progress-meter", "--parallel-max", "\(width)", "--cacert", certificate.path(), "-o", "/dev/null"]
                contestants.append(.floor { try ranOutside(times, curl, words + [address]) })
            }
            return contestants
        }
    }

    /// Makes a certificate for localhost with OpenSSL's command line; its key is beside it.
    private static func madeCertificate() throws -> URL {
        let file = temporaryURL("pem")
        let words = [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
            "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", file.path() + ".key", "-out", file.path(),
        ]
        guard try ChildProcess.output(of: "/usr/bin/env", words, showsErrors: false) != nil else { throw CocoaError(.executableLoad) }
        return file
    }
    #endif

    private static func host(of url: URL) -> RemoteHost {
        RemoteHost(HostConfiguration("127.0.0.1", scheme: .http, port: url.port), limits: HostLimits(concurrentExchanges: 1_000))
    }

    private static func figures(_ name: String, _ title: String) -> [Figure] {
        [
            Figure(name: name, title: title, unit: .nanoseconds),
            Figure(name: "\(name)-cpu", title: "\(title): processor time", unit: .nanoseconds),
        ]
    }

    private static func wire(
        _ name: String, _ title: String, width: Int, count: Int, quick: Int, comparesCurl: Bool = false,
        _ make: @escaping @Sendable (URL) -> @Sendable () async throws -> Void
    ) -> Experiment {
        var figures = figures(name, title)
        // The processor time once more, because a figure has one budget, and this one is compared with two contestants.
        if comparesCurl {
            figures.append(Figure(name: "\(name)-session", title: "the same, compared with bare URLSession", unit: .nanoseconds))
        }
        return Experiment(section: .wire, figures: figures) { scale in
            let origin = try OriginProcess(.profile)
            let times = scale.times(count, quick: quick)
            let url = origin.url.appending(path: "profile")
            let (bare, own) = (BareSession(), make(url))
            var contestants: [Entrant] = [
                .mutex {
                    // The closure keeps the origin running.
                    defer { withExtendedLifetime(origin) {} }
                    return try await spent(times, over: width) { blackHole(try await bare.data(from: url)) }
                },
                .storehouse { try await spent(times, over: width, own) },
            ]
            let curl = ["/usr/bin/curl", "/usr/local/bin/curl"].first { FileManager.default.isExecutableFile(atPath: $0) }
            if comparesCurl, let curl {
                let address = "\(url.absoluteString)?[1-\(times)]"
                contestants.append(
                    .floor {
                        try ranOutside(
                            times, curl, ["-Z", "--no-progress-meter", "--parallel-max", "\(width)", "-o", "/dev/null", address])
                    })
            }
            return contestants
        }
    }

    /// Compares a POST with a GET through the same host.
    private static let post = Experiment(section: .wire, figures: figures("post-1", "a POST of 1 KB compared with a GET, in sequence")) {
        scale in
        let origin = try OriginProcess(.profile)
        let times = scale.times(2_000, quick: 500)
        let host = host(of: origin.url)
        let body = Data(count: 1_000)
        return [
            .mutex {
                defer { withExtendedLifetime(origin) {} }
                return try await spent(times, over: 1) { blackHole(try await host.data(for: Route(path: "/profile"))) }
            },
            .storehouse {
                try await spent(times, over: 1) {
                    blackHole(try await host.data(for: Route(path: "/profile", method: .post, body: .data(body))))
                }
            },
        ]
    }

    /// Measures wall time and, twice, this process's processor time per exchange.
    private static func spent(
        _ count: Int, over width: Int, _ body: @escaping @Sendable () async throws -> Void
    ) async throws -> [Double] {
        let (watch, before) = (Stopwatch(), processTime())
        let tasks = (0..<width).map { worker in Task { for _ in stride(from: worker, to: count, by: width) { try await body() } } }
        for task in tasks { try await task.value }
        let processor = (processTime() - before) / Double(count)
        return [watch.nanoseconds / Double(count), processor, processor]
    }

    /// Measures the same for another program and its children.
    static func ranOutside(_ count: Int, _ program: String, _ arguments: [String]) throws -> [Double] {
        let (watch, before) = (Stopwatch(), processTimeOfChildren())
        let process = try ChildProcess(program, arguments)
        guard process.wait() else { throw CocoaError(.executableLoad) }
        let processor = (processTimeOfChildren() - before) / Double(count)
        return [watch.nanoseconds / Double(count), processor, processor]
    }
}

#endif
