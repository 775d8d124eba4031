import StoreCore
import StoreCoreTesting
import Testing
import Trials

@testable import orgs

/// A star shows wherever its repository does.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct StarredRepositoryTests {
    let list = ScriptedPaginationFetcher<String, Repository>()
    let search = ScriptedPaginationFetcher<String, Repository>()
    let details = ScriptedFetcher<Repository.ID, Repository>()

    /// The numbers of stars of `swift-docc` in the list, the search, and the detail.
    private func numbers(_ repository: GitHubRepository) async throws -> [Int?] {
        let lists = [repository.repositories["swiftlang"], repository.search["docc"]]
        var numbers: [Int?] = []
        for list in lists { numbers.append(try await list.requireData().first { $0.id == 2 }?.stargazersCount) }
        return numbers + [try await repository.details[2].requireData().stargazersCount]
    }

    @Test func `a star shows in the list, the search and the detail, even after a restart without a network`() async throws {
        let directory = temporaryURL()
        list.enqueue(.page([.swift, .docc]))
        search.enqueue(.page([.docc]))
        details.enqueue(.success(.docc))
        var app: GitHubRepository? = GitHubRepository.scripted(
            repositories: list, search: search, details: details, directory: directory, time: ManualTime())
        #expect(try await numbers(#require(app)) == [1_300, 1_300, 1_300])
        var starred = Repository.docc
        starred.stargazersCount += 1
        details.enqueue(.success(starred))
        try await app?.star(.docc, of: "swiftlang")
        #expect(try await numbers(#require(app)) == [1_301, 1_301, 1_301])
        try await app?.repositories.waitUntilSaved()
        try await app?.search.waitUntilSaved()
        try await app?.details.waitUntilSaved()
        app = nil
        let again = GitHubRepository.scripted(directory: directory, time: ManualTime())
        #expect(try await numbers(again) == [1_301, 1_301, 1_301])
    }

    @Test func `a star shows while its request runs, and one that the API refuses is taken back everywhere`() async throws {
        list.enqueue(.page([.swift, .docc]))
        search.enqueue(.page([.docc]))
        details.enqueue(.success(.docc))
        let (isSending, mayFail) = (WatchedState(false), WatchedState(false))
        let app = GitHubRepository.scripted(
            repositories: list, search: search, details: details,
            sendStar: { _, _ in
                isSending.update { $0 = true }
                try await mayFail.wait { $0 ? () : nil }
                throw Offline()
            }, time: ManualTime())
        #expect(try await numbers(app) == [1_300, 1_300, 1_300])
        let star = Task { try await app.star(.docc, of: "swiftlang") }
        try await isSending.wait { $0 ? () : nil }
        #expect(try await numbers(app) == [1_301, 1_301, 1_301])
        mayFail.update { $0 = true }
        await #expect(throws: Offline.self) { try await star.value }
        #expect(try await numbers(app) == [1_300, 1_300, 1_300])
    }
}
