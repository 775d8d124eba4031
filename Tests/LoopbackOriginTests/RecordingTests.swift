import LoopbackOrigin
import Testing
import Trials

@Suite(.timeLimit(.minutes(hangMinutes)))
struct RecordingTests {
    @Test func `a wait ends when enough requests have arrived`() async throws {
        let origin = try LoopbackOrigin { _ in .status(200) }
        async let waiting = origin.waitForRequests(count: 2, to: "/a")
        let client = try RawClient(origin)
        for target in ["/a?1", "/b", "/a?2"] { try client.get(target) }
        #expect(try await waiting.map(\.target) == ["/a?1", "/a?2"])
        #expect(origin.requests(to: "/b").map(\.number) == [2])
    }

    @Test func `a wait that times out reports the recorded requests`() async throws {
        let origin = try LoopbackOrigin()
        let client = try RawClient(origin, get: "/only")
        _ = try client.readResponse()
        let failure = await #expect(throws: LoopbackOrigin.Failure.self) {
            try await origin.waitForRequests(count: 2, within: .milliseconds(20))
        }
        #expect(failure?.code == .timedOut)
        #expect(failure?.description.contains("GET /only → 404") == true)
    }

    @Test func `a cancellation and a stop end a wait`() async throws {
        let origin = try LoopbackOrigin()
        let waits = (1...2).map { _ in Task { try await origin.waitForRequests(count: 1) } }
        waits[0].cancel()
        await #expect(throws: CancellationError.self) { try await waits[0].value }
        origin.stop()
        await #expect(throws: LoopbackOrigin.Failure.self) { try await waits[1].value }
    }

    @Test func `forgetting keeps numbers and connections`() async throws {
        let origin = try LoopbackOrigin { _ in .status(200) }
        let client = try RawClient(origin, get: "/one")
        _ = try client.readResponse()
        origin.forget()
        #expect(origin.requests.isEmpty)
        try client.get("/two")
        _ = try client.readResponse()
        #expect(origin.requests.map(\.number) == [2])
        #expect((origin.openConnections, origin.acceptedConnections) == (1, 1))
    }

    @Test func `the record describes every exchange in order`() async throws {
        let origin = try LoopbackOrigin { request in
            .text("0123456789").misbehaving(request.path == "/cut" ? .truncate(afterBodyBytes: 3) : .drip(bytes: 10, every: .zero))
        }
        let client = try RawClient(origin, get: "/whole")
        try client.get("/cut")
        _ = try client.readToEnd()
        origin.stop()
        #expect(origin.requests.map { "\($0)" } == ["GET /whole → 200, 10 bytes", "GET /cut → 200, 3 bytes, cut short"])
    }
}
