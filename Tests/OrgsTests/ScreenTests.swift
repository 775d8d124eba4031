import Foundation
import StoreCore
import StoreCoreTesting
import Testing
import Trials

@testable import orgs

/// What the screens do beside showing.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct ScreenTests {
    @Test func `a screen returns after its content is saved`() async throws {
        let directory = temporaryURL()
        let origin = ScriptedFetcher<String, User> { .success(User(id: 1, login: $0.param, name: nil, company: nil, followers: 0)) }
        func start() -> GitHubRepository {
            GitHubRepository.scripted(users: origin, directory: directory)
        }
        let screens = Screens(repository: start(), terminal: Terminal(isPlain: true))
        for number in 1...20 {
            #expect(try await screens.user("user\(number)"))
            #expect(try await start().users["user\(number)"].requireData(from: .cache).login == "user\(number)")
        }
    }

    @Test func `content that cannot be saved ends the screens`() async throws {
        let file = temporaryURL()
        try Data().write(to: file)
        let origin = ScriptedFetcher<String, User> { .success(User(id: 1, login: $0.param, name: nil, company: nil, followers: 0)) }
        let screens = Screens(repository: GitHubRepository.scripted(users: origin, directory: file), terminal: Terminal(isPlain: true))
        await #expect(throws: StoreError.self) { try await screens.user("ada") }
    }

    @Test func `an empty directory is refused, because it would be the current one`() {
        #expect { try Options(["--directory", "", "--fresh"]) } throws: { "\($0)" == "--directory needs a value" }
    }

    @Test(arguments: ["..", "../b", ".", "a b", "ftp://a", "https://a?b"])
    func `a host that could be a path is refused`(host: String) {
        #expect { try Options(["--host", host]) } throws: { "\($0)".hasPrefix("--host \(host): must be a host") }
    }
}
