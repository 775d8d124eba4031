import Foundation
import LoopbackOrigin
import StoreCore
import RemoteRoutingTesting
import Testing
import Trials

@testable import RemoteRouting

/// The order of interceptors, and the secrets that logs omit.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct InterceptorTests {
    private struct Marking: RequestInterceptor, ResponseInterceptor {
        var name: String
        var log: WatchedState<[String]>

        func intercept(_ request: inout HTTPRequest) async throws {
            log.update { $0.append("→\(name)") }
            try request.fields.append("X-Mark", name)
        }

        func intercept(_ response: inout HTTPResponse, to request: HTTPRequest) async throws {
            log.update { $0.append("←\(name) \(request.fields["X-Mark"] ?? "")") }
            response.body = HTTPResponse.Body((response.body.data ?? Data()) + Data(name.utf8))
        }
    }

    @Test(arguments: TransportKind.allCases)
    func `H16: request interceptors run in order, response interceptors in reverse`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind)
        bench.on("GET", "/x") { asked in .text(asked["X-Mark"] ?? "") }
        let log = WatchedState<[String]>([])
        var host = bench.host()
        for name in ["a", "b"] {
            let marking = Marking(name: name, log: log)
            host = host.intercepting(requests: marking).intercepting(responses: marking)
        }
        #expect(try await host.data(for: Route(path: "/x")) == Data("a, bba".utf8))
        #expect(log.current == ["→a", "→b", "←b a, b", "←a a, b"])
    }

    private struct Replacing: ResponseInterceptor {
        var seen: WatchedState<[Bool]>

        func intercept(_ response: inout HTTPResponse, to request: HTTPRequest) async throws {
            seen.update { $0.append(response.body.data == nil) }
            if response.fields["X-Replace"] != nil { response.body = HTTPResponse.Body(Data("replaced".utf8)) }
        }
    }

    @Test(arguments: TransportKind.allCases)
    func `interceptors run before a streamed body arrives, and may replace it`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind)
        bench.on("GET", "/kept") { _ in .text("kept") }
        bench.on("GET", "/x") { _ in .text("x").setting("X-Replace", to: "yes") }
        let seen = WatchedState<[Bool]>([])
        // One permit: replacing a stream releases it.
        let host = bench.host().with { $0.limits.concurrentStreams = 1 }.intercepting(responses: Replacing(seen: seen))
        for (path, expected) in [("/kept", "kept"), ("/x", "replaced"), ("/kept", "kept")] as [(RoutePath, String)] {
            var bytes = Data()
            for try await piece in try await host.bytes(for: Route(path: path)) { bytes += piece }
            #expect(bytes == Data(expected.utf8))
        }
        #expect(try await host.data(for: Route(path: "/kept")) == Data("kept".utf8))
        #expect(seen.current == [true, true, true, false])
    }

    struct Refused: Error {}

    @Test func `H2: an interceptor cannot send a request to another origin`() async throws {
        let memory = MemoryTransport { _ in .status(204) }
        let host = RemoteHost("a.example", transport: memory)
            .intercepting(requests: Changing { $0.url = URL(string: "https://b.example/") ?? $0.url })
        let error = try await remoteError { try await host.send("/x") }
        #expect((error.underlyingError as? RouteFault)?.code == .foreignOrigin)
        #expect(memory.requests.isEmpty)
    }

    @Test(arguments: ["Host", "Content-Length", "Transfer-Encoding", "Connection", "Proxy-Authorization"])
    func `H3: an interceptor cannot write reserved fields`(_ name: String) async throws {
        let memory = MemoryTransport { _ in .status(204) }
        let host = RemoteHost("a.example", transport: memory).intercepting(requests: Changing { try $0.fields.set(name, "5") })
        let error = try await remoteError { try await host.send("/x") }
        #expect((error.underlyingError as? RouteFault)?.code == .reservedField)
        #expect(memory.requests.isEmpty)
    }

    @Test func `an interceptor's failure prevents sending`() async throws {
        let memory = MemoryTransport { _ in .status(204) }
        let host = RemoteHost("a.example", transport: memory).intercepting(requests: Changing { _ in throw Refused() })
        let error = try await remoteError { try await host.send("/x") }
        #expect(error.code == .interceptorFailed)
        #expect(error.underlyingError is Refused)
        #expect(memory.requests.isEmpty)
    }

    @Test(arguments: TransportKind.allCases)
    func `H12: no secret reaches the log or an error`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind)
        bench.on("POST", "/x") { _ in
            .json(literal: #"{"password":"hush"}"#, status: 403).setting("Set-Cookie", to: "sid=hush")
                .setting("Location", to: "https://u:hush@h/?token=hush#hush").setting("X-Session", to: "hush")
        }
        let lines = WatchedState<[String]>([])
        let log = ExchangeLog(redactedFields: ["x-session"], redactedQueryNames: ["pin"]) { entry in lines.update { $0.append("\(entry)") }
        }
        let host = bench.host().authorized(by: .bearer("hush")).logging(to: log)
        let route = Route(
            path: "/x", method: .post, query: ["access_token": "hush", "PIN": "hush", "page": 2],
            headers: ["X-Session": "hush", "Cookie": "hush"],
            body: .json(fields: ["password": "hush"]))
        let error = try await remoteError { try await host.send(route) }
        let text = lines.current.joined(separator: "\n")
        #expect(!text.contains("hush") && text.contains("Authorization: <redacted>") && text.contains("page=2"))
        #expect(text.contains("← 403") && !error.description.contains("hush") && error.description.contains("POST http://127.0.0.1"))
        #expect(error.body == Data(#"{"password":"hush"}"#.utf8))
    }

    @Test func `H12: bodies are logged only on request`() async throws {
        let memory = MemoryTransport { _ in .json(#"{"a":1}"#) }
        let entries = WatchedState<[ExchangeLog.Entry]>([])
        let host = RemoteHost("a.example", transport: memory).logging(
            to: ExchangeLog(bodyBytes: 3) { entry in entries.update { $0.append(entry) } })
        try await host.send(Route(path: "/x", method: .post, body: .data(Data("secret".utf8))))
        #expect(entries.current.map(\.body) == [Data("sec".utf8), Data(), Data(#"{"a"#.utf8)])
    }

    @Test func `H8, H13: the number of concurrent exchanges is limited`() async throws {
        let running = WatchedState((now: 0, most: 0, open: false))
        let memory = MemoryTransport { _ in
            running.update {
                $0.now += 1; $0.most = max($0.most, $0.now)
            }
            try await running.wait { $0.open ? () : nil }
            running.update { $0.now -= 1 }
            return .status(204)
        }
        // Without deadlines, because a retry on a busy machine would change the result.
        let host = RemoteHost("a.example", transport: memory, limits: HostLimits(concurrentExchanges: 3)).with { $0.timeouts = .init() }
        let tasks = (0..<20).map { _ in Task { try await host.send("/x") } }
        try await running.wait { $0.now == 3 ? () : nil }
        for _ in 0..<200 { await Task.yield() }
        running.update { $0.open = true }
        for task in tasks { try await task.value }
        #expect(running.current.most == 3 && memory.requests.count == 20)
    }
}
