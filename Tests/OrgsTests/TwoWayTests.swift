import StoreCore
import StoreCoreTesting
import Testing
import Trials

@testable import orgs

/// A list that starts in its middle and grows in both directions.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct TwoWayTests {
    let origin = ScriptedPaginationFetcher<RepositoryPage, Repository>()
    let repository: GitHubRepository
    let list: PaginationStoreFlowable<RepositoryPage, Repository>
    let middle = RepositoryPage(organization: "swiftlang", number: 2)

    init() {
        repository = GitHubRepository.scripted(around: origin)
        list = repository.repositoriesAround[middle]
    }

    @Test func `C13: pages before and after load concurrently and keep their order`() async throws {
        origin.enqueue(.page([.docc], nextKey: "3", prevKey: "1"))
        let screen = RecordingObserver(list.publish())
        try await screen.next { $0.content == [.docc] }

        origin.hold()
        async let before = list.requestPrevData()
        try await origin.started(count: 2)
        async let behind = list.requestNextData()
        try await origin.started(count: 3)
        try await screen.next { $0 == .completed(content: [.docc], next: .loading, prev: .loading) }
        try await origin.answer(3, with: .page([.syntax]))
        try await origin.answer(2, with: .page([.swift]))
        #expect(await [before, behind] == [.loaded, .loaded])
        try await screen.next { $0 == .completed([.swift, .docc, .syntax]) }
        #expect(origin.requests.map(\.pageKey) == [nil, "1", "3"])
    }

    @Test(arguments: [true, false])
    func `the screen loads both directions and returns whether all pages loaded`(fails: Bool) async throws {
        origin.hold()
        let shown = Task { [repository, middle] in
            try await Screens(repository: repository, terminal: Terminal(isPlain: true)).repositories(around: middle)
        }
        try await origin.answerNext(with: .page([.docc], nextKey: "3", prevKey: "1"))
        try await origin.started(count: 3)
        for request in origin.requests.suffix(2) {
            let isBefore = request.direction == .prev
            try await origin.answer(request.number, with: fails && isBefore ? .failure(Offline()) : .page([isBefore ? .swift : .syntax]))
        }
        #expect(try await shown.value == !fails)
        #expect(await list.getData() == (fails ? [.docc, .syntax] : [.swift, .docc, .syntax]))
    }
}
