import Foundation
import RemoteRoutingTesting
import Testing
import Trials

@testable import RemoteRouting

/// Compiles declarations that resemble those of a route.
@Suite(.enabled(if: SwiftCompiler.found != nil, "swiftc or the built module is not found, so there is nothing to compile with"))
struct RouteSpellingTests {
    /// The protocol that an error names, or a part of its message, and members that a route cannot have.
    private static let mistakes: [(remedy: String, members: [String])] = [
        ("_MethodMustBeHTTPMethod", [#"var method: String { "POST" }"#, #"let method = "POST""#, "var method: HTTPMethod? { .post }"]),
        ("_MethodMustBeHTTPMethod", [#"private var method: String { "POST" }"#]),
        ("_QueryMustBeParameters", ["var query: [URLQueryItem] { [] }", "var query: [String: String] { [:] }"]),
        ("_HeadersMustBeHeaders", ["var headers: [String: String] { [:] }"]),
        ("_BodyMustBeRouteBody", ["var body: Data { Data() }", "let body: String", "var body: RouteBody? { nil }"]),
        ("_RoutePropertyMustNotThrow", ["var body: RouteBody { get throws { .none } }"]),
        ("_RoutePropertyMustNotThrow", ["var query: Parameters { get throws { [:] } }", "var headers: Headers { get throws { [:] } }"]),
        ("_RoutePropertyMustNotThrow", ["var options: RouteOptions { get throws { RouteOptions() } }"]),
        ("_RoutePropertyMustNotThrow", ["var method: HTTPMethod { get throws { .post } }"]),
        ("_OptionsMustBeRouteOptions", ["var options: [String: Bool] { [:] }"]),
        ("_MustBeQueryOrBody", ["var parameters: Parameters { [:] }", "var parameters: [String: String] { [:] }"]),
        ("_MustBeQueryOrBody", ["private let parameters: Parameters = [:]"]),
        ("_MustBeNamedQuery", ["var queryItems: [URLQueryItem] { [] }", "var queryParameters: Parameters { [:] }"]),
        ("_MustBeNamedHeaders", ["var header: Headers { [:] }"]),
        ("_MustBeNamedMethod", ["var httpMethod: HTTPMethod { .post }"]),
        ("_MustBeNamedBody", ["var httpBody: Data? { nil }"]),
        ("_MustBeInOptions", ["var requiresAuth: Bool { false }", "var timeouts: RouteOptions.Timeouts { .init(overall: .seconds(5)) }"]),
        ("_MustBeInOptions", ["var cachePolicy: RouteOptions.CachePolicy { .neverStore }", "var responseLimit: Int { 5 }"]),
        ("_MustBeInOptions", ["var parameterStyle: ParameterStyle { ParameterStyle(lists: .commas) }"]),
        ("tags are set in the options of a route", ["var tags: RouteTags { RouteOptions().tags }"]),
        ("accept is set in the options of a route", ["var accept: MimeType { .json }", "var accept: MimeType? { .json }"]),
        ("an idempotency key is set in the options of a route", ["var idempotencyKey: RouteOptions.IdempotencyKey { .unique }"]),
        ("an idempotency key is set in the options of a route", ["var idempotencyKey: RouteOptions.IdempotencyKey? { .unique }"]),
        ("_MustBePathAndHost", ["var url: URL { URL(filePath: \"/\") }", "var baseURL: URL { URL(filePath: \"/\") }"]),
        ("_RoutePropertyMustNotBeFunction", ["func method() -> HTTPMethod { .post }", "func query() -> Parameters { [:] }"]),
        ("_RoutePropertyMustNotBeFunction", ["func headers() -> Headers { [:] }", "func body() -> RouteBody { .none }"]),
        ("_RoutePropertyMustNotBeFunction", ["func body() throws -> RouteBody { .none }"]),
        ("_RoutePropertyMustNotBeFunction", ["func options() -> RouteOptions { RouteOptions() }"]),
        ("_RoutePropertyMustNotBeStatic", ["static let method = HTTPMethod.post", "static var query: Parameters { [:] }"]),
        ("_RoutePropertyMustNotBeStatic", ["static let headers: Headers = [:]", "static var body: RouteBody { .none }"]),
        ("_RoutePropertyMustNotBeStatic", ["static let options = RouteOptions()"]),
    ]

    @Test func `a member that a route must not have does not compile, and the error names the remedy`() async throws {
        let compiler = try #require(SwiftCompiler.found)
        var types: [(form: String, member: String, remedy: String)] = []
        for form in ["struct", "final class", "enum"] {
            for (remedy, members) in Self.mistakes {
                // An enum has no stored properties, and a class needs an initializer for a property without a value.
                let own = form == "struct" ? members : members.filter { !$0.contains("let ") || $0.hasPrefix("static") }
                types += own.map { (form, $0, remedy) }
            }
        }
        let lines = types.enumerated().map { number, type in
            let start = "\(type.form) Route\(number): Routable { \(type.form == "enum" ? "case one; " : "")"
            return start + "var path: RoutePath { \"/\" }; \(type.member) }"
        }
        let found = try await compiler.diagnostics(of: (["import Foundation; import RemoteRouting"] + lines).joined(separator: "\n"))
        for (number, type) in types.enumerated() {
            let isFound = found.contains { $0.line == number + 2 && $0.text.contains(type.remedy) }
            #expect(isFound, "\(type.member) compiles in a \(type.form), or its error does not name \(type.remedy)")
        }
        #expect(!found.contains { $0.line == 0 }, "\(found.first { $0.line == 0 }?.text ?? "")")
    }

    @Test func `neither wrong members of extensions, refined protocols and generics nor bodies without a method compile`() async throws {
        let compiler = try #require(SwiftCompiler.found)
        let found = try await compiler.diagnostics(
            of: """
                import RemoteRouting
                struct Extended {}
                extension Extended: Routable { var path: RoutePath { "/" }; var method: String { "POST" } }
                protocol Refined: Routable {}
                extension Refined { var method: String { "POST" } }
                struct Refining: Refined { var path: RoutePath { "/" } }
                struct Generic<Value: Sendable>: Routable { var path: RoutePath { "/" }; var method: Value }
                public struct Open: Routable { public var path: RoutePath { "/" }; public var method: String { "POST" } }
                let right = [Route(path: "/x", method: .post, body: .none), Route(path: "/x", method: .put), Route(path: "/x")]
                let wrong = Route(path: "/x", body: .json(fields: ["a": 1]))
                """)
        #expect(found.filter { $0.line > 8 }.map(\.line) == [10])
        #expect(found.contains { $0.line == 10 && $0.text.contains("missing argument for parameter 'method'") })
        #expect(Set(found.filter { $0.text.contains("'_MethodMustBeHTTPMethod'") }.map(\.line)) == [3, 6, 7, 8])
    }

    @Test func `correct routes of every form compile, and so do cases with the names of properties`() async throws {
        let compiler = try #require(SwiftCompiler.found)
        let found = try await compiler.diagnostics(
            of: """
                import Foundation
                import RemoteRouting

                struct Item: Codable, Sendable { var id: Int }
                extension Routable where Self == Route {
                    static func product(_ id: Int) -> Route { Route(path: "/products/\\(id)") }
                }
                enum Everything: Routable {
                    case body(Int), method, headers, query, options, url, parameters(String), header, requiresAuth
                    var path: RoutePath { "/" }
                    var method: HTTPMethod { .post }
                    var query: Parameters { ["a": 1] }
                    var headers: Headers { [:] }
                    var body: RouteBody { .none }
                    var options: RouteOptions { RouteOptions(requiresAuth: false) }
                }
                enum Little: Routable {
                    case body(Int), method, headers, query, options, url, parameters(String), header
                    var path: RoutePath { "/" }
                }
                protocol Refined: Routable {}
                extension Refined { var method: HTTPMethod { .post } }
                struct Refining: Refined { var path: RoutePath { "/" } }
                struct Stored: Routable { let path: RoutePath; let method: HTTPMethod; var body = RouteBody.none }
                struct Generic<Value: Encodable & Sendable>: Routable {
                    var value: Value
                    var path: RoutePath { "/" }
                    var body: RouteBody { .json(value) }
                }
                struct NewPost: Routable {
                    let tags: [String]
                    let accept: Bool
                    let idempotencyKey: String
                    var path: RoutePath { "/posts" }
                    var method: HTTPMethod { .post }
                    var body: RouteBody { .json(fields: ["tags": tags, "accept": accept]) }
                    var options: RouteOptions { RouteOptions(idempotencyKey: .key(idempotencyKey)) }
                }
                final class Reference: Routable { let path: RoutePath = "/" }

                func send(by api: RemoteHost) async throws {
                    let item: Item = try await api.send(.product(7))
                    let same = try await api.send(.product(7), as: Item.self)
                    try await api.send(.product(item.id + same.id))
                    _ = try await api.data(for: .product(1))
                    try await api.send(Little.method)
                    try await api.send(Little.body(2))
                    try await api.send(Everything.body(3))
                    try await api.send(Generic(value: item))
                    let routes: [any Routable] = [Refining(), Everything.method, Route(path: "/"), Reference()]
                    for route in routes {
                        try await api.send(route)
                        let (body, options) = (route.body, route.options)
                        let typed: (RouteBody, Int?, String) = (body, options.port, route.method.rawValue)
                        _ = typed
                    }
                }
                func parts<R: Routable>(of route: R) -> (HTTPMethod, Parameters, Headers, RouteBody, RouteOptions) {
                    (route.method, route.query, route.headers, route.body, route.options)
                }
                """)
        #expect(found.isEmpty, "\(found.map(\.text).joined(separator: "\n"))")
    }

    private struct Bodily: Routable {
        var path: RoutePath { "/x" }
        var body: RouteBody { .json(fields: ["a": 1]) }
    }

    private struct Getting: Routable {
        var path: RoutePath { "/x" }
        var method: HTTPMethod { .get }
        var body: RouteBody { .json(fields: ["a": 1]) }
    }

    @Test func `a body without a method is an error before anything is sent, and not a GET`() async throws {
        let transport = MemoryTransport { _ in .json("{}") }
        let host = RemoteHost("api.example.com", transport: transport)
        for route in [Bodily() as any Routable, Route(Bodily()), Bodily().tagged(Tag.self, 1)] {
            let error = try await #require(throws: RemoteError.self) { try await host.send(route) }
            let fault = try #require(error.underlyingError as? RouteFault)
            #expect(fault.code == .bodyNotAllowed && fault.part == "method")
        }
        try await host.send(Getting())
        #expect(transport.requests.map(\.method) == [.get])
        #expect(Minimal().method == .get && Set([Minimal().method, HTTPMethod.get]).count == 1)
    }

    private enum Tag: RouteTagKey { typealias Value = Int }

    private enum Cases: Routable {
        case body, method
        var path: RoutePath { "/x" }
        var method: HTTPMethod { self == .body ? .put : .post }
        var body: RouteBody { .json(fields: ["a": 1]) }
    }

    private struct Minimal: Routable { var path: RoutePath { "/x" } }

    private struct Async: Routable {
        var path: RoutePath { "/x" }
        var method: HTTPMethod { get async { .post } }
    }

    private struct Mutating: Routable {
        var path: RoutePath { "/x" }
        var method: HTTPMethod { mutating get { .post } }
    }

    private struct Lazy: Routable {
        var path: RoutePath { "/x" }
        lazy var method = HTTPMethod.post
    }

    private struct Static: Routable {
        var path: RoutePath { "/x" }
        static func method() -> HTTPMethod { .post }
    }

    fileprivate struct Conditional<Element: Sendable>: Routable { var path: RoutePath { "/x" } }

    @Test func `each property of a route is used, or its default, except for those of the article on surprises`() async throws {
        let transport = MemoryTransport { _ in .json("{}") }
        let host = RemoteHost("api.example.com", transport: transport)
        #expect(Conditional<Int>().method == .post && Static.method() == .post)
        let used: [any Routable] = [Cases.method, Cases.body, Minimal(), Route(path: "/x", method: .delete)]
        let ignored: [any Routable] = [Async(), Mutating(), Lazy(), Static(), Conditional<Int>()]
        for route in used + ignored { try await host.send(route) }
        #expect(transport.requests.map(\.method) == [.post, .put, .get, .delete, .get, .get, .get, .get, .get])
        #expect(transport.requests.map(\.body.length) == [7, 7, 0, 0, 0, 0, 0, 0, 0])
    }
}

extension RouteSpellingTests.Conditional where Element: Encodable {
    fileprivate var method: HTTPMethod { .post }
}

struct RoutePathTests {
    private func code(_ path: RoutePath) -> RouteFault.Code? { faultCode { () throws(RouteFault) in try path.encoded() } }

    @Test(arguments: 0...255)
    func `H2: no byte of a value opens a segment, a query or a fragment`(byte: Int) throws {
        let text = String(Unicode.Scalar(UInt8(byte)))
        let path: RoutePath = "/a/x\(text)y/b"
        if byte < 0x20 || (0x7F...0x9F).contains(byte) || text == "\\" {
            #expect(code(path) == .forbiddenCharacter)
        } else {
            let encoded = try path.encoded()
            #expect(encoded.split(separator: "/", omittingEmptySubsequences: false).count == 4)
            #expect(!encoded.contains("?") && !encoded.contains("#"))
            #expect(encoded.removingPercentEncoding == "/a/x\(text)y/b")
        }
    }

    @Test(arguments: [
        ("/", "%2F"), ("?", "%3F"), ("#", "%23"), ("%", "%25"), ("%2F", "%252F"), (":", "%3A"), ("@", "%40"), ("a b", "a%20b"),
        ("a;b=c", "a%3Bb%3Dc"), ("ä", "%C3%A4"), ("../x", "..%2Fx"), ("https://evil", "https%3A%2F%2Fevil"), ("user@host", "user%40host"),
        ("//evil.example", "%2F%2Fevil.example"), ("...", "..."), ("~", "~"),
    ])
    func `H2: a value is percent-encoded`(value: String, escaped: String) throws {
        let path: RoutePath = "/users/\(value)/posts"
        #expect(try path.encoded() == "/users/\(escaped)/posts")
    }

    @Test(arguments: [".", "..", "%2e", "%2E", "%2e%2e", ".%2E", "%252e%252e", "%25252e."])
    func `H2: a segment that decodes to dots is refused`(value: String) {
        #expect(code("/users/\(value)") == .dotSegment)
        #expect(code("/users/\(value)/posts") == .dotSegment)
    }

    private static let refused: [(RouteFault.Code, [RoutePath])] = [
        (.dotSegment, ["/a/../b", "/a/./b", "/..", "/.", "/%2e%2e/b", "/a/%2E", "/a/.%2e/", "/a/%252e%252e"]),
        // The rules apply to whole segments, after literals and values are joined.
        (.dotSegment, ["/.\(".")", "/\(".")\(".")/x", "/\("").."]),
        (.emptySegment, ["/users/\("")", "/users/\("")/posts", "/\("")", "/users//posts", "//evil.example/x"]),
        (.emptySegment, ["/users/\(segments: [])", "/users/\(segments: ["a", "", "b"])"]),
        (.relativePath, ["users", "https://evil.example/x", "mailto:a@b", "user@host/x", "?q", "x//y", ".", ".."]),
        (.relativePath, ["\("")", "\("//evil.example")"]),
        // Outside the grammar.
        (.forbiddenCharacter, ["/a?b=c", "/a#b", "/a\\b", "/a%5Cb", "/a b", "/a%00b", "/a%0d%0aX: y", "/a\r\nb", "/a%7f", "/ä"]),
        (.forbiddenCharacter, ["/a%", "/a%2", "/a%zz", "/a\"b", "/a<b>", "/a{b}", "/a|b", "/a^b", "/a`b", "/a[b]"]),
    ]

    @Test(arguments: refused)
    func `H2: a path with dot segments, empty segments, other characters or no leading slash is refused`(
        _ expected: RouteFault.Code, _ paths: [RoutePath]
    ) {
        for path in paths { #expect(code(path) == expected, "\(path)") }
    }

    @Test(
        arguments: [
            ("/\("report").json", "/report.json"), ("/\("..").json", "/...json"), ("/a-\("")-b", "/a--b"), ("/users/", "/users/"),
            ("/", "/"), ("", ""), ("/a%20b/group%2Fname/c:d@e;f=g,h", "/a%20b/group%2Fname/c:d@e;f=g,h"),
        ] as [(RoutePath, String)])
    func `H2: a slash at the end of a literal and its own escapes are kept`(path: RoutePath, encoded: String) throws {
        #expect(try path.encoded() == encoded)
    }

    private enum Kind: String { case dangerous = "a/b" }
    private enum Level: Int { case high = 3 }

    @Test func `integers, identifiers and several segments can be interpolated`() throws {
        let id = UUID()
        let path: RoutePath =
            "/\(1 as Int)/\(UInt8.max)/\(id)/\(Kind.dangerous)/\(Level.high)/\(segments: ["a/b", "c d"])/\("xyz".dropFirst())"
        #expect(try path.encoded() == "/1/255/\(id.uuidString)/a%2Fb/3/a%2Fb/c%20d/yz")
    }

    @Test func `a fault contains no value`() {
        let secret = "hunter2\u{0}"
        let path: RoutePath = "/\(secret)"
        let error = #expect(throws: RouteFault.self) { try path.encoded() }
        #expect(error.map { "\($0)" }?.contains("hunter2") == false)
    }
}
