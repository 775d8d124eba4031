import Foundation
import LoopbackOrigin
import Testing
import Trials

@Suite(.timeLimit(.minutes(hangMinutes)))
struct MisbehavingTests {
    private typealias Response = LoopbackOrigin.Response

    private static let digits = Response.text("0123456789")

    private static let start = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n"
    private static let head = start + "Content-Length: 10\r\n\r\n"

    /// Responses with the minimum time that each takes, and the text that the client receives before the connection ends.
    private static let late: [(response: LoopbackOrigin.Response, milliseconds: Int, text: String, end: RawClient.End)] = [
        (digits.misbehaving(.delayHead(by: .milliseconds(40)), .closeSilently), 40, head + "0123456789", .closed),
        (digits.misbehaving(.drip(bytes: 3, every: .milliseconds(15)), .closeSilently), 45, head + "0123456789", .closed),
        (digits.misbehaving(.delayHead(by: .milliseconds(30)), .resetBeforeHead), 30, "", .reset),
    ]

    @Test(arguments: late)
    func `a head, a body and a reset may be late`(
        response: LoopbackOrigin.Response, milliseconds: Int, text: String, end: RawClient.End
    ) throws {
        let origin = try LoopbackOrigin { _ in response }
        let client = try RawClient(origin)
        // Begun before the request, because a busy machine may deliver the head when the pause is over.
        let start = ContinuousClock.now
        try client.get("/")
        #expect(try client.readToEnd() == (text, end))
        #expect(start.duration(to: .now) >= .milliseconds(milliseconds))
    }

    /// Responses with the text that the client receives before the connection ends, and with their record.
    private static let ends: [(response: LoopbackOrigin.Response, text: String, end: RawClient.End, record: String)] = [
        (digits.misbehaving(.closeSilently), head + "0123456789", .closed, "200, 10 bytes"),
        (digits.misbehaving(.truncate(afterBodyBytes: 4)), head + "0123", .closed, "200, 4 bytes, cut short"),
        (digits.misbehaving(.resetBeforeHead), "", .reset, "no response, cut short"),
        (
            digits.misbehaving(.breakChunk(afterBodyBytes: 4)),
            start + "Transfer-Encoding: chunked\r\n\r\n4\r\n0123\r\nnot a size\r\n", .closed, "200, 21 bytes, cut short"
        ),
        (.verbatim("HTTP/1.1 200 OK\nnonsense\0"), "HTTP/1.1 200 OK\nnonsense\0", .closed, "200, 25 bytes"),
        (.verbatim("0123456789").misbehaving(.truncate(afterBodyBytes: 3)), "012", .closed, "no response, cut short"),
    ]

    @Test(arguments: ends)
    func `a response ends without an announcement, too early or malformed`(
        response: LoopbackOrigin.Response, text: String, end: RawClient.End, record: String
    ) throws {
        let origin = try LoopbackOrigin { _ in response }
        let client = try RawClient(origin, get: "/")
        #expect(try client.readToEnd() == (text, end))
        #expect(origin.requests.map { "\($0)" } == ["GET / → \(record)"])
    }

    @Test func `a reset within the body arrives as a reset`() async throws {
        let origin = try LoopbackOrigin { _ in Self.digits.misbehaving(.reset(afterBodyBytes: 4)) }
        let client = try RawClient(origin, get: "/")
        let (text, end) = try client.readToEnd()
        // A reset may overtake bytes that were sent before it.
        #expect((Self.head + "0123").hasPrefix(text))
        #expect(end == .reset)
        try await origin.waitUntil { $0.requests.first?.ending == .cut }
    }

    @Test func `a stalled body lasts until the client leaves`() async throws {
        let origin = try LoopbackOrigin { _ in Self.digits.misbehaving(.stall(afterBodyBytes: 4)) }
        let client = try RawClient(origin, get: "/")
        #expect(try client.read(Self.head.utf8.count + 4) == Self.head + "0123")
        #expect(!client.hears(within: 30))
        client.hangUp()
        try await origin.waitUntil { $0.requests.first?.ending == .clientLeft && $0.openConnections == 0 }
    }

    @Test func `a response may never come`() async throws {
        let origin = try LoopbackOrigin { _ in Self.digits.misbehaving(.neverAnswer) }
        let client = try RawClient(origin, get: "/")
        try await origin.waitForRequests(count: 1)
        #expect(!client.hears(within: 30))
        #expect(origin.requests.first?.ending == nil)
        client.hangUp()
        let record = try await origin.waitUntil { $0.requests.first?.ending == .clientLeft }
        #expect(record.requests.first?.status == nil)
    }

    @Test(arguments: [[5], [20], [10, 12], []])
    func `declared lengths are sent unchanged`(lengths: [Int]) throws {
        let origin = try LoopbackOrigin { _ in Self.digits.misbehaving(.declareLengths(lengths), .closeSilently) }
        let client = try RawClient(origin, get: "/")
        let fields = lengths.map { "Content-Length: \($0)\r\n" }.joined()
        #expect(try client.readToEnd() == ("\(Self.start)\(fields)\r\n0123456789", .closed))
    }

    @Test func `an idle connection closes after a while, and a reused one stays for its next response`() throws {
        let origin = try LoopbackOrigin { _ in Self.digits.misbehaving(.closeIdle(after: .milliseconds(30))) }
        let client = try RawClient(origin)
        // In one piece, so that the second request is there before the connection has been idle.
        try client.write("GET /one HTTP/1.1\r\nHost: x\r\n\r\nGET /two HTTP/1.1\r\nHost: x\r\n\r\n")
        #expect(try client.readResponse().body == "0123456789")
        #expect(try client.readResponse().body == "0123456789")
        #expect(try client.readToEnd() == ("", .closed))
        #expect(origin.requests.map(\.ending) == [.complete, .complete])
        #expect(origin.acceptedConnections == 1)
    }

    @Test func `a kept connection may close at its next request`() throws {
        let origin = try LoopbackOrigin { _ in Self.digits.misbehaving(.closeOnNextRequest) }
        let client = try RawClient(origin, get: "/one")
        #expect(try client.readResponse().body == "0123456789")
        #expect(!client.hears(within: 20))
        try client.get("/two")
        #expect(try client.readToEnd() == ("", .closed))
        #expect(origin.requests.map(\.ending) == [.complete, .cut])
    }

    @Test func `a slow response does not delay other connections`() throws {
        let origin = try LoopbackOrigin { request in
            // Longer than a client waits.
            .text("x").misbehaving(.delayHead(by: request.path == "/slow" ? hangLimit * 4 : .zero))
        }
        let slow = try RawClient(origin)
        try slow.get("/slow")
        let fast = try RawClient(origin, get: "/fast")
        #expect(try fast.readResponse().body == "x")
    }
}
