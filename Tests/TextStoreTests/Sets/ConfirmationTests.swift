import Foundation
import LoopbackOrigin
import StoreCore
import StoreCoreTesting
import Testing
import Trials

@testable import TextStore

/// T17: a text looks current only if the newest manifest confirmed it.
struct ConfirmationTests {
    let bench: Bench

    init() throws { bench = try Bench() }

    struct Bad: Sendable, CustomStringConvertible {
        var description: String
        var entry: String
        var code: TextStoreError.Code
    }

    static let bad = [
        Bad(description: "malformed", entry: #""1.2""#, code: .malformedEntry),
        Bad(description: "no version", entry: "{}", code: .malformedEntry),
        Bad(description: "a pre-release", entry: #""3.0.0-rc.1""#, code: .malformedEntry),
        Bad(description: "listed twice", entry: #""2.0.0","eula":"2.0.0""#, code: .malformedEntry),
        Bad(description: "lower", entry: #""0.9.0""#, code: .belowFloor),
        Bad(description: "a rollback without a revision", entry: #"{"version":"0.9.0","rollback":true}"#, code: .malformedEntry),
    ]

    @Test(arguments: bad, [nil, "legal"])
    func `T17: refresh, states, and texts report a malformed or lower entry until it is corrected`(bad: Bad, group: String?) async throws {
        bench.serve(manifest: #"{"texts":{"eula":"1.0.0","privacy":"1.0.0"}}"#)
        let store = try await bench.started(group: group).refreshed()
        let confirmed = try await store.text(for: bench.source("eula"), awaiting: soon)
        #expect(confirmed.staleSince == nil && confirmed.fallbackReason == nil)

        bench.serve(manifest: #"{"texts":{"eula":\#(bad.entry),"privacy":"1.0.0"}}"#)
        let expected = group == nil ? bad.code : .incompleteSet
        await expectError(expected, of: "eula") { try await store.refresh() }
        try await expectDoubt(store, expected)
        var states = store.publish(bench.source("eula")).makeAsyncIterator()
        if case .error(let error, let content)? = await states.next() {
            #expect((error as? TextStoreError)?.code == expected && content?.text == "Bundled terms 1")
        } else {
            Issue.record("the state is no error")
        }
        // The next start knows it from the saved manifest.
        bench.origin.goDown()
        try await expectDoubt(try await bench.started(group: group), expected)
        #expect(bench.events.refusals.filter { $0.code == bad.code }.count <= 2, "once for each process")
        // A corrected entry ends the doubt.
        try bench.origin.comeBack()
        bench.serve(manifest: #"{"texts":{"eula":"1.0.0","privacy":"1.0.0"}}"#)
        try await store.refresh()
        let text = try await store.text(for: bench.source("eula"), awaiting: soon)
        #expect(text.staleSince == nil && text.fallbackReason == nil)
    }

    private func expectDoubt(_ store: TextStore, _ code: TextStoreError.Code) async throws {
        let text = try await store.text(for: bench.source("eula"))
        #expect(text.text == "Bundled terms 1" && text.staleSince != nil)
        #expect(try await store.text(for: bench.source("eula"), awaiting: soon).fallbackReason?.code == code)
    }

    @Test func `T17: a text that the newest manifest does not list is not confirmed`() async throws {
        bench.serve(manifest: #"{"privacy":"1.0.0"}"#)
        let store = try await bench.started().refreshed()
        let text = try await store.text(for: bench.source("eula"), awaiting: soon)
        #expect(text.staleSince != nil && text.fallbackReason?.code.rawValue == "unconfirmed")
        let privacy = try await store.text(for: bench.source("privacy"), awaiting: soon)
        #expect(privacy.staleSince == nil && privacy.fallbackReason == nil)
    }

    @Test func `T17: a text without an origin needs no confirmation`() async throws {
        bench.serve(manifest: #"{"privacy":"1.0.0"}"#)
        let store = try bench.store()
        let eula = TextSource(identifier: "eula", bundleFile: BundleFile(fileName: "eula", fileExtension: "txt"))
        try await store.register(eula)
        await store.setVersionSource(bench.versions)
        try await store.refresh()
        let text = try await store.text(for: eula, awaiting: soon)
        #expect(text.staleSince == nil && text.fallbackReason == nil)
    }

    @Test func `T17: a text whose newer version waits for its activation is not confirmed`() async throws {
        bench.serve(eula: 2)
        let store = try await bench.started(policy: TextStorePolicy(activation: .manually)).refreshed()
        let text = try await store.text(for: bench.source("eula"), awaiting: soon)
        #expect(text.text == "Bundled terms 1" && text.staleSince != nil && text.fallbackReason?.code.rawValue == "notActivated")
        #expect(try await store.activate())
        let next = try await store.text(for: bench.source("eula"), awaiting: soon)
        #expect(next.text == "Remote terms 2" && next.staleSince == nil && next.fallbackReason == nil)
    }

    @Test func `T8: the error of a missing text states that the fetched one waits for its activation`() async throws {
        bench.serve(manifest: #"{"notes":"1.0.0"}"#)
        bench.serve("notes", "Notes 1")
        let store = try bench.store(policy: TextStorePolicy(activation: .atNextLaunch))
        try await store.register(bench.notes)
        await store.setVersionSource(bench.versions)
        let error = await expectError(.notAvailable, of: "notes") { try await store.text(for: "notes", awaiting: patient) }
        #expect(error?.message.contains("waits for its activation") == true)
    }

    @Test func `T17: a version without a digest is not confirmed while its corrected wording waits for its activation`() async throws {
        bench.serve(manifest: #"{"eula":"2.0.0"}"#)
        bench.serve("eula", "Published too late")
        let store = try await bench.started(policy: TextStorePolicy(activation: .manually)).refreshed()
        #expect(try await store.activate())
        #expect(line(try await store.text(for: "eula", awaiting: soon)) == "2.0.0 remote: Published too late")
        bench.serve("eula", "Remote terms 2")
        bench.time.advance(by: .seconds(3600))
        let text = try await store.text(for: "eula", awaiting: soon)
        #expect(text.text == "Published too late" && text.staleSince != nil && text.fallbackReason?.code == .notActivated)
        #expect(try await store.activate())
        let next = try await store.text(for: "eula", awaiting: soon)
        #expect(line(next) == "2.0.0 remote: Remote terms 2" && next.staleSince == nil)
    }

    @Test func `T17: an unversioned text whose newer wording waits for its activation is not confirmed`() async throws {
        bench.serve("eula", "Remote terms")
        let store = try bench.store(policy: TextStorePolicy(activation: .manually))
        try await store.register(bench.source("eula"))
        for _ in 0..<2 {
            let text = try await store.text(for: bench.source("eula"), awaiting: soon)
            #expect(text.text == "Bundled terms 1" && text.fallbackReason?.code == .notActivated)
        }
        #expect(try await store.activate())
        let next = try await store.text(for: bench.source("eula"), awaiting: soon)
        #expect(next.text == "Remote terms" && next.fallbackReason == nil)
    }

    @Test func `T17: an unversioned text beside a manifest is not confirmed while its newer wording waits`() async throws {
        bench.serve(manifest: #"{"privacy":"1.0.0"}"#)
        bench.serve("notes", "Notes 1")
        for (activation, wording) in [(TextStorePolicy.Activation.immediately, "Notes 1"), (.manually, "Notes 2")] {
            bench.serve("notes", wording)
            bench.time.advance(by: .seconds(3600))
            let store = try bench.store(policy: TextStorePolicy(activation: activation, textExpiry: .seconds(3600)))
            try await store.register(bench.notes)
            await store.setVersionSource(bench.versions)
            let text = try await store.text(for: bench.notes, awaiting: soon)
            #expect(text.text == "Notes 1" && text.fallbackReason?.code == (activation == .manually ? .notActivated : nil))
        }
    }

    @Test(arguments: [nil, "legal"])
    func `T17, T9: a wording that the origin takes back while it waits is not activated`(group: String?) async throws {
        var sources = [bench.notes, bench.source("eula")]
        for index in sources.indices { sources[index].group = group }
        bench.serve("eula", "Remote terms")
        for (activation, wording) in [(TextStorePolicy.Activation.immediately, "Notes 1"), (.manually, "Notes 2"), (.manually, "Notes 1")] {
            bench.serve("notes", wording)
            bench.time.advance(by: .seconds(3600))
            let store = try bench.store(policy: TextStorePolicy(activation: activation, textExpiry: .seconds(3600)))
            try await store.register(sources)
            let text = try await store.text(for: bench.notes, awaiting: soon)
            #expect(text.text == "Notes 1" && text.fallbackReason?.code == (wording == "Notes 2" ? .notActivated : nil))
            #expect(await store.shelf.pointer.pending.isEmpty == (wording == "Notes 1"))
        }
        let store = try bench.store()
        try await store.register(sources)
        #expect(try await !store.activate())
        #expect(try await store.text(for: bench.notes).text == "Notes 1")
    }

    @Test func `T17: a check that failed before the start confirms nothing`() async throws {
        bench.serve(manifest: #"{"eula":"1.0.0"}"#)
        _ = try await bench.started().text(for: bench.source("eula"), awaiting: patient)
        bench.origin.on(.get, "/versions.json") { _ in .status(503) }
        bench.time.shiftDate(by: .seconds(15 * 60))
        _ = try await bench.started().text(for: bench.source("eula"), awaiting: soon)
        let text = try await bench.started().text(for: bench.source("eula"), awaiting: patient)
        #expect(text.fallbackReason?.code == .checkedRecently)
        #expect(bench.origin.requests(to: "/versions.json").count == 2)
    }

    @Test func `T17: the error for a missing text names a check that failed before the start`() async throws {
        bench.origin.on(.get, "/versions.json") { _ in .status(503) }
        for code in [TextStoreError.Code.unexpectedStatus, .checkedRecently] {
            let store = try bench.store(bundle: bench.bundle([:]))
            try await bench.start(store)
            let error = await #expect(throws: TextStoreError.self) { try await store.text(for: bench.source("eula"), awaiting: patient) }
            #expect(error?.code == .notAvailable && (error?.underlyingError as? TextStoreError)?.code == code)
        }
        #expect(bench.origin.requests(to: "/versions.json").count == 1)
    }

    @Test func `T17: a text with another digest than the newest manifest's is stale`() async throws {
        bench.serve(manifest: #"{"texts":{"eula":{"version":"1.0.0","sha256":"\#(sha256("Corrected terms 1"))"}}}"#)
        bench.origin.on(.get, "/eula.txt") { _ in .status(503) }
        let store = try await bench.started()
        let text = try await store.text(for: bench.source("eula"), awaiting: patient)
        #expect(text.text == "Bundled terms 1" && text.staleSince != nil && text.fallbackReason?.code == .unexpectedStatus)
        bench.serve("eula", "Corrected terms 1")
        try await store.refresh()
        let corrected = try await store.text(for: bench.source("eula"), awaiting: patient)
        #expect(corrected.text == "Corrected terms 1" && corrected.staleSince == nil && corrected.fallbackReason == nil)
    }

    @Test func `T8, T17: an awaited text of an expired manifest asks the origin at once, and then ever less often`() async throws {
        bench.time.setDate(Date(timeIntervalSince1970: 1_893_456_000 - 60))
        bench.serve(manifest: #"{"expires":"2030-01-01T00:00:00Z","texts":{"eula":"1.0.0"}}"#)
        let store = try await bench.started(policy: TextStorePolicy(checkInterval: .seconds(86_400)))
        _ = try await store.text(for: bench.source("eula"), awaiting: patient)
        bench.time.advance(by: .seconds(60))
        #expect(try await store.text(for: bench.source("eula")).staleSince != nil)
        func count() -> Int { bench.origin.requests(to: "/versions.json").count }
        #expect(count() == 1, "a plain read keeps to the interval")
        #expect(try await store.text(for: bench.source("eula"), awaiting: soon).fallbackReason?.code == .expiredManifest)
        #expect(count() == 2)
        for _ in 0..<1200 {
            bench.time.advance(by: .seconds(3))
            _ = try await store.text(for: bench.source("eula"), awaiting: soon)
        }
        #expect(count() > 5 && count() < 15)
        bench.serve(manifest: #"{"expires":"2040-01-01T00:00:00Z","texts":{"eula":"2.0.0"}}"#)
        bench.serve("eula", "Remote terms 2")
        bench.time.advance(by: .seconds(3600))
        #expect(line(try await store.text(for: bench.source("eula"), awaiting: soon)) == "2.0.0 remote: Remote terms 2")
    }

    @Test(arguments: [nil, "legal"], [3, 2])
    func `T17, D9: a text that another process switches by its newer manifest is confirmed until the own check says otherwise`(
        group: String?, wording: Int
    ) async throws {
        bench.serve(eula: 2, privacy: 1)
        let policy = TextStorePolicy(checkInterval: .seconds(86_400))
        let store = try await bench.started(policy: policy, group: group)
        _ = try await store.text(for: bench.source("eula"), awaiting: patient)
        let states = WatchedState<[String]>([])
        let observing = Task { [bench] in
            for await state in store.publish(bench.source("eula")) {
                if case .error(let error, _) = state { states.update { $0.append("\(error)") } }
                if let text = state.content { states.update { $0.append("\(text.version?.description ?? "-") \(text.text)") } }
            }
        }
        defer { observing.cancel() }
        try await states.wait { $0.last == "2.0.0 Remote terms 2" ? () : nil }

        bench.serve(eula: 3, privacy: 1)
        bench.serve("eula", "Remote terms \(wording)")
        bench.time.advance(by: .seconds(1))
        try await bench.started(policy: policy, group: group).refresh()
        try await states.wait { $0.last == "3.0.0 Remote terms \(wording)" ? () : nil }
        let text = try await store.text(for: bench.source("eula"), awaiting: patient)
        #expect(text.version == SemanticVersion("3.0.0") && text.staleSince == nil && text.fallbackReason == nil)
        #expect(!states.current.contains { $0.contains("TextStoreError") })

        bench.serve(manifest: #"{"eula":"2.0.0","privacy":"1.0.0"}"#)
        await expectError(group == nil ? .belowFloor : .incompleteSet) { try await store.refresh() }
        #expect(try await store.text(for: bench.source("eula")).staleSince != nil)
    }

    @Test(arguments: ["", #""revision":1,"#])
    func `T17, D9: other bytes of a version to which another process switches stay until the own check`(revision: String) async throws {
        func serve(_ name: String, _ revision: String) {
            let digest = sha256("Terms \(name)")
            bench.serve(name, "Terms \(name)")
            bench.serve(
                manifest: #"{\#(revision)"texts":{"eula":{"version":"2.0.0","url":"\#(name).txt","sha256":"\#(digest)"}}}"#)
        }
        serve("old", revision)
        let policy = TextStorePolicy(checkInterval: .seconds(86_400))
        let store = try await bench.started(policy: policy)
        #expect(line(try await store.text(for: "eula", awaiting: patient)) == "2.0.0 remote: Terms old")
        let states = WatchedState<[String]>([])
        let observing = Task {
            for await state in store.publish("eula") { states.update { $0.append("\(state.content?.text ?? "") \(state.error as Any)") } }
        }
        defer { observing.cancel() }
        try await states.wait { $0.last == "Terms old nil" ? () : nil }

        serve("new", revision.replacing("1", with: "2"))
        bench.time.advance(by: .seconds(1))
        try await bench.started(policy: policy).refresh()
        try await states.wait { $0.last == "Terms new nil" ? () : nil }
        for isChecked in [false, true] {
            if isChecked { try await store.refresh() }
            let text = try await store.text(for: "eula", awaiting: patient)
            #expect(text.text == "Terms new" && text.staleSince == nil && text.fallbackReason == nil)
        }
        #expect(["/old.txt", "/new.txt"].map { bench.origin.requests(to: $0).count } == [1, 1])
        #expect(states.current.allSatisfy { $0.hasSuffix(" nil") })
    }

    @Test func `T4: a digest that a manifest states later verifies the text on the device`() async throws {
        bench.serve(manifest: #"{"eula":"2.0.0"}"#)
        bench.serve("eula", "Remote terms 2")
        let store = try await bench.started().refreshed()
        #expect(try await !store.text(for: "eula").isVerified)
        let count = bench.origin.requests(to: "/eula.txt").count
        bench.serve(manifest: #"{"texts":{"eula":{"version":"2.0.0","sha256":"\#(sha256("Remote terms 2"))"}}}"#)
        try await store.refresh()
        let text = try await store.text(for: "eula")
        #expect(text.isVerified && bench.origin.requests(to: "/eula.txt").count == count)
        try await store.accept(text)
        #expect(try await store.acceptance(of: "eula")?.isVerified == true)
        bench.origin.goDown()
        #expect(try await bench.started().text(for: "eula").isVerified)
    }
}
