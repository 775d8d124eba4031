struct User {
    var name: String
}

enum APIError: Error { case offline }

actor API {
    private var isOnline = true

    func user(_ id: Int) async throws -> User {
        try await Task.sleep(for: .seconds(1))
        guard isOnline else { throw APIError.offline }
        return User(name: "Ada")
    }

    func disconnect() { isOnline = false }
}
