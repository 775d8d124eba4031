import Foundation
import Testing

@testable import RemoteHTTP
@testable import RemoteRouting

struct LinkHeaderTests {
    private func targets(_ lines: String..., relation: String = "next") throws -> [String] {
        var fields = HTTPFields()
        for line in lines { try fields.append("Link", line) }
        return LinkHeader(fields).links.filter { $0.relations.contains(relation) }.map(\.target)
    }

    @Test(
        arguments: [
            (#"<https://h/a?p=2>; rel="next""#, ["https://h/a?p=2"]), ("<a>;rel=next", ["a"]), (#"<a> ; REL = "NEXT""#, ["a"]),
            (#"<a>; rel="prev next last""#, ["a"]), (#"<a>; rel="prev", <b>; rel="next""#, ["b"]), (#"<a,b>; rel=next"#, ["a,b"]),
            (#"<a>; title="x, <z>; rel=\"next\""; rel=next"#, ["a"]), (#"<a>; rel=prev; rel=next"#, []), (#"<a>; rel"#, []), ("<a>", []),
            (#"<a>; title=x y; rel=next"#, ["a"]), ("<a; rel=next", []), ("a; rel=next", []), (", ,<a>; rel=next,", ["a"]),
            (#"<a>;;rel=next"#, ["a"]), (#"<>; rel="next""#, [""]), (#"<a>; rel="nextpage""#, []), (#"<a>; rel="next"#, []),
            (#"<a>; rel=http://x/y, <b>; rel=next"#, ["b"]),
        ] as [(String, [String])])
    func `H9: links are parsed by RFC 8288`(line: String, expected: [String]) throws {
        #expect(try targets(line) == expected)
    }

    @Test func `H9: links in several lines and with several relations are parsed`() throws {
        #expect(try targets("<a>; rel=next", "broken", "<b>; rel=next") == ["a", "b"])
        #expect(try targets("<a>; rel=next, <b>; rel=prev", relation: "prev") == ["b"])
    }

    @Test func `H9: a link with an anchor does not belong to the response`() throws {
        let fields = try fields(["Link": #"<a>; rel=next; anchor="/other", <b>; rel=next"#])
        #expect(fields.link("Next") == "b" && fields.link("prev") == nil)
    }
}

struct URIReferenceTests {
    /// The examples of RFC 3986 §5.4.
    @Test(
        arguments: [
            ("g:h", "g:h"), ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"), ("/g", "http://a/g"),
            ("//g", "http://g"), ("?y", "http://a/b/c/d;p?y"), ("g?y", "http://a/b/c/g?y"), ("#s", "http://a/b/c/d;p?q#s"),
            ("g#s", "http://a/b/c/g#s"), ("g?y#s", "http://a/b/c/g?y#s"), (";x", "http://a/b/c/;x"), ("g;x", "http://a/b/c/g;x"),
            ("g;x?y#s", "http://a/b/c/g;x?y#s"), ("", "http://a/b/c/d;p?q"), (".", "http://a/b/c/"), ("./", "http://a/b/c/"),
            ("..", "http://a/b/"), ("../", "http://a/b/"), ("../g", "http://a/b/g"), ("../..", "http://a/"), ("../../", "http://a/"),
            ("../../g", "http://a/g"), ("../../../g", "http://a/g"), ("../../../../g", "http://a/g"), ("/./g", "http://a/g"),
            ("/../g", "http://a/g"), ("g.", "http://a/b/c/g."), (".g", "http://a/b/c/.g"), ("g..", "http://a/b/c/g.."),
            ("..g", "http://a/b/c/..g"), ("./../g", "http://a/b/g"), ("./g/.", "http://a/b/c/g/"), ("g/./h", "http://a/b/c/g/h"),
            ("g/../h", "http://a/b/c/h"), ("g;x=1/./y", "http://a/b/c/g;x=1/y"), ("g;x=1/../y", "http://a/b/c/y"),
            ("g?y/./x", "http://a/b/c/g?y/./x"), ("g?y/../x", "http://a/b/c/g?y/../x"), ("g#s/./x", "http://a/b/c/g#s/./x"),
            ("http:g", "http:g"), ("g/h:i", "http://a/b/c/g/h:i"), ("g_h:i", "http://a/b/c/g_h:i"), ("g+h-1.i:j", "g+h-1.i:j"),
            ("1g:h", "http://a/b/c/1g:h"),
        ] as [(String, String)])
    func `H4: references are resolved by RFC 3986`(reference: String, expected: String) {
        #expect(URIReference(reference).resolved(against: URIReference("http://a/b/c/d;p?q"))?.text == expected)
    }

    @Test func `H4: a relative base resolves nothing`() {
        #expect(URIReference("g").resolved(against: URIReference("/a/b")) == nil)
        #expect(URIReference("g").resolved(against: URIReference("http://a"))?.text == "http://a/g")
    }
}

struct OriginReferenceTests {
    private let base = URL(string: "https://api.example.com/v1/repos?page=1")!
    private let origin: WebOrigin

    init() throws { origin = try WebOrigin(scheme: .https, host: "api.example.com") }

    @Test(
        arguments: [
            ("https://api.example.com/v1/repos?page=2", "/v1/repos?page=2"), ("https://API.example.com:443/x", "/x"), ("/x?y", "/x?y"),
            ("?page=2", "/v1/repos?page=2"), ("repos?page=2", "/v1/repos?page=2"), ("../z", "/z"), ("//api.example.com/x", "/x"),
            ("https://api.example.com", "/"), ("https://api.example.com?x=1", "/?x=1"), ("/x?a=b%20c&d=e+f/../g", "/x?a=b%20c&d=e+f/../g"),
            ("/x?f[a]=1", "/x?f%5Ba%5D=1"), ("/x#fragment", "/x"), ("/x y?q=a b", "/x%20y?q=a%20b"),
            ("/\u{E4}?q=\u{E4}", "/%C3%A4?q=%C3%A4"), ("/caf%C3%A9?q=\u{E9}", "/caf%C3%A9?q=%C3%A9"), ("/x?q=\"a\"", "/x?q=%22a%22"),
            ("/x?q=<a>", "/x?q=%3Ca%3E"), ("/x?q=50%", "/x?q=50%25"), (" /x ", "/x"), ("/x?q=\\", "/x?q=%5C"),
            ("https://api.example.com:/x", "/x"),
        ] as [(String, String)])
    func `H9: a link within the origin is stored without its origin`(link: String, kept: String) throws {
        let reference = try OriginReference(link: link, from: base, at: origin)
        #expect(reference.text == kept)
        #expect(try OriginReference(kept: reference.text) == reference)
        let elsewhere = try WebOrigin(scheme: .http, host: "127.0.0.1", port: 8080)
        #expect(try reference.resolved(at: elsewhere).absoluteString == "http://127.0.0.1:8080" + kept)
    }

    @Test(arguments: [
        "https://evil.example/x", "//evil.example/x", "http://api.example.com/x", "https://api.example.com:444/x",
        "https://user@api.example.com/x",
        "https://api.example.com@evil.example/x", "ftp://api.example.com/x", "javascript:alert(1)", "https:///x",
        "https://api.example.com\\@evil/",
        "/\\evil.example", "", " ", "/x\u{7}", "/x\n", "/%2e%2e/x", "https://api.example.com:99999999999999999999/x", "/a//..//%252e",
        "https://api.example.com.evil.example/", "file:///etc/passwd", "https:x",
    ])
    func `H9: a link to another origin is refused`(link: String) {
        let error = #expect(throws: RouteFault.self) { try OriginReference(link: link, from: base, at: origin) }
        #expect(error?.code == .foreignOrigin)
    }

    @Test(arguments: ["", "x", "//evil.example/", "https://evil.example/", "/x#y", "/../x", "/a/..", "/x\r\n", "/\\evil", "?x", "/x y"])
    func `H9: a saved link to another origin is refused`(text: String) {
        #expect(throws: RouteFault.self) { try OriginReference(kept: text) }
    }
}
