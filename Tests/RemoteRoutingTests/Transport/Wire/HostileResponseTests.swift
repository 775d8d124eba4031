#if os(Linux)
import Foundation
import LoopbackOrigin
import RemoteHTTP
import RemoteRouting
import StoreCore
import Testing
import Trials

/// Invalid responses over `CurlTransport`; the tests of `WireFormTests` use both transports.
@Suite(.enabled(if: RealTransport.available.contains(.curl), "libcurl is missing"), .serialized, .timeLimit(.minutes(hangMinutes)))
struct HostileResponseTests {
    /// `STOREHOUSE_SEEDS=20000` tests that many mutations after the truncations.
    @Test func `W1: a truncated or mutated response yields a response or a typed error`() async throws {
        let numbers = Mutations.numbers(mutations: rounds(8_000, quick: 400))
        let origin = try LoopbackOrigin { request in .verbatim(Data(Mutations.response(Int(request.path.dropFirst()) ?? 0))) }
        let transport = try RealTransport.curl.make()
        // The deadlines only detect hangs, because every response ends with its connection.
        let host = RemoteHost(origin.port, over: transport).with {
            $0.retry = .never
            $0.limits.redirects = 0
        }
        let seen = WatchedState<[String: Int]>([:])
        try await withThrowingTaskGroup(of: Void.self) { group in
            for worker in 0..<16 {
                group.addTask {
                    for number in stride(from: worker, to: numbers.count, by: 16).map({ numbers[$0] }) {
                        do {
                            let route = Route(path: "/\(number)", method: number % 7 == 0 ? .post : .get)
                            _ = try await host.data(for: route)
                            seen.update { $0["response", default: 0] += 1 }
                        } catch let error as RemoteError {
                            seen.update { $0[error.code.rawValue, default: 0] += 1 }
                            #expect(error.code != .unreachable, "response \(number): \(String(describing: error.underlyingError))")
                            #expect(error.stage == .transport || error.stage == .status, "response \(number): \(error)")
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        let counts = seen.current
        if isLongRun { print("W1: \(numbers.count) responses: \(counts.sorted { $0.key < $1.key })") }
        #expect(counts.values.reduce(0, +) == numbers.count)
        #expect(counts["response", default: 0] > 0 && counts["connectionLost", default: 0] > 0, "\(counts)")
        #expect(counts["unreachable"] == nil, "an unknown failure: \(counts)")
        try await until("no exchange is left") { transport.exchangeCount == 0 }
    }

    @Test(arguments: [1, 40, 200_000])
    func `W4: twenty thousand fields and endless lines are typed errors`(_ width: Int) async throws {
        let field = "X: \(String(repeating: "a", count: width))\r\n"
        let head = "HTTP/1.1 200 OK\r\n" + String(repeating: field, count: width > 1000 ? 3 : 20_000) + "Content-Length: 0\r\n\r\n"
        let origin = try LoopbackOrigin { _ in .verbatim(head) }
        let host = try RealTransport.curl.host(origin.port) { $0.retry = .never }
        #expect(try await remoteError { _ = try await host.data(for: Route(path: "/x")) }.code == .protocolViolation)
    }

    @Test(arguments: [302, 307])
    func `W3: a redirect with an endless body is followed at its head`(_ status: Int) async throws {
        let origin = try LoopbackOrigin { _ in .text("end") }
        origin.on(.get, "/endless") { _ in
            LoopbackOrigin.Response.repeating(Data(count: 65_536), times: 1 << 11).with(status: status).setting("Location", to: "/end")
                .framed(.chunked(bytes: 65_536))
        }
        origin.on(.get, "/long") { _ in
            LoopbackOrigin.Response.repeating(Data(count: 65_536), times: 1 << 11).with(status: status).setting("Location", to: "/end")
        }
        // Within the limit of a response body, but beyond the limit of a redirect body.
        origin.on(.get, "/medium") { _ in
            LoopbackOrigin.Response.repeating(Data(count: 65_536), times: 250).with(status: status).setting("Location", to: "/end")
        }
        origin.on(.get, "/short") { _ in .redirect(to: "/end", status: status).misbehaving(.declareLengths([30]), .closeSilently) }
        let host = try RealTransport.curl.host(origin.port) { $0.retry = .never }
        for path in ["/endless", "/long", "/medium", "/short"] {
            #expect(try await host.data(for: Route(path: RoutePath(stringLiteral: path))) == Data("end".utf8))
        }
        try await origin.waitUntil { $0.requests(to: "/endless").first?.ending == .clientLeft }
        try await origin.waitUntil { $0.requests(to: "/medium").first?.ending != nil }
        #expect(origin.requests(to: "/medium").first?.ending == .clientLeft)
        let sent = try #require(origin.requests(to: "/endless").first?.bodyBytesSent)
        // The bytes that were read, and those in the system's buffers.
        #expect(sent < 12 << 20, "\(sent) bytes")
    }

    @Test func `W3: a short redirect body keeps the connection`() async throws {
        let origin = try LoopbackOrigin { _ in .text("end") }
        origin.on(.get, "/a") { _ in LoopbackOrigin.Response.data(Data(count: 60_000), status: 302).setting("Location", to: "/b") }
        let host = try RealTransport.curl.host(origin.port)
        _ = try await host.data(for: Route(path: "/a"))
        #expect(origin.acceptedConnections == 1)
    }

    @Test(arguments: [LoopbackOrigin.Response.Framing.length, .chunked(bytes: 3)])
    func `W7: a body truncated at any byte is an error`(_ framing: LoopbackOrigin.Response.Framing) async throws {
        let count = framing == .length ? 10 : 10 + 4 * 5 + 5 + 2
        let origin = try LoopbackOrigin { request in
            .text("0123456789").framed(framing).misbehaving(.truncate(afterBodyBytes: Int(request.path.dropFirst()) ?? 0))
        }
        let host = try RealTransport.curl.host(origin.port) { $0.retry = .never }
        for place in 0..<(framing == .length ? count : 30) {
            let error = try await remoteError { _ = try await host.data(for: Route(path: "/\(place)")) }
            #expect(error.code == .connectionLost, "cut behind \(place) bytes")
            let streamed = try await remoteError { for try await _ in try await host.bytes(for: Route(path: "/\(place)")) {} }
            #expect(streamed.code == .connectionLost)
        }
    }
}
#endif
