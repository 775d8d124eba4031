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
            users: api.fetcher { GitHub.user(login: $0) },
            meta: api.fetcher { (_: UnitParam) in GitHub.meta },
            directory: directory, time: time)
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
        users: some Origin<String, User>,
        meta: some Origin<UnitParam, Meta>, directory: URL? = nil,
        time: any TimeSource = .system
    ) {
        self.organizations = PaginationStore(
            cacher: Self.cacher(directory, "organizations"), fetcher: organizations,
            time: time)
        self.repositories = PaginationStore(
            cacher: Self.cacher(directory, "repositories"), fetcher: repositories,
            time: time)
        self.repositoriesAround = PaginationStore(
            cacher: Self.cacher(directory, "around"), fetcher: repositoriesAround,
            time: time)
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
