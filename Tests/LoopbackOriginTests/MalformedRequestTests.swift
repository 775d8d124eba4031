import LoopbackOrigin
import Testing
import Trials

@Suite(.timeLimit(.minutes(hangMinutes)))
struct MalformedRequestTests {
    /// Malformed bytes with the status that refuses them; grows with every defect found.
    static let refused: [(bytes: String, status: Int)] = [
        ("nonsense\r\n\r\n", 400),
        ("GET /\r\n\r\n", 400),
        ("GET  / HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        ("GET /a b HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        ("G\u{1}T / HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        ("GET /é HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        ("GET / HTTP/1.1\nHost: x\n\n", 400),
        ("GET / HTTP/1.1\r\nHost: x\rX: y\r\n\r\n", 400),
        ("GET / HTTP/2.0\r\nHost: x\r\n\r\n", 505),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost : x\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: x\r\nA: \0\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: x\r\nExpect: miracles\r\n\r\n", 417),
        ("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: five\r\n\r\n", 400),
        ("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400),
        ("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n", 400),
        ("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        ("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        ("PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
        ("PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", 400),
        ("PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", 400),
        ("PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", 400),
        ("PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n7fffffffffffffff\r\n", 413),
        ("PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n123456789\r\n9\r\n", 413),
        ("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n\r\n", 413),
        ("GET /" + String(repeating: "a", count: 300) + " HTTP/1.1\r\nHost: x\r\n\r\n", 414),
        (String(repeating: "a", count: 300), 414),
        ("GET / HTTP/1.1\r\nHost: x\r\nA: " + String(repeating: "a", count: 900), 431),
        ("GET / HTTP/1.1\r\nHost: x\r\n" + String(repeating: "A: a\r\n", count: 200) + "\r\n", 431),
    ]

    @Test(arguments: refused)
    func `a malformed request is refused, and the connection closes`(bytes: String, status: Int) throws {
        let origin = try LoopbackOrigin(limits: .init(requestLine: 200, head: 600, body: 10))
        let client = try RawClient(origin)
        try client.write(bytes)
        let (text, end) = try client.readToEnd()
        #expect(text.hasPrefix("HTTP/1.1 \(status) "))
        #expect(text.contains("\r\nConnection: close\r\n"))
        #expect(end == .closed)
        #expect(origin.record.rejections.map(\.status) == [status])
        #expect(origin.requests.isEmpty)
    }

    @Test func `a valid request before a malformed one gets its response`() throws {
        let origin = try LoopbackOrigin { _ in .text("good") }
        let client = try RawClient(origin)
        try client.write("GET / HTTP/1.1\r\nHost: x\r\n\r\nnonsense\r\n\r\n")
        #expect(try client.readResponse().body == "good")
        #expect(try client.readToEnd().text.hasPrefix("HTTP/1.1 400 "))
    }

    @Test func `bytes that are not UTF-8 are recorded`() throws {
        let origin = try LoopbackOrigin { _ in .status(204) }
        let client = try RawClient(origin)
        try client.write(bytes: Array("GET / HTTP/1.1\r\nHost: x\r\nA: ".utf8) + [0xE9] + Array("\r\n\r\n".utf8))
        _ = try client.read(through: "\r\n\r\n")
        #expect(origin.requests.first?.headers["A"] == "é")
        #expect(origin.requests.first?.rawHead.contains(0xE9) == true)
    }
}
