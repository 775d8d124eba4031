import Foundation
import LoopbackOrigin
import StoreCore
import StoreCoreTesting
import Testing
import Trials

@testable import RemoteRouting

/// The same behavior over a real socket and in memory.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct BehaviorTests {
    /// Not `Sendable`, but returned to the caller all the same.
    private final class Counter: Decodable {
        var id: Int
    }

    @Test(arguments: TransportKind.allCases)
    func `a value is sent and returned, and need not be Sendable`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind, on: "POST", "/v1/users") { asked in .data(asked.body, type: "application/json", status: 201) }
        bench.on("GET", "/v1/search") { asked in .json([asked.query]) }
        let host = bench.host { $0.configuration.basePath = "/v1" }
        let route = Route(path: "/users", method: .post, parameters: ["id": 7, "name": "Ada"])
        let response = try await host.response(for: route, as: User.self)
        #expect(response.value == User(id: 7, name: "Ada") && response.status == 201 && response.attempts == 1)
        let asked = try #require(bench.asked.first)
        #expect(asked.body == Data(#"{"id":7,"name":"Ada"}"#.utf8))
        #expect(asked["Content-Type"] == "application/json" && asked["Cookie"] == nil)
        let counter: Counter = try await host.send(route)
        #expect(try await host.response(for: route, as: Counter.self).value.id == counter.id)
        let found: [String] = try await host.send("/search", parameters: ["q": "a b+c", "page": 2])
        #expect(found == ["q=a%20b%2Bc&page=2"])
    }

    @Test(arguments: TransportKind.allCases, [299, 400, 401, 403, 404, 425, 429, 500, 502, 520, 599])
    func `H10: every status outside 2xx is an error`(_ kind: TransportKind, _ status: Int) async throws {
        let bench = try Bench(kind, on: "POST", "/x") { _ in .json(literal: #"{"id":1,"name":"x"}"#, status: status) }
        let host = bench.host()
        if status == 299 {
            let user: User = try await host.send("/x", method: .post)
            #expect(user.id == 1)
        } else {
            let error = try await remoteError { _ = try await host.send("/x", method: .post, as: User.self) }
            #expect(error.stage == .status && error.code == .badStatus && error.status == status, "\(error)")
            #expect(error.details(as: User.self) == User(id: 1, name: "x"))
        }
    }

    @Test(arguments: TransportKind.allCases)
    func `H10: a body is decoded by its type, and an error names the type or the place`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind, on: "GET", "/html") { _ in .data(Data("[1]".utf8), type: "text/html") }
        bench.on("GET", "/suffix") { _ in .data(Data("[1]".utf8), type: "application/vnd.api+json; charset=utf-8") }
        bench.on("GET", "/users") { _ in .json(literal: #"[{"id":1,"name":"secret"},{"id":"secret"}]"#) }
        let host = bench.host()
        #expect(try await host.send("/suffix", as: [Int].self) == [1])
        // HTML is never decoded, regardless of the status.
        let refused = try await remoteError { _ = try await host.send("/html", as: [Int].self) }
        #expect(refused.code == .unexpectedType && refused.stage == .decode && refused.body == Data("[1]".utf8), "\(refused)")
        let error = try await remoteError { _ = try await host.send("/users", as: [User].self) }
        #expect(error.code == .undecodable && error.message.contains("[1].id") && !error.description.contains("secret"), "\(error)")
        // The keys of a dictionary are content.
        bench.on("GET", "/named") { _ in .json(literal: #"{"secret":[{"id":1,"name":7}]}"#) }
        let named = try await remoteError { _ = try await host.send("/named", as: [String: [User]].self) }
        #expect(named.message.contains("….[0].name") && !named.description.contains("secret"), "\(named)")
        // A response to HEAD has no body.
        #expect(try await host.response(for: Route(path: "/users", method: .head), as: Empty.self).status == 200)
    }

    @Test(arguments: TransportKind.allCases)
    func `H10: an empty body is no value, but an optional is nil for 204, 205 and null`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind, on: "GET", "/null") { _ in .json(literal: "null") }
        bench.on("GET", "/200") { _ in .data(Data(), type: "application/json") }
        bench.on("GET", "/204") { _ in .status(204) }
        bench.on("GET", "/205") { _ in .status(205) }
        let host = bench.host()
        for path in ["/200", "/204", "/205"] as [RoutePath] {
            #expect(try await remoteError { _ = try await host.send(path, as: User.self) }.code == .emptyBody)
            _ = try await host.send(path, as: Empty.self)
            try await host.send(path)
        }
        #expect(try await remoteError { _ = try await host.send("/200", as: User?.self) }.code == .emptyBody)
        #expect(try await host.send("/204", as: User?.self) == nil)
        #expect(try await host.send("/205", as: User?.self) == nil)
        #expect(try await host.send("/null", as: User?.self) == nil)
        #expect(try await host.send("/null", as: Data?.self) == Data("null".utf8))
        #expect(try await remoteError { _ = try await host.send("/none", as: User?.self) }.status == 404)
    }

    @Test(
        arguments: TransportKind.allCases,
        [
            ([.truncate(afterBodyBytes: 4)], .connectionLost), ([.reset(afterBodyBytes: 4)], .connectionLost),
            ([.declareLengths([20]), .closeSilently], .connectionLost), ([.declareLengths([4, 10])], .protocolViolation),
        ] as [([LoopbackOrigin.Misbehavior], RemoteError.Code)])
    func `H15, W7: a body shorter than its length counts as a lost connection, and contradictory lengths are refused`(
        _ kind: TransportKind, _ body: (ways: [LoopbackOrigin.Misbehavior], code: RemoteError.Code)
    ) async throws {
        var response = Bench.Response.text("0123456789")
        response.misbehaviors = body.ways
        let bench = try Bench(kind, on: "GET", "/x", inTurn: response)
        let error = try await remoteError { _ = try await bench.host { $0.retry = .never }.data(for: Route(path: "/x")) }
        #expect(error.code == body.code && error.stage == .transport && error.isRetryable == (body.code == .connectionLost), "\(error)")
    }

    @Test(arguments: TransportKind.allCases)
    func `a body longer than its length ends at its length`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind, on: "GET", "/x") { _ in .text("0123456789").misbehaving(.declareLengths([4])) }
        let host = bench.host()
        #expect(try await host.data(for: Route(path: "/x")) == Data("0123".utf8))
        // The surplus bytes are never taken for the next response: the connection is replaced, or the request fails.
        do {
            #expect(try await host.data(for: Route(path: "/x")) == Data("0123".utf8))
        } catch let error as RemoteError {
            #expect(error.code == .protocolViolation)
        }
    }

    @Test(arguments: TransportKind.allCases)
    func `H8: a response beyond the limit is refused, and the exchange ends`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind)
        // The response never ends by itself.
        bench.on("GET", "/x") { _ in .data(Data(count: 5_000_000)).misbehaving(.stall(afterBodyBytes: 1_000_000)) }
        let error = try await remoteError { _ = try await bench.host { $0.limits.responseBytes = 200_000 }.data(for: Route(path: "/x")) }
        #expect(error.code == .bodyTooLarge && !error.isRetryable, "\(error)")
        if kind.isReal { try await bench.origin.waitUntil { $0.requests.first?.ending == .clientLeft } }
    }

    @Test(arguments: TransportKind.allCases)
    func `H13: cancellation ends the exchange on the wire`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind, on: "GET", "/x") { _ in .text("0123456789").misbehaving(.stall(afterBodyBytes: 4)) }
        let host = bench.host()
        let task = Task { try await host.data(for: Route(path: "/x")) }
        if kind.isReal {
            try await bench.origin.waitForRequests(count: 1)
        } else {
            try await until("the request has arrived") { !bench.asked.isEmpty }
        }
        task.cancel()
        let error = try await remoteError { _ = try await task.value }
        #expect(error.stage == .cancelled && error.failureKind == .cancelled, "\(error)")
        if kind.isReal { try await bench.origin.waitUntil { $0.requests.first?.ending == .clientLeft } }
    }

    @Test(arguments: TransportKind.allCases)
    func `H6: a missing response times out on the host's clock`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind, on: "GET", "/x") { _ in .text("x").misbehaving(.neverAnswer) }
        let time = ManualTime()
        let host = bench.host(time: time) {
            $0.timeouts = .init(head: .milliseconds(500)); $0.retry = .never
        }
        let task = Task { try await host.data(for: Route(path: "/x")) }
        try await time.advance(by: .milliseconds(499), sleepers: 1)
        #expect(time.sleeperCount == 1)
        time.advance(by: .milliseconds(1))
        let error = try await remoteError { _ = try await task.value }
        #expect(error.code == .headTimedOut && error.stage == .timeout && error.isRetryable, "\(error)")
        if kind.isReal { try await bench.origin.waitUntil { $0.openConnections == 0 } }
    }

    @Test(arguments: TransportKind.allCases)
    func `H6: a stalled response times out`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind, on: "GET", "/x") { _ in .text("0123456789").misbehaving(.stall(afterBodyBytes: 4)) }
        let time = ManualTime()
        let host = bench.host(time: time) {
            $0.timeouts = .init(idle: .seconds(5)); $0.retry = .never
        }
        let hasEnded = WatchedState(false)
        let task = Task {
            defer { hasEnded.update { $0 = true } }
            return try await host.data(for: Route(path: "/x"))
        }
        // The idle time starts with the head, and again with a chunk that arrives after the head.
        try await until("the response has timed out") {
            if time.sleeperCount > 0 { time.advance(by: .seconds(5)) }
            return hasEnded.current
        }
        #expect(try await remoteError { _ = try await task.value }.code == .idleTimedOut)
    }

    @Test(arguments: TransportKind.allCases)
    func `H6: delays between attempts do not exceed the deadline`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind, on: "GET", "/x") { _ in .status(503) }
        let time = ManualTime()
        let (host, entries) = bench.host(time: time) {
            $0.timeouts = .init(overall: .seconds(60))
            $0.retry = .exponential(attempts: 1000, base: .seconds(40), cap: .seconds(40))
            $0.random = { 1 }
        }.logged()
        let task = Task { try await host.data(for: Route(path: "/x")) }
        try await entries.wait { $0.contains { $0.event == .waiting(.seconds(40)) } ? () : nil }
        time.advance(by: .seconds(40))
        let error = try await remoteError { _ = try await task.value }
        #expect(error.status == 503 && error.attempts == 2 && bench.asked.count == 2, "\(error)")
    }

    @Test(arguments: TransportKind.allCases)
    func `H6: the whole call has a deadline`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind, on: "GET", "/x") { _ in .text("x").misbehaving(.neverAnswer) }
        let time = ManualTime()
        let host = bench.host(time: time) { $0.timeouts = .init(overall: .seconds(60)) }
        let task = Task { try await host.data(for: Route(path: "/x")) }
        try await time.advance(by: .seconds(60), sleepers: 1)
        let error = try await remoteError { _ = try await task.value }
        #expect(error.code == .overallTimedOut && !error.isRetryable && error.operation.hasSuffix("/x"), "\(error)")
    }
}

