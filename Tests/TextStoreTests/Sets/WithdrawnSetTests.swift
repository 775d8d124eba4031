import Foundation
import LoopbackOrigin
import StoreCore
import Testing
import Trials

@testable import TextStore

/// T7: sets that a newer manifest has withdrawn are not activated.
struct WithdrawnSetTests {
    let bench: Bench

    init() throws { bench = try Bench() }

    private func serve(_ version: Int) { bench.serve(eula: version, privacy: version) }

    @Test(arguments: [nil, "legal"], [TextStorePolicy.Activation.manually, .atNextLaunch])
    func `T7: a withdrawn waiting set is not activated, manually or at the next launch`(
        group: String?, activation: TextStorePolicy.Activation
    ) async throws {
        let policy = TextStorePolicy(activation: activation)
        let store = try await bench.started(policy: policy, group: group)
        serve(2)
        try await store.refresh()
        serve(1)
        try await store.refresh()
        #expect(try await store.activate() == false)
        #expect(try await store.versions() == ["1.0.0", "1.0.0"])
        try await bench.events.waitForRefusal { $0.code.rawValue == "withdrawn" }
        #expect(!bench.place.files.contains { $0.hasSuffix(".text") })
        bench.origin.goDown()
        #expect(try await bench.started(policy: policy, group: group).versions() == ["1.0.0", "1.0.0"])
    }

