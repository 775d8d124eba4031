import Foundation
import LoopbackOrigin
import StoreCore
import StoreCoreTesting
import Testing
import Trials

@testable import TextStore

/// T8, T9, T10, T12, T13, T14: starting, refreshing, waiting, increases, and housekeeping.
struct RefreshTests {
    let bench: Bench

    init() throws { bench = try Bench() }

    @Test func `T8, T12: a bundled text is available at once, a newer one after waiting, and again offline after a restart`() async throws {
        bench.serve(eula: 2)
        let store = try await bench.started()
        #expect(line(try await store.text(for: bench.source("privacy"))) == "1.0.0 bundle: Bundled privacy 1")
        #expect(line(try await store.text(for: bench.source("eula"), awaiting: patient)) == "2.0.0 remote: Remote terms 2")
        bench.origin.goDown()
        // The first states have both kinds of local text without a network.
        let second = try await bench.started()
        for (name, expected) in [("eula", "2.0.0 cache: Remote terms 2"), ("privacy", "1.0.0 bundle: Bundled privacy 1")] {
            #expect(line(try await second.text(for: bench.source(name))) == expected)
            var states = second.publish(bench.source(name)).makeAsyncIterator()
            #expect(await states.next()?.content.map(line) == expected)
        }
    }

    @Test func `T8: one deadline covers manifest and text; the best local text has the reason, and the fetch continues`() async throws {
        // A unique path, because a store of an earlier test may still send requests to a port that this origin has reused.
        let path = "/\(UUID().uuidString).json"
        let gate = WatchedState(false)
        bench.origin.on(.get, path) { _ in
            try? await gate.wait { $0 ? () : nil }
            return .json(literal: #"{"eula":"2.0.0"}"#)
        }
        bench.serve("eula", "Remote terms 2")
        let store = try bench.store()
        try await store.register(bench.source("eula"))
        let bundled = BundleFile(fileName: "versions", fileExtension: "json")
        await store.setVersionSource(
            VersionSource(bundleFile: bundled, remoteFile: RemoteFile(url: bench.origin.url.appending(path: path))))
        async let waiting = store.text(for: bench.source("eula"), awaiting: .remote(timeout: .seconds(2)))
        try await bench.time.advance(by: .seconds(2), sleepers: 1)
        let text = try await waiting
        #expect(text.text == "Bundled terms 1" && text.fallbackReason?.code == .timedOut)
        gate.update { $0 = true }
        #expect(line(try await store.text(for: bench.source("eula"), awaiting: patient)) == "2.0.0 remote: Remote terms 2")
        #expect(bench.origin.requests(to: path).count == 1)
    }

    @Test func `T8: a canceled caller returns at once, and the fetch continues`() async throws {
        let gate = WatchedState(false)
        bench.origin.on(.get, "/versions.json") { _ in
            try? await gate.wait { $0 ? () : nil }
            return .json(literal: #"{"eula":"2.0.0"}"#)
        }
        bench.serve("eula", "Remote terms 2")
        let store = try await bench.started()
        let waiting = Task { [bench] in try await store.text(for: bench.source("eula"), awaiting: patient) }
        try await bench.time.sleepers(atLeast: 1)
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
        gate.update { $0 = true }
        #expect(line(try await store.text(for: bench.source("eula"), awaiting: patient)) == "2.0.0 remote: Remote terms 2")
    }

    @Test func `T8: a resident text is read without disk and network`() async throws {
        bench.origin.goDown()
        let store = try await bench.started()
        // The start may still save or tidy, so that a file comes or goes during the removal.
        try await until("the directory is gone") {
            try? FileManager.default.removeItem(at: bench.place.url)
            return !FileManager.default.fileExists(atPath: bench.place.url.path(percentEncoded: false))
        }
        #expect(line(try await store.text(for: bench.source("eula"))) == "1.0.0 bundle: Bundled terms 1")
    }

    @Test func `T1, T9: a manifest is revalidated only after its interval, and a bundled text that it lists is not fetched`() async throws {
        bench.serve(manifest: #"{"eula":"1.0.0"}"#)
        for _ in 1...2 { _ = try await bench.started().text(for: bench.source("eula"), awaiting: patient) }
        #expect(bench.origin.requests(to: "/versions.json").map(\.status) == [200])
        bench.time.shiftDate(by: .seconds(15 * 60))
        _ = try await bench.started().text(for: bench.source("eula"), awaiting: patient)
        #expect(bench.origin.requests(to: "/versions.json").map(\.status) == [200, 304])
        let store = try await bench.started()
        try await store.refresh()
        #expect(bench.origin.requests(to: "/versions.json").map(\.status) == [200, 304, 304])
        // A clock that was set back by a year must not suspend the checks for as long.
        bench.time.shiftDate(by: .seconds(-365 * 86_400))
        _ = try await bench.started().text(for: bench.source("eula"), awaiting: patient)
        #expect(bench.origin.requests(to: "/versions.json").count == 4)
        #expect(bench.origin.requests(to: "/eula.txt").isEmpty)
    }

    @Test func `T9: a failed manifest is retried after growing pauses`() async throws {
        bench.origin.on(.get, "/versions.json", inTurn: .status(503), .status(503), .json(literal: #"{"eula":"1.0.0"}"#))
        let store = try await bench.started()
        let eula = bench.source("eula")
        #expect(try await store.text(for: eula, awaiting: patient).fallbackReason?.code == .unexpectedStatus)
        for (pause, count) in [(4, 1), (1, 2), (9, 2), (1, 3)] {
            bench.time.advance(by: .seconds(pause))
            _ = try await store.text(for: eula, awaiting: patient)
            #expect(bench.origin.requests(to: "/versions.json").count == count, "after \(pause) s more")
        }
        #expect(try await store.text(for: eula, awaiting: patient).fallbackReason == nil)
    }

    @Test func `T9: observers are refreshed after the interval, and see an expired manifest as stale`() async throws {
        bench.time.setDate(Date(timeIntervalSince1970: 1_893_456_000 - 600))
        bench.serve(manifest: #"{"expires":"2030-01-01T00:00:00Z","texts":{"eula":"1.0.0"}}"#)
        let store = try await bench.started()
        let seen = WatchedState<[String]>([])
        let observing = Task { [bench] in
            for await state in store.publish(bench.source("eula")) {
                guard case .completed(let text, _, _) = state else { continue }
                seen.update { $0.append("\(text.version?.description ?? "-")\(text.staleSince == nil ? "" : " stale")") }
            }
        }
        defer { observing.cancel() }
        try await seen.wait { $0 == ["1.0.0"] ? () : nil }
        try await bench.time.advance(by: .seconds(600), sleepers: 1)
        try await seen.wait { $0 == ["1.0.0", "1.0.0 stale"] ? () : nil }
        bench.serve(manifest: #"{"texts":{"eula":"2.0.0"}}"#)
        bench.serve("eula", "Remote terms 2")
        try await bench.time.advance(by: .seconds(300), sleepers: 1)
        try await seen.wait { $0.last == "2.0.0" ? () : nil }
    }

    @Test func `T9: a failed set that the next manifest dissolves leaves no failure behind`() async throws {
        func serve(group: String) { bench.serve(manifest: #"{"texts":{"eula":{"version":"2.0.0","group":"\#(group)"}}}"#) }
        serve(group: "one")
        bench.origin.on(.get, "/eula.txt") { _ in .status(404) }
        let store = try bench.store()
        try await bench.start(store)
        await #expect(throws: TextStoreError.self) { try await store.refresh() }
        serve(group: "two")
        bench.serve("eula", "Remote terms 2")
        try await store.refresh()
        #expect(line(try await store.text(for: "eula", awaiting: patient)) == "2.0.0 remote: Remote terms 2")
    }

    @Test func `T1, T9: an unversioned text is revalidated when it expires`() async throws {
        bench.serve("notes", "Notes 1")
        for (start, expected) in [[200], [200], [200, 304], [200, 304]].enumerated() {
            let store = try bench.store()
            try await store.register(bench.notes)
            let text = try await store.text(for: bench.notes, awaiting: patient)
            #expect(text.text == "Notes 1" && text.version == nil)
            #expect(bench.origin.requests(to: "/notes.txt").map(\.status) == expected)
            if start < 2 { bench.time.shiftDate(by: .seconds(13 * 3600)) }
        }
        bench.serve("notes", "Notes 2")
        bench.time.shiftDate(by: .seconds(24 * 3600))
        let store = try bench.store()
        try await store.register(bench.notes)
        #expect(try await store.text(for: bench.notes).text == "Notes 1")
        #expect(try await store.text(for: bench.notes, awaiting: patient).text == "Notes 2")
    }

    @Test func `T10: increases are reported once, after the save, and not again at the next start`() async throws {
        bench.serve(manifest: #"{"eula":"2.0.0"}"#)
        bench.serve("eula", "Bundled terms 1")
        let store = try bench.store()
        var increases = store.versionIncreases.makeAsyncIterator()
        try await bench.start(store)
        let first = try #require(await increases.next())
        #expect(first.isFirstInstallation && first.from == nil && first.to == SemanticVersion("1.0.0"))
        let second = try #require(await increases.next())
        #expect(!second.isFirstInstallation && second.from == SemanticVersion("1.0.0") && second.to == SemanticVersion("2.0.0"))
        #expect(!second.textChanged)
        #expect(bench.place.files.contains { $0.hasSuffix(".text") })

        let updated = try bench.bundle(["eula.txt": "Bundled terms 3", "versions.json": #"{"eula":"3.0.0"}"#])
        let next = try bench.store(bundle: updated)
        var later = next.versionIncreases.makeAsyncIterator()
        try await bench.start(next)
        let third = try #require(await later.next())
        #expect(third.from == SemanticVersion("2.0.0") && third.to == SemanticVersion("3.0.0") && third.textChanged)
        #expect(line(try await next.text(for: bench.source("eula"))) == "3.0.0 bundle: Bundled terms 3")
    }

    @Test func `T13: an acceptance keeps version, digest, and date, and its granularity decides about the next`() async throws {
        bench.serve(manifest: #"{"eula":"1.1.0"}"#)
        bench.serve("eula", "Remote terms 1.1")
        let store = try await bench.started()
        let eula = bench.source("eula")
        #expect(try await store.needsAcceptance(of: eula))
        try await store.accept(store.text(for: eula))
        try await store.refresh()
        let next = try await bench.started()
        let accepted = try #require(try await next.acceptance(of: eula))
        #expect(
            accepted.version == SemanticVersion("1.0.0") && accepted.digest == sha256("Bundled terms 1") && accepted.date == bench.time.date
        )
        #expect(try await next.needsAcceptance(of: eula, granularity: .minor))
        #expect(try await next.needsAcceptance(of: eula, granularity: .major) == false)
        try await next.clear()
        #expect(try await next.acceptance(of: eula) == accepted)
        #expect(try bench.place.damage("accepted") == 2)
        #expect(try await bench.started().needsAcceptance(of: eula, granularity: .major))
    }

    @Test func `T14: active and previous records stay, other records are removed, and foreign files stay`() async throws {
        for version in 2...5 {
            bench.serve(eula: version)
            try await bench.started().refresh()
        }
        let records = bench.place.files.filter { $0.hasSuffix(".text") }
        #expect(records.count == 2)
        let folder = bench.place.file(records[0]).deletingLastPathComponent()
        try Data("mine".utf8).write(to: folder.appending(path: "notes.text"))
        let store = try await bench.started()
        try await store.clear()
        #expect(bench.place.files.filter { $0.hasSuffix(".text") }.map { $0.split(separator: "/").last } == ["notes.text"])
        let text = try await store.text(for: bench.source("eula"))
        #expect(line(text) == "1.0.0 bundle: Bundled terms 1 (below floor)")
    }

    @Test func `T14: clearing fetches observed texts again`() async throws {
        bench.serve(eula: 2)
        let store = try await bench.started().refreshed()
        var states = store.publish(bench.source("eula")).makeAsyncIterator()
        #expect(await states.next()?.content?.version == SemanticVersion("2.0.0"))
        try await store.clear()
        while let state = await states.next() {
            if case .completed(let text, _, _) = state, text.version == SemanticVersion("2.0.0") { break }
        }
        #expect(bench.origin.requests(to: "/eula.txt").map(\.status) == [200, 200])
    }

    @Test(arguments: [false, true])
    func `T9: a refresh waits for the newest manifest's text, even while an older text is being fetched`(oldFails: Bool) async throws {
        let events = bench.events, manifests = WatchedState(1)
        let store = try bench.store(
            bundle: bench.bundle([:]),
            fetcher: RevalidatingClosureFetcher { file, _ in
                let name = file.url.lastPathComponent
                guard name == "versions.json" else {
                    // The older text arrives, or fails, once the newer manifest has arrived.
                    if name == "2.txt" { try await events.waitForChecks(2) }
                    if name == "2.txt", oldFails { throw TextStoreError(.unexpectedStatus, "it is gone") }
                    return .modified(RemoteText(bytes: Data("Remote terms \(name)".utf8), contentType: "text/plain"))
                }
                let version = manifests.increment()
                let manifest = #"{"texts":{"eula":{"version":"\#(version).0.0","url":"\#(version).txt"}}}"#
                return .modified(RemoteText(bytes: Data(manifest.utf8), contentType: "application/json"))
            })
        let eula = TextSource(identifier: "eula", remoteFile: RemoteFile(url: bench.origin.url.appending(path: "eula.txt")))
        try await store.register(eula)
        await store.setVersionSource(VersionSource(remoteFile: RemoteFile(url: bench.origin.url.appending(path: "versions.json"))))
        try await events.waitForChecks(1)
        try await store.refresh()
        #expect(try await line(store.text(for: eula)) == "3.0.0 remote: Remote terms 3.txt")
        #expect(events.saved.last == "eula 3.0.0")
    }

    // MARK: Released stores

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
