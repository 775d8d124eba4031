import Foundation
import LoopbackOrigin
import StoreCore
import Testing

@testable import TextStore

/// T16: recovery from a revision or a version that was published too high.
struct RecoveryTests {
    let bench: Bench

    init() throws { bench = try Bench() }

    private func serve(_ version: String, epoch: UInt64? = nil, revision: UInt64, isRollback: Bool = false) {
        let first = epoch.map { #""epoch":\#($0),"# } ?? ""
        let entry = #"{"version":"\#(version)"\#(isRollback ? #","rollback":true"# : "")}"#
        bench.serve(manifest: #"{\#(first)"revision":\#(revision),"texts":{"eula":\#(entry),"privacy":\#(entry)}}"#)
        for name in ["eula", "privacy"] { bench.serve(name, "Remote \(name) \(version)") }
    }

    private func started(_ policy: TextStorePolicy = TextStorePolicy(), isVerifying: Bool = false) async throws -> TextStore {
        try await bench.started(policy: policy, group: "legal", verify: isVerifying ? { @Sendable _ in } : nil)
    }

    private func version(_ store: TextStore) async throws -> String? {
        try await store.text(for: bench.source("eula")).version?.description
    }

    @Test func `T16: an epoch accepted by the policy restarts the revisions after one was published too high`() async throws {
        let store = try await started()
        serve("2.0.0", revision: .max)
        try await store.refresh()
        serve("3.0.0", revision: 8)
        let locked = await #expect(throws: TextStoreError.self) { try await store.refresh() }
        #expect(locked?.code == .outdatedManifest && locked?.message.contains("epoch") == true)
        serve("3.0.0", epoch: 1, revision: 8)
        await expectError(.unverifiedEpoch) { try await store.refresh() }
        #expect(try await version(store) == "2.0.0")

        let updated = try await started(TextStorePolicy(acceptedEpoch: 1))
        try await updated.refresh()
        #expect(try await version(updated) == "3.0.0")
        // Old manifests are still refused, later revisions of the epoch are accepted, and a store with an older policy keeps the epoch.
        serve("4.0.0", revision: .max)
        await expectError(.outdatedManifest) { try await updated.refresh() }
        serve("4.0.0", epoch: 1, revision: 7)
        _ = await #expect(throws: TextStoreError.self) { try await updated.refresh() }
        serve("4.0.0", epoch: 1, revision: 9)
        let older = try await started()
        try await older.refresh()
        #expect(try await version(older) == "4.0.0")
        serve("5.0.0", epoch: 2, revision: 1)
        _ = await #expect(throws: TextStoreError.self) { try await updated.refresh() }
        #expect(try await version(updated) != "5.0.0")
    }

    @Test func `T16: a verified higher epoch is accepted, and only rollback entries return texts to older versions`() async throws {
        let store = try await started(isVerifying: true)
        serve("99.0.0", revision: .max, isRollback: true)
        try await store.refresh()
        #expect(try await version(store) == "99.0.0")
        serve("2.0.0", epoch: 1, revision: 1)
        await expectError(.incompleteSet) { try await store.refresh() }
        #expect(try await version(store) == "99.0.0", "the floor stays without a rollback")
        try await bench.events.waitForRefusal { $0.code == .belowFloor }
        serve("2.0.0", epoch: 1, revision: 2, isRollback: true)
        try await store.refresh()
        #expect(try await version(store) == "2.0.0")
        serve("3.0.0", epoch: 1, revision: 3)
        try await store.refresh()
        #expect(try await version(store) == "3.0.0")
        #expect(bench.events.epochs == ["0 to 1"])
        bench.origin.goDown()
        let next = try await started(isVerifying: true)
        let text = try await next.text(for: bench.source("eula"))
        #expect(line(text) == "3.0.0 cache: Remote eula 3.0.0")
    }

    @Test func `T16: a manifest that the verifier refuses does not raise the epoch`() async throws {
        struct Unsigned: Error {}
        let store = try bench.store(verify: { if $0.identifier == nil, $0.bytes.count > 60 { throw Unsigned() } })
        try await store.register([bench.source("eula")])
        await store.setVersionSource(bench.versions)
        bench.serve(manifest: #"{"revision":5,"texts":{"eula":"2.0.0"}}"#)
        bench.serve("eula", "Remote eula 2.0.0")
        try await store.refresh()
        serve("3.0.0", epoch: 7, revision: 1)
        await expectError(.verificationFailed) { try await store.refresh() }
        bench.serve(manifest: #"{"revision":6,"texts":{"eula":"2.0.0"}}"#)
        try await store.refresh()
        #expect(bench.events.epochs.isEmpty)
    }

    @Test(arguments: [(100_000_000, 0), (100_000_001, 1)] as [(UInt64, Int)])
    func `T16: a manifest with a revision jump beyond the policy's bound is used and reported`(jump: UInt64, count: Int) async throws {
        let store = try await started()
        // The very first revision is no jump, with any value.
        serve("1.0.0", revision: 1_900_000_000)
        try await store.refresh()
        serve("2.0.0", revision: 1_900_000_000 + jump)
        try await store.refresh()
        #expect(try await version(store) == "2.0.0")
        #expect(bench.events.jumps == Array(repeating: "1900000000 to \(1_900_000_000 + jump)", count: count))
        serve("2.0.0", revision: 1_900_000_000 + jump)
        try await store.refresh()
        #expect(bench.events.jumps.count == count)
    }

    @Test(arguments: ["floor.0", "floor.1"])
    func `T3, T16: one damaged copy of the floors loses no epoch`(name: String) async throws {
        serve("2.0.0", epoch: 1, revision: 3)
        try await started(isVerifying: true).refresh()
        #expect(try bench.place.damage(name) == 1)
        #expect(try bench.place.damage("manifest") == 1)
        serve("3.0.0", revision: .max)
        await expectError(.outdatedManifest) { try await started(isVerifying: true).refresh() }
    }

    @Test func `T16, T17: an origin confirms no manifest that is older than the one of another store, which stays saved`() async throws {
        func manifest(_ revision: Int) -> String { #"{"revision":\#(revision),"texts":{"eula":"1.0.0"}}"# }
        let store = try bench.store(), other = try bench.store()
        for (number, store) in [store, other].enumerated() {
            bench.serve(manifest: manifest(number + 1))
            try await bench.start(store)
            try await store.refresh()
        }
        // A cache in front of the origin is stale.
        bench.serve(manifest: manifest(1))
        let error = await #expect(throws: TextStoreError.self) { try await store.refresh() }
        #expect(error?.code == .outdatedManifest && bench.origin.requests(to: "/versions.json").last?.status == 304)
        #expect(store.shelf.manifestFile.load().copies.first?.value.body == Data(manifest(2).utf8))
    }

    @Test func `T16: editions are ordered by epoch, then by revision, and decide which bundles include a rollback`() throws {
        func edition(_ text: String) throws -> Edition? { try VersionManifest(parsing: Data(text.utf8)).edition }
        #expect(try edition(#"{"eula":"1.0.0"}"#) == nil)
        #expect(try edition(#"{"revision":3,"texts":{}}"#) == Edition(revision: 3))
        #expect(try edition(#"{"epoch":2,"texts":{}}"#) == Edition(epoch: 2))
        #expect(Edition(epoch: 1) > Edition(revision: .max) && Edition(epoch: 1, revision: 2) > Edition(epoch: 1, revision: 1))
        for text in [#"{"epoch":"1","texts":{}}"#, #"{"epoch":-1,"texts":{}}"#, #"{"epoch":1,"epoch":2,"texts":{}}"#] {
            #expect(throws: TextStoreError.self) { try VersionManifest(parsing: Data(text.utf8)) }
        }
        let floor = Floor(
            rank: Rank(epoch: Edition(epoch: 1, revision: 2), version: SemanticVersion("1.0.0")), withdrawn: SemanticVersion("99.0.0"),
            digest: digest("a"))
        let bundled = SemanticVersion("2.0.0")
        #expect(floor.rankOfBundled(bundled, edition: Edition(epoch: 1, revision: 2)) > floor.rank)
        #expect(floor.rankOfBundled(bundled, edition: Edition(revision: .max)) < floor.rank)
        #expect(floor.rankOfBundled(nil, edition: Edition(epoch: 1, revision: 2)) < floor.rank)
    }
}

extension Events {
    var epochs: [String] { described.filter { $0.hasPrefix("epoch ") }.map { String($0.dropFirst(6)) } }
    fileprivate var jumps: [String] { described.filter { $0.hasPrefix("jump ") }.map { String($0.dropFirst(5)) } }
}
