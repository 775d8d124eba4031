import Foundation
import RemoteRouting
import StoreCore
import RemoteRoutingTesting
import StoreCoreTesting
import Testing
import Trials

@testable import orgs

/// What goes over the wire, and what becomes of the answers: routes, client and repository as they are, without a network.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct GitHubTests {
    let time = ManualTime()

    /// The app over a transport.
    func app(over transport: MemoryTransport) -> GitHubRepository {
        GitHubRepository(api: host(over: transport), directory: nil, time: time)
    }

    func host(over transport: MemoryTransport) -> RemoteHost {
        GitHub.host("api.example.com").with { host in
            host.transport = transport
            host.time = time
            // Only retries may sleep.
            host.timeouts = .init()
        }
    }

    static let ada = #"{"id": 1, "login": "ada", "name": "Ada", "followers": 7}"#
    static let swift = #"[{"id": 1, "name": "swift", "stargazers_count": 70000, "language": "C++"}]"#
    static let docc = #"[{"id": 2, "name": "swift-docc", "stargazers_count": 1300, "language": "Swift"}]"#

    static let syntax = #"[{"id": 3, "name": "swift-syntax", "stargazers_count": 3500, "language": "Swift"}]"#

    @Test(arguments: [("ada", "ada"), ("a/b?c", "a%2Fb%3Fc")])
    func `a user request matches the API, and its login stays within its path segment`(login: String, segment: String) async throws {
        let transport = MemoryTransport { _ in .json(Self.ada) }
        #expect(try await app(over: transport).users[login].requireData() == .ada)
        #expect(transport.requests.map(\.url.absoluteString) == ["https://api.example.com/users/\(segment)"])
        #expect(transport.requests.first?.fields["X-GitHub-Api-Version"] == "2022-11-28")
    }

    @Test func `pages follow their links to the end`() async throws {
        let transport = MemoryTransport { request in
            request.url.query()?.contains("page=2") == true
                ? .json(Self.docc) : .json(Self.swift).adding("Link", #"</orgs/swiftlang/repos?page=2>; rel="next""#)
        }
        let list = app(over: transport).repositories["swiftlang"]
        #expect(try await list.requireData().map(\.name) == ["swift"])
        #expect(await list.requestNextData() == .loaded)
        #expect(await list.requestNextData() == .noPage)
        #expect(try await list.requireData().map(\.name) == ["swift", "swift-docc"])
    }

    @Test func `C13: links lead from a page in the middle in both directions`() async throws {
        let pages = [1: Self.swift, 2: Self.docc, 3: Self.syntax]
        let transport = MemoryTransport { request in
            let query = request.url.query() ?? ""
            let page = pages.keys.first { query.contains("page=\($0)") && !query.hasSuffix("per_page=\($0)") } ?? 1
            let links = [(page - 1, "prev"), (page + 1, "next")].filter { pages[$0.0] != nil }
                .map { "</orgs/swiftlang/repos?page=\($0.0)>; rel=\"\($0.1)\"" }
            return .json(pages[page] ?? "[]").adding("Link", links.joined(separator: ", "))
        }
        let list = app(over: transport).repositoriesAround[RepositoryPage(organization: "swiftlang", number: 2)]
        #expect(try await list.requireData().map(\.name) == ["swift-docc"])
        #expect(await list.requestPrevData() == .loaded)
        #expect(await list.requestNextData() == .loaded)
        #expect(await [list.requestPrevData(), list.requestNextData()] == [.noPage, .noPage])
        #expect(try await list.requireData().map(\.name) == ["swift", "swift-docc", "swift-syntax"])
        #expect(transport.requests.first?.url.query() == "per_page=8&sort=full_name&page=2")
    }

    @Test func `the fingerprints keep the names of the API`() async throws {
        let transport = MemoryTransport { _ in
            .json(
                #"{"verifiable_password_authentication": true, "ssh_key_fingerprints": {"SHA256_RSA": "abc"}, "hooks": ["192.0.2.0/24"]}"#)
        }
        let meta = try await app(over: transport).meta.flowable.requireData()
        #expect(meta == Meta(verifiablePasswordAuthentication: true, sshKeyFingerprints: ["SHA256_RSA": "abc"]))
        #expect(transport.requests.map { $0.url.path() } == ["/meta"])
    }

    @Test func `C4: an expired record is revalidated, not downloaded`()
        async throws
    {
        let transport = MemoryTransport { request in
            request.fields["If-None-Match"] == #""v1""#
                ? .status(304) : .json(Self.ada).adding("ETag", #""v1""#)
        }
        let ada = app(over: transport).users["ada"]
        #expect(try await ada.requireData() == .ada)
        time.advance(by: .seconds(60))
        #expect(try await ada.requireData() == .ada)
        let conditions = transport.requests.map { $0.fields["If-None-Match"] }
        #expect(conditions == [nil, #""v1""#])
    }

    @Test func `requests to a busy server are retried with growing delays`()
        async throws
    {
        let transport = MemoryTransport(
            inTurn: .status(503), .status(503), .json(Self.ada))
        let repository = app(over: transport)
        async let user = repository.users["ada"].requireData()
        for bound in [Duration.milliseconds(200), .milliseconds(400)] {
            try await time.sleepers(atLeast: 1)
            let wait = time.now.duration(to: try #require(time.nextDeadline))
            #expect(wait <= bound)
            time.advanceToNextDeadline()
        }
        #expect(try await user == .ada)
        #expect(transport.requests.count == 3)
    }

    @Test func `a retry waits for the time that the server names`() async throws {
        let transport = MemoryTransport(inTurn: .status(429).adding("Retry-After", "7"), .json(Self.ada))
        let repository = app(over: transport)
        async let user = repository.users["ada"].requireData()
        try await time.sleepers(atLeast: 1)
        #expect(time.nextDeadline == time.now.advanced(by: .seconds(7)))
        time.advanceToNextDeadline()
        #expect(try await user == .ada)
    }

    @Test func `a missing user is an error that names the cause`() async throws {
        let users = app(over: MemoryTransport { _ in .status(404) }).users
        let error = await #expect(throws: RemoteError.self) { try await users["nobody"].requireData() }
        #expect(error?.status == 404)
    }

    @Test func `an expired token is refreshed without an error`() async throws {
        let transport = MemoryTransport { request in
            if request.url.path() == "/token" {
                return .json(#"{"accessToken": "new"}"#)
            }
            return request.fields["Authorization"] == "Bearer new"
                ? .json(Self.ada) : .status(401)
        }
        let signedIn = host(over: transport).authorized(
            by: .bearer(Token(accessToken: "old")) { _, unauthenticated in
                try await unauthenticated.send("/token", method: .post)
            })
        let repository = GitHubRepository(api: signedIn, directory: nil, time: time)
        let users = repository.users
        #expect(try await users["ada"].requireData() == .ada)
        let paths = transport.requests.map { $0.url.path() }
        #expect(paths == ["/users/ada", "/token", "/users/ada"])
    }
}

struct Token: BearerToken, Codable {
    var accessToken: String
}
