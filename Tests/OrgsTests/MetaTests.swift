import RemoteRouting
import StoreCore
import StoreCoreTesting
import Testing
import Trials

@testable import orgs

/// The screen of the API's own description.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct MetaTests {
    let time = ManualTime()
    let origin = ScriptedFetcher<UnitParam, Meta>()

    @Test func `the metadata loads once and stays on screen when a refresh fails`() async throws {
        origin.enqueue(.success(.sample), .failure(Offline()))
        let meta = GitHubRepository.scripted(meta: origin, time: time).meta.flowable
        let screen = RecordingObserver(meta.publish())
        try await screen.next { $0 == .completed(.sample) }
        #expect(try await meta.requireData() == .sample)
        #expect(origin.startedCount == 1)

        await meta.refresh()
        try await screen.next { $0 == .error(rawError: Offline(), content: .sample) }
    }

    @Test(arguments: [true, false])
    func `the screen returns whether it showed metadata`(succeeds: Bool) async throws {
        origin.enqueue(succeeds ? .success(.sample) : .failure(Offline()))
        // The screen publishes and joins the fetch; a failure lets both fetch.
        if !succeeds { origin.enqueue(.failure(Offline())) }
        let screens = Screens(repository: .scripted(meta: origin), terminal: Terminal(isPlain: true))
        #expect(try await screens.meta() == succeeds)
    }
}
