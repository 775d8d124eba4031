import Foundation
import LoopbackOrigin
import Testing
import Trials

@Suite(.timeLimit(.minutes(hangMinutes)))
struct ServingTests {
    @Test func `a request is recorded as sent`() throws {
        let origin = try LoopbackOrigin { _ in .status(204) }
        let client = try RawClient(origin)
        let head = "POST /a%20b?x=1&y=%C3%A9&z&x=2 HTTP/1.1\r\nhost: x\r\nX-Twice: one\r\nx-twice:two \r\nContent-Length: 3\r\n\r\n"
        try client.write(head + "a\0b")
        #expect(try client.read(through: "\r\n\r\n") == "HTTP/1.1 204 No Content\r\n\r\n")
        let request = try #require(origin.requests.first)
        #expect(request.method == .post)
        #expect(request.target == "/a%20b?x=1&y=%C3%A9&z&x=2")
        #expect(request.path == "/a%20b")
        #expect(request.queryItems.map(\.name) == ["x", "y", "z", "x"])
        #expect(request.queryItems.map(\.value) == ["1", "é", nil, "2"])
        #expect(request.headers.fields.map(\.name) == ["host", "X-Twice", "x-twice", "Content-Length"])
        #expect(request.headers["X-TWICE"] == "one, two")
        #expect(request.body == Data("a\0b".utf8))
        #expect(request.rawHead == Data(head.utf8))
        #expect((request.number, request.connection) == (1, 1))
        #expect((request.ending, request.status, request.bodyBytesSent) == (.complete, 204, 0))
    }

    @Test func `a request may arrive byte by byte`() throws {
        let origin = try LoopbackOrigin { .data($0.body) }
        let client = try RawClient(origin)
        for byte in "\r\nPUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;n=v\r\nde\r\n0\r\nT: r\r\n\r\n" {
            try client.write(String(byte))
        }
        #expect(try client.readResponse().body == "abcde")
        #expect(origin.requests.first?.trailers["t"] == "r")
    }

    @Test func `a client that expects 100 Continue receives it`() throws {
        let origin = try LoopbackOrigin { .data($0.body) }
        let client = try RawClient(origin)
        try client.write("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
        #expect(try client.read(through: "\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n")
        try client.write("body")
        #expect(try client.readResponse().body == "body")
    }

    @Test func `pipelined requests get their responses in order, regardless of their delays`() throws {
        let origin = try LoopbackOrigin { request in
            .text(request.path).misbehaving(.delayHead(by: .milliseconds(request.path == "/1" ? 30 : 0)))
        }
        let client = try RawClient(origin)
        try client.write((1...5).map { "GET /\($0) HTTP/1.1\r\nHost: x\r\n\r\n" }.joined())
        for number in 1...5 { #expect(try client.readResponse().body == "/\(number)") }
        #expect(origin.acceptedConnections == 1)
    }

    @Test func `a response to HEAD has the length and no body`() throws {
        let origin = try LoopbackOrigin()
        origin.on(.get, "/") { _ in .data(Data("12345".utf8), type: "a/b") }
        let client = try RawClient(origin, get: "/", method: "HEAD")
        try client.get("/", "Connection: close", method: "HEAD")
        let head = "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-Length: 5\r\n"
        #expect(try client.readToEnd() == (head + "\r\n" + head + "Connection: close\r\n\r\n", .closed))
    }

    @Test(arguments: ["GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "GET / HTTP/1.0\r\n\r\n"])
    func `the connection closes for a client that asks for it`(request: String) throws {
        let origin = try LoopbackOrigin { _ in .status(200) }
        let client = try RawClient(origin)
        try client.write(request)
        #expect(try client.readToEnd() == ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", .closed))
    }

    @Test func `a body may be chunked, or end with the connection`() throws {
        let origin = try LoopbackOrigin { request in
            Response(body: Data("abcde".utf8), framing: request.path == "/chunks" ? .chunked(bytes: 2) : .untilClosed)
        }
        let client = try RawClient(origin, get: "/chunks")
        try client.get("/end")
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n2\r\ncd\r\n1\r\ne\r\n0\r\n\r\n"
        #expect(try client.readToEnd() == (chunked + "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabcde", .closed))
    }

    @Test func `five hundred connections are served concurrently`() async throws {
        LoopbackOrigin.allowOpenDescriptors(4096)
        let gate = Gate()
        let origin = try LoopbackOrigin { request in
            await gate.wait()
            return .text(request.path)
        }
        let clients = try (0..<500).map { try RawClient(origin, get: "/\($0)") }
        try await origin.waitForRequests(count: 500)
        #expect(origin.openConnections == 500)
        gate.open()
        for (number, client) in clients.enumerated() { #expect(try client.readResponse().body == "/\(number)") }
        for client in clients { client.hangUp() }
        try await origin.waitUntil { $0.openConnections == 0 }
    }

    @Test func `a large body is received and sent`() throws {
        let origin = try LoopbackOrigin { .data($0.body) }
        let client = try RawClient(origin)
        let body = String(repeating: "0123456789abcdef", count: 100_000)
        try client.write("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: \(body.utf8.count)\r\n\r\n" + body)
        #expect(try client.readResponse().body == body)
    }
}

private typealias Response = LoopbackOrigin.Response
