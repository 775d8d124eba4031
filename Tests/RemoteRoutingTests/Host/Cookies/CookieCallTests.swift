import Foundation
import LoopbackOrigin
import StoreCore
import RemoteRoutingTesting
import StoreCoreTesting
import Testing
import Trials

@testable import RemoteRouting

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Calls of a host with a jar, over real sockets.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct CookieCallTests {
    private let jar = CookieJar()

    private func host(_ origin: LoopbackOrigin, _ transport: RealTransport, _ jar: CookieJar? = nil) throws -> RemoteHost {
        try transport.host(origin.port) {
            $0.random = { 0 }
            $0.cookies = jar ?? self.jar
        }
    }

    private func set(_ lines: String..., at address: String) async throws {
        await jar.call().receive(lines, from: try #require(URL(string: address)))
    }

    private func sent(_ origin: LoopbackOrigin) -> [String?] { origin.requests.map { $0.headers["Cookie"] } }

    @Test(arguments: RealTransport.available)
    func `W12: the next request sends all cookies that a login set`(_ transport: RealTransport) async throws {
        let lines = ["sid=1; Path=/; Expires=Wed, 01 Jan 2098 00:00:00 GMT; HttpOnly", "theme=a,b; Path=/", "lang=de; Path=/"]
        let origin = try LoopbackOrigin { request in
            request.method == .post ? lines.reduce(.text("welcome")) { $0.adding("Set-Cookie", $1) } : .text("hello")
        }
        let host = try host(origin, transport)
        let login = try await host.dataResponse(for: Route(path: "/session/login", method: .post, parameters: ["name": "ada"]))
        #expect(login.fields.values(of: "Set-Cookie") == lines)
        _ = try await host.data(for: Route(path: "/me"))
        #expect(sent(origin) == [nil, "sid=1; theme=a,b; lang=de"])
    }

    @Test(arguments: RealTransport.available)
    func `W12: streams, events, uploads and downloads set and send cookies like other calls`(_ transport: RealTransport) async throws {
        let origin = try LoopbackOrigin { request in
            let response: LoopbackOrigin.Response =
                request.path == "/events" ? .data(Data("data: 1\n\n".utf8), type: "text/event-stream") : .text("x")
            return response.adding("Set-Cookie", "n\(request.number)=1; Path=/")
        }
        let host = try host(origin, transport)
        for try await _ in try await host.bytes(for: Route(path: "/bytes")) {}
        for try await _ in host.events(for: Route(path: "/events")) { break }
        let target = temporaryURL()
        defer { #expect(throws: Never.self) { try FileManager.default.removeItem(at: target) } }
        try await host.download(Route(path: "/file"), to: target)
        try await host.send(Route(path: "/upload", method: .put, parameters: ["a": 1]))
        #expect(sent(origin) == [nil, "n1=1", "n1=1; n2=1", "n1=1; n2=1; n3=1"])
        #expect(try await jar.cookies().map(\.name) == ["n1", "n2", "n3", "n4"])
    }

    /// A retry, the replay after a refresh, and the next hop of a redirect.
    @Test(arguments: RealTransport.available, [[503], [401], [302, 302], [401, 302, 503]])
    func `W12: the next request of a call sends the cookies that the response before has set`(
        _ transport: RealTransport, _ statuses: [Int]
    ) async throws {
        let origin = try LoopbackOrigin { request in
            guard request.number <= statuses.count else { return .text("end") }
            let status = statuses[request.number - 1]
            let response = status == 302 ? LoopbackOrigin.Response.redirect(to: "/x") : .status(status)
            return response.setting("Set-Cookie", to: "n\(request.number)=\(status)")
        }
        let host = try host(origin, transport).authorized(by: .bearer(Token(accessToken: "a")) { _, _ in Token(accessToken: "b") })
        _ = try await host.data(for: Route(path: "/x"))
        let cookies = statuses.enumerated().map { "n\($0 + 1)=\($1)" }
        let expected: [String?] = [nil] + statuses.indices.map { cookies[...$0].joined(separator: "; ") }
        #expect(sent(origin) == expected)
    }

    @Test(arguments: RealTransport.available)
    func `W12: a hop within one origin drops a cookie that the redirect removed or that another path owns`(
        _ transport: RealTransport
    ) async throws {
        let origin = try LoopbackOrigin { _ in .text("end") }
        origin.on(.get, "/a/x") { _ in .redirect(to: "/b").setting("Set-Cookie", to: "sid=; Max-Age=0; Path=/") }
        try await set("sid=1; Path=/", "deep=1; Path=/a", at: origin.url.absoluteString)
        _ = try await host(origin, transport).data(for: Route(path: "/a/x"))
        #expect(sent(origin) == ["deep=1; sid=1", nil])
    }

    @Test(arguments: RealTransport.available)
    func `H3, W12: a route's own field replaces the jar's cookies up to the first redirect`(_ transport: RealTransport) async throws {
        let origin = try LoopbackOrigin { _ in .text("end") }
        origin.on(.get, "/a") { _ in .redirect(to: "/b") }
        try await set("sid=1; Path=/", at: origin.url.absoluteString)
        _ = try await host(origin, transport).data(for: Route(path: "/a", headers: ["cookie": "own=1"]))
        #expect(sent(origin) == ["own=1", "sid=1"])
    }

    @Test(arguments: RealTransport.available)
    func `W12: a host without a jar neither stores nor sends cookies`(_ transport: RealTransport) async throws {
        let origin = try LoopbackOrigin { _ in .text("x").setting("Set-Cookie", to: "sid=1; Path=/; Max-Age=600") }
        origin.on(.get, "/a") { _ in .redirect(to: "/b").setting("Set-Cookie", to: "hop=1; Path=/") }
        let plain = try transport.host(origin.port)
        #expect(plain.cookies == nil)
        _ = plain.with { $0.cookies = jar }
        for path in ["/x", "/a"] as [RoutePath] { _ = try await plain.data(for: Route(path: path)) }
        #expect(sent(origin) == [nil, nil, nil])
        #expect(try await jar.cookies().isEmpty)
        #expect(HTTPCookieStorage.shared.cookies(for: origin.url)?.isEmpty != false)
    }

    enum Way: CaseIterable { case redirect, retry, download }

    @Test(arguments: RealTransport.available, Way.allCases)
    func `W12: a call that is running when the jar is cleared neither sends nor sets cookies afterward`(
        _ transport: RealTransport, _ way: Way
    ) async throws {
        let scope = CacheScope()
        let jar = CookieJar(scope: scope)
        let first = way == .redirect ? LoopbackOrigin.Response.redirect(to: "/b") : .status(503)
        let origin = try LoopbackOrigin { request in
            guard request.number == 1 else { return .text("end").setting("Set-Cookie", to: "later=1; Path=/") }
            do { try await scope.clear() } catch { Issue.record(error) }
            return first.setting("Set-Cookie", to: "late=1; Path=/")
        }
        await jar.call().receive(["sid=1; Path=/; Max-Age=600"], from: origin.url)
        let host = try host(origin, transport, jar)
        if way == .download {
            let target = temporaryURL()
            try await host.download(Route(path: "/a"), to: target)
            try FileManager.default.removeItem(at: target)
        } else {
            _ = try await host.data(for: Route(path: "/a"))
        }
        #expect(sent(origin) == ["sid=1", nil])
        #expect(try await jar.cookies().isEmpty)
        // The next call belongs to the new session.
        _ = try await host.data(for: Route(path: "/c"))
        #expect(try await jar.cookies().map(\.name) == ["later"])
    }

    @Test(arguments: RealTransport.available)
    func `H6, W12: the deadline of a call ends a wait for saved cookies`(_ transport: RealTransport) async throws {
        let (disk, time) = (CookieDisk(), ManualTime())
        disk.state.update { $0.held = "keys" }
        let origin = try LoopbackOrigin { _ in .text("x") }
        let host = RemoteHost(
            HostConfiguration("127.0.0.1", scheme: .http, port: Int(origin.port)), transport: try transport.make(), time: time
        ).with { $0.cookies = CookieJar(cacher: disk, time: time) }
        let call = Task { try await remoteError { try await host.send("/x") } }
        _ = try await disk.state.wait { $0.running > 0 ? true : nil }
        time.advance(by: .seconds(120))
        #expect(try await call.value.code == .overallTimedOut)
        let canceled = Task { try await remoteError { try await host.send("/x") } }
        canceled.cancel()
        #expect(try await canceled.value.code == .cancelled)
        #expect(origin.requests.isEmpty)
        disk.state.update { $0.held = nil }
        try await host.send("/x")
        #expect(origin.requests.count == 1)
    }

    @Test func `H5, W12: cookies are sent over plain http to another machine only with permission`() async throws {
        let memory = MemoryTransport { _ in .status(204) }
        let host = RemoteHost(HostConfiguration("a.example", scheme: .http), transport: memory).with { $0.cookies = jar }
        try await set("hidden=1; Secure", at: "https://a.example/")
        try await host.send("/x")
        try await set("sid=1", at: "https://a.example/")
        let error = try await remoteError { try await host.send("/x") }
        #expect(error.code == .insecureCredentials && error.stage == .build && !error.mayHaveArrived)
        #expect(memory.requests.count == 1)
        try await host.with { $0.allowsInsecureCredentials = true }.send("/x")
        #expect(memory.requests.map { $0.fields["Cookie"] } == [nil, "sid=1"])
    }

    @Test func `H5, W12: a redirect over plain http to another machine with cookies fails before it is followed`() async throws {
        let memory = MemoryTransport { request in .status(302).adding("Location", "http://b.example/y") }
        let host = RemoteHost(HostConfiguration("a.example", scheme: .http), transport: memory).with { $0.cookies = jar }
        try await set("sid=1", at: "https://b.example/")
        let error = try await remoteError { try await host.send("/x") }
        #expect(error.code == .insecureCredentials && error.mayHaveArrived)
        #expect(error.operation == "GET http://b.example/y" && memory.requests.count == 1, "\(error)")
    }

    @Test(arguments: RealTransport.available, ["theme=dark; Path=/", nil])
    func `H9, W12: a response that varies by cookie is not reused on a host with a jar`(
        _ transport: RealTransport, _ line: String?
    ) async throws {
        let origin = try LoopbackOrigin { _ in .json([1]).setting("Cache-Control", to: "max-age=600").setting("Vary", to: "Cookie") }
        if let line { try await set(line, at: origin.url.absoluteString) }
        let host = try host(origin, transport)
        let lists = Store(
            cacher: MemoryCacher<Int, [Int]>(), fetcher: host.fetcher(of: [Int].self) { (id: Int) in Route(path: "/lists/\(id)") })
        #expect(try await lists[1].requireData() == [1])
        try await set("sid=1; Path=/", at: origin.url.absoluteString)
        #expect(try await lists[1].requireData() == [1])
        #expect(sent(origin).map { $0 ?? "" } == (line == nil ? ["", "sid=1"] : ["theme=dark", "theme=dark; sid=1"]))
    }

    @Test(arguments: RealTransport.available)
    func `H9, W12: the request that a call reports contains its cookies`(_ transport: RealTransport) async throws {
        let origin = try LoopbackOrigin { _ in .text("x") }
        try await set("sid=1; Path=/", at: origin.url.absoluteString)
        let call = try RouteCall(Route(path: "/x"), at: try host(origin, transport), .whole)
        _ = try await call.run()
        #expect(call.sentRequest.fields["Cookie"] == "sid=1" && call.request.fields["Cookie"] == nil)
    }
}
