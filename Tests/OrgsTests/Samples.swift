@testable import Orgs

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
