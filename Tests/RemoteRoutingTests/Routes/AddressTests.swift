import Foundation
import RemoteHTTP
import RemoteRoutingTesting
import StoreCore
import Testing
import Trials

@testable import RemoteRouting

/// Addresses that are sent as they are, and links of responses.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct AddressTests {
    private let transport = MemoryTransport { request in
        .init(status: 200, headers: [("Content-Type", "application/json")], body: Data("[1]".utf8))
    }

    private var host: RemoteHost { RemoteHost("https://api.example.com/v1", transport: transport) }

    private func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

    @Test(
        arguments: [
            ("https://api.example.com/files/a%20b.pdf?x=1&y=%2F", "https://api.example.com/files/a%20b.pdf?x=1&y=%2F"),
            ("https://API.example.com:443/v2/x#part", "https://api.example.com/v2/x"),
            ("https://api.example.com", "https://api.example.com/"),
            ("HTTPS://api.example.com/caf%C3%A9", "https://api.example.com/caf%C3%A9"),
            ("https://api.example.com/a/../b", "https://api.example.com/b"),
            ("https://api.example.com/%252e%252e/x", "https://api.example.com/%252e%252e/x"),
            ("https://api.example.com/%252E", "https://api.example.com/%252E"),
            ("https://api.example.com/a%5Cb", "https://api.example.com/a%5Cb"),
            ("https://api.example.com/a%2Fb%3F%23", "https://api.example.com/a%2Fb%3F%23"),
            ("https://api.example.com/a//b", "https://api.example.com/a//b"), ("https://api.example.com//x", "https://api.example.com//x"),
            ("https://api.example.com/...?q=%2e%2e", "https://api.example.com/...?q=%2e%2e"),
        ] as [(String, String)])
    func `H21: an address within the origin is sent as it is, outside the base path too`(text: String, expected: String) async throws {
        let numbers: [Int] = try await host.send(try url(text))
        try await host.send(try url(text), method: .delete)
        #expect(numbers == [1])
        #expect(transport.requests.map(\.url.absoluteString) == [expected, expected])
        #expect(transport.requests.map(\.method) == [.get, .delete])
    }

    @Test(arguments: [
        "https://evil.example/x", "http://api.example.com/x", "https://api.example.com:444/x", "https://ada:secret@api.example.com/x",
        "https://api.example.com:99999999999999999999/x", "https://api.example.com/%2e%2e/x", "https://api.example.com/a/.%2E",
        "https://api.example.com/%2e/x", "file:///etc/passwd", "mailto:ada@api.example.com", "https://api.example.com.evil.example/",
        "/v1/x",
    ])
    func `H21, H2: an address of another origin is refused before anything is sent`(text: String) async throws {
        let error = try await remoteError { try await host.send(try url(text)) }
        #expect(error.code == .invalidRoute && error.stage == .build)
        #expect((error.underlyingError as? RouteFault)?.code == .foreignOrigin)
        #expect(!error.description.contains("secret") && transport.requests.isEmpty, "\(error)")
    }

    @Test(arguments: ["%2e%2e", "%252e%252e", "a\\b", "..", "."])
    func `H2, H21: an interpolated value stays protected, and the app may send the address of any name`(name: String) async throws {
        let error = try await remoteError { try await host.send("/files/\(name)") }
        #expect(error.code == .invalidRoute && error.stage == .build)
        #expect(transport.requests.isEmpty)
        // The name as a file server expects it: “%2e%2e” is “%252e%252e”.
        let escaped = name.replacing("%", with: "%25").replacing("\\", with: "%5C")
        guard escaped.contains("%") else { return }
        let address = try url("https://api.example.com/files/\(escaped)")
        try await host.send(address)
        #expect(transport.requests.map(\.url) == [address])
    }

    @Test(arguments: ["/%252e%252e/x", "https://api.example.com/%252e%252e/x", "//api.example.com//x"])
    func `H2, H21: a link of a response stays protected`(link: String) async throws {
        let list = try await host.dataResponse(for: Route(path: "/list"))
        let error = try await remoteError { _ = try await host.send(link: link, in: list, as: [Int].self) }
        #expect((error.underlyingError as? RouteFault)?.code == .foreignOrigin)
        #expect(transport.requests.count == 1)
    }

    @Test func `H21: an address works with a body, credentials, and as a route of any call`() async throws {
        let host = host.authorized(by: .bearer("secret"))
        let address = try url("https://api.example.com/upload?id=7")
        try await host.send(Route(to: address, method: .put, headers: ["X-A": "b"], body: .json([1])))
        _ = try await host.data(for: Route(to: address))
        #expect(transport.requests.map(\.url) == [address, address])
        #expect(transport.requests.allSatisfy { $0.fields["Authorization"] == "Bearer secret" })
        #expect(transport.requests.first?.fields["X-A"] == "b")
    }

    @Test(arguments: [
        ("?page=2", "https://api.example.com/v1/list?page=2"), ("/other/x y", "https://api.example.com/other/x%20y"),
        ("caf%C3%A9/\u{E9}", "https://api.example.com/v1/caf%C3%A9/%C3%A9"), ("../x", "https://api.example.com/x"),
        ("//api.example.com/x", "https://api.example.com/x"), ("https://api.example.com/y?q=\"a\"", "https://api.example.com/y?q=%22a%22"),
    ])
    func `H21: a link is resolved against its response`(link: String, expected: String) async throws {
        let list = try await host.dataResponse(for: Route(path: "/list", query: ["page": 1]))
        let numbers: [Int] = try await host.send(link: link, in: list)
        #expect(numbers == [1] && transport.requests.last?.url.absoluteString == expected)
    }

    @Test(arguments: ["//evil.example/x", "https://evil.example/", "/a\\b", "/x\n", "", "javascript:alert(1)"])
    func `H21: a link to another origin is refused`(link: String) async throws {
        let list = try await host.dataResponse(for: Route(path: "/list"))
        let error = try await remoteError { _ = try await host.send(link: link, in: list, as: [Int].self) }
        #expect((error.underlyingError as? RouteFault)?.code == .foreignOrigin)
        #expect(transport.requests.count == 1)
    }

    /// The references of RFC 3986 §5.4, which the resolver must leave to the rules of the RFC.
    @Test(arguments: [
        ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("/g", "http://a/g"), ("//g", "http://g/"), ("?y", "http://a/b/c/d;p?y"),
        ("g?y", "http://a/b/c/g?y"), ("#s", "http://a/b/c/d;p?q"), ("g;x?y#s", "http://a/b/c/g;x?y"), ("..", "http://a/b/"),
        ("../../../../g", "http://a/g"), ("g;x=1/../y", "http://a/b/c/y"), ("g?y/../x", "http://a/b/c/g?y/../x"),
    ])
    func `H21: the resolver follows RFC 3986`(reference: String, expected: String) throws {
        #expect(WebAddress.resolve(reference, from: try url("http://a/b/c/d;p?q"))?.absoluteString == expected)
    }

    @Test func `H21: what is resolved once resolves to itself`() throws {
        let base = try url("https://a.example/")
        for byte in UInt8(0x20)...0x7E {
            let character = String(Unicode.Scalar(byte))
            for text in ["/x\(character)y", "/x?\(character)y", "/%C3%A9\(character)", "/\u{E9}\(character)\u{1F600}"] {
                guard let once = WebAddress.resolve(text, from: base) else {
                    #expect(character == "\\")
                    continue
                }
                #expect(WebAddress.resolve(once.absoluteString, from: base) == once)
                #expect(once.absoluteString.contains("%25") == (character == "%"))
            }
        }
    }
}
