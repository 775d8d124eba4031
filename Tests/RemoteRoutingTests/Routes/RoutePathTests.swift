import Foundation
import Testing

@testable import RemoteRouting

struct RoutePathTests {
    private func code(_ path: RoutePath) -> RouteFault.Code? {
        do {
            _ = try path.encoded()
            return nil
        } catch {
            return error.code
        }
    }

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

    @Test(arguments: ["/a/../b", "/a/./b", "/..", "/.", "/%2e%2e/b", "/a/%2E", "/a/.%2e/", "/a/%252e%252e"])
    func `H2: dot segments in a literal are refused`(literal: String) {
        #expect(code(RoutePath(stringLiteral: literal)) == .dotSegment)
    }

    @Test func `H2: the rules apply to whole segments, after literals and values are joined`() throws {
        let (dot, dots, name, empty) = (".", "..", "report", "")
        #expect(code("/.\(dot)") == .dotSegment)
        #expect(code("/\(dot)\(dot)/x") == .dotSegment)
        #expect(code("/\(empty)..") == .dotSegment)
        #expect(try ("/\(name).json" as RoutePath).encoded() == "/report.json")
        #expect(try ("/\(dots).json" as RoutePath).encoded() == "/...json")
        #expect(try ("/a-\(empty)-b" as RoutePath).encoded() == "/a--b")
    }

    @Test func `H2: an empty segment is refused, and a slash at the end of a literal is kept`() throws {
        let empty = ""
        #expect(code("/users/\(empty)") == .emptySegment)
        #expect(code("/users/\(empty)/posts") == .emptySegment)
        #expect(code("/\(empty)") == .emptySegment)
        #expect(code("/users//posts") == .emptySegment)
        #expect(code("//evil.example/x") == .emptySegment)
        #expect(code("/users/\(segments: [])") == .emptySegment)
        #expect(code("/users/\(segments: ["a", "", "b"])") == .emptySegment)
        #expect(try ("/users/" as RoutePath).encoded() == "/users/")
        #expect(try ("/" as RoutePath).encoded() == "/")
        #expect(try ("" as RoutePath).encoded() == "")
    }

    @Test(arguments: ["users", "https://evil.example/x", "mailto:a@b", "user@host/x", "?q", "x//y", ".", ".."])
    func `H2: a path without a leading slash is refused`(literal: String) {
        #expect(code(RoutePath(stringLiteral: literal)) == .relativePath)
    }

    @Test func `H2: an empty value cannot make a path relative`() {
        let (empty, host) = ("", "//evil.example")
        #expect(code("\(empty)") == .relativePath)
        #expect(code("\(host)") == .relativePath)
    }

    @Test(arguments: [
        "/a?b=c", "/a#b", "/a\\b", "/a%5Cb", "/a b", "/a%00b", "/a%0d%0aX: y", "/a\r\nb", "/a%7f", "/ä", "/a%", "/a%2", "/a%zz", "/a\"b",
        "/a<b>", "/a{b}", "/a|b", "/a^b", "/a`b", "/a[b]",
    ])
    func `H2: a literal with characters outside the grammar is refused`(literal: String) {
        #expect(code(RoutePath(stringLiteral: literal)) == .forbiddenCharacter)
    }

    @Test func `H2: a literal's own escapes are kept`() throws {
        #expect(try ("/a%20b/group%2Fname/c:d@e;f=g,h" as RoutePath).encoded() == "/a%20b/group%2Fname/c:d@e;f=g,h")
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
