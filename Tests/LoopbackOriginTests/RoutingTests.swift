import LoopbackOrigin
import Testing
import Trials

@Suite(.timeLimit(.minutes(hangMinutes)))
struct RoutingTests {
    @Test(arguments: [
        ("GET /users/7", "user 7"), ("GET /users/a%2Fb", "user a/b"), ("GET /users/me", "me"), ("GET /users/7/files/a/b", "file a/b of 7"),
        ("HEAD /users/7", ""), ("DELETE /users/7", "gone"),
    ])
    func `the most specific route is used`(line: String, body: String) throws {
        let origin = try LoopbackOrigin()
        origin.on(.get, "/users/:id") { .text("user \($0.parameter("id"))") }
        origin.on(.get, "/users/:id/files/*") { .text("file \($0.parameter("*")) of \($0.parameter("id"))") }
        origin.on(.get, "/users/me") { _ in .text("me") }
        origin.on(.delete, "/users/:id") { _ in .text("gone") }
        let client = try RawClient(origin)
        try client.write("\(line) HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        let text = try client.readToEnd().text
        #expect(text.hasPrefix("HTTP/1.1 200 "))
        #expect(text.hasSuffix("\r\n\r\n\(body)"))
    }

    @Test func `a request without a route leads to 404`() throws {
        let origin = try LoopbackOrigin()
        origin.on(.get, "/users/:id") { _ in .status(200) }
        let client = try RawClient(origin)
        for target in ["/", "/users", "/users/7/", "/other/7"] {
            try client.get(target)
            let response = try client.readResponse()
            #expect(response.head.hasPrefix("HTTP/1.1 404 Not Found\r\nContent-Type: application/problem+json\r\n"))
            #expect(response.body == #"{"detail":"No route matches GET \#(target)","status":404,"title":"Not Found"}"#)
        }
    }

    @Test func `a method without a route leads to 405 with the allowed methods`() throws {
        let origin = try LoopbackOrigin()
        origin.on(.get, "/") { _ in .status(200) }
        origin.on(.put, "/") { _ in .status(200) }
        let client = try RawClient(origin, get: "/", method: "POST")
        let head = try client.readResponse().head
        #expect(head.hasPrefix("HTTP/1.1 405 "))
        #expect(head.contains("\r\nAllow: GET, PUT\r\n"))
    }

    @Test func `routes change while the origin runs`() throws {
        let origin = try LoopbackOrigin { _ in .text("fallback") }
        let client = try RawClient(origin)
        var bodies: [String] = []
        let request = {
            try client.get("/a")
            bodies.append(try client.readResponse().body)
        }
        try request()
        origin.on(.get, "/a") { _ in .text("one") }
        try request()
        origin.on(.get, "/a") { _ in .text("two") }
        try request()
        #expect(bodies == ["fallback", "one", "two"])
    }

    @Test func `the last of several responses repeats`() throws {
        let origin = try LoopbackOrigin()
        origin.on(.get, "/", inTurn: .text("a"), .text("b"), .text("c"))
        let client = try RawClient(origin)
        let bodies = try (1...5).map { _ in
            try client.get("/")
            return try client.readResponse().body
        }
        #expect(bodies == ["a", "b", "c", "c", "c"])
    }

    @Test func `an absolute-form target finds its route`() throws {
        let origin = try LoopbackOrigin()
        origin.on(.get, "/a") { _ in .text("a") }
        let client = try RawClient(origin, get: "http://x/a?b=//")
        #expect(try client.readResponse().body == "a")
    }
}
