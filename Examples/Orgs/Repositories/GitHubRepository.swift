import Foundation
import RemoteRouting
import StoreCore

/// The stores of the app: each a route, a cacher and what is to be known of both.
struct GitHubRepository: Sendable {
    /// All organisations, page by page.
    let organisations: PaginationStore<UnitParam, Organisation>
    /// The repositories of an organisation, page by page.
    let repositories: PaginationStore<String, Repository>
    /// Users by login.
    let users: Store<String, User>

    init(api: RemoteHost, directory: URL) {
        organisations = PaginationStore(
            cacher: Self.cacher(directory, "organisations"), fetcher: api.pages { (_: UnitParam) in GitHub.organisations })
        repositories = PaginationStore(
            cacher: Self.cacher(directory, "repositories"), fetcher: api.pages { GitHub.repositories(organisation: $0) })
        users = Store(cacher: Self.cacher(directory, "users"), fetcher: api.fetcher { GitHub.user(login: $0) })
    }

    /// Memory over files; a lifetime that the origin gives counts before this one.
    private static func cacher<Param: Hashable & Sendable & Codable, Content: Sendable & Codable>(
        _ directory: URL, _ name: String
    ) -> TieredCacher<FileCacher<Param, Content>> {
        TieredCacher(over: FileCacher(directory: directory.appending(path: name), expiry: .after(.seconds(60))))
    }
}