    @Test func `T7: a waiting set is not activated at the next launch after a newer manifest has changed it`() async throws {
        let policy = TextStorePolicy(activation: .atNextLaunch)
        let store = try await bench.started(policy: policy, group: "legal")
        serve(2)
        try await store.refresh()
        bench.serve(manifest: #"{"eula":"2.0.0","privacy":"1.0.0"}"#)
        // The newest set needs another text, which cannot be fetched.
        bench.origin.on(.get, "/eula.txt") { _ in .status(404) }
        try? await store.refresh()
        bench.origin.goDown()
        #expect(try await bench.started(policy: policy, group: "legal").versions() == ["1.0.0", "1.0.0"])
    }

    @Test(arguments: [nil, "legal"])
    func `T7: a waiting rollback stays while later manifests repeat it`(group: String?) async throws {
        let store = try await bench.started(policy: TextStorePolicy(activation: .manually), group: group)
        for (revision, version) in [(1, "3.0.0"), (2, "2.0.0"), (3, "2.0.0")] {
            let entry = #"{"version":"\#(version)","rollback":\#(revision > 1)}"#
            bench.serve(manifest: #"{"revision":\#(revision),"texts":{"eula":\#(entry),"privacy":\#(entry)}}"#)
            for name in ["eula", "privacy"] { bench.serve(name, "Remote \(name) \(version)") }
            try await store.refresh()
            if revision != 2 { #expect(try await store.activate()) }
        }
        #expect(try await store.versions() == ["2.0.0", "2.0.0"])
        #expect(!bench.events.refusals.contains { $0.code == .withdrawn })
        #expect(bench.origin.requests(to: "/eula.txt").count == 2)
        #expect(try await store.activate() == false)
    }

    @Test func `T7: a waiting set stays if another store of the session has no group for one of its texts`() async throws {
        bench.serve(eula: 2, privacy: 2)
        let policy = TextStorePolicy(activation: .manually)
        let store = try await bench.started(policy: policy, group: "legal")
        #expect(try await store.text(for: "eula", awaiting: patient).fallbackReason?.code == .notActivated)
        let other = try bench.store(policy: policy)
        try await bench.start(other)
        for store in [other, store, other, store] {
            #expect(try await store.refreshed().text(for: "eula", awaiting: patient).fallbackReason?.code == .notActivated)
        }
        #expect(["/eula.txt", "/privacy.txt"].map { bench.origin.requests(to: $0).count } == [1, 1])
        #expect(try await store.activate())
        #expect(try await store.versions() == ["2.0.0", "2.0.0"])
    }

    @Test func `T7: a waiting set stays at the next start if a former member waits on its own`() async throws {
        let shelf = bench.place.shelf()
        _ = try await shelf.store("group/g", ["eula", "privacy"].map { record($0, "1.0.0", "\($0) 1") }, isActivated: true)
        _ = try await shelf.store("group/g", [record("eula", "2.0.0", "eula 2")], isActivated: false)
        _ = try await shelf.store("text/privacy", [record("privacy", "3.0.0", "privacy 3")], isActivated: false)
        let manifest = #"{"texts":{"eula":{"version":"2.0.0","group":"g"},"privacy":"3.0.0"}}"#
        let outcome = try await shelf.accept(VersionManifest(parsing: Data(manifest.utf8)), TextStorePolicy(), isVerified: false)
        #expect(outcome?.events.isEmpty == true)
        #expect(try await shelf.activatePending().hasSwitched)
        let versions = await shelf.pointer.active.mapValues { $0.rank.version?.description }
        #expect(versions == ["eula": "2.0.0", "privacy": "3.0.0"])
    }

    @Test(arguments: ["legal", "other"])
    func `T7: a waiting set stays if an unchanged member moves to another group, but not if that member has a newer version`(
        group: String
    ) async throws {
        let store = try await bench.started(policy: TextStorePolicy(activation: .manually))
        func publish(_ eula: Int, _ privacy: Int, _ group: String = "legal") async throws {
            bench.serve(eula: eula, privacy: privacy)
            let entries = #""eula":{"version":"\#(eula).0.0","group":"legal"},"privacy":{"version":"\#(privacy).0.0","group":"\#(group)"}"#
            bench.serve(manifest: #"{"texts":{\#(entries)}}"#)
            try await store.refresh()
        }
        try await publish(2, 2)
        #expect(try await store.activate())
        try await publish(3, 2)
        try await publish(3, 3, group)
        #expect(bench.events.refusals.map(\.code) == (group == "legal" ? [.withdrawn] : []))
        #expect(try await store.activate())
        #expect(try await store.versions() == ["3.0.0", "3.0.0"])
    }

    @Test(
        arguments: [
            (#""eula":"2.0.0","privacy":"1.0.0""#, true), (#""eula":"2.0.0","privacy":"2.0.0""#, false), (#""eula":"2.0.0""#, false),
            (#""eula":"2.0.0","privacy":"1.x""#, false), (#""eula":"2.0.1","privacy":"1.0.0""#, false), (#""privacy":"1.0.0""#, false),
            (#""eula":{"version":"2.0.0","group":"g"},"privacy":{"version":"1.0.0","group":"g"}"#, true),
            (#""eula":{"version":"2.0.0","group":"h"},"privacy":{"version":"1.0.0","group":"g"}"#, false),
            (#""eula":{"version":"2.0.0","sha256":"\#(sha256("eula 2"))"},"privacy":"1.0.0""#, true),
            (#""eula":{"version":"2.0.0","sha256":"\#(sha256("eula 3"))"},"privacy":"1.0.0""#, false),
        ], [true, false])
    func `T7: a waiting set stays only if the newest manifest lists exactly this set, registered or not`(
        row: (texts: String, isKept: Bool), isRegistered: Bool
    ) async throws {
        let names = ["eula", "privacy"]
        let shelf = try await isRegistered ? bench.place.shelf(of: names) : bench.place.shelf()
        _ = try await shelf.store("group/g", names.map { record($0, "1.0.0", "\($0) 1") }, isActivated: true)
        _ = try await shelf.store("group/g", [record("eula", "2.0.0", "eula 2")], isActivated: false)
        let manifest = try VersionManifest(parsing: Data(#"{"texts":{\#(row.texts)}}"#.utf8))
        let outcome = try await shelf.accept(manifest, TextStorePolicy(), isVerified: false)
        #expect(outcome?.events.count == (row.isKept ? 0 : 1))
        #expect(await shelf.pointer.pending.keys.sorted() == (row.isKept ? ["group/g"] : []))
        #expect(bench.place.files.filter { $0.hasSuffix(".text") }.count == (row.isKept ? 3 : 2))
        #expect(try await shelf.activatePending().hasSwitched == row.isKept)
    }

    @Test(
        arguments: [
            ("{}", true), (#"{"notes":"1.0.0"}"#, false), (#"{"notes":"1.x"}"#, false),
            (#"{"texts":{"notes":{"version":"1.0.0","when":{"percent":0}}}}"#, false),
        ])
    func `T7: an unversioned text that waits stays unless a manifest lists it`(manifest: String, isKept: Bool) async throws {
        let shelf = bench.place.shelf()
        _ = await shelf.admit(["notes"], activatesPending: false)
        _ = try await shelf.store("text/notes", [record("notes", nil, "notes")], isActivated: false)
        _ = try await shelf.accept(VersionManifest(parsing: Data(manifest.utf8)), TextStorePolicy(), isVerified: false)
        #expect(try await shelf.activatePending().hasSwitched == isKept)
    }

    @Test func `T7: a set is not stored after a newer manifest has withdrawn it`() async throws {
        let shelf = bench.place.shelf()
        _ = await shelf.admit(["eula"], activatesPending: false)
        _ = try await shelf.accept(revision: 1, ["eula": "1.0.0"])
        for isActivated in [true, false] {
            await expectError(.withdrawn, of: "eula") {
                try await shelf.store("text/eula", [record("eula", "2.0.0", "two")], isActivated: isActivated)
            }
        }
        #expect(!bench.place.files.contains { $0.hasSuffix(".text") })
        shelf.session.update { $0.replaceManifest(nil) }
        _ = try await shelf.store("text/eula", [record("eula", "2.0.0", "two")], isActivated: true)
    }

    @Test func `T7: activating texts that are already active changes nothing and returns false`() async throws {
        let shelf = bench.place.shelf()
        _ = await shelf.admit(["eula"], activatesPending: false)
        _ = try await shelf.store("text/eula", [record("eula", "2.0.0", "two")], isActivated: false)
        _ = try await shelf.store("group/g", [record("eula", "2.0.0", "two")], isActivated: true)
        #expect(try await shelf.activatePending().hasSwitched == false)
        _ = try await shelf.store("text/eula", [record("eula", "2.0.0", "other words")], isActivated: false)
        #expect(try await shelf.activatePending().hasSwitched)
    }

    @Test func `T7: a damaged or outdated waiting set is dropped whole, and the others are activated`() async throws {
        let shelf = bench.place.shelf(), names = ["eula", "privacy", "notes", "terms"]
        _ = await shelf.admit(names, activatesPending: false)
        _ = try await shelf.store("text/terms", [record("terms", "3.0.0", "three")], isActivated: false)
        _ = try await shelf.store("group/t", [record("terms", "4.0.0", "four")], isActivated: true)
        _ = try await shelf.store("group/g", ["eula", "privacy"].map { record($0, "2.0.0", "\($0) 2") }, isActivated: false)
        _ = try await shelf.store("text/notes", [record("notes", "2.0.0", "notes 2")], isActivated: false)
        try bench.place.damageRecord(of: "privacy 2")
        let next = bench.place.shelf()
        let outcome = await next.admit(names, activatesPending: true)
        #expect(outcome.hasSwitched && outcome.faults.contains { $0.code == .damagedFile && $0.identifier == "privacy" })
        let refused = outcome.events.compactMap { if case .refused(let error) = $0 { error } else { nil } }
        #expect(refused.map(\.code) == [.belowFloor] && refused.first?.identifier == "terms")
        #expect(outcome.increases.map(\.identifier) == ["notes"])
        #expect(next.session.read { session in names.map { session.held[$0]?.active?.text } } == [nil, nil, "notes 2", "four"])
        #expect(await next.pointer.pending.isEmpty)
        #expect(try await next.activatePending().hasSwitched == false)
    }

    @Test(arguments: [TextStorePolicy.Activation.immediately, .manually])
    func `T7: a text that arrives after its withdrawal is not stored`(activation: TextStorePolicy.Activation) async throws {
        let events = bench.events, manifests = Lock(["2.0.0", "1.0.0"])
        let store = try bench.store(
            policy: TextStorePolicy(activation: activation),
            fetcher: RevalidatingClosureFetcher { file, _ in
                guard file.url.lastPathComponent == "versions.json" else {
                    // The text arrives once the newer manifest has arrived.
                    try await events.waitForChecks(2)
                    return .modified(RemoteText(bytes: Data("Remote terms 2".utf8), contentType: "text/plain"))
                }
                let version = manifests.withLock { $0.count > 1 ? $0.removeFirst() : $0[0] }
                return .modified(RemoteText(bytes: Data(#"{"eula":"\#(version)"}"#.utf8), contentType: "application/json"))
            })
        try await bench.start(store)
        try await events.waitForChecks(1)
        try await store.refresh()
        #expect(line(try await store.text(for: bench.source("eula"))) == "1.0.0 bundle: Bundled terms 1")
        #expect(try await store.activate() == false)
        #expect(events.saved.isEmpty)
    }
}
