import Foundation
import LoopbackOrigin
import RemoteRoutingTesting
import StoreCore
import StoreCoreTesting
import Testing
import Trials

@testable import RemoteRouting

@Suite(.timeLimit(.minutes(hangMinutes)))
struct RetryTests {
    @Test(arguments: TransportKind.allCases, [408, 429, 502, 503, 504])
    func `H7: transient statuses are retried`(_ kind: TransportKind, _ status: Int) async throws {
        let bench = try Bench(kind, on: "GET", "/x", inTurn: .status(status), .status(status), .json([1]))
        let host = bench.host { $0.random = { 0 } }
        let response = try await host.response(for: Route(path: "/x"), as: [Int].self)
        #expect(response.attempts == 3 && bench.asked.count == 3)
    }

    @Test(arguments: RealTransport.available, [400, 401, 404, 409, 500, 501, 505, 520, 599])
    func `H7: other statuses are final`(_ transport: RealTransport, _ status: Int) async throws {
        let bench = try Bench(transport.kind, on: "GET", "/x") { _ in .status(status) }
        let error = try await remoteError { try await bench.host().send("/x") }
        #expect(error.attempts == 1 && error.failureKind == .permanent && bench.asked.count == 1, "\(error)")
    }

    @Test(
        arguments: RealTransport.available,
        [("POST", false, 1), ("PATCH", false, 1), ("POST", true, 3), ("PUT", false, 3), ("DELETE", false, 3), ("HEAD", false, 3)])
    func `H7: only a repeatable request is retried`(_ transport: RealTransport, _ way: (method: String, hasKey: Bool, count: Int))
        async throws
    {
        let (method, hasKey, count) = way
        let bench = try Bench(transport.kind)
        bench.on(method, "/x") { _ in .status(503) }
        let options = RouteOptions(idempotencyKey: hasKey ? .unique : nil)
        let route = Route(path: "/x", method: try #require(HTTPMethod(rawValue: method)), options: options)
        let error = try await remoteError { try await bench.host { $0.random = { 0 } }.send(route) }
        #expect(error.attempts == count && bench.asked.count == count, "\(error)")
        #expect(Set(bench.asked.map { $0["Idempotency-Key"] }).count == 1)
        #expect((bench.asked.first?["Idempotency-Key"] != nil) == hasKey)
        #expect(error.isRetryable == (count > 1))
    }

    @Test(arguments: RealTransport.available)
    func `H7, O4: a call with an idempotency key repeats it in all attempts and in later calls`(_ transport: RealTransport) async throws {
        let bench = try Bench(transport.kind, on: "POST", "/x", inTurn: .status(503), .json([1]), .status(503), .status(204), .json([1]))
        let host = bench.host { $0.random = { 0 } }
        let key = UUID()
        // The key of the call replaces that of the route.
        let route = Route(path: "/x", method: .post, options: RouteOptions(idempotencyKey: .unique))
        #expect(try await host.send(route, idempotencyKey: key, as: [Int].self) == [1])
        try await host.send(route, idempotencyKey: key)
        #expect(bench.asked.map { $0["Idempotency-Key"] } == Array(repeating: "\"\(key.uuidString)\"", count: 4))
        let other = UUID()
        try await host.send(route, idempotencyKey: other)
        #expect(bench.asked.last?["Idempotency-Key"] == "\"\(other.uuidString)\"")
    }

    @Test(arguments: TransportKind.allCases, [false, true])
    func `H7: a number of seconds or a date in Retry-After delays the next attempt`(_ kind: TransportKind, _ isDate: Bool) async throws {
        let bench = try Bench(kind)
        let time = ManualTime()
        let value = isDate ? HTTPDate.format(time.date.addingTimeInterval(90)) : "90"
        bench.on("GET", "/x", inTurn: .status(isDate ? 429 : 503).setting("Retry-After", to: value), .json([1]))
        let host = bench.host(time: time, unit: 0)
        let task = Task { try await host.send("/x", as: [Int].self) }
        try await time.sleepers(atLeast: 1)
        let wait = time.now.duration(to: try #require(time.nextDeadline))
        #expect(isDate ? wait >= .seconds(89) && wait <= .seconds(91) : wait == .seconds(90))
        time.advance(by: wait)
        #expect(try await task.value == [1])
    }

    @Test(arguments: TransportKind.allCases, ["3600", "99999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT", "2147483648"])
    func `H7: a Retry-After beyond the deadline is reported by the error`(_ kind: TransportKind, _ value: String) async throws {
        let bench = try Bench(kind, on: "GET", "/x") { _ in .status(503).setting("Retry-After", to: value) }
        let error = try await remoteError { try await bench.host().send("/x") }
        let least: Duration = value == "3600" ? .seconds(3_600) : .seconds(2_147_483_648)
        #expect((error.retryAfter ?? .zero) >= least)
        #expect(error.status == 503 && error.failureKind == .transient, "\(error)")
        #expect(bench.asked.count == 1)
    }

    @Test(arguments: [
        ("0", 1.0, Duration.milliseconds(200)), ("Sun, 06 Nov 1994 08:49:37 GMT", 1, .milliseconds(200)),
        ("2147483647", 0, .seconds(3_600)), ("30", 1, .seconds(30)),
    ])
    func `C24: a Retry-After delays at least by the policy's own back-off and at most by its limit`(
        _ value: String, _ unit: Double, _ delay: Duration
    ) async throws {
        let memory = MemoryTransport { _ in .status(503).adding("Retry-After", value) }
        let time = ManualTime()
        let host = RemoteHost("a.example", transport: memory, time: time).withoutDeadlines(unit: unit)
        let task = Task { try await host.send("/x") }
        for count in 1...2 {
            try await time.sleepers(atLeast: 1)
            #expect(memory.requests.count == count)
            if count == 1 { #expect(time.nextDeadline == time.now.advanced(by: delay)) }
            time.advanceToNextDeadline()
        }
        let error = try await remoteError { try await task.value }
        #expect(error.status == 503 && memory.requests.count == 3)
        if delay == .milliseconds(200) { #expect(error.retryAfter == .zero) }
    }

    @Test(arguments: RealTransport.available)
    func `H7: a refused connection is retried and then reported`(_ transport: RealTransport) async throws {
        let bench = try Bench(transport.kind)
        bench.origin.goDown()
        let error = try await remoteError { try await bench.host { $0.random = { 0 } }.send("/x") }
        #expect(error.code == .connectionRefused && error.attempts == 3, "\(error)")
        try bench.origin.comeBack()
        bench.on("GET", "/x") { _ in .status(204) }
        try await bench.host().send("/x")
    }

    @Test func `H7: an error is retryable only if its request may be repeated, and a store does not retry after the host`() {
        var error = RemoteError(.transport, .connectionLost, operation: "GET /", "lost")
        #expect(!error.mayRepeat && !error.isRetryable && error.failureKind == .permanent)
        error.mayRepeat = true
        #expect(error.isRetryable && error.failureKind == .transient)
        error.attempts = 3
        #expect(RetryPolicy.exponential(attempts: 5).delay(after: error, attempt: 1, unit: 0.5) == nil)
        error.attempts = 1
        #expect(RetryPolicy.exponential(attempts: 5).delay(after: error, attempt: 1, unit: 0.5) != nil)
    }
}

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
        let bench = try Bench(kind, on: "GET", "/me") { $0["Authorization"] == "Bearer new" ? .json([1]) : .status(401) }
        bench.on("POST", "/refresh", inTurn: .status(503), .json(Token(accessToken: "new")))
        let host = bench.host { $0.retryRules.methods = [.get] }.refreshing()
        let error = try await remoteError { try await host.send("/me") }
        #expect(error.code == .refreshFailed && error.failureKind == .transient)
        #expect(try await host.send("/me", as: [Int].self) == [1])
    }

    @Test(arguments: TransportKind.allCases)
    func `H5, H7: the error of a refresh has the delay that the server requested`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind, on: "GET", "/me") { _ in .status(401) }
        bench.on("POST", "/refresh") { _ in .status(503).setting("Retry-After", to: "70") }
        let host = bench.host().refreshing()
        let error = try await remoteError { try await host.send("/me") }
        #expect(error.code == .refreshFailed && error.retryAfter == .seconds(70) && error.attempts == 1)
    }

    @Test(arguments: [(403, true), (503, false)])
    func `H5, H22: a 401 is no value only if the refresh was refused`(_ status: Int, _ isRefused: Bool) async throws {
        let bench = try Bench(.memory, on: "GET", "/me") { _ in .status(401) }
        bench.on("POST", "/refresh") { _ in .status(status) }
        let host = bench.host().refreshing()
        // The second call does not send the request after a refusal.
        for _ in 1...2 {
            if isRefused {
                #expect(try await host.send(Route(path: "/me"), as: [Int].self, nilFor: [401]) == nil)
            } else {
                let error = try await remoteError { _ = try await host.send(Route(path: "/me"), as: [Int].self, nilFor: [401]) }
                #expect(error.code == .refreshFailed)
            }
        }
    }

    @Test(arguments: TransportKind.allCases)
    func `H22: a status may be no value`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind, on: "GET", "/missing") { _ in .status(404) }
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
        let bench = try Bench(.memory, on: "GET", "/app/x") { _ in .status(204) }
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
