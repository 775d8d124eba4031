import Foundation
import StoreCore
import StoreCoreTesting

@testable import orgs

extension GitHubRepository {
    /// The app's stores over scripted fetchers; a fetcher without a script fails each fetch.
    static func scripted(
        repositories: ScriptedPaginationFetcher<String, Repository> = ScriptedPaginationFetcher(),
        around: ScriptedPaginationFetcher<RepositoryPage, Repository> = ScriptedPaginationFetcher(),
        search: ScriptedPaginationFetcher<String, Repository> = ScriptedPaginationFetcher(),
        details: ScriptedFetcher<Repository.ID, Repository> = ScriptedFetcher(),
        sendStar: @escaping @Sendable (_ organization: String, _ name: String) async throws -> Void = { _, _ in },
        users: ScriptedFetcher<String, User> = ScriptedFetcher(), meta: ScriptedFetcher<UnitParam, Meta> = ScriptedFetcher(),
        directory: URL? = nil, time: any TimeSource = .system
    ) -> GitHubRepository {
        GitHubRepository(
            organizations: ScriptedPaginationFetcher(), repositories: repositories, repositoriesAround: around, search: search,
            details: details, sendStar: sendStar, users: users, meta: meta,
            directory: directory, time: time)
    }
}

extension Meta {
    static let sample = Meta(verifiablePasswordAuthentication: false, sshKeyFingerprints: ["SHA256_RSA": "abc", "SHA256_ECDSA": "def"])
}

extension User {
    static let ada = User(id: 1, login: "ada", name: "Ada", company: nil, followers: 7)
    static let adaLovelace = User(id: 1, login: "ada", name: "Ada Lovelace", company: nil, followers: 8)
}

extension Repository {
    static let swift = Repository(id: 1, name: "swift", description: nil, stargazersCount: 70_000, language: "C++")
    static let docc = Repository(id: 2, name: "swift-docc", description: nil, stargazersCount: 1_300, language: "Swift")
    static let syntax = Repository(id: 3, name: "swift-syntax", description: nil, stargazersCount: 3_500, language: "Swift")
}

/// The train went into a tunnel.
struct Offline: Error {}
