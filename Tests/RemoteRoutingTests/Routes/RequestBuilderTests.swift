import Foundation
import RemoteRoutingTesting
import StoreCore
import Testing
import Trials

@testable import RemoteRouting

struct RequestBuilderTests {
    private func builder(
        _ host: String = "api.example.com", port: Int? = nil, basePath: RoutePath = "", defaults: Headers = [:]
    ) throws -> RequestBuilder {
        RequestBuilder(origin: try WebOrigin(scheme: .https, host: host, port: port), basePath: basePath, defaults: defaults)
    }

    private func code(_ route: some Routable, defaults: Headers = [:]) throws -> RouteFault.Code? {
        let builder = try builder(defaults: defaults)
        return faultCode { () throws(RouteFault) in try builder.request(for: route) }
    }

    @Test func `a route becomes a request`() throws {
        let request = try builder(basePath: "/v1/", defaults: ["User-Agent": "x", "Accept": "*/*"]).request(
            for: Route(
                path: "/users/\("a b")", method: .post, query: ["q": "1 2"], headers: ["X-Trace": "t", "accept": "text/csv"],
                body: .json(fields: ["n": 1])))
        #expect(request.method == .post && request.url.absoluteString == "https://api.example.com/v1/users/a%20b?q=1%202")
        #expect(request.fields["User-Agent"] == "x" && request.fields.values(of: "Accept") == ["text/csv"])
        #expect(request.fields["Content-Type"] == "application/json" && request.fields["X-Trace"] == "t")
        #expect(try bytes(of: request.body) == Data(#"{"n":1}"#.utf8))
    }

    private struct Minimal: Routable { var path: RoutePath { "/x" } }

    @Test func `a route needs only a path`() throws {
        let request = try builder(port: 8443).request(for: Minimal())
        #expect(request.url.absoluteString == "https://api.example.com:8443/x" && request.method == .get && request.fields.fields.isEmpty)
        guard case .none = request.body else { throw CocoaError(.featureUnsupported) }
    }

    @Test(arguments: [
        ("", "", "https://h/"), ("", "/", "https://h/"), ("", "/x/", "https://h/x/"), ("/v1", "", "https://h/v1"),
        ("/v1/", "", "https://h/v1/"), ("/", "", "https://h/"), ("/v1/", "/", "https://h/v1/"), ("/v1", "/", "https://h/v1/"),
    ])
    func `the shortest address has a slash, and an empty path is the base path`(base: String, path: String, expected: String) throws {
        let builder = try builder("h", basePath: RoutePath(stringLiteral: base))
        #expect(try builder.request(for: Route(path: RoutePath(stringLiteral: path))).url.absoluteString == expected)
    }

    @Test(arguments: [(HTTPMethod.get, true), (.head, true), (.delete, true), (.post, false), (.put, false), (.patch, false)])
    func `the method decides between query and body`(method: HTTPMethod, inQuery: Bool) throws {
        let request = try builder().request(for: Route(path: "/x", method: method, parameters: ["a": "b c"]))
        #expect(request.url.query(percentEncoded: true) == (inQuery ? "a=b%20c" : nil))
        #expect(try bytes(of: request.body) == (inQuery ? nil : Data(#"{"a":"b c"}"#.utf8)))
    }

