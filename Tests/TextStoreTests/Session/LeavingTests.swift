import Foundation
import LoopbackOrigin
import StoreCore
import StoreCoreTesting
import Testing
import Trials

@testable import TextStore

/// Stores that are released while work is in progress.
struct LeavingTests {
    private let bench: Bench

    init() throws { bench = try Bench() }

    @Test(.timeLimit(.minutes(hangMinutes)), arguments: ["versions.json", "eula.txt"])
    func `a released store cancels its fetch and writes nothing afterward`(stalled: String) async throws {
        let begun = WatchedState(0), ended = WatchedState(0)
        let fetcher = RevalidatingClosureFetcher<RemoteFile, RemoteText> { file, _ in
            guard file.url.lastPathComponent == stalled else {
                return .modified(RemoteText(bytes: Data(#"{"eula":"2.0.0"}"#.utf8), contentType: "application/json"))
            }
            begun.update { $0 += 1 }
            defer { ended.update { $0 += 1 } }
            try await bench.time.sleep(until: .distantFuture)
            throw CancellationError()
        }
        var store: TextStore? = try bench.store(fetcher: fetcher)
        try await store?.register(bench.source("eula"))
        await store?.setVersionSource(bench.versions)
        _ = try await begun.wait { $0 == 1 ? () : nil }
        weak let released = store
        let before = bench.place.files
        store = nil
        _ = try await ended.wait { $0 == 1 ? () : nil }
        #expect(released == nil)
        #expect(bench.place.files == before)
    }

    @Test func `an observer retains its store and the store's fetch`() async throws {
        bench.serve(manifest: #"{"eula":"2.0.0"}"#)
        bench.serve("eula", "New")
        var store: TextStore? = try await bench.started()
        let states = try #require(store).publish(bench.source("eula"))
        store = nil
        for await state in states { if state.content?.text == "New", !state.isLoading { break } }
        #expect(bench.origin.requests(to: "/eula.txt").count == 1)
    }
}
