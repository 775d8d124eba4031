import Foundation
import StoreCore
import StoreCoreTesting
import Testing
import Trials

@testable import orgs

/// What a screen shows of a user: the repository as it is, with an origin to script and time to move.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct UserTests {
    let time = ManualTime()
    let origin = ScriptedFetcher<String, User>()
    let users: Store<String, User>

    init() {
        users = GitHubRepository.scripted(users: origin, time: time).users
    }

    @Test func `the first load shows progress and then the user`() async throws {
        origin.hold()
        let screen = RecordingObserver(users["ada"].publish())
        try await screen.next { $0 == .loading(content: nil) }
        try await origin.answerNext(with: .success(.ada))
        try await screen.next { $0 == .completed(.ada) }

        #expect(screen.states == [.loading(content: nil), .completed(.ada)])
        #expect(origin.requests.map(\.param) == ["ada"])
    }

    @Test func `a user is fetched again after a minute, not before`() async throws {
        origin.enqueue(.success(.ada), .success(.adaLovelace))
        #expect(try await users["ada"].requireData() == .ada)

        time.advance(by: .seconds(59))
        #expect(try await users["ada"].requireData() == .ada)
        time.advance(by: .seconds(1))
        #expect(try await users["ada"].requireData() == .adaLovelace)
    }

    @Test func `a lifetime from the origin takes precedence over the expiry`() async throws {
        origin.enqueue(.success(.ada, freshness: Freshness(lifetime: .seconds(300))))
        #expect(try await users["ada"].requireData() == .ada)

        time.advance(by: .seconds(299))
        #expect(try await users["ada"].requireData() == .ada)
        #expect(origin.startedCount == 1)
    }

    @Test func `stored content is shown at once after a restart and revalidated in the background`() async throws {
        let directory = temporaryURL()
        func start() -> Store<String, User> {
            GitHubRepository.scripted(users: origin, directory: directory, time: time).users
        }
        // An update is on the disk when it returns.
        await start()["ada"].update(.ada)

        origin.hold()
        let screen = RecordingObserver(start()["ada"].publish(forceRefresh: true))
        try await screen.next { $0 == .loading(content: .ada) }
        try await origin.answerNext(with: .success(.ada))
        try await screen.next { $0 == .completed(.ada) }
    }
}
