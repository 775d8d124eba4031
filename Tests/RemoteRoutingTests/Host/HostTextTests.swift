import Foundation
import LoopbackOrigin
import RemoteRoutingTesting
import Testing
import Trials

@testable import RemoteRouting

struct HostTextTests {
    private static let addresses: [(text: String, address: String)] = [
        ("api.example.com", "https://api.example.com/x"), ("API.Example.com", "https://api.example.com/x"),
        ("bücher.example:8443", "https://xn--bcher-kva.example:8443/x"), ("localhost.:8080", "https://localhost:8080/x"),
        ("api.example.com:8443", "https://api.example.com:8443/x"), ("api.example.com:443", "https://api.example.com/x"),
        ("localhost:8080", "https://localhost:8080/x"), ("127.0.0.1:08080", "https://127.0.0.1:8080/x"), ("::1", "https://[::1]/x"),
        ("[::1]", "https://[::1]/x"), ("[2001:db8::1]:8080", "https://[2001:db8::1]:8080/x"),
        ("https://api.example.com", "https://api.example.com/x"), ("https://api.example.com/", "https://api.example.com/x"),
        ("HTTPS://API.example.com/v1", "https://api.example.com/v1/x"), ("https://api.example.com/v1/", "https://api.example.com/v1/x"),
        ("http://localhost:8080/a/b", "http://localhost:8080/a/b/x"), ("http://[::1]:8080", "http://[::1]:8080/x"),
        ("https://api.example.com:443/v%201", "https://api.example.com/v%201/x"),
    ]

    @Test(arguments: addresses)
    func `a text may be a host, a host with its port, or a whole address`(text: String, address: String) async throws {
        let transport = MemoryTransport { _ in .status(204) }
        try await RemoteHost(HostConfiguration(text), transport: transport).send("/x")
        try await RemoteHost(HostConfiguration(stringLiteral: text), transport: transport).send("/x")
        if text.contains("://") {
            let url = try #require(URL(string: text))
            try await RemoteHost(HostConfiguration(url: url), transport: transport).send("/x")
        }
        #expect(Set(transport.requests.map(\.url.absoluteString)) == [address])
    }

