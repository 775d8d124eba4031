import StoreCore
import StoreCoreTesting
import Testing
import Trials

@testable import orgs

/// What a screen shows of a list that comes page by page.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct RepositoryListTests {
    let origin = ScriptedPaginationFetcher<String, Repository>()
    let list: PaginationStoreFlowable<String, Repository>

    init() {
        list = GitHubRepository.scripted(repositories: origin).repositories["swiftlang"]
    }

    @Test func `pages load in order to the end of the list, and a repeated element is shown once`() async throws {
        origin.enqueue(.page([.swift], nextKey: "2"), .page([.swift, .docc], nextKey: "3"), .page([.docc, .syntax]))
        #expect(try await list.requireData() == [.swift])

        #expect(await list.requestNextData() == .loaded)
        #expect(await list.requestNextData() == .loaded)
        #expect(await list.requestNextData() == .noPage)
        #expect(try await list.requireData() == [.swift, .docc, .syntax])
        #expect(origin.requests.map(\.pageKey) == [nil, "2", "3"])
    }

    @Test func `a failed page keeps the list and can be requested again`()
        async throws
    {
        origin.enqueue(
            .page([.swift], nextKey: "2"), .failure(Offline()), .page([.docc]))
        let screen = RecordingObserver(list.publish())
        try await screen.next { $0.isCompleted }

        #expect(await list.requestNextData() == .failed(Offline()))
        let failed = LoadingState<[Repository]>.completed(
            content: [.swift], next: .error(rawError: Offline()), prev: .none)
        try await screen.next { $0 == failed }
        #expect(await list.requestNextData() == .loaded)
        try await screen.next { $0 == .completed([.swift, .docc]) }
    }
}
