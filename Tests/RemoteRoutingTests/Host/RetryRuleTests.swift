import Foundation
import LoopbackOrigin
import StoreCore
import StoreCoreTesting
import Testing
import Trials

@testable import RemoteRouting

/// Rules of a host that widen and narrow what is retried, and statuses that are values.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct RetryRuleTests {
    @Test(arguments: TransportKind.allCases)
    func `H22: a status with a delay is retried if the rules say so, and only then`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind)
        let refusal = LoopbackOrigin.Response.status(403)
        bench.on("GET", "/advised", inTurn: refusal.adding("Retry-After", "0"), .json([1]))
        bench.on("GET", "/plain") { _ in refusal }
        let host = bench.host {
            $0.random = { 0 }
            $0.retryRules.advisedStatuses = [403]
        }
        #expect(try await host.response(for: Route(path: "/advised"), as: [Int].self).attempts == 2)
        let error = try await remoteError { try await host.send("/plain") }
        #expect(error.attempts == 1 && !error.isRetryable && error.failureKind == .permanent)
    }

    @Test(arguments: RealTransport.available)
    func `H22: rules widen and narrow by status and method, and never repeat what is not safe`(_ transport: RealTransport) async throws {
        let bench = try Bench(transport.kind)
        for method in ["GET", "PUT", "POST"] {
            bench.on(method, "/500") { _ in .status(500) }
            bench.on(method, "/425") { _ in .status(425) }
            bench.on(method, "/503") { _ in .status(503) }
        }
        let host = bench.host {
            $0.random = { 0 }
            $0.retryRules.statuses = [425, 500]
            $0.retryRules.methods = [.get, .post]
        }
        func attempts(_ method: HTTPMethod, _ path: String) async throws -> Int {
            try await remoteError { try await host.send(Route(path: RoutePath(stringLiteral: path), method: method)) }.attempts
        }
        #expect(try await attempts(.get, "/500") == 3)
        #expect(try await attempts(.get, "/425") == 3)
        #expect(try await attempts(.get, "/503") == 1)
        #expect(try await attempts(.put, "/500") == 1)
        #expect(try await attempts(.post, "/500") == 1)
    }

    @Test func `H22: a host without rules for lost connections does not repeat them`() async throws {
        let port = try ClosedPort()
        let host = RemoteHost(HostConfiguration("127.0.0.1", scheme: .http, port: port.number)).with {
            $0.random = { 0 }
            $0.timeouts = .untilHang
            $0.retryRules.errors = []
        }
        let error = try await remoteError { try await host.send("/") }
        #expect(error.attempts == 1 && !error.isRetryable)
        withExtendedLifetime(port) {}
    }

    @Test(arguments: TransportKind.allCases)
    func `H5, H22: rules do not make a failed refresh final`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind)
        bench.on("GET", "/me") { $0["Authorization"] == "Bearer new" ? .json([1]) : .status(401) }
        bench.on("POST", "/refresh", inTurn: .status(503), .json(Token(accessToken: "new")))
        let host = bench.host { $0.retryRules.methods = [.get] }.refreshing()
        let error = try await remoteError { try await host.send("/me") }
        #expect(error.code == .refreshFailed && error.failureKind == .transient)
        #expect(try await host.send("/me", as: [Int].self) == [1])
    }

    @Test(arguments: TransportKind.allCases)
    func `H22: a status may be no value`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind)
        bench.on("GET", "/missing") { _ in .status(404) }
        bench.on("GET", "/there") { _ in .json([1]) }
        bench.on("GET", "/refused") { _ in .status(403) }
        bench.on("GET", "/none") { _ in .status(204) }
        let host = bench.host()
        #expect(try await host.send(Route(path: "/none"), as: [Int].self, nilFor: [204]) == nil)
        #expect(try await host.send(Route(path: "/missing"), as: [Int].self, nilFor: [404, 410]) == nil)
        #expect(try await host.send(Route(path: "/there"), as: [Int].self, nilFor: [404]) == [1])
        #expect(try await remoteError { _ = try await host.send(Route(path: "/refused"), as: [Int].self, nilFor: [404]) }.status == 403)
    }

    @Test(arguments: TransportKind.allCases)
    func `H22: an accepted status is a response with its whole body`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind)
        // Longer than the body of an error.
        let mistakes = Data(repeating: UInt8(ascii: "a"), count: 100_000)
        bench.on("POST", "/orders") { _ in .data(mistakes, status: 422) }
        bench.on("GET", "/known") { $0["If-None-Match"] == nil ? .json([1]) : .status(304) }
        bench.on("GET", "/busy", inTurn: .status(503), .json([1]))
        let host = bench.host { $0.random = { 0 } }
        let order = Route(path: "/orders", method: .post, body: .json([1]))
        let refused = try await host.dataResponse(for: order, accepting: [422])
        #expect(refused.status == 422 && refused.value == mistakes)
        let known = Route(path: "/known", headers: ["If-None-Match": "\"a\""])
        let unchanged = try await host.dataResponse(for: known, accepting: [304, 422])
        #expect(unchanged.status == 304 && unchanged.value.isEmpty)
        #expect(try await remoteError { _ = try await host.dataResponse(for: known, accepting: [422]) }.status == 304)
        #expect(try await host.send(known, as: [Int].self, nilFor: [304]) == nil)
        let busy = try await host.dataResponse(for: Route(path: "/busy"), accepting: [503])
        #expect(busy.status == 503 && busy.attempts == 1)
        #expect(try await host.dataResponse(for: Route(path: "/busy"), accepting: [503]).status == 200)
    }

    @Test func `H1, H3: parameters and headers are made, filled and read`() {
        var parameters = Parameters()
        #expect(parameters.isEmpty && parameters.names == [])
        parameters.append("tag", "swift")
        parameters.append("page", 2)
        parameters.append("tag", nil as String?)
        #expect(parameters.names == ["tag", "page", "tag"] && parameters["tag"] == ["swift".parameterValue] && parameters["none"] == [])
        var headers = Headers()
        headers.append("X-A", "1")
        headers.append("x-a", "2")
        headers.remove("User-Agent")
        #expect(headers.names == ["X-A", "x-a"] && headers["X-a"] == ["1", "2"] && headers["user-agent"] == [])
    }

    @Test func `W12: a program sets cookies by the rules for received ones`() async throws {
        let bench = try Bench(.memory)
        bench.on("GET", "/app/x") { _ in .status(204) }
        let scope = CacheScope()
        let jar = CookieJar(scope: scope)
        let page = try #require(URL(string: "http://127.0.0.1:\(bench.origin.port)/app/login"))
        try await jar.set(["sid=1; Path=/app", "other=2; Domain=example.com", "\u{1}"], from: page)
        #expect(try await jar.cookies().map(\.name) == ["sid"])
        try await bench.host { $0.cookies = jar }.send("/app/x")
        #expect(bench.asked.map { $0["Cookie"] } == ["sid=1"])
        let mail = try #require(URL(string: "mailto:a@example.com"))
        #expect(try await remoteError { try await jar.set(["a=1"], from: mail) }.code == .invalidRoute)
        try await scope.close()
        let error = await #expect(throws: StoreError.self) { try await jar.set(["a=1"], from: page) }
        #expect(error?.code == .closed)
    }
}
