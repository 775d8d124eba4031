import Foundation
import RemoteRouting
import StoreCore

/// A page in the middle of an organisation's repositories: the key of a list that grows in both directions.
struct RepositoryPage: Codable, Hashable, Sendable {
    var organisation: String
    var number: Int
}

/// The stores of the app: each a fetcher, a cacher and what is to be known of both.
struct GitHubRepository: Sendable {
    /// All organisations, page by page.
    let organisations: PaginationStore<UnitParam, Organisation>
    /// The repositories of an organisation, page by page.
    let repositories: PaginationStore<String, Repository>
    /// The repositories of an organisation in both directions from a page in their middle.
    let repositoriesAround: PaginationStore<RepositoryPage, Repository>
    /// Users by login.
    let users: Store<String, User>
    /// The API's description of itself.
    let meta: Store<UnitParam, Meta>

    /// The stores as the app uses them: every fetcher is a route.
    init(api: RemoteHost, directory: URL?, time: any TimeSource = .system) {
        self.init(
            organisations: api.pages { (_: UnitParam) in GitHub.organisations },
            repositories: api.pages { GitHub.repositories(organisation: $0) },
            repositoriesAround: api.pages { GitHub.repositories(organisation: $0.organisation, page: $0.number) },
            users: api.fetcher { GitHub.user(login: $0) },
            meta: api.fetcher { (_: UnitParam) in GitHub.meta },
            directory: directory, time: time)
    }

    /// The same stores over any fetchers.
    ///
    /// - Parameters:
    ///   - directory: Where content is kept; without one it is kept in memory alone.
    ///   - time: Where time comes from.
    init(
        organisations: some PaginationFetcher<UnitParam, Organisation>, repositories: some PaginationFetcher<String, Repository>,
        repositoriesAround: some TwoWayPaginationFetcher<RepositoryPage, Repository>, users: some Origin<String, User>,
        meta: some Origin<UnitParam, Meta>, directory: URL? = nil, time: any TimeSource = .system
    ) {
        self.organisations = PaginationStore(cacher: Self.cacher(directory, "organisations"), fetcher: organisations, time: time)
        self.repositories = PaginationStore(cacher: Self.cacher(directory, "repositories"), fetcher: repositories, time: time)
        self.repositoriesAround = PaginationStore(cacher: Self.cacher(directory, "around"), fetcher: repositoriesAround, time: time)
        self.users = Store(cacher: Self.cacher(directory, "users"), fetcher: users, time: time)
        self.meta = Store(cacher: Self.cacher(directory, "meta"), fetcher: meta, time: time)
    }

    /// Memory, over files where there is a directory; a lifetime that the origin gives counts before this one.
    private static func cacher<Param: Hashable & Sendable & Codable, Content: Sendable & Codable>(
        _ directory: URL?, _ name: String
    ) -> any Cacher<Param, Content> {
        let expiry = Expiry.after(.seconds(60))
        guard let directory else { return MemoryCacher(expiry: expiry) }
        return TieredCacher(over: FileCacher(directory: directory.appending(path: name), expiry: expiry))
    }
}
