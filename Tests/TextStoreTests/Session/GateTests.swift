import Foundation
import LoopbackOrigin
import StoreCore
import StoreCoreTesting
import Testing
import Trials

@testable import TextStore

/// T13: a gate that stays closed until the text it shows was accepted.
struct GateTests {
    private let bench: Bench

    init() throws { bench = try Bench() }

    private static let granularities: [Acceptance.Granularity] = [.any, .major, .minor, .digest]

    /// Returns the granularities with which a text needs acceptance.
    private func needs(_ store: TextStore, _ text: VersionedText) async -> [Acceptance.Granularity] {
        var found: [Acceptance.Granularity] = []
        for granularity in Self.granularities {
            if await store.needsAcceptance(of: text, granularity: granularity) { found.append(granularity) }
        }
        return found
    }

    private func bundle(_ version: String) throws -> Bundle {
        try bench.bundle([
            "eula.txt": "Bundled terms \(version)", "privacy.txt": "Bundled privacy 1", "versions.json": #"{"eula":"\#(version)"}"#,
        ])
    }

    /// Starts a store of one text, with the bundle of an app version.
    private func started(_ version: String) async throws -> TextStore {
        let store = try bench.store(bundle: bundle(version))
        try await bench.start(store)
        // A later refresh must not join the request that this start has begun.
        _ = try await store.text(for: "eula", awaiting: patient)
        return store
    }

    enum Loss { case cleared, damaged }

