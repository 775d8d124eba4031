import Foundation
import LoopbackOrigin
import StoreCore
import RemoteRoutingTesting
import Testing
import Trials

@testable import RemoteRouting

struct ListParser: ResponseParser {
    var mediaTypes: [MimeType] = [.propertyList]

    func parse<Value: Decodable>(_ response: RemoteResponse<Data>, as type: Value.Type) throws -> Value {
        try PropertyListDecoder().decode(type, from: response.value)
    }
}

/// A parser that reports its input and fails.
struct FailingParser: ResponseParser {
    struct Failure: Error, Equatable { var bytes: Int }

    var mediaTypes: [MimeType] = [.any]

    func parse<Value: Decodable>(_ response: RemoteResponse<Data>, as type: Value.Type) throws -> Value {
        throw Failure(bytes: response.value.count)
    }
}

extension Bench.Response {
    static func list(_ value: some Encodable, status: Int = 200) throws -> Self {
        data(try PropertyListEncoder().encode(value), type: "application/x-plist", status: status)
    }
}

@Suite(.timeLimit(.minutes(hangMinutes)))
struct ResponseParserTests {
    private let ada = User(id: 7, name: "Ada")

    @Test(arguments: TransportKind.allCases)
    func `H17: a host's parser creates the values and its types are requested`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind)
        let list = try Bench.Response.list(ada)
        bench.on("GET", "/x") { _ in list }
        bench.on("POST", "/x") { _ in list }
        let host = bench.host { $0.parser = ListParser() }
        #expect(try await host.send("/x") == ada)
        #expect(try await host.response(for: Route(path: "/x"), as: User.self).value == ada)
        #expect(try await host.upload(Route(path: "/x", method: .post, body: .data(Data("x".utf8))), onProgress: { _ in }) == ada)
        #expect(try await host.data(for: Route(path: "/x")) == list.data)
        #expect(bench.asked.map { $0["Accept"] } == Array(repeating: "application/x-plist, */*;q=0.1", count: 4))
    }

    @Test(arguments: TransportKind.allCases)
    func `H17: a route's parser replaces its host's`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind)
        let list = try Bench.Response.list(ada)
        bench.on("GET", "/list") { _ in list }
        bench.on("GET", "/json") { _ in .json(User(id: 7, name: "Ada")) }
        let host = bench.host { $0.parser = FailingParser() }
        #expect(try await host.send(Route(path: "/list", options: RouteOptions(parser: ListParser()))) == ada)
        // JSON has no public parser: a host without a parser uses JSON.
        #expect(try await host.with { $0.parser = nil }.send("/json") == ada)
        #expect(try await remoteError { _ = try await host.send("/json", as: User.self) }.underlyingError is FailingParser.Failure)
    }

    @Test(arguments: TransportKind.allCases)
    func `H17: Accept comes from the route, its parser, the host's defaults or the host's parser`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind, on: "GET", "/x") { _ in .json([1]) }
        let api = bench.host()
        let listed = api.with { $0.parser = ListParser() }
        let vendor = listed.with { $0.defaults.append("Accept", "application/vnd.github+json") }
        let cases: [(RemoteHost, RouteOptions, Headers)] = [
            (api, RouteOptions(), [:]), (listed, RouteOptions(), [:]), (vendor, RouteOptions(), [:]),
            (vendor, RouteOptions(parser: ListParser(mediaTypes: [.plainText, "text/html"])), [:]),
            (vendor, RouteOptions(accept: "image/png", parser: ListParser()), [:]),
            (vendor, RouteOptions(accept: "image/png", parser: ListParser()), ["Accept": "a/b"]),
            (api.with { $0.defaults.remove("Accept") }, RouteOptions(), [:]),
        ]
        for (host, options, headers) in cases { _ = try await host.data(for: Route(path: "/x", headers: headers, options: options)) }
        #expect(
            bench.asked.prefix(6).map { $0["Accept"] } == [
                "application/json, */*;q=0.1", "application/x-plist, */*;q=0.1", "application/vnd.github+json",
                "text/plain; charset=utf-8, text/html, */*;q=0.1", "image/png", "a/b",
            ])
        #expect(bench.asked.last?["Accept"]?.contains("json") != true)
    }

    @Test(arguments: RealTransport.available)
    func `H17: a parser that throws fails the call with its error as the cause`(_ transport: RealTransport) async throws {
        let bench = try Bench(transport.kind, on: "GET", "/x") { _ in .text("secret").setting("X-Request-Id", to: "r-7") }
        let error = try await remoteError { _ = try await bench.host { $0.parser = FailingParser() }.send("/x", as: User.self) }
        #expect(error.stage == .decode && error.code == .undecodable && error.status == 200)
        #expect(error.underlyingError as? FailingParser.Failure == FailingParser.Failure(bytes: 6))
        #expect(error.body == Data("secret".utf8) && error.requestID == "r-7" && error.attempts == 1)
        #expect(!error.isRetryable && !error.allowsStale)
        #expect(!error.description.contains("secret") && error.description.contains("Failure"))
        #expect(bench.asked.count == 1)
    }

    struct GivingUp: ResponseParser {
        var cancels = false
        var mediaTypes: [MimeType] { [.any] }

        func parse<Value: Decodable>(_ response: RemoteResponse<Data>, as type: Value.Type) throws -> Value {
            if cancels { withUnsafeCurrentTask { $0?.cancel() } }
            throw CancellationError()
        }
    }

    @Test(arguments: [false, true])
    func `H17: a parser's cancellation counts only if the task is canceled`(_ cancels: Bool) async throws {
        let bench = try Bench(.memory, on: "GET", "/x") { _ in .json([1]) }
        let host = bench.host { $0.parser = GivingUp(cancels: cancels) }
        let error = await Task {
            try? await remoteError { _ = try await host.send("/x", as: [Int].self) }
        }.value
        #expect(error?.stage == (cancels ? .cancelled : .decode))
    }

    @Test(
        arguments: [
            ("application/x-plist", true), ("APPLICATION/X-PLIST; a=b", true), ("application/vnd.a+x-plist", true), (nil, true),
            ("text/html", false), ("application/json", false), ("application/x-plists", false), ("plist", false), ("", false),
        ] as [(String?, Bool)])
    func `H10, H17: a parser receives only responses of its types`(_ type: String?, _ isTaken: Bool) async throws {
        let memory = MemoryTransport { _ in
            var answer = MemoryTransport.Response(status: 200, body: Data("123456".utf8))
            if let type { answer = answer.adding("Content-Type", type) }
            return answer
        }
        let parser = FailingParser(mediaTypes: ListParser().mediaTypes)
        let host = RemoteHost("a.example", transport: memory).with { $0.parser = parser }
        let error = try await remoteError { _ = try await host.send("/x", as: User.self) }
        #expect(error.code == (isTaken ? .undecodable : .unexpectedType))
        #expect((error.underlyingError != nil) == isTaken)
        if !isTaken { #expect(error.message.contains("application/x-plist")) }
    }

    @Test func `H10, H17: a route's accepted type is accepted in addition to its parser's types`() async throws {
        let memory = MemoryTransport { _ in .init(status: 200, headers: [("Content-Type", "image/gif")], body: Data("1234".utf8)) }
        let host = RemoteHost("a.example", transport: memory).with { $0.parser = FailingParser(mediaTypes: [.json]) }
        let range = try #require(MimeType(rawValue: "image/*"))
        for (accept, code) in [
            ("image/gif" as MimeType, RemoteError.Code.undecodable), (range, .undecodable), ("image/png", .unexpectedType),
        ] {
            let route = Route(path: "/x", options: RouteOptions(accept: accept))
            #expect(try await remoteError { _ = try await host.send(route, as: User.self) }.code == code)
        }
    }

    @Test(arguments: TransportKind.allCases)
    func `H10, H17: failed statuses and responses without a body never reach a parser`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind)
        for status in [204, 205, 404, 500] { bench.on("GET", "/\(status)") { _ in .status(status) } }
        bench.on("GET", "/empty") { _ in .data(Data(), type: "application/x-plist") }
        let host = bench.host { $0.parser = FailingParser() }
        for status in [204, 205] {
            #expect(try await host.send("/\(status)", as: User?.self) == nil)
            _ = try await host.send("/\(status)", as: Empty.self)
            let error = try await remoteError { _ = try await host.send("/\(status)", as: User.self) }
            #expect(error.code == .emptyBody && error.message.contains("204, 205 and HEAD"))
        }
        for status in [404, 500] {
            #expect(try await remoteError { _ = try await host.send("/\(status)", as: User.self) }.code == .badStatus)
        }
        _ = try await host.send("/empty", as: Empty.self)
        // Other formats allow an empty body, so their parsers receive it.
        let error = try await remoteError { _ = try await host.send("/empty", as: User.self) }
        #expect(error.underlyingError as? FailingParser.Failure == FailingParser.Failure(bytes: 0))
    }

    @Test(arguments: TransportKind.allCases)
    func `H17: Data is the unchanged body`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind)
        let bytes = Data((0...255).map { UInt8($0) })
        bench.on("GET", "/png") { _ in .data(bytes, type: "image/png") }
        bench.on("GET", "/json") { _ in .json("aGVsbG8=") }
        bench.on("GET", "/empty") { _ in .data(Data(), type: "image/png") }
        bench.on("GET", "/204") { _ in .status(204) }
        let host = bench.host()
        #expect(try await host.send("/png", as: Data.self) == bytes)
        #expect(try await host.response(for: Route(path: "/png"), as: Data.self).value == bytes)
        #expect(try await host.send("/json", as: Data.self) == Data("\"aGVsbG8=\"".utf8))
        #expect(try await host.send("/empty", as: Data.self).isEmpty)
        #expect(try await host.send("/204", as: Data.self).isEmpty)
        let error = try await remoteError {
            _ = try await host.send(Route(path: "/png", options: RouteOptions(accept: "image/gif")), as: Data.self)
        }
        #expect(error.code == .unexpectedType)
        // A host's parser receives every type, so no response bypasses it.
        await #expect(throws: RemoteError.self) { try await host.with { $0.parser = FailingParser() }.send("/png", as: Data.self) }
    }

    private struct Refusal: Codable, Equatable { var until: Date }

    @Test(arguments: TransportKind.allCases)
    func `H17: the details of an error are parsed like values`(_ kind: TransportKind) async throws {
        let bench = try Bench(kind)
        let refusal = Refusal(until: Date(timeIntervalSince1970: 1_000_000))
        let list = try Bench.Response.list(refusal, status: 409)
        bench.on("GET", "/json") { _ in .json(refusal, status: 409) }
        bench.on("GET", "/list") { _ in list }
        bench.on("GET", "/html") { _ in .html("<p>", status: 502) }
        let iso = bench.host { host in
            host.retry = .never
            host.makeDecoder = {
                let decoder = JSONDecoder()
                decoder.dateDecodingStrategy = .iso8601
                return decoder
            }
        }
        let json = try await remoteError { try await iso.send("/json") }
        #expect(json.details(as: Refusal.self) == refusal)
        #expect(json.details(as: Refusal.self, decoder: JSONDecoder()) == nil)
        let lists = Route(path: "/list", options: RouteOptions(parser: ListParser()))
        #expect(try await remoteError { try await iso.send(lists) }.details() == refusal)
        #expect(try await remoteError { try await iso.send("/html") }.details(as: Refusal.self) == nil)
        // An undecodable success has details, too.
        bench.on("GET", "/200") { _ in .json(refusal) }
        #expect(try await remoteError { _ = try await iso.send("/200", as: User.self) }.details() == refusal)
    }
}
