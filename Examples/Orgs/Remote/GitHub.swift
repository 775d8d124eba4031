import Foundation
import RemoteRouting

/// The routes of the API.
enum GitHub: Routable {
    case organizations
    case repositories(organization: String, page: Int = 1)
    case search(text: String)
    case repository(id: Int)
    case star(organization: String, repository: String)
    case user(login: String)
    case meta

    /// The number of repositories on a page.
    static let repositoriesPerPage = 8

    var method: HTTPMethod {
        switch self {
        case .star: .put
        default: .get
        }
    }

    var path: RoutePath {
        switch self {
        case .organizations: "/organizations"
        case .repositories(let organization, page: _): "/orgs/\(organization)/repos"
        case .search: "/search/repositories"
        case .repository(let id): "/repositories/\(id)"
        case .star(let organization, let repository): "/user/starred/\(organization)/\(repository)"
        case .user(let login): "/users/\(login)"
        case .meta: "/meta"
        }
    }

    var query: Parameters {
        switch self {
        case .organizations: ["per_page": 5]
        case .repositories(organization: _, let page):
            // The first page is the API's default.
            ["per_page": Self.repositoriesPerPage, "sort": "full_name", "page": page == 1 ? nil : page]
        case .search(let text): ["q": text, "per_page": Self.repositoriesPerPage]
        case .repository, .star, .user, .meta: [:]
        }
    }

    var headers: Headers { ["Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"] }

    /// Returns a host that decodes the API's responses.
    static func host(_ configuration: HostConfiguration) -> RemoteHost {
        RemoteHost(configuration).with { host in
            host.makeDecoder = {
                let decoder = JSONDecoder()
                decoder.keyDecodingStrategy = .convertFromSnakeCase
                return decoder
            }
            host.timeouts.overall = .seconds(30)
        }
    }
}
