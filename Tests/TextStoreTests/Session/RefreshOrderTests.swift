import Foundation
import LoopbackOrigin
import StoreCore
import StoreCoreTesting
import Testing
import Trials

@testable import TextStore

/// T17: a refresh and the requests that were sent before it.
struct RefreshOrderTests {
    let bench: Bench
    private let gate = WatchedState(false)

    init() throws { bench = try Bench() }

    /// Serves a file whose first response is held back until the gate opens.
    private func serveHeld(_ path: String, _ responses: LoopbackOrigin.Response...) {
        let number = WatchedState(0)
        bench.origin.on(.get, path) { [gate] _ in
            let index = number.increment() - 1
            if index == 0 { try? await gate.wait { $0 ? () : nil } }
            return responses[min(index, responses.count - 1)]
        }
    }

    private func count(_ path: String) -> Int { bench.origin.requests(to: path).count }

    /// Opens the gate after some refreshes were called.
    private func refresh(_ store: TextStore, times: Int = 1) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<times { group.addTask { try await store.refresh() } }
            try await until("the refreshes wait") { store.session.read { $0.refreshing } == times }
            gate.update { $0 = true }
            try await group.waitForAll()
        }
    }

    @Test(
        arguments: [(1, .json(literal: #"{"eula":"1.0.0"}"#)), (20, .json(literal: #"{"eula":"1.0.0"}"#)), (1, .status(503))]
            as [(Int, LoopbackOrigin.Response)])
    func `T17: a refresh does not join a request for the manifest that was sent before the call, even if that one fails`(
        calls: Int, first: LoopbackOrigin.Response
    ) async throws {
        serveHeld("/versions.json", first, .json(literal: #"{"eula":"2.0.0"}"#))
        bench.serve("eula", "Remote terms 2")
        let store = try await bench.started()
        try await until("the request has arrived") { count("/versions.json") == 1 }
        try await refresh(store, times: calls)
        #expect(line(try await store.text(for: bench.source("eula"))) == "2.0.0 remote: Remote terms 2")
        #expect(count("/versions.json") == 2, "one request serves all refreshes")
    }

    /// A text whose digest fits is not fetched again.
    @Test(arguments: [nil, #"{"notes":"1.0.0"}"#, #"{"texts":{"notes":{"version":"1.0.0","sha256":"\#(sha256("Notes 1"))"}}}"#])
    func `T17: a refresh does not join a request for a text that was sent before the call, unless a digest fits`(
        manifest: String?
    ) async throws {
        if let manifest { bench.serve(manifest: manifest) }
        serveHeld("/notes.txt", .text("Notes 1"), .text("Notes 2"))
        let store = try bench.store()
        try await store.register(bench.notes)
        if manifest != nil { await store.setVersionSource(bench.versions) } else { store.begin(["notes"]) }
        try await until("the request has arrived") { count("/notes.txt") == 1 }
        try await refresh(store)
        let expected = manifest?.contains("sha256") == true ? 1 : 2
        #expect(try await store.text(for: bench.notes).text == "Notes \(expected)")
        #expect(count("/notes.txt") == expected)
    }

    @Test func `T9: a failed check does not replace the manifest that another store has saved meanwhile`() async throws {
        serveHeld("/versions.json", .status(503), .json(literal: #"{"eula":"1.0.0"}"#))
        let store = try await bench.started()
        try await until("the request has arrived") { count("/versions.json") == 1 }
        bench.time.shiftDate(by: .seconds(1))
        let other = try await bench.started().refreshed()
        gate.update { $0 = true }
        #expect(try await store.text(for: bench.source("eula"), awaiting: patient).fallbackReason?.code == .unexpectedStatus)
        #expect(other.shelf.manifestFile.load().copies.first?.value.body != nil)
    }

    private func awaited(_ store: TextStore, byRefresh: Bool) async throws -> VersionedText {
        if byRefresh { return try await store.refreshed().text(for: bench.source("eula")) }
        return try await store.text(for: bench.source("eula"), awaiting: patient)
    }

    @Test(arguments: [false, true], [false, true])
    func `T8, T17: neither a refresh nor an awaited read ends early where its requests are abandoned`(
        isCleared: Bool, isRefresh: Bool
    ) async throws {
        serveHeld("/versions.json", .json(literal: #"{"eula":"1.0.0"}"#), .json(literal: #"{"eula":"2.0.0"}"#))
        bench.serve("eula", "Remote terms 2")
        bench.serve("other", "unused")
        bench.origin.on(.get, "/other.json") { _ in .json(literal: #"{"eula":"2.0.0"}"#) }
        let store = try await bench.started()
        try await until("the request has arrived") { count("/versions.json") == 1 }
        async let text = awaited(store, byRefresh: isRefresh)
        if isRefresh {
            try await until("the refresh waits") { store.session.read { $0.refreshing } == 1 }
        } else {
            try await bench.time.sleepers(atLeast: 1)
        }
        if isCleared {
            try await store.clear()
        } else {
            await store.setVersionSource(VersionSource(remoteFile: RemoteFile(url: bench.origin.url.appending(path: "other.json"))))
        }
        let found = try await text
        #expect(line(found) == "2.0.0 remote: Remote terms 2")
        gate.update { $0 = true }
    }

    @Test func `T17: a canceled refresh leaves no debt`() async throws {
        serveHeld("/versions.json", .json(literal: #"{"eula":"1.0.0"}"#))
        let store = try await bench.started()
        try await until("the request has arrived") { count("/versions.json") == 1 }
        let task = Task { try await store.refresh() }
        try await until("the refresh waits") { store.session.read { $0.refreshing } == 1 }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(store.session.read { $0.refreshing } == 0)
        gate.update { $0 = true }
        try await store.refresh()
    }
}