    /// Invalid texts, with the code and the part of their fault.
    private static let invalid: [(code: RouteFault.Code, part: String, texts: [String])] = [
        (
            .invalidOrigin, "host",
            [
                "", " ", " api.example.com", "api.example.com ", "api example.com", "api.example.com\n", "api..example.com",
                ".example.com", "bücher..example", "büch er.example", "api%2eexample.com", "api.example.com/v1", "api.example.com?a=b",
                "api.example.com#a", "//api.example.com", "user@api.example.com", "user:secret@api.example.com",
                #"api.example.com\@evil.example"#, #"api.example.com\evil"#, ":8080", "[::1", "::1]", "[fe80::1%25eth0]",
                "mailto:ada@example.com", "https:/api.example.com", "https://", "https:///v1", "https://:8080",
                "https://user@api.example.com", "https://user:secret@api.example.com/v1", "https://api.example.com@evil.example",
                #"https://api.example.com\@evil.example"#,
            ]
        ),
        (
            .invalidOrigin, "port",
            [
                "api.example.com\r\nX: y", "api.example.com:", "api.example.com:0", "api.example.com:65536", "api.example.com:-1",
                "api.example.com:+80", "api.example.com:8o", "api.example.com:٨٠", "api.example.com:99999999999999999999", "[::1]x",
                "https:api.example.com", "https://api.example.com:80a/v1", "https://api.example.com:/v1",
            ]
        ),
        (.invalidOrigin, "scheme", ["ftp://api.example.com", "file:///etc/passwd", "://api.example.com", " https://api.example.com"]),
        (.invalidOrigin, "address", ["https://api.example.com?a=b", "https://api.example.com/v1?", "https://api.example.com/v1#a"]),
        (.dotSegment, "path", ["https://api.example.com/../v1", "https://api.example.com/v1/%2e%2e"]),
        (.emptySegment, "path", ["https://api.example.com//evil.example"]),
        (.forbiddenCharacter, "path", ["https://api.example.com/a b", #"https://api.example.com/a\b"#, "https://api.example.com/%0d%0a"]),
    ]

    private static let faults: [(text: String, code: RouteFault.Code, part: String)] = invalid.flatMap { fault in
        fault.texts.map { (text: $0, code: fault.code, part: fault.part) }
    }

    @Test(arguments: faults)
    func `H2: an invalid host text is a typed error before anything is sent`(
        text: String, code: RouteFault.Code, part: String
    ) async throws {
        let transport = MemoryTransport { _ in .status(204) }
        let host = RemoteHost(HostConfiguration(text), transport: transport)
        let error = try await #require(throws: RemoteError.self) { try await host.send("/x") }
        let fault = try #require(error.underlyingError as? RouteFault)
        #expect(error.stage == .build && error.code == .invalidRoute && fault.code == code && fault.part == part, "\(fault)")
        #expect(transport.requests.isEmpty)
        #expect(!"\(error)".contains("secret") && !"\(error)".contains("evil"))
    }

    @Test(arguments: faults.filter { $0.text.contains(":") })
    func `an invalid address throws at once`(text: String, code: RouteFault.Code, part: String) throws {
        // Foundation escapes spaces and backslashes of a path, which changes the address.
        guard let url = URL(string: text, encodingInvalidCharacters: false) else { return }
        #expect(throws: RouteFault.self) { try HostConfiguration(url: url) }
    }

    @Test(arguments: ["/v1", "api.example.com", "//api.example.com/v1", "localhost:8080", "mailto:ada@example.com", "file:///tmp"])
    func `an address without http or https throws at once`(text: String) throws {
        let url = try #require(URL(string: text))
        let fault = try #require(throws: RouteFault.self) { try HostConfiguration(url: url) }
        #expect(fault.code == .invalidOrigin)
    }

    @Test func `an address relative to another is resolved`() throws {
        let url = try #require(URL(string: "v2", relativeTo: URL(string: "https://api.example.com/v1")))
        let configuration = try HostConfiguration(url: url)
        #expect(configuration == HostConfiguration("api.example.com", basePath: "/v2"))
    }

    @Test func `the text and the arguments are combined unless they contradict each other`() async throws {
        #expect(HostConfiguration("http://localhost:8080/v1") == HostConfiguration("localhost", scheme: .http, port: 8080, basePath: "/v1"))
        #expect(HostConfiguration("https://a.example", port: 1, basePath: "/b") == HostConfiguration("a.example:1", basePath: "/b"))
        #expect(HostConfiguration("http://a.example:1", scheme: .http, port: 1) == HostConfiguration("http://a.example:1"))
        let contradictions = [
            (HostConfiguration("http://a.example", scheme: .https), "scheme"), (HostConfiguration("a.example:1", port: 2), "port"),
            (HostConfiguration("https://a.example/a", basePath: "/b"), "base path"),
        ]
        for (configuration, part) in contradictions {
            let host = RemoteHost(configuration, transport: MemoryTransport { _ in .status(204) })
            let error = try await #require(throws: RemoteError.self) { try await host.send("/x") }
            #expect((error.underlyingError as? RouteFault)?.part == part)
        }
    }

    @Test func `setting a part replaces a fault, and the new part is validated`() async throws {
        let transport = MemoryTransport { _ in .status(204) }
        var configuration = HostConfiguration("api.example.com", port: 0)
        configuration.port = 8080
        try await RemoteHost(configuration, transport: transport).send("/x")
        configuration = "user@api.example.com"
        configuration.port = 8080
        await #expect(throws: RemoteError.self) { try await RemoteHost(configuration, transport: transport).send("/x") }
        configuration.host = "other.example"
        try await RemoteHost(configuration, transport: transport).send("/x")
        #expect(transport.requests.map(\.url.absoluteString) == ["https://api.example.com:8080/x", "https://other.example:8080/x"])
    }

    @Test func `H2: a host has at most 255 bytes`() async throws {
        let transport = MemoryTransport { _ in .status(204) }
        let label = String(repeating: "a", count: 63)
        let longest = [label, label, label, label].joined(separator: ".")
        try await RemoteHost(HostConfiguration(longest), transport: transport).send("/x")
        #expect(transport.requests.map(\.url.absoluteString) == ["https://\(longest)/x"])
        await #expect(throws: RemoteError.self) { try await RemoteHost(HostConfiguration(longest + "a"), transport: transport).send("/x") }
    }
}

/// International host names, and names that end with a dot.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct InternationalNameTests {
    @Test(arguments: [
        ("b\u{FC}cher.example", "xn--bcher-kva.example"), ("BU\u{308}CHER.example", "xn--bcher-kva.example"),
        ("fa\u{DF}.example", "xn--fa-hia.example"), ("\u{65E5}\u{672C}.example", "xn--wgv71a.example"),
        ("b\u{FC}cher\u{3002}example", "xn--bcher-kva.example"), ("XN--BCHER-KVA.example", "xn--bcher-kva.example"),
        ("\u{FF45}x.example", "ex.example"),
    ])
    func `H21: an international name is converted to its ASCII form`(name: String, expected: String) throws {
        #expect(try WebOrigin(scheme: .https, host: name).host == expected)
        #expect(try HostConfiguration("\(name):8443").origin().description == "https://\(expected):8443")
        #expect(try HostConfiguration("https://\(name)/v1").origin().host == expected)
        let url = try #require(URL(string: "https://\(name)/x"))
        #expect(try HostConfiguration(url: url).origin().host == expected)
        #expect(WebOrigin(of: url)?.host == expected)
    }

    @Test(arguments: [
        "a\u{2100}b.example", "\u{200D}a.example", "-\u{FC}.example", "b\u{FC} cher.example", "b\u{FC}%2Fcher.example", "\u{FC}@b.example",
        "\u{FC}/b", "\u{FC}\\b", "[\u{FC}]", "\u{FC}..example", "\u{FF0F}.example",
    ])
    func `H21: a name without an ASCII form is refused`(name: String) {
        let fault = #expect(throws: RouteFault.self) { try WebOrigin(scheme: .https, host: name) }
        #expect(fault?.code == .invalidOrigin)
    }

    @Test(arguments: ["localhost.", "LOCALHOST.", "a.localhost.", "localhost", "127.0.0.1"])
    func `H5: a name of this machine may end with a dot`(name: String) throws {
        #expect(try WebOrigin(scheme: .http, host: name).isLoopback)
    }

    @Test(arguments: ["localhost..", "localhost.example.", "notlocalhost.", "127.0.0.1.example"])
    func `H5: another name is not this machine`(name: String) throws {
        #expect((try? WebOrigin(scheme: .http, host: name).isLoopback) != true)
    }

    @Test(arguments: RealTransport.available)
    func `H5: credentials go to localhost. without encryption`(_ transport: RealTransport) async throws {
        let origin = try LoopbackOrigin { .text($0.headers["Authorization"] ?? "none") }
        let host = RemoteHost(
            HostConfiguration("localhost.", scheme: .http, port: Int(origin.port)), transport: try transport.make()
        ).with { $0.timeouts = .untilHang }.authorized(by: .bearer("secret"))
        #expect(try await host.data(for: Route(path: "/x")) == Data("Bearer secret".utf8))
    }

    @Test(arguments: ["http://a.example:99999999999999999999/x", "http://a.example:65536/x", "http://a.example:0/x"])
    func `H2: an address with an impossible port has no origin`(text: String) throws {
        #expect(WebOrigin(of: try #require(URL(string: text))) == nil)
    }
}
