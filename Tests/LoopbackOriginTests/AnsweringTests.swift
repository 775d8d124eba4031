import Foundation
import LoopbackOrigin
import Testing
import Trials

@Suite(.timeLimit(.minutes(hangMinutes)))
struct AnsweringTests {
    @Test func `a matching validator leads to 304 without the body`() throws {
        let origin = try LoopbackOrigin { request in
            .json([1, 2]).tagged("v1").setting("Cache-Control", to: "max-age=5").revalidated(by: request)
        }
        let client = try RawClient(origin, get: "/", "If-None-Match: W/\"v0\", W/\"v1\"")
        let expected = "HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\nCache-Control: max-age=5\r\n\r\n"
        #expect(try client.read(expected.utf8.count) == expected)
    }

    @Test(arguments: [
        ("If-None-Match: \"v1\"", 304), ("If-None-Match: *", 304), ("If-None-Match: \"a,b\", \"v1\"", 304), ("If-None-Match: \"v\"", 200),
        ("If-None-Match: v1", 200), ("If-None-Match: \"v0\"\r\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT", 200),
        ("If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT", 304), ("If-Modified-Since: Sun, 06 Nov 1994 08:49:38 GMT", 200),
    ])
    func `a condition decides whether the response is sent`(condition: String, status: Int) throws {
        let origin = try LoopbackOrigin { request in
            .text("x").setting("ETag", to: "W/\"v1\"").setting("Last-Modified", to: "Sun, 06 Nov 1994 08:49:37 GMT")
                .revalidated(by: request)
        }
        let client = try RawClient(origin, get: "/", condition)
        #expect(try client.read(12) == "HTTP/1.1 \(status)")
    }

    @Test func `equal bodies have equal tags`() {
        #expect(Response.json(["b": 1, "a": 2]).tagged().headers["ETag"] == Response.json(["a": 2, "b": 1]).tagged().headers["ETag"])
        #expect(Response.text("a").tagged().headers["ETag"] != Response.text("b").tagged().headers["ETag"])
    }

    @Test(arguments: [
        ("Range: bytes=0-3", 206, "bytes 0-3/10", "0123"),
        ("Range: bytes=8-", 206, "bytes 8-9/10", "89"),
        ("Range: bytes=8-99", 206, "bytes 8-9/10", "89"),
        ("Range: bytes=-3", 206, "bytes 7-9/10", "789"),
        ("Range: bytes=-30", 206, "bytes 0-9/10", "0123456789"),
        ("Range: bytes=2-2\r\nIf-Range: \"v1\"", 206, "bytes 2-2/10", "2"),
        ("Range: bytes=2-2\r\nIf-Range: \"v0\"", 200, nil, "0123456789"),
        ("Range: bytes=2-2\r\nIf-Range: W/\"v1\"", 200, nil, "0123456789"),
        ("Range: bytes=3-1", 200, nil, "0123456789"),
        ("Range: bytes=0-1,4-5", 200, nil, "0123456789"),
        ("Range: lines=0-1", 200, nil, "0123456789"),
        ("Range: bytes=+1-2", 200, nil, "0123456789"),
    ])
    func `a range selects a part of the body`(field: String, status: Int, contentRange: String?, body: String) throws {
        let origin = try LoopbackOrigin { .text("0123456789").tagged("v1").ranged(by: $0) }
        let client = try RawClient(origin, get: "/", field)
        let response = try client.readResponse()
        #expect(response.head.hasPrefix("HTTP/1.1 \(status) "))
        #expect(response.head.contains("\r\nAccept-Ranges: bytes\r\n"))
        #expect(response.head.contains("Content-Range") == (contentRange != nil))
        if let contentRange { #expect(response.head.contains("\r\nContent-Range: \(contentRange)\r\n")) }
        #expect(response.body == body)
    }

    @Test(arguments: ["bytes=10-", "bytes=-0"])
    func `a range beyond the end is refused`(range: String) throws {
        let origin = try LoopbackOrigin { .text("0123456789").ranged(by: $0) }
        let client = try RawClient(origin, get: "/", "Range: \(range)")
        let head = try client.readResponse().head
        #expect(head.hasPrefix("HTTP/1.1 416 Range Not Satisfiable\r\n"))
        #expect(head.contains("\r\nContent-Range: bytes */10\r\n"))
    }

    @Test(arguments: [
        ("", "", "[1,2]", ["first 1", "next 2", "last 3"]),
        ("page=2", "", "[3,4]", ["first 1", "prev 1", "next 3", "last 3"]),
        ("page=3", "", "[5]", ["first 1", "prev 2", "last 3"]),
        ("page=9", "", "[]", ["first 1", "prev 3", "last 3"]),
        ("q=a%26b&per_page=3", "q=a%26b&per_page=3&", "[1,2,3]", ["first 1", "next 2", "last 2"]),
    ])
    func `a list is served page by page, with links that keep the query`(
        query: String, kept: String, body: String, links: [String]
    ) throws {
        let origin = try LoopbackOrigin { .pages(of: Array(1...5), for: $0, size: 2) }
        let client = try RawClient(origin, get: "/n?\(query)")
        let response = try client.readResponse()
        #expect(response.body == body)
        let field = links.map { link in
            let parts = link.split(separator: " ")
            return "<http://x/n?\(kept)page=\(parts[1])>; rel=\"\(parts[0])\""
        }
        #expect(response.head.contains("\r\nLink: \(field.joined(separator: ", "))\r\n"))
        #expect(response.head.contains("\r\nX-Total-Count: 5\r\n"))
    }

    @Test(arguments: ["page=0", "page=x", "per_page=-1"])
    func `a malformed page number is refused`(query: String) throws {
        let origin = try LoopbackOrigin { .pages(of: [1], for: $0) }
        let client = try RawClient(origin, get: "/?\(query)")
        #expect(try client.read(12) == "HTTP/1.1 400")
    }

    @Test(arguments: [200, 299, 304, 404, 520, 599])
    func `any status can be sent`(status: Int) throws {
        let origin = try LoopbackOrigin { _ in .status(status) }
        let client = try RawClient(origin, get: "/")
        #expect(try client.read(13) == "HTTP/1.1 \(status) ")
    }

    @Test func `a location is sent unchanged`() throws {
        let origin = try LoopbackOrigin { _ in .redirect(to: "../b?c#d", status: 307) }
        let client = try RawClient(origin, get: "/")
        let expected = "HTTP/1.1 307 Temporary Redirect\r\nLocation: ../b?c#d\r\nContent-Length: 0\r\n\r\n"
        #expect(try client.read(expected.utf8.count) == expected)
    }
}

private typealias Response = LoopbackOrigin.Response
