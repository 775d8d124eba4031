import Foundation
import RemoteRouting

/// The API: what can be asked of it.
enum GitHub: Routable {
    case organisations
    case repositories(organisation: String, page: Int = 1)
    case user(login: String)
    case meta

    /// The number of repositories on a page.
    static let repositoriesPerPage = 8

    var path: RoutePath {
        switch self {
        case .organisations: "/organizations"
        case .repositories(let organisation, page: _): "/orgs/\(organisation)/repos"
        case .user(let login): "/users/\(login)"
        case .meta: "/meta"
        }
    }

    var query: Parameters {
        switch self {
        case .organisations: ["per_page": 5]
        case .repositories(organisation: _, let page):
            // The first page is the API's default.
            ["per_page": Self.repositoriesPerPage, "sort": "full_name", "page": page == 1 ? nil : page]
        case .user, .meta: [:]
        }
    }

    var headers: Headers { ["Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"] }

    /// A client that reads what the API writes.
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
