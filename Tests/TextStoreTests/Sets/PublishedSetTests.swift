import Foundation
import LoopbackOrigin
import StoreCore
import StoreCoreTesting
import Testing
import Trials

@testable import TextStore

/// T7: a set switches only to versions that one manifest published.
struct PublishedSetTests {
    let bench: Bench

    init() throws { bench = try Bench() }

    private func serve(_ version: Int, group: String? = nil) { bench.serve(eula: version, privacy: version, group: group) }

    struct Bad: Sendable, CustomStringConvertible {
        var description: String
        /// The manifest's members for the privacy policy.
        var entry: String
        var code: TextStoreError.Code = .malformedEntry
    }

    static let bad: [Bad] = [
        Bad(description: "a malformed version", entry: #""privacy":"3.x""#),
        Bad(description: "a number", entry: #""privacy":3"#),
        Bad(description: "a malformed digest", entry: #""privacy":{"version":"3.0.0","sha256":"abc"}"#),
        Bad(description: "a pre-release", entry: #""privacy":"3.0.0-rc.1""#),
        Bad(description: "two entries", entry: #""privacy":"3.0.0","privacy":"3.0.0""#),
        Bad(description: "no entry", entry: #""other":"3.0.0""#, code: .incompleteSet),
        Bad(description: "a version below the floor", entry: #""privacy":"0.9.0""#, code: .belowFloor),
        Bad(
            description: "another digest", entry: #""privacy":{"version":"3.0.0","sha256":"\#(sha256("another"))"}"#,
            code: .digestMismatch),
    ]

    @Test(arguments: bad, [true, false])
    func `T7: a set stays whole if a member is not acceptable as published`(bad: Bad, isFresh: Bool) async throws {
        let store = try await bench.started(group: "legal")
        if !isFresh {
            serve(2)
            try await store.refresh()
        }
        let before = isFresh ? ["1.0.0", "1.0.0"] : ["2.0.0", "2.0.0"]
        serve(3)
        bench.serve(manifest: #"{"texts":{"eula":"3.0.0",\#(bad.entry)}}"#)
        let error = await expectError(.incompleteSet, of: "privacy") { try await store.refresh() }
        if bad.code != .incompleteSet { #expect((error?.underlyingError as? TextStoreError)?.code == bad.code) }
        #expect(try await store.versions() == before)
        let eula = try await store.text(for: bench.source("eula"), awaiting: patient)
        #expect(eula.staleSince != nil && eula.fallbackReason?.code == .incompleteSet)
        if bad.code == .malformedEntry { #expect(try await store.text(for: bench.source("privacy")).staleSince != nil) }
        bench.origin.goDown()
        #expect(try await bench.started(group: "legal").versions() == before)
    }

    @Test(
        arguments: [
            #""privacy":{"version":"3.x","group":"legal"}"#, #""privacy":{"version":3,"group":"legal"}"#,
            #""privacy":{"version":"3.0.0","sha256":"abc","group":"legal"}"#, #""privacy":{"version":"3.0.0-rc.1","group":"legal"}"#,
            #""privacy":{"version":"3.0.0","group":"legal"},"privacy":"3.0.0""#, #""privacy":"3.0.0","privacy":{"group":"legal"}"#,
            #""privacy":{"group":"","group":"legal"}"#,
        ], [true, false])
    func `T7: a set defined by a manifest stays whole if a member's entry is malformed`(entry: String, isFresh: Bool) async throws {
        let store = try await bench.started()
        if !isFresh { try await switchGroup(store) }
        let before = try await store.versions()
        serve(3)
        bench.serve(manifest: #"{"texts":{"eula":{"version":"3.0.0","group":"legal"},\#(entry)}}"#)
        await expectError(.incompleteSet, of: "privacy") { try await store.refresh() }
        #expect(try await store.versions() == before)
    }

    private func switchGroup(_ store: TextStore) async throws {
        serve(2, group: "legal")
        try await store.refresh()
    }

    @Test(arguments: [false, true])
    func `T7: a malformed entry without a group keeps the group of the last switch, or of the bundle`(isBundled: Bool) async throws {
        let grouped = #"{"texts":{"eula":{"version":"1.0.0","group":"legal"},"privacy":{"version":"1.0.0","group":"legal"}}}"#
        let bundle = try bench.bundle(["eula.txt": "a", "privacy.txt": "b", "versions.json": isBundled ? grouped : "{}"])
        let store = try await bench.started(bundle: bundle)
        if !isBundled { try await switchGroup(store) }
        let before = try await store.versions()
        serve(3)
        bench.serve(manifest: #"{"texts":{"eula":{"version":"3.0.0","group":"legal"},"privacy":3}}"#)
        await expectError(.incompleteSet, of: "privacy") { try await store.refresh() }
        #expect(try await store.versions() == before)
    }

    @Test func `T7: manifests (1,2) and (2,1) never switch a set to (2,2)`() async throws {
        let store = try await bench.started(group: "legal")
        bench.serve(eula: 1, privacy: 2)
        try await store.refresh()
        #expect(try await store.versions() == ["1.0.0", "2.0.0"])
        bench.serve(eula: 2, privacy: 1)
        let error = await #expect(throws: TextStoreError.self) { try await store.refresh() }
        #expect(error?.code == .incompleteSet && (error?.underlyingError as? TextStoreError)?.code == .belowFloor)
        #expect(try await store.versions() == ["1.0.0", "2.0.0"])
        #expect(try await store.text(for: bench.source("eula")).staleSince != nil)
    }

    @Test func `T7: a corrected manifest switches a set at once, without back-off`() async throws {
        let store = try await bench.started(group: "legal")
        serve(2)
        bench.serve(manifest: #"{"eula":"2.0.0","privacy":"2.x"}"#)
        await #expect(throws: TextStoreError.self) { try await store.refresh() }
        serve(2)
        // The check is due again; the set's failure adds no pause.
        bench.time.shiftDate(by: .seconds(15 * 60))
        let text = try await store.text(for: bench.source("eula"), awaiting: patient)
        #expect(line(text) == "2.0.0 remote: Remote terms 2")
        #expect(try await store.versions() == ["2.0.0", "2.0.0"])
    }

    @Test func `T7: verified texts of a failed set are not fetched again, even if a manifest holds it back meanwhile`() async throws {
        func serve(privacy version: String) {
            let eula = #"{"version":"2.0.0","sha256":"\#(sha256("Remote terms 2"))"}"#
            bench.serve(manifest: #"{"texts":{"eula":\#(eula),"privacy":"\#(version)"}}"#)
        }
        bench.serve("eula", "Remote terms 2")
        bench.origin.on(.get, "/privacy.txt") { _ in .status(503) }
        serve(privacy: "2.0.0")
        let store = try await bench.started(group: "legal")
        #expect(try await store.text(for: "eula", awaiting: patient).fallbackReason?.code == .incompleteSet)
        serve(privacy: "2.x")
        await expectError(.incompleteSet, of: "privacy") { try await store.refresh() }
        bench.serve("privacy", "Remote privacy 2")
        serve(privacy: "2.0.0")
        try await store.refresh()
        #expect(try await store.versions() == ["2.0.0", "2.0.0"])
        #expect(bench.origin.requests(to: "/eula.txt").count == 1)
    }

    @Test func `T7: unregistered texts of a group are ignored, and a moved member switches with its new group`()
        async throws
    {
        let store = try await bench.started()
        serve(2)
        bench.serve(
            manifest: #"""
                {"texts":{"eula":{"version":"2.0.0","group":"legal"},"privacy":{"version":"2.0.0","group":"legal"},
                          "unknown":{"version":"2.x","group":"legal"}}}
                """#)
        try await store.refresh()
        #expect(try await store.versions() == ["2.0.0", "2.0.0"])
        serve(3)
        bench.origin.on(.get, "/privacy.txt") { _ in .status(404) }
        bench.serve(manifest: #"{"texts":{"eula":{"version":"3.0.0","group":"legal"},"privacy":{"version":"3.0.0","group":"other"}}}"#)
        _ = await #expect(throws: TextStoreError.self) { try await store.refresh() }
        #expect(try await store.versions() == ["3.0.0", "2.0.0"])
    }

    @Test func `T7, T17: a set stays if the manifest lists lower versions, and reports that they do not confirm it`() async throws {
        serve(2)
        let store = try await bench.started(bundle: bench.bundle(eula: 3, privacy: 3), group: "legal")
        await expectError(.incompleteSet) { try await store.refresh() }
        #expect(try await store.versions() == ["3.0.0", "3.0.0"])
        #expect(try await store.text(for: bench.source("eula")).staleSince != nil)
    }

    @Test func `T7: a damaged text returns its set to versions that were published together`() async throws {
        for (eula, privacy) in [(2, 2), (3, 3), (4, 3)] {
            bench.serve(eula: eula, privacy: privacy)
            try await bench.started(group: "legal").refresh()
        }
        bench.origin.goDown()
        try bench.place.damageRecord(of: "Remote terms 4")
        let store = try await bench.started(group: "legal")
        #expect(try await store.lines() == ["3.0.0 cache: Remote terms 3 (below floor)", "3.0.0 cache: Remote privacy 3"])
        #expect(bench.place.files.filter { $0.hasSuffix(".text") }.count == 3)
    }

    enum Change: CaseIterable { case cleared, set, version, wording }

    @Test(arguments: Change.allCases)
    func `T7: a member is not stored beside members that another process has cleared or changed meanwhile`(change: Change) async throws {
        let names = ["eula", "privacy"]
        func records(_ version: Int) -> [TextRecord] { names.map { record($0, "\(version).0.0", "\($0) \(version)") } }
        let (one, other) = (try await bench.place.shelf(of: names), try await bench.place.shelf(of: names))
        for shelf in [one, other] { _ = try await shelf.store("group/g", records(1), isActivated: true) }
        switch change {
        case .cleared: _ = try await other.clear()
        case .set: _ = try await other.store("group/g", records(2), isActivated: true)
        case .version: _ = try await other.store("group/g", [record("privacy", "1.0.1", "privacy 1")], isActivated: true)
        case .wording: _ = try await other.store("group/g", [record("privacy", "1.0.0", "other words")], isActivated: true)
        }
        await expectError(.incompleteSet) { try await one.store("group/g", [record("eula", "3.0.0", "eula 3")], isActivated: true) }
        if change == .cleared { #expect(!bench.place.files.contains { $0.hasSuffix(".text") }) }
        // The session has now read the change, and accepts the whole set.
        func resolved() -> [String?] { one.session.read { session in names.map { session.resolved[$0]?.text.text } } }
        _ = await one.publish()
        if change == .set { #expect(resolved() == ["eula 2", "privacy 2"]) }
        _ = try await one.store("group/g", records(3), isActivated: true)
        #expect(resolved() == ["eula 3", "privacy 3"])
    }
}
