import Foundation
import RemoteRouting

/// A repository, as the API describes it to the user.
struct Repository: Codable, Hashable, Identifiable, Sendable {
    var id: String { name }
    var name: String
    /// The number of stars of all users.
    var stars: Int
    /// Whether the user has starred the repository.
    var isStarred: Bool
}

/// The routes of the API.
enum StarsAPI: Routable {
    case repositories
    /// Adds a star; without an idempotency key, each repetition would add another one.
    case star(repository: String)

    var method: HTTPMethod {
        switch self {
        case .repositories: .get
        case .star: .post
        }
    }

    var path: RoutePath {
        switch self {
        case .repositories: "/repositories"
        case .star(let repository): "/repositories/\(repository)/star"
        }
    }

    static func host(_ origin: URL) -> RemoteHost {
        RemoteHost(HostConfiguration(origin.absoluteString)).with { host in
            host.timeouts.overall = .seconds(60)
        }
    }
}