/// Exact bytes of responses, over a real socket.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct WireFormTests {
    private func answer(_ text: String, _ transport: RealTransport, method: HTTPMethod = .get) async throws -> RemoteResponse<Data> {
        let origin = try LoopbackOrigin { _ in .verbatim(text.replacing("\n", with: "\r\n")) }
        defer { withExtendedLifetime(origin) {} }
        return try await transport.host(origin.port) { $0.retry = .never }.dataResponse(for: Route(path: "/x", method: method))
    }

    @Test(
        arguments: RealTransport.available,
        ["100 Continue", "102 Processing", "103 Early Hints", "103 Early Hints\nLink: </x>; rel=preload"])
    func `H10: an interim response is not the final response`(_ transport: RealTransport, _ interim: String) async throws {
        let response = try await answer("HTTP/1.1 \(interim)\n\nHTTP/1.1 200 OK\nContent-Length: 2\n\n[]", transport)
        #expect(response.status == 200 && response.value == Data("[]".utf8) && response.fields["Link"] == nil)
    }

    /// FoundationNetworking 6.3 ends the process with "Transfer completed, but there's no response"; nothing above it can prevent that.
    @Test(.enabled(if: RealTransport.available.contains(.curl), "fields behind a chunked body end the process in FoundationNetworking"))
    func `H10, W1: trailers do not become fields`() async throws {
        let response = try await answer(
            "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\nTrailer: ETag\n\n2\n[]\n0\nETag: \"evil\"\nSet-Cookie: a=b\n\n", .curl)
        #expect(response.value == Data("[]".utf8) && response.fields["ETag"] == nil && response.fields["Set-Cookie"] == nil)
    }

    @Test(
        arguments: RealTransport.available,
        [
            ("204 X\nContent-Length: 0\nConnection: close", .get), ("205 X\nContent-Length: 0\nConnection: close", .get),
            ("200 OK\nContent-Length: 5", .head),
        ] as [(String, HTTPMethod)])
    func `H10: a body after a head that permits none is not read`(_ transport: RealTransport, _ head: (String, HTTPMethod)) async throws {
        let response = try await answer("HTTP/1.1 \(head.0)\n\nhello", transport, method: head.1)
        #expect(head.0.hasPrefix("\(response.status)") && response.value.isEmpty)
        #expect(head.1 != .head || response.fields["Content-Length"] == "5")
    }

    @Test(
        arguments: RealTransport.available,
        [
            "HTTP/1.1 200 OK\nContent-Length: 5\nContent-Length: 6\n\nhello!", "HTTP/1.1 200 OK\nContent-Length: 5, 6\n\nhello!",
            "HTTP/1.1 200 OK\nContent-Length: -5\n\nhello", "HTTP/1.1 200 OK\nContent-Length: 50\n\nhello",
            "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\nzz\nhello\n", "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n5\nhel",
            "HTTP/1.1 200 OK\nTransfer-Encoding: nonsense\nContent-Length: 5\n\nhello", "HTP/1.1 200 OK\n\nhello", "\n\n", "hello",
        ])
    func `H10: a response with an ambiguous end is an error`(_ transport: RealTransport, _ text: String) async throws {
        #expect(try await remoteError { _ = try await answer(text, transport) }.stage == .transport)
    }

    @Test func `H13: two tasks may wait for one body, and both resume`() async throws {
        let exchange = Exchange(limits: ExchangeLimits(head: nil, idle: nil))
        exchange.receive(HTTPResponse(status: 200, url: URL(filePath: "/")))
        let body = try await exchange.response().body
        let tasks = (0..<2).map { _ in
            Task {
                var iterator = body.makeAsyncIterator()
                return try await iterator.next()
            }
        }
        for _ in 0..<200 { await Task.yield() }
        exchange.receive(Data("a".utf8))
        exchange.finish()
        var seen: [Data?] = []
        for task in tasks { seen.append(try await task.value) }
        #expect(seen.compactMap(\.self) == [Data("a".utf8)])
    }
}
