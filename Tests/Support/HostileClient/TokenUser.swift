import Foundation
import RemoteRouting
import StoreCore
internal import StoreFiles
import Trials

/// A process that shares a rotating token with others, in a directory.
struct TokenUser {
    struct Token: BearerToken, Codable {
        var accessToken: String
        var refreshToken: String
    }

    let port: Int
    let directory: String

    /// Sends requests with an expired token at once, and says the number of successful ones.
    func run() async throws {
        let tokens = RefreshingTokens(
            Token(accessToken: "a0", refreshToken: "r1"),
            keptIn: FileCacher<String, Token>(directory: URL(filePath: directory), sharing: .processes), leaseDuration: hangLimit
        ) { current, host in
            try await host.send(Route(path: "/tokens", method: .post, body: .data(Data(current.refreshToken.utf8))), as: Token.self)
        }
        // A retry on a busy machine would be an extra refresh.
        let host = RemoteHost(HostConfiguration("127.0.0.1", scheme: .http, port: port))
            .with { $0.timeouts = .init(overall: hangLimit) }
            .authorized(by: .bearer(tokens))
        let count = try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<8 { group.addTask { try await host.send("/x") } }
            var count = 0
            for try await _ in group { count += 1 }
            return count
        }
        say("\(count) \(tokens.current.accessToken)")
    }
}
