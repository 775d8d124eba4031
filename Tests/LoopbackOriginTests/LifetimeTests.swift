import Foundation
import LoopbackOrigin
import Testing
import Trials

@Suite(.timeLimit(.minutes(hangMinutes)))
struct LifetimeTests {
    @Test func `an outage resets connections and refuses new ones, and ends on the same port`() async throws {
        let origin = try LoopbackOrigin { $0.path == "/hang" ? .text("").misbehaving(.neverAnswer) : .text("up") }
        let (idle, waiting) = (try RawClient(origin), try RawClient(origin))
        try idle.get("/")
        #expect(try idle.readResponse().body == "up")
        try waiting.get("/hang")
        try await origin.waitForRequests(count: 2)
        for _ in 1...3 {
            origin.goDown()
            origin.goDown()
            let failure = #expect(throws: RawClient.Failure.self) { try RawClient(origin) }
            #expect(failure?.number == ECONNREFUSED)
            try origin.comeBack()
            try origin.comeBack()
            let client = try RawClient(origin, get: "/")
            #expect(try client.readResponse().body == "up")
        }
        #expect(try idle.readToEnd() == ("", .reset))
        #expect(try waiting.readToEnd() == ("", .reset))
        #expect(origin.requests(to: "/hang").map(\.ending) == [.originLeft])
    }

    @Test func `stopping ends hanging handlers and responses at once`() async throws {
        let origin = try LoopbackOrigin { request in
            if request.path == "/handler" { try? await untilCanceled() }
            return .text("").misbehaving(.neverAnswer)
        }
        let clients = [try RawClient(origin), try RawClient(origin), try RawClient(origin)]
        try clients[0].get("/handler")
        try clients[1].get("/answer")
        try await origin.waitForRequests(count: 2)
        // Neither handler nor response ends by itself.
        origin.stop()
        origin.stop()
        for client in clients { #expect(try client.readToEnd().text == "") }
        #expect(origin.openConnections == 0)
        #expect(origin.requests.map(\.ending) == [.originLeft, .originLeft])
        #expect(throws: RawClient.Failure.self) { try RawClient(origin) }
        let failure = #expect(throws: LoopbackOrigin.Failure.self) { try origin.comeBack() }
        #expect(failure?.code == .stopped)
        origin.goDown()
    }

    @Test func `a released origin is stopped`() throws {
        let client: RawClient
        do {
            let origin = try LoopbackOrigin { _ in .text("x") }
            client = try RawClient(origin)
            try client.get("/")
            _ = try client.readResponse()
        }
        #expect(try client.readToEnd().text == "")
    }

    @Test func `a taken port is an error that names the port`() throws {
        let origin = try LoopbackOrigin()
        let failure = #expect(throws: LoopbackOrigin.Failure.self) { try LoopbackOrigin(port: origin.port) }
        #expect(failure?.code == .system)
        #expect(failure?.description.contains("\(origin.port)") == true)
    }

    @Test func `a client that leaves cancels its handler`() async throws {
        let gate = Gate()
        let origin = try LoopbackOrigin { _ in
            try? await untilCanceled()
            gate.open()
            return .status(200)
        }
        let client = try RawClient(origin, get: "/")
        try await origin.waitForRequests(count: 1)
        client.hangUp()
        await gate.wait()
        try await origin.waitUntil { $0.requests.first?.ending == .clientLeft && $0.openConnections == 0 }
    }

    @Test func `a handler can take its own origin down and stop it`() async throws {
        let origin = try LoopbackOrigin()
        origin.on(.post, "/outage") { [weak origin] _ in
            origin?.goDown()
            return .status(202)
        }
        let client = try RawClient(origin)
        try client.get("/outage", method: "POST")
        try await origin.waitUntil { $0.requests.first?.ending != nil }
        try origin.comeBack()
        origin.on(.post, "/stop") { [weak origin] _ in
            origin?.stop()
            return .status(202)
        }
        let second = try RawClient(origin, get: "/stop", method: "POST")
        // The response may or may not arrive before the stop.
        _ = try second.readToEnd()
    }
}