    @Test(arguments: [(MimeType.formURLEncoded, "a=b+c"), (MimeType(rawValue: "application/vnd.x+json")!, #"{"a":"b c"}"#)])
    func `parameters are written in the body's media type`(type: MimeType, expected: String) throws {
        let request = try builder().request(for: Route(path: "/x", method: .post, parameters: ["a": "b c"], as: type))
        #expect(request.fields["Content-Type"] == type.rawValue)
        #expect(try bytes(of: request.body) == Data(expected.utf8))
        #expect(try code(Route(path: "/x", method: .post, parameters: [:], as: .plainText)) == .unsupportedShape)
    }

    @Test(arguments: [0, -1, 65536, Int.max])
    func `H2: an invalid port is refused`(port: Int) throws {
        #expect(try code(Route(path: "/", options: RouteOptions(port: port))) == .invalidOrigin)
    }

    @Test func `H2: a route can change only the port of its origin`() throws {
        let request = try builder().request(for: Route(path: "/x", options: RouteOptions(port: 81)))
        #expect(WebOrigin(of: request.url) == (try WebOrigin(scheme: .https, host: "api.example.com", port: 81)))
    }

    @Test(arguments: [
        "", " ", "a b", "a/b", "a@b", "user:pw@h", "h:80", "127.0.0.1:80", "cafe:80", "[::1]:80", ":", "h?x", "h#x", "h%2f", "h\\x", "[::1",
        "::1]", "h\r\nx", "ä..example", "[g::]", "[]", ".h", "a..b", "[fe80::1%25eth0]",
    ])
    func `H2: an invalid host is refused`(host: String) {
        let error = #expect(throws: RouteFault.self) { try WebOrigin(scheme: .https, host: host) }
        #expect(error?.code == .invalidOrigin)
    }

    @Test(arguments: [
        ("API.Example.COM", "https://api.example.com/x"), ("127.0.0.1", "https://127.0.0.1/x"), ("::1", "https://[::1]/x"),
        ("[2001:DB8::1]", "https://[2001:db8::1]/x"), ("my_host", "https://my_host/x"), ("example.com.", "https://example.com./x"),
    ])
    func `H2: names and addresses are hosts`(host: String, expected: String) throws {
        #expect(try builder(host).request(for: Route(path: "/x")).url.absoluteString == expected)
    }

    @Test(arguments: [
        ("https://h/x", "https://H:443/y", true), ("https://h/", "http://h/", false), ("https://h/", "https://h:444/", false),
        ("https://h/", "https://i/", false), ("http://[::1]/", "http://[::1]:80/", true),
    ])
    func `H2: origins are compared by scheme, host and port`(one: String, other: String, same: Bool) throws {
        let origins = [one, other].map { URL(string: $0).flatMap { WebOrigin(of: $0) } }
        #expect(!origins.contains(nil) && (origins[0] == origins[1]) == same)
    }

    @Test(arguments: ["ftp://h/", "file:///x", "https://user@h/", "https://u:p@h/", "mailto:a@b", "/x", "https:///x"])
    func `H2: other addresses have no web origin`(address: String) {
        #expect(URL(string: address).flatMap { WebOrigin(of: $0) } == nil)
    }

    @Test func `H2: an address that Foundation would change is refused`() throws {
        let origin = try WebOrigin(scheme: .https, host: "h")
        for text in ["https://h@evil/", "https://evil/", "https://h:1/", "http://h/", "https://h\\@evil/", "https://h /"] {
            #expect(throws: RouteFault.self) { try origin.url(text) }
        }
    }

    @Test(arguments: [
        "Host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "TE", "Trailer", "Expect", "Proxy-Authorization",
        "Proxy-Connection", "hOST", "Keep-Alive", "proxy-anything",
    ])
    func `H3: reserved fields are refused`(name: String) throws {
        #expect(try code(Route(path: "/", headers: [name: "x"])) == .reservedField)
        #expect(try code(Route(path: "/"), defaults: [name: "x"]) == .reservedField)
    }

    @Test(arguments: ["", " ", "a b", "a:", "a\r\nX", "a\u{0}", "ä", "(", "a/b", "\"a\"", "a,b", "a;b", "a=b", "a[", "a{", "a@", "a\t"])
    func `H3: a name that is not a token is refused and not shown`(name: String) throws {
        #expect(try code(Route(path: "/", headers: [name: "x"])) == .invalidField)
    }

    @Test(arguments: ["a\r\nX: y", "a\n", "a\r", "\u{0}", "a\u{7F}", " a", "a ", "\ta", "a\u{1}b"])
    func `H3: an invalid value is refused and not shown`(value: String) throws {
        let route = Route(path: "/", headers: ["X-Secret": value])
        let error = #expect(throws: RouteFault.self) { try builder().request(for: route) }
        #expect(error?.code == .invalidField && error?.part == "header X-Secret")
    }

    @Test(arguments: ["a\r\nX: y", "a\n", "\u{0}", "a\u{7F}", "\ta", "ä", "\u{80}"])
    func `H3: an idempotency key that is not printable ASCII is refused and not shown`(key: String) throws {
        let route = Route(path: "/", options: RouteOptions(idempotencyKey: .key(key)))
        let error = #expect(throws: RouteFault.self) { try builder().request(for: route) }
        #expect(error?.code == .invalidField && error?.part == "idempotency key")
    }

    @Test(arguments: [("k", #""k""#), ("", #""""#), (" a b ", #"" a b ""#), (#"a"b\c"#, #""a\"b\\c""#)])
    func `H3: an idempotency key is a string of a structured field`(key: String, value: String) throws {
        let route = Route(path: "/", options: RouteOptions(idempotencyKey: .key(key)))
        #expect(try builder().request(for: route).fields["Idempotency-Key"] == value)
        // The field itself is sent as it is.
        let bare = Route(path: "/", headers: ["Idempotency-Key": "bare"], options: RouteOptions(idempotencyKey: .key(key)))
        #expect(try builder().request(for: bare).fields.values(of: "Idempotency-Key") == ["bare"])
    }

    @Test(arguments: ["", "a b", "ä\tö", "x\u{80}"])
    func `H3: every field value of RFC 9110 is accepted`(value: String) throws {
        #expect(try builder().request(for: Route(path: "/", headers: ["X-A": value])).fields["x-a"] == value)
    }

    @Test(arguments: ["GET /", "", "G\r\nX", "a b", "GÉT", "GET\t"])
    func `H3: a method that is not a token is refused`(method: String) {
        #expect(HTTPMethod(rawValue: method) == nil)
    }

    @Test func `H3: a route's fields replace the default with the same name, and a route can remove a default`() throws {
        var headers: Headers = ["X-A": "1", "x-a": "2"]
        headers.remove("User-Agent")
        let fields = try builder(defaults: ["X-A": "0", "User-Agent": "u", "X-B": "b"]).request(for: Route(path: "/", headers: headers))
            .fields
        #expect(fields.values(of: "X-A") == ["1", "2"] && fields["User-Agent"] == nil)
        #expect(fields["X-B"] == "b")
    }

    @Test func `H3: a route's content type replaces that of the body`() throws {
        let route = Route(path: "/", method: .post, headers: ["content-type": "application/x"], body: .data(Data([1])))
        #expect(try builder().request(for: route).fields.values(of: "Content-Type") == ["application/x"])
    }

    @Test(arguments: [("HEAD", RouteFault.Code.bodyNotAllowed), ("TRACE", .bodyNotAllowed), ("connect", .unsupportedMethod)])
    func `a body is refused if its method allows none, and a tunnel always`(method: String, expected: RouteFault.Code) throws {
        #expect(try code(Route(path: "/", method: try #require(HTTPMethod(rawValue: method)), body: .data(Data()))) == expected)
    }

    @Test func `options become fields`() throws {
        let options = RouteOptions(accept: .problemJSON, cachePolicy: .neverStore, idempotencyKey: .key("k"))
        let fields = try builder(defaults: ["Accept": "a/b"]).request(for: Route(path: "/", options: options)).fields
        #expect(fields.values(of: "Accept") == ["application/problem+json"] && fields["Cache-Control"] == "no-store")
        #expect(fields["Idempotency-Key"] == "\"k\"")
    }

    @Test func `a unique idempotency key differs in each request`() throws {
        let route = Route(path: "/", method: .post, options: RouteOptions(idempotencyKey: .unique))
        let keys = try (0..<3).map { _ in try builder().request(for: route).fields["Idempotency-Key"] }
        #expect(Set(keys).count == 3 && !keys.contains(nil))
    }

    @Test(arguments: [
        ("users", "api.example.com", RouteFault(.relativePath, in: "path", "begin with a slash")),
        ("/a/../b", "api.example.com", RouteFault(.dotSegment, in: "path", "check the value")),
        ("/users", "127.0.0.1:8080/v1", RouteFault(.invalidOrigin, in: "host", "needs a scheme")),
    ])
    func `an error of a route names the faulty part once, and its code last`(path: String, host: String, fault: RouteFault) async throws {
        let host = RemoteHost(HostConfiguration(host), transport: MemoryTransport { _ in .status(204) })
        let error = try await #require(throws: RemoteError.self) { try await host.send(Route(path: RoutePath(stringLiteral: path))) }
        #expect(error.code == .invalidRoute)
        #expect(error.description.contains("nothing was sent because of the \(fault.part): "))
        #expect(error.description.ranges(of: fault.message).count == 1)
        #expect(error.description.hasSuffix(" (RouteFault.\(fault.code.rawValue))"))
    }

    @Test func `a fault names the part, the reason and the remedy`() {
        let fault = RouteFault(.dotSegment, in: "path", "do this")
        #expect("\(fault)" == "RouteFault.dotSegment in the path: do this")
        #expect(RouteFault.Code(rawValue: "dotSegment") == .dotSegment)
    }

    @Test func `an error of the first attempt does not mention attempts`() async throws {
        let host = RemoteHost("api.example.com", transport: MemoryTransport { _ in .status(404) })
        let error = try await remoteError { try await host.send("/x") }
        #expect(error.attempts == 1 && !error.description.contains("attempt"))
    }
}

/// The code of the fault that an operation throws; `nil` if it throws none.
func faultCode<Result>(_ operation: () throws(RouteFault) -> Result) -> RouteFault.Code? {
    do { _ = try operation() } catch { return error.code }
    return nil
}

/// Reads all bytes of a body; `nil` without a body.
func bytes(of body: HTTPBody, upTo count: Int = 7) throws -> Data? {
    switch body {
    case .none: return nil
    case .data(let data): return data
    case .stream(let stream):
        let read = try stream.open()
        var all = Data()
        while let data = try read(count) {
            #expect(data.count <= count && !data.isEmpty)
            all.append(data)
        }
        return all
    }
}

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

    @Test(arguments: [
        "//evil.example/x", "https://evil.example/", "/a\\b", "/x\n", "", "javascript:alert(1)", "/%252e%252e/x",
        "https://api.example.com/%252e%252e/x", "//api.example.com//x",
    ])
    func `H2, H21: a link of a response to another origin, or against the rules for paths, is refused`(link: String) async throws {
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