    @Test(arguments: [(Loss.cleared, false), (.damaged, false), (.cleared, true)])
    func `T13: a text below a floor needs acceptance unless a newer one was accepted, offline and after a loss`(
        loss: Loss, isNewerAccepted: Bool
    ) async throws {
        let eula = bench.source("eula")
        bench.serve(manifest: #"{"eula":"1.0.0"}"#)
        let first = try await started("1.0.0")
        try await first.accept(first.text(for: eula))
        bench.serve(eula: 3)
        try await first.refresh()
        if isNewerAccepted { try await first.accept(first.text(for: eula)) }
        switch loss {
        case .cleared: try await first.clear()
        case .damaged: #expect(try bench.place.damage(".text") == 1)
        }
        bench.origin.goDown()
        let next = try await started("2.0.0")
        let shown = try await next.text(for: eula)
        #expect(line(shown) == "2.0.0 bundle: Bundled terms 2.0.0 (below floor)")
        #expect(await needs(next, shown) == (isNewerAccepted ? [] : Self.granularities))
        try await next.accept(shown)
        #expect(await needs(next, shown) == [])
    }

    @Test func `T13: a store that accepts an older version keeps another store's newer acceptance`() async throws {
        let eula = bench.source("eula")
        bench.serve(manifest: #"{"eula":"1.0.0"}"#)
        let slow = try await started("1.0.0")
        let old = try await slow.text(for: eula)
        bench.serve(eula: 2)
        let fast = try await started("1.0.0")
        try await fast.refresh()
        let new = try await fast.text(for: eula)
        try await fast.accept(new)
        try await slow.accept(old)
        bench.origin.goDown()
        for store in [try await started("1.0.0"), slow] {
            #expect(try await store.acceptance(of: eula)?.version == SemanticVersion("2.0.0"))
            #expect(try await !store.needsAcceptance(of: eula))
        }
    }

    @Test func `T13: a gate asks about and accepts the shown text while a newer one becomes current`() async throws {
        let eula = bench.source("eula")
        bench.serve(manifest: #"{"eula":"1.0.0"}"#)
        let store = try await started("1.0.0")
        let shown = try await store.text(for: eula)
        #expect(await store.needsAcceptance(of: shown, granularity: .major))
        bench.serve(eula: 2)
        try await store.refresh()
        try await store.accept(shown)
        #expect(await !store.needsAcceptance(of: shown, granularity: .digest))
        let accepted = try #require(try await store.acceptance(of: eula))
        #expect(accepted.version == SemanticVersion("1.0.0") && accepted.digest == sha256("Bundled terms 1.0.0"))
        let current = try await store.text(for: eula)
        for granularity in Self.granularities {
            #expect(await store.needsAcceptance(of: current, granularity: granularity), "\(granularity)")
            #expect(try await store.needsAcceptance(of: eula, granularity: granularity), "\(granularity)")
        }
    }

    @Test func `T13: a rollback needs acceptance of its wording only with digest granularity`() async throws {
        let eula = bench.source("eula")
        bench.serve(manifest: #"{"revision":1,"texts":{"eula":"3.0.0"}}"#)
        bench.serve("eula", "Remote terms 3")
        let store = try await started("1.0.0")
        try await store.refresh()
        try await store.accept(store.text(for: eula))
        bench.serve(manifest: #"{"revision":2,"texts":{"eula":{"version":"2.0.0","rollback":true}}}"#)
        bench.serve("eula", "Remote terms 2")
        try await store.refresh()
        let shown = try await store.text(for: eula)
        #expect(line(shown) == "2.0.0 remote: Remote terms 2")
        let isNeeded = [
            await store.needsAcceptance(of: shown, granularity: .any), await store.needsAcceptance(of: shown, granularity: .digest),
        ]
        #expect(isNeeded == [false, true])
        try await store.accept(shown)
        #expect(await !store.needsAcceptance(of: shown, granularity: .digest))
        #expect(try await store.acceptance(of: eula)?.version == SemanticVersion("3.0.0"))
    }

    @Test func `T13: a text needs acceptance if acceptances are unreadable, and the fault is reported`() async throws {
        let eula = bench.source("eula")
        bench.serve(manifest: #"{"eula":"1.0.0"}"#)
        let first = try await started("1.0.0")
        let shown = try await first.text(for: eula)
        try await first.accept(shown)
        #expect(try bench.place.damage("accepted") == 2)
        let next = try await started("1.0.0")
        #expect(await next.needsAcceptance(of: shown))
        try await bench.events.waitForFault { $0.code == .damagedFile }
        // The damage does not prevent a new acceptance.
        try await next.accept(next.text(for: eula))
        #expect(try await started("1.0.0").needsAcceptance(of: eula) == false)
    }

    @Test(arguments: [Loss.cleared, .damaged])
    func `T13: an acceptance after a loss of the files keeps the acceptances that the process knows`(loss: Loss) async throws {
        let eula = bench.source("eula")
        bench.serve(manifest: #"{"eula":"1.0.0"}"#)
        bench.serve("other", "Other terms")
        let store = try await started("1.0.0")
        try await store.register(TextSource(identifier: "other", remoteFile: bench.source("other").remoteFile))
        try await store.refresh()
        let shown = try await store.text(for: eula)
        try await store.accept(shown)
        switch loss {
        case .damaged: #expect(try bench.place.damage("accepted") == 2)
        case .cleared:
            for name in bench.place.files where name.contains("accepted") { try FileManager.default.removeItem(at: bench.place.file(name)) }
        }
        #expect(await !store.needsAcceptance(of: shown))
        try await store.accept(store.text(for: bench.source("other")))
        #expect(await !store.needsAcceptance(of: shown))
        let next = try await started("1.0.0")
        #expect(await !next.needsAcceptance(of: shown))
    }

    @Test func `a plain identifier reads, observes, and gates a text`() async throws {
        bench.serve(eula: 2)
        let store = try await started("1.0.0")
        let newest = try await store.text(for: "eula", awaiting: patient)
        #expect(line(newest) == "2.0.0 remote: Remote terms 2")
        #expect(try await store.text(for: "eula") == store.text(for: bench.source("eula")))
        for await state in store.publish("eula") {
            #expect(state.content?.text == "Remote terms 2")
            break
        }
        #expect(try await store.acceptance(of: "eula") == nil)
        #expect(try await store.needsAcceptance(of: "eula", granularity: .major))
        try await store.accept(newest)
        #expect(try await !store.needsAcceptance(of: "eula"))
        #expect(try await store.acceptance(of: "eula")?.version == newest.version)
        await expectError(.unknownIdentifier) { try await store.text(for: "other") }
    }

    @Test func `T13: a text that was made by hand is not accepted`() async throws {
        let store = try await started("1.0.0")
        let shown = try await store.text(for: "eula")
        for text in [
            VersionedText(identifier: "eula", text: shown.text, version: SemanticVersion("99.0.0")),
            VersionedText(identifier: "eula", text: "Other terms", version: shown.version),
            VersionedText(identifier: "unknown", text: "Other terms", version: nil, origin: .remote),
        ] {
            let error = await #expect(throws: TextStoreError.self) { try await store.accept(text) }
            #expect(error?.code.rawValue == "notShown" && error?.identifier == text.identifier)
        }
        #expect(try await store.acceptance(of: "eula") == nil)
        #expect(try await store.needsAcceptance(of: "eula"))
    }

    @Test func `T13: the acceptance of old bytes under a new version does not cover the corrected wording`() async throws {
        bench.serve(manifest: #"{"eula":"2.0.0"}"#)
        bench.serve("eula", "Old bytes")
        let store = try await started("1.0.0")
        let old = try await store.text(for: "eula")
        #expect(line(old) == "2.0.0 remote: Old bytes" && !old.isVerified)
        try await store.accept(old)
        #expect(await needs(store, old) == [])
        bench.serve("eula", "Corrected terms 2")
        bench.time.advance(by: .seconds(1))
        try await store.refresh()
        let corrected = try await store.text(for: "eula")
        #expect(line(corrected) == "2.0.0 remote: Corrected terms 2")
        #expect(await needs(store, corrected) == Self.granularities)
        try await store.accept(corrected)
        bench.origin.goDown()
        let next = try await started("1.0.0")
        #expect(await needs(next, corrected) == [])
    }
}
