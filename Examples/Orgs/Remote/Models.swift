/// The models of the API's responses, limited to the fields on screen.
struct Organization: Codable, Hashable, Identifiable, Sendable {
    var id: Int
    var login: String
    var description: String?
}

struct Repository: Codable, Hashable, Identifiable, Sendable {
    var id: Int
    var name: String
    var description: String?
    var stargazersCount: Int
    var language: String?
}

/// A page of a search.
struct SearchResult: Decodable, Sendable {
    var items: [Repository]
}

/// The API's metadata.
struct Meta: Codable, Hashable, Sendable {
    var verifiablePasswordAuthentication: Bool
    /// The fingerprints of the host's SSH keys, by algorithm, such as `SHA256_RSA`.
    var sshKeyFingerprints: [String: String]
}

struct User: Codable, Hashable, Identifiable, Sendable {
    var id: Int
    var login: String
    var name: String?
    var company: String?
    var followers: Int
}
