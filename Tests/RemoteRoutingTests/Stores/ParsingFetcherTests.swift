import Foundation
import LoopbackOrigin
import StoreCore
import StoreCoreTesting
import Testing
import Trials

@testable import RemoteRouting

/// Stores of content other than JSON.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct ParsingFetcherTests {
    private struct Picture: Equatable, Sendable {
        struct NoPicture: Error {}
        var bytes: Data
        var remaining: Int?

        init(_ response: RemoteResponse<Data>) throws {
            guard response.value.starts(with: [0x89]) else { throw NoPicture() }
            bytes = response.value
            remaining = response.fields["X-RateLimit-Remaining"].flatMap { Int($0) }
        }
    }

    private static let png = Data([0x89, 0x50, 0x4E, 0x47])
    private let time = ManualTime(date: Date())

    private func pictures(_ bench: Bench, accept: MimeType? = nil) -> Store<String, Picture> {
        Store(
            cacher: MemoryCacher(),
            fetcher: bench.host(time: time) { $0.retry = .never }.fetcher(parsing: { try Picture($0) }) { (name: String) in
                Route(path: "/pictures/\(name)", options: RouteOptions(accept: accept))
            },
            policy: StorePolicy(staleIfError: .seconds(3600)), time: time)
    }

    @Test(arguments: RealTransport.available)
    func `H9, H17: parsed content is revalidated, and the parsing function can read the response's fields`(_ transport: RealTransport)
        async throws
    {
        let bench = try Bench(transport.kind)
        bench.on("GET", "/pictures/a") { request in
            request["If-None-Match"] == "\"v1\""
                ? .notModified
                : .data(ParsingFetcherTests.png, type: "image/png").tagged("v1").setting("Cache-Control", to: "max-age=60")
                    .setting("X-RateLimit-Remaining", to: "41")
        }
        let pictures = pictures(bench)
        let picture = try await pictures["a"].requireData()
        #expect(picture.bytes == ParsingFetcherTests.png && picture.remaining == 41)
        time.advance(by: .seconds(50))
        #expect(try await pictures["a"].requireData() == picture)
        #expect(bench.asked.count == 1)
        time.advance(by: .seconds(20))
        #expect(try await pictures["a"].requireData() == picture)
        #expect(bench.asked.map { $0["If-None-Match"] } == [nil, "\"v1\""])
    }

    @Test(arguments: RealTransport.available)
    func `H9, H17: an error of the parsing function reaches the caller, without stale content`(_ transport: RealTransport) async throws {
        let bench = try Bench(transport.kind)
        bench.on(
            "GET", "/pictures/a", inTurn: .data(ParsingFetcherTests.png, type: "image/png").setting("Cache-Control", to: "max-age=1"),
            .html("<form>Sign in</form>"))
        for accept in [nil, "image/png" as MimeType] {
            let pictures = pictures(bench, accept: accept)
            if accept == nil {
                _ = try await pictures["a"].requireData()
                time.advance(by: .seconds(5))
            }
            let error = try await remoteError { _ = try await pictures["a"].requireData() }
            #expect(error.stage == .decode)
            // If the route has an accepted type, the function receives no other type.
            #expect(error.code == (accept == nil ? .undecodable : .unexpectedType))
            #expect((error.underlyingError is Picture.NoPicture) == (accept == nil))
        }
    }

    @Test func `H17: a parsing function replaces every parser`() async throws {
        let bench = try Bench(.memory)
        bench.on("GET", "/x") { _ in .data(ParsingFetcherTests.png, type: "image/png") }
        let host = bench.host { $0.parser = FailingParser(mediaTypes: [.json]) }
        let fetcher = host.fetcher(parsing: { $0.value.count }) { (_: Int) in
            Route(path: "/x", options: RouteOptions(parser: FailingParser(mediaTypes: [.json])))
        }
        #expect(try await fetcher.fetch(param: 1, revalidating: nil) == .modified(4))
    }

    @Test(arguments: RealTransport.available)
    func `H17: a store of Data keeps bodies unchanged`(_ transport: RealTransport) async throws {
        let bench = try Bench(transport.kind)
        bench.on("GET", "/a") { _ in .data(ParsingFetcherTests.png, type: "image/png") }
        let files = Store(
            cacher: MemoryCacher<String, Data>(), fetcher: bench.host().fetcher { (name: String) in Route(path: "/\(name)") })
        #expect(try await files["a"].requireData() == ParsingFetcherTests.png)
    }

    // MARK: Custom fetchers

    private struct OwnFetcher: RevalidatingFetcher {
        let host: RemoteHost

        func fetch(param id: Int, revalidating validator: Validator?) async throws -> FetchResult<User> {
            let response = try await host.response(for: Route(path: "/users/\(id)"), as: User.self)
            return .modified(response.value, Freshness(of: response), Validator(of: response))
        }
    }

    @Test(arguments: [
        ["Cache-Control": "max-age=60, stale-if-error=5", "Age": "20", "ETag": "\"a\""], ["Cache-Control": "no-store"],
        ["Cache-Control": "max-age=60", "Vary": "X-User"], ["Cache-Control": "max-age=60", "Vary": "Accept"],
        ["Expires": "0", "Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT"], [:],
    ])
    func `H9: a custom fetcher gets the same freshness and validator as a route's fetcher`(_ fields: [String: String]) async throws {
        let bench = try Bench()
        bench.on("GET", "/users/1") { _ in fields.reduce(.json(User(id: 1, name: "Ada"))) { $0.setting($1.key, to: $1.value) } }
        let host = bench.host(time: time).intercepting(requests: Changing { try $0.fields.set("X-User", "7") })
        let fetcher = host.fetcher(of: User.self) { (id: Int) in Route(path: "/users/\(id)") }
        let own = try await OwnFetcher(host: host).fetch(param: 1, revalidating: nil)
        #expect(try await fetcher.fetch(param: 1, revalidating: nil) == own)
        #expect(try await fetcher.respond(to: .content(1, revalidating: nil)).age == .seconds(fields["Age"] == nil ? 0 : 20))
        guard case .modified(_, let freshness, let validator) = own else { return }
        let isFresh = fields["Cache-Control"]?.contains("max-age") == true && fields["Vary"] != "X-User"
        #expect((freshness.lifetime ?? .zero > .zero) == isFresh)
        #expect(validator?.entityTag == fields["ETag"] && validator?.lastModified == fields["Last-Modified"])
        // The validator says what selected the response, even without a tag.
        #expect((validator == nil) == fields.keys.allSatisfy { !["ETag", "Last-Modified", "Vary"].contains($0) })
    }
}
