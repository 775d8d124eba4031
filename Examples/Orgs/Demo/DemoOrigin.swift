import Foundation
import LoopbackOrigin
import Synchronization

/// An origin shaped like GitHub's API, inside this process, with `Link` fields, entity tags, and a delay.
final class DemoOrigin: Sendable {
    private let origin: LoopbackOrigin
    /// The names of the repositories that the user has starred.
    private let starred = Mutex<Set<String>>([])

    var port: UInt16 { origin.port }

    init() throws {
        origin = try LoopbackOrigin()
        origin.on(.get, "/organizations") { request in await Self.page(of: Self.organizations, for: request) }
        origin.on(.get, "/orgs/:organization/repos") { [weak self] request in
            guard Self.organizations.contains(where: { $0.login == request.parameter("organization") }) else {
                return .notFound(for: request)
            }
            return await Self.page(of: self?.repositories ?? [], for: request)
        }
        origin.on(.get, "/search/repositories") { [weak self] request in
            await Self.think()
            let text = request.query("q") ?? ""
            return .json(DemoSearchResult(items: self?.repositories.filter { $0.name.contains(text) } ?? [])).tagged().revalidated(
                by: request)
        }
        origin.on(.get, "/repositories/:id") { [weak self] request in
            await Self.think()
            guard let repository = self?.repositories.first(where: { "\($0.id)" == request.parameter("id") }) else {
                return .notFound(for: request)
            }
            return .json(repository).tagged().revalidated(by: request)
        }
        origin.on(.put, "/user/starred/:organization/:repository") { [weak self] request in
            await Self.think()
            self?.starred.withLock { _ = $0.insert(request.parameter("repository")) }
            return .status(204)
        }
        origin.on(.get, "/users/:login") { request in
            await Self.think()
            let user = DemoUser(id: 583_231, login: request.parameter("login"), name: "The Octocat", company: "@github", followers: 18_000)
            return .json(user).tagged().revalidated(by: request)
        }
        origin.on(.get, "/meta") { request in
            await Self.think()
            return .json(Self.meta).tagged().revalidated(by: request)
        }
    }

    private static func page(
        of items: some Collection<some Encodable>, for request: LoopbackOrigin.Request
    ) async -> LoopbackOrigin.Response {
        await think()
        return .pages(of: items, for: request).tagged().revalidated(by: request)
    }

    /// Waits as long as a request over a network takes.
    private static func think() async {
        // The sleep throws when the client has disconnected; the response is then discarded.
        try? await Task.sleep(for: .milliseconds(120))
    }

    private static let meta = DemoMeta(
        verifiablePasswordAuthentication: false,
        sshKeyFingerprints: [
            "SHA256_ECDSA": "demo+tHcbVvWwTvxPnJfQmBjYhMVYjXvZbJmCwLqkeM", "SHA256_ED25519": "demo+fZrT0yJkJvPqVxXo1nXb7mPpUqk3aPqWkR3JzE",
            "SHA256_RSA": "demo+aN2vUuJcPzG7bqYdKxYhR8tQ5eVwLs9mXo4ZrKc",
        ])

    private static let organizations = [
        DemoOrganization(id: 1, login: "swiftlang", description: "The Swift programming language"),
        DemoOrganization(id: 2, login: "apple", description: "Open source at Apple"),
        DemoOrganization(id: 3, login: "swift-server", description: "Swift on servers"),
        DemoOrganization(id: 4, login: "vapor", description: "A server-side web framework"),
        DemoOrganization(id: 5, login: "pointfreeco", description: "Functional programming in Swift"),
        DemoOrganization(id: 6, login: "github", description: "How people build software"),
    ]

    private var repositories: [DemoRepository] {
        let starred = starred.withLock { $0 }
        return Self.repositories.map { repository in
            var repository = repository
            if starred.contains(repository.name) { repository.stargazersCount += 1 }
            return repository
        }
    }

    private static let repositories: [DemoRepository] = [
        "swift", "swift-async-algorithms", "swift-build", "swift-corelibs-foundation", "swift-docc", "swift-driver", "swift-evolution",
        "swift-experimental-string-processing", "swift-format", "swift-foundation", "swift-lmdb", "swift-markdown", "swift-package-manager",
        "swift-stress-tester", "swift-subprocess", "swift-syntax", "swift-testing", "swift-tools-support-core", "swift-web", "vscode-swift",
    ].enumerated().map { number, name in
        DemoRepository(
            id: 100 + number, name: name, description: "Number \(number + 1) of twenty", stargazersCount: 70_000 / (number + 1),
            language: number.isMultiple(of: 7) ? "C++" : "Swift")
    }
}

// The response bodies, in the format of the API.

private struct DemoOrganization: Encodable, Sendable {
    var id: Int
    var login: String
    var description: String
}

private struct DemoRepository: Encodable, Sendable {
    var id: Int
    var name: String
    var description: String
    var stargazersCount: Int
    var language: String

    private enum CodingKeys: String, CodingKey {
        case id, name, description
        case stargazersCount = "stargazers_count"
        case language
    }
}

private struct DemoSearchResult: Encodable, Sendable {
    var items: [DemoRepository]
}

private struct DemoMeta: Encodable, Sendable {
    var verifiablePasswordAuthentication: Bool
    var sshKeyFingerprints: [String: String]

    private enum CodingKeys: String, CodingKey {
        case verifiablePasswordAuthentication = "verifiable_password_authentication"
        case sshKeyFingerprints = "ssh_key_fingerprints"
    }
}

private struct DemoUser: Encodable, Sendable {
    var id: Int
    var login: String
    var name: String
    var company: String
    var followers: Int
}
