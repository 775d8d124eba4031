import Foundation
import RemoteRouting
import StoreCore
import StoreFiles

/// A page in the middle of an organization's repositories: the key of a list that grows in both directions.
struct RepositoryPage: Codable, Hashable, Sendable {
    var organization: String
    var number: Int
}

/// The stores of the app, each with its fetcher and its cacher.
struct GitHubRepository: Sendable {
    /// All organizations, page by page.
    let organizations: PaginationStore<UnitParam, Organization>
    /// The repositories of an organization, page by page.
    let repositories: PaginationStore<String, Repository>
    /// The repositories of an organization in both directions from a page in their middle.
    let repositoriesAround: PaginationStore<RepositoryPage, Repository>
    /// The repositories with a text in their names, page by page.
    let search: PaginationStore<String, Repository>
    /// Single repositories. What changes one of them shows in the three lists as well.
    let details: Store<Repository.ID, Repository>
    /// Sends a star of the user, with the names of an organization and of one of its repositories.
    let sendStar: @Sendable (_ organization: String, _ name: String) async throws -> Void
    /// Users by login.
    let users: Store<String, User>
    /// The API's metadata.
    let meta: Store<UnitParam, Meta>

    /// Creates the stores of the app; every fetcher is a route.
    init(api: RemoteHost, directory: URL?, time: any TimeSource = .system) {
        self.init(
            organizations: api.pages { (_: UnitParam) in GitHub.organizations },
            repositories: api.pages { GitHub.repositories(organization: $0) },
            repositoriesAround: api.pages { GitHub.repositories(organization: $0.organization, page: $0.number) },
            search: api.pages(in: SearchResult.self, elements: \.items) { GitHub.search(text: $0) },
            details: api.fetcher { GitHub.repository(id: $0) },
            sendStar: { try await api.send(GitHub.star(organization: $0, repository: $1)) },
            users: api.fetcher { GitHub.user(login: $0) },
            meta: api.fetcher { (_: UnitParam) in GitHub.meta },
            directory: directory, time: time)
    }

    /// Adds a star to a repository of an organization, which every list and the detail show at once.
    ///
    /// - Throws: The error of the request; all of them then show the former number again.
    func star(_ repository: Repository, of organization: String) async throws {
        try await details[repository.id].mutate {
            $0.stargazersCount += 1
        } perform: {
            try await sendStar(organization, repository.name)
        }
    }

    /// Creates the same stores over any fetchers.
    ///
    /// - Parameters:
    ///   - directory: The directory of the records; without one they are kept in memory only.
    ///   - time: The source of time.
    init(
        organizations: some PaginationFetcher<UnitParam, Organization>,
        repositories: some PaginationFetcher<String, Repository>,
        repositoriesAround:
            some TwoWayPaginationFetcher<RepositoryPage, Repository>,
        search: some PaginationFetcher<String, Repository>,
        details: some Origin<Repository.ID, Repository>,
        sendStar:
            @escaping @Sendable (_ organization: String, _ name: String)
            async throws -> Void,
        users: some Origin<String, User>,
        meta: some Origin<UnitParam, Meta>, directory: URL? = nil,
        time: any TimeSource = .system
    ) {
        self.organizations = PaginationStore(
            cacher: Self.cacher(directory, "organizations"), fetcher: organizations,
            time: time)
        self.sendStar = sendStar
        self.details = Store(
            cacher: Self.cacher(directory, "details"), fetcher: details, time: time)
        self.repositories = PaginationStore(
            cacher: Self.cacher(directory, "repositories"), fetcher: repositories,
            links: [.elements(of: self.details)], time: time)
        self.repositoriesAround = PaginationStore(
            cacher: Self.cacher(directory, "around"), fetcher: repositoriesAround,
            links: [.elements(of: self.details)], time: time)
        self.search = PaginationStore(
            cacher: Self.cacher(directory, "search"), fetcher: search,
            links: [.elements(of: self.details)], time: time)
        self.users = Store(
            cacher: Self.cacher(directory, "users"), fetcher: users, time: time)
        self.meta = Store(
            cacher: Self.cacher(directory, "meta"), fetcher: meta, time: time)
    }

    /// Returns memory, in front of files if there is a directory. A lifetime from the origin takes precedence over this expiry.
    private static func cacher<Param: Hashable & Sendable & Codable, Content: Sendable & Codable>(
        _ directory: URL?, _ name: String
    ) -> any Cacher<Param, Content> {
        let expiry = Expiry.after(.seconds(60))
        guard let directory else { return MemoryCacher(expiry: expiry) }
        return TieredCacher(over: FileCacher(directory: directory.appending(path: name), expiry: expiry))
    }
}
