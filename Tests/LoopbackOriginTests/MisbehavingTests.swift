import Foundation
import LoopbackOrigin
import Testing
import Trials

@Suite(.timeLimit(.minutes(hangMinutes)))
struct MisbehavingTests {
    private typealias Response = LoopbackOrigin.Response

    private static let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 10\r\n\r\n"

    /// Makes an origin that responds to every request with ten digits and the given misbehaviors.
    private func origin(_ ways: LoopbackOrigin.Misbehavior...) throws -> LoopbackOrigin {
        var response = Response.text("0123456789")
        response.misbehaviors = ways
        return try LoopbackOrigin { [response] _ in response }
    }

    @Test func `a head may be delayed`() throws {
        let origin = try origin(.delayHead(by: .milliseconds(40)))
        let client = try RawClient(origin)
        let start = ContinuousClock.now
        try client.get("/")
        #expect(try client.readResponse().body == "0123456789")
        #expect(start.duration(to: .now) >= .milliseconds(40))
    }

    @Test(arguments: [(LoopbackOrigin.Misbehavior.delayBody(by: .milliseconds(40)), 40), (.drip(bytes: 3, every: .milliseconds(15)), 45)])
    func `a body may be delayed after its head, or drip`(way: LoopbackOrigin.Misbehavior, milliseconds: Int) throws {
        let origin = try origin(way)
        let client = try RawClient(origin)
        // Begun before the request, because a busy machine may deliver the head when the pause is over.
        let start = ContinuousClock.now
        try client.get("/")
        #expect(try client.read(through: "\r\n\r\n") == Self.head)
        #expect(try client.read(10) == "0123456789")
        #expect(start.duration(to: .now) >= .milliseconds(milliseconds))
    }

    @Test func `a truncated body ends early`() throws {
        let origin = try origin(.truncate(afterBodyBytes: 4))
        let client = try RawClient(origin, get: "/")
        #expect(try client.readToEnd() == (Self.head + "0123", .closed))
        #expect(origin.requests.first?.ending == .cut)
        #expect(origin.requests.first?.bodyBytesSent == 4)
    }

    @Test func `a reset within the body arrives as a reset`() async throws {
        let origin = try origin(.reset(afterBodyBytes: 4))
        let client = try RawClient(origin, get: "/")
        let (text, end) = try client.readToEnd()
        // A reset may overtake bytes that were sent before it.
        #expect((Self.head + "0123").hasPrefix(text))
        #expect(end == .reset)
        try await origin.waitUntil { $0.requests.first?.ending == .cut }
    }

    @Test func `a reset before the head sends nothing`() throws {
        let origin = try origin(.resetBeforeHead)
        let client = try RawClient(origin, get: "/")
        #expect(try client.readToEnd() == ("", .reset))
        #expect(origin.requests.first?.status == nil)
    }

    @Test func `a reset may be delayed`() throws {
        let origin = try origin(.delayHead(by: .milliseconds(30)), .resetBeforeHead)
        let client = try RawClient(origin)
        let start = ContinuousClock.now
        try client.get("/")
        #expect(try client.readToEnd() == ("", .reset))
        #expect(start.duration(to: .now) >= .milliseconds(30))
    }

    @Test func `a stalled body lasts until the client leaves`() async throws {
        let origin = try origin(.stall(afterBodyBytes: 4))
        let client = try RawClient(origin, get: "/")
        #expect(try client.read(Self.head.utf8.count + 4) == Self.head + "0123")
        #expect(!client.hears(within: 30))
        client.hangUp()
        try await origin.waitUntil { $0.requests.first?.ending == .clientLeft && $0.openConnections == 0 }
    }

    @Test func `a response may never come`() async throws {
        let origin = try origin(.neverAnswer)
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
        let origin = try origin(.declareLengths(lengths), .closeSilently)
        let client = try RawClient(origin, get: "/")
        let fields = lengths.map { "Content-Length: \($0)\r\n" }.joined()
        let expected = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n\(fields)\r\n0123456789"
        #expect(try client.readToEnd() == (expected, .closed))
    }

    @Test func `a chunk may be malformed`() throws {
        let origin = try origin(.breakChunk(afterBodyBytes: 4))
        let client = try RawClient(origin, get: "/")
        let (text, end) = try client.readToEnd()
        #expect(text.hasSuffix("\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n0123\r\nnot a size\r\n"))
        #expect(end == .closed)
    }

    @Test func `a connection may close without an announcement`() throws {
        let origin = try origin(.closeSilently)
        let client = try RawClient(origin, get: "/")
        #expect(try client.readToEnd() == (Self.head + "0123456789", .closed))
        #expect(origin.requests.first?.ending == .complete)
    }

    @Test func `an idle connection closes after a while, and a reused one stays for its next response`() throws {
        let origin = try origin(.closeIdle(after: .milliseconds(30)))
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
        let origin = try origin(.closeOnNextRequest)
        let client = try RawClient(origin, get: "/one")
        #expect(try client.readResponse().body == "0123456789")
        #expect(!client.hears(within: 20))
        try client.get("/two")
        #expect(try client.readToEnd() == ("", .closed))
        #expect(origin.requests.map(\.ending) == [.complete, .cut])
    }

    @Test func `verbatim bytes are sent without additions`() throws {
        let origin = try LoopbackOrigin { .verbatim("HTTP/1.1 200 OK\nnonsense\0", then: $0.path == "/stay" ? .stays : .closes) }
        let client = try RawClient(origin, get: "/stay")
        #expect(try client.read(25) == "HTTP/1.1 200 OK\nnonsense\0")
        try client.get("/go")
        #expect(try client.readToEnd() == ("HTTP/1.1 200 OK\nnonsense\0", .closed))
        #expect(origin.requests.map(\.status) == [200, 200])
    }

    @Test func `verbatim bytes can be truncated`() throws {
        let origin = try LoopbackOrigin { _ in .verbatim("0123456789").misbehaving(.truncate(afterBodyBytes: 3)) }
        let client = try RawClient(origin, get: "/")
        #expect(try client.readToEnd() == ("012", .closed))
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
