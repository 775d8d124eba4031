import Foundation
import RemoteRouting

/// The API: what can be asked of it.
enum GitHub: Routable {
    case organisations
    case repositories(organisation: String)
    case user(login: String)

    var path: RoutePath {
        switch self {
        case .organisations: "/organizations"
        case .repositories(let organisation): "/orgs/\(organisation)/repos"
        case .user(let login): "/users/\(login)"
        }
    }

    var query: Parameters {
        switch self {
        case .organisations: ["per_page": 5]
        case .repositories: ["per_page": 8, "sort": "full_name"]
        case .user: [:]
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
