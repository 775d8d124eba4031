import Foundation
import LoopbackOrigin
import StoreCore
import Testing
import Trials

@testable import TextStore

/// T16, T17: what the app's own bundle orders.
struct BundledOrderTests {
    let bench: Bench

    init() throws { bench = try Bench() }

    private func bundle(_ version: String, epoch: UInt64 = 0, revision: UInt64, isRollback: Bool = true) throws -> Bundle {
        let entry = #"{"version":"\#(version)","rollback":\#(isRollback)}"#
        return try bench.bundle([
            "eula.txt": "Bundled eula \(version)", "privacy.txt": "Bundled privacy \(version)",
            "versions.json": #"{"epoch":\#(epoch),"revision":\#(revision),"texts":{"eula":\#(entry),"privacy":\#(entry)}}"#,
        ])
    }

    private func serve(_ version: String, epoch: UInt64 = 0, revision: UInt64) {
        bench.serve(manifest: #"{"epoch":\#(epoch),"revision":\#(revision),"texts":{"eula":"\#(version)","privacy":"\#(version)"}}"#)
        for name in ["eula", "privacy"] { bench.serve(name, "Remote \(name) \(version)") }
    }

    private func line(_ store: TextStore) async throws -> String { try await TextStoreTests.line(store.text(for: bench.source("eula"))) }

    /// Starts a store whose texts were published with a version and a revision that are too high.
    private func lockOut(group: String?, epoch: UInt64 = 0, revision: UInt64 = .max) async throws {
        serve("99.0.0", revision: revision)
        let store = try await bench.started(bundle: bundle("1.0.0", revision: 1, isRollback: false), group: group).refreshed()
        #expect(try await line(store) == "99.0.0 remote: Remote eula 99.0.0")
        bench.origin.goDown()
    }

    enum Order: CaseIterable { case textsFirst, versionsFirst, oneByOne }

    private func updated(_ bundle: Bundle, _ order: Order, group: String?) async throws -> TextStore {
        let store = try bench.store(bundle: bundle)
        if order == .versionsFirst { await store.setVersionSource(bench.versions) }
        for names in order == .oneByOne ? [["privacy"], ["eula"]] : [["eula", "privacy"]] {
            try await store.register(names.map { bench.source($0, group: group) })
        }
        if order != .versionsFirst { await store.setVersionSource(bench.versions) }
        return store
    }

    @Test(arguments: Order.allCases, [nil, "legal"])
    func `T16, T17: an update with a new epoch and rollbacks in its bundle replaces the texts of a locked-out device offline`(
        order: Order, group: String?
    ) async throws {
        try await lockOut(group: group)
        let bundle = try bundle("2.0.0", epoch: 1, revision: 5)
        let store = try await updated(bundle, order, group: group)
        #expect(try await line(store) == "2.0.0 bundle: Bundled eula 2.0.0")
        #expect(bench.events.epochs == ["0 to 1"])
        #expect(try await line(updated(bundle, order, group: group)) == "2.0.0 bundle: Bundled eula 2.0.0")
        #expect(bench.events.epochs.count == 1, "an order is carried out once")
        // The bundle of an older app orders nothing.
        let older = try await updated(self.bundle("1.0.0", epoch: 0, revision: 9), order, group: group)
        #expect(try await older.text(for: "eula").isBelowFloor)
    }

    @Test func `T16: after the bundle's order, manifests of its epoch need no verification, and older ones are refused`() async throws {
        try await lockOut(group: nil)
        let next = try Bench()
        let bundle = try bundle("2.0.0", epoch: 1, revision: 5)
        func store() async throws -> TextStore {
            let store = try bench.store(bundle: bundle)
            try await next.start(store)
            return store
        }
        next.serve(manifest: #"{"revision":18446744073709551615,"texts":{"eula":"99.0.0"}}"#)
        next.serve("eula", "Remote")
        let first = try await store()
        await expectError(.outdatedManifest) { try await first.refresh() }
        next.serve(manifest: #"{"epoch":1,"revision":6,"texts":{"eula":"3.0.0"}}"#)
        try await first.refresh()
        #expect(try await line(first) == "3.0.0 remote: Remote")
        // The same bundle does not return the text to its own version.
        #expect(try await line(store()) == "3.0.0 cache: Remote")
    }

    @Test func `T16: a rollback within the epoch needs a revision above the accepted one`() async throws {
        try await lockOut(group: nil, revision: 10)
        for revision in [9, 10] as [UInt64] {
            let store = try await updated(bundle("2.0.0", revision: revision), .textsFirst, group: nil)
            #expect(try await line(store) == "99.0.0 cache: Remote eula 99.0.0", "revision \(revision)")
        }
        let store = try await updated(bundle("2.0.0", revision: 11), .textsFirst, group: nil)
        #expect(try await line(store) == "2.0.0 bundle: Bundled eula 2.0.0")
    }

    @Test func `T16: a bundle without rollbacks returns no text to an older version, with any epoch`() async throws {
        try await lockOut(group: nil)
        let store = try await updated(bundle("2.0.0", epoch: 7, revision: 1, isRollback: false), .textsFirst, group: nil)
        #expect(try await line(store) == "99.0.0 cache: Remote eula 99.0.0")
    }

    @Test func `T16: a bundle of the same epoch refuses no manifest of the origin`() async throws {
        serve("3.0.0", revision: 4)
        let store = try await updated(bundle("2.0.0", revision: 9), .textsFirst, group: nil)
        try await store.refresh()
        #expect(try await line(store) == "3.0.0 remote: Remote eula 3.0.0")
        let next = try await updated(bundle("2.0.0", revision: 9, isRollback: false), .textsFirst, group: nil)
        #expect(try await line(next) == "3.0.0 cache: Remote eula 3.0.0")
    }

    @Test(arguments: Order.allCases)
    func `T3, T16: the bundle's order counts after a loss of the floors, in any order of registration`(order: Order) async throws {
        try await lockOut(group: nil)
        #expect(try bench.place.damage("floor") == 2)
        let bundle = try bundle("2.0.0", epoch: 1, revision: 5)
        #expect(try await line(updated(bundle, order, group: nil)) == "2.0.0 bundle: Bundled eula 2.0.0")
        #expect(try await line(updated(bundle, order, group: nil)) == "2.0.0 bundle: Bundled eula 2.0.0")
    }

    @Test func `T16: the first manifest of an epoch with a revision that leaves no room is reported`() async throws {
        serve("2.0.0", revision: 3)
        let store = try bench.store(policy: TextStorePolicy(acceptedEpoch: 1))
        try await bench.start(store)
        try await store.refresh()
        serve("3.0.0", epoch: 1, revision: .max)
        try await store.refresh()
        try await bench.events.waitForDescriptions(["epoch 0 to 1", "jump 0 to \(UInt64.max)"])
    }

    @Test func `T16: a waiting set that the bundle's order withdraws is not activated`() async throws {
        serve("99.0.0", revision: .max)
        let store = try bench.store(bundle: bundle("1.0.0", revision: 1, isRollback: false), policy: TextStorePolicy(activation: .manually))
        try await bench.start(store)
        try await store.refresh()
        #expect(try await store.activate())
        serve("100.0.0", revision: .max)
        try await store.refresh()
        bench.origin.goDown()
        let next = try bench.store(bundle: bundle("2.0.0", epoch: 1, revision: 1), policy: TextStorePolicy(activation: .manually))
        try await bench.start(next)
        #expect(try await line(next) == "2.0.0 bundle: Bundled eula 2.0.0")
        _ = try await next.activate()
        #expect(try await line(next) == "2.0.0 bundle: Bundled eula 2.0.0")
    }

    @Test func `T5: a bundled manifest may have any size`() async throws {
        // More bytes than the manifest of an origin may have.
        let space = String(repeating: " ", count: 200)
        let others = (0..<6_000).map { #""text \#($0)":\#(space)"1.0.0""# }.joined(separator: ",")
        let bundle = try bench.bundle(["eula.txt": "Bundled terms 1", "versions.json": #"{"eula":"1.0.0",\#(others)}"#])
        bench.origin.goDown()
        let store = try bench.store(bundle: bundle)
        try await bench.start(store)
        #expect(try await line(store) == "1.0.0 bundle: Bundled terms 1")
    }

    @Test(arguments: [.max, .max - 1, 1 << 62, 1_900_000_000_000_000_000, 20_991_231_235_959] as [UInt64])
    func `T16: a first manifest with a revision that leaves no room is reported`(revision: UInt64) async throws {
        serve("2.0.0", revision: revision)
        let store = try await bench.started()
        try await store.refresh()
        try await bench.events.waitForDescriptions(revision >= 1 << 62 ? ["jump 0 to \(revision)"] : [])
    }
}
