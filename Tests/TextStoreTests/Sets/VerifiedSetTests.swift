import Foundation
import LoopbackOrigin
import StoreCore
import StorePlatform
import StoreCoreTesting
import Testing
import Trials

@testable import TextStore

/// T7, T15, T16: waiting sets, epochs, and withdrawals with a verifier, late manifests, and other processes.
struct VerifiedSetTests {
    let bench: Bench

    init() throws { bench = try Bench() }

    private struct Refused: Error {}

    private static let names = ["eula", "privacy"]

    /// Publishes versions of both texts as one set, each signed in a header field.
    private func serve(_ eula: Int, _ privacy: Int) {
        let entries = zip(Self.names, [eula, privacy]).map { #""\#($0)":{"version":"\#($1).0.0","group":"legal"}"# }
        bench.origin.on(.get, "/versions.json") { _ in
            .json(literal: #"{"texts":{\#(entries.joined(separator: ","))}}"#).setting("X-Signature", to: "good")
        }
        for (name, version) in zip(Self.names, [eula, privacy]) {
            bench.origin.on(.get, "/\(name).txt") { _ in .text("Remote \(name) \(version)").setting("X-Signature", to: "good") }
        }
    }

    private static let verify: @Sendable (TextVerification) async throws -> Void = { verification in
        guard verification.headers["x-signature"] == "good" else { throw Refused() }
    }

    /// Starts a store of the whole set.
    private func started(_ activation: TextStorePolicy.Activation) async throws -> TextStore {
        try await bench.started(policy: TextStorePolicy(activation: activation), group: "legal", verify: Self.verify)
    }

    private func sources(_ names: [String] = Self.names) -> [TextSource] { names.map { bench.source($0, group: "legal") } }

    @Test(arguments: [true, false])
    func `T2, T7, T15: a waiting set that the saved manifest lists stays if the version source is set before the texts`(
        verifies: Bool
    ) async throws {
        let first = try await started(.manually)
        serve(2, 2)
        try await first.refresh()
        try await first.activate()
        serve(3, 3)
        try await first.refresh()
        bench.origin.goDown()
        let next = try bench.store(policy: TextStorePolicy(activation: .manually), verify: verifies ? Self.verify : nil)
        await next.setVersionSource(bench.versions)
        try await next.register(sources())
        #expect(try await next.activate())
        #expect(try await next.lines() == ["3.0.0 cache: Remote eula 3", "3.0.0 cache: Remote privacy 3"])
        #expect(bench.events.refusals.allSatisfy { $0.code != .withdrawn })
    }

    @Test(arguments: [true, false])
    func `T2, T7, T15: a waiting set with a copy of a bundled text is activated in any registration order`(isTogether: Bool) async throws {
        let first = try await started(.atNextLaunch)
        serve(2, 1)
        try await first.refresh()
        bench.origin.goDown()
        let next = try bench.store(policy: TextStorePolicy(activation: .atNextLaunch), verify: Self.verify)
        if isTogether { try await next.register(sources()) } else { for source in sources() { try await next.register(source) } }
        #expect(try await next.lines() == ["2.0.0 cache: Remote eula 2", "1.0.0 cache: Bundled privacy 1"])
        #expect(bench.events.refusals.allSatisfy { $0.code != .verificationFailed })
    }

    @Test(arguments: [["eula", "privacy"], ["privacy", "eula"]], [true, false])
    func `T2, T7, T15: a refused or damaged text returns its set to a copy of a bundled text in any order`(
        order: [String], isDamaged: Bool
    ) async throws {
        let first = try await started(.immediately)
        serve(2, 1)
        try await first.refresh()
        serve(3, 2)
        try await first.refresh()
        bench.origin.goDown()
        if isDamaged { try bench.place.damageRecord(of: "Remote eula 3") }
        let next = try bench.store(verify: { verification in
            try await Self.verify(verification)
            if !isDamaged, verification.identifier == "eula", verification.version?.major == 3 { throw Refused() }
        })
        for name in order { try await next.register(sources([name])) }
        #expect(try await next.lines() == ["2.0.0 cache: Remote eula 2 (below floor)", "1.0.0 cache: Bundled privacy 1 (below floor)"])
    }

    @Test func `T4, T7: bytes that change under their version wait for activation, and are fetched once`() async throws {
        let policy = TextStorePolicy(activation: .manually)
        let store = try await bench.started(policy: policy)
        bench.serve(manifest: #"{"eula":"2.0.0"}"#)
        bench.serve("eula", "Old terms 2")
        try await store.refresh()
        try await store.activate()
        bench.serve("eula", "New terms 2")
        bench.time.shiftDate(by: .seconds(1))
        try await store.refresh()
        for _ in 0..<3 { _ = try await store.text(for: "eula", awaiting: patient) }
        #expect(bench.origin.requests(to: "/eula.txt").count == 2)
        #expect(try await store.activate())
        #expect(line(try await store.text(for: "eula")) == "2.0.0 remote: New terms 2")
    }

    @Test(arguments: [true, false])
    func `T2, T9: a manifest that arrives after a clear, or from a replaced source, changes nothing`(isCleared: Bool) async throws {
        let late = WatchedState(false), arrived = WatchedState(false), requests = WatchedState(0)
        let store = try bench.store(
            fetcher: RevalidatingClosureFetcher { file, _ in
                guard file.url.pathExtension == "json" else {
                    try await arrived.wait { $0 ? () : nil }
                    return .modified(RemoteText(bytes: Data("Remote terms 3".utf8), contentType: "text/plain"))
                }
                let isFirst = requests.increment() == 1
                if isFirst { try await late.wait { $0 ? () : nil } }
                let manifest = isFirst ? #"{"revision":9,"texts":{"eula":"2.0.0"}}"# : #"{"revision":3,"texts":{"eula":"3.0.0"}}"#
                return .modified(RemoteText(bytes: Data(manifest.utf8), contentType: "application/json"))
            })
        try await bench.start(store)
        let abandoned = store.tasks.withLock { Array($0.values) }
        #expect(abandoned.count == 1)
        if isCleared {
            try await store.clear()
        } else {
            await store.setVersionSource(VersionSource(remoteFile: RemoteFile(url: bench.origin.url.appending(path: "other.json"))))
        }
        let refreshing = Task { try await store.refresh() }
        try await store.session.wait { $0.flights.isEmpty ? nil : () }
        late.update { $0 = true }
        for task in abandoned { await task.value }
        arrived.update { $0 = true }
        try await refreshing.value
        try await store.refresh()
        #expect(line(try await store.text(for: "eula")) == "3.0.0 remote: Remote terms 3")
        // The first refresh does not join the request that the other source has begun. Events follow the results.
        try await bench.events.waitForChecks(isCleared ? 2 : 3)
        #expect(bench.events.checks == (isCleared ? 2 : 3))
    }

    @Test func `T7, T15: a waiting set that another process has saved stays until its records are verified`() async throws {
        let other = bench.place.shelf()
        _ = try await other.store(
            "group/g", [record("eula", "2.0.0", "eula 2"), record("privacy", "2.0.0", "privacy 2")], isActivated: false)
        let shelf = bench.place.shelf(verifies: true)
        #expect(try await shelf.activatePending().hasSwitched == false)
        #expect(await shelf.pointer.pending.keys.sorted() == ["group/g"])
        await shelf.take(shelf.recordsToVerify(nil, withPending: true).mapValues { _ in true })
        #expect(try await shelf.activatePending().hasSwitched)
        #expect(await shelf.pointer.active.count == 2)
    }

    @Test(arguments: [true, false])
    func `T7: a set of an older manifest is not stored after another process has accepted a newer one`(isActivated: Bool) async throws {
        let (one, other) = (bench.place.shelf(), bench.place.shelf())
        _ = try await one.accept(revision: 1, ["eula": "2.0.0"])
        _ = try await other.accept(revision: 2, ["eula": "1.0.0"])
        let error = await expectError(.withdrawn, of: "eula") {
            try await one.store("text/eula", [record("eula", "2.0.0", "two")], isActivated: isActivated)
        }
        #expect(error?.message.contains("another process") == true)
        // The manifest does not list unversioned texts.
        _ = try await one.store("text/notes", [record("notes", nil, "notes")], isActivated: isActivated)
        _ = try await one.accept(revision: 2, ["eula": "2.0.0"])
        _ = try await one.store("text/eula", [record("eula", "2.0.0", "two")], isActivated: isActivated)
    }

    @Test func `T7: a waiting set of a newer manifest that another process has accepted is activated`() async throws {
        let (one, other) = (bench.place.shelf(), bench.place.shelf())
        _ = try await one.accept(revision: 1, ["eula": "1.0.0"])
        _ = try await other.accept(revision: 2, ["eula": "2.0.0"])
        _ = try await other.store("text/eula", [record("eula", "2.0.0", "two")], isActivated: false)
        #expect(try await one.activatePending().hasSwitched)
        #expect(await one.floors.texts["eula"]?.rank.version == SemanticVersion("2.0.0"))
    }

    @Test func `T7: a member that a switch leaves unchanged comes from the same source as the rest of its set`() async throws {
        serve(2, 3)
        let first = try await started(.immediately)
        try await first.refresh()
        let next = try await bench.started(bundle: bench.bundle(eula: 3, privacy: 3), group: "legal")
        #expect(try await next.lines() == ["3.0.0 bundle: Bundled terms 3", "3.0.0 bundle: Bundled privacy 3"])
        serve(4, 3)
        try await next.refresh()
        #expect(try await next.lines() == ["4.0.0 remote: Remote eula 4", "3.0.0 cache: Remote privacy 3"])
    }
}
