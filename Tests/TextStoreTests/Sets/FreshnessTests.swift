import Foundation
import LoopbackOrigin
import StoreCore
import StoreCoreTesting
import Testing

@testable import TextStore

/// T4, T8, T9: expired manifests, checks that are not due, and bytes published after their version.
struct FreshnessTests {
    let bench: Bench

    init() throws { bench = try Bench() }

    @Test(arguments: [nil, "legal"])
    func `T9: a fresh device with a bundled text does not install an expired manifest's version`(group: String?) async throws {
        bench.time.setDate(Date(timeIntervalSince1970: 1_900_000_000))
        bench.serve(manifest: #"{"expires":"2030-01-01T00:00:00Z","texts":{"eula":"2.0.0","privacy":"2.0.0"}}"#)
        for name in ["eula", "privacy"] { bench.serve(name, "Remote \(name) 2") }
        let store = try await bench.started(group: group)
        let error = await #expect(throws: TextStoreError.self) { try await store.refresh() }
        #expect(error?.code.rawValue == "expiredManifest")
        let text = try await store.text(for: bench.source("eula"), awaiting: soon)
        #expect(text.text == "Bundled terms 1" && text.staleSince != nil && text.fallbackReason?.code.rawValue == "expiredManifest")
        #expect(bench.origin.requests(to: "/eula.txt").isEmpty)
        bench.serve(manifest: #"{"expires":"2040-01-01T00:00:00Z","texts":{"eula":"2.0.0","privacy":"2.0.0"}}"#)
        try await store.refresh()
        #expect(line(try await store.text(for: bench.source("eula"), awaiting: soon)) == "2.0.0 remote: Remote eula 2")
    }

    @Test func `T9, I1: an expired manifest provides a text that the device lacks`() async throws {
        bench.time.setDate(Date(timeIntervalSince1970: 1_900_000_000))
        bench.serve(manifest: #"{"expires":"2030-01-01T00:00:00Z","texts":{"eula":"2.0.0"}}"#)
        bench.serve("eula", "Remote terms 2")
        let store = try bench.store(bundle: bench.bundle([:]))
        try await bench.start(store)
        try await store.refresh()
        let text = try await store.text(for: bench.source("eula"), awaiting: soon)
        #expect(text.text == "Remote terms 2" && text.staleSince != nil && text.fallbackReason?.code.rawValue == "expiredManifest")
        #expect(await store.snapshot().first?.isStale == true)
    }

    @Test func `T8: a wait within the check interval sends no request and reports the recent check`() async throws {
        bench.serve(manifest: #"{"eula":"1.0.0"}"#)
        let store = try await bench.started()
        #expect(try await store.text(for: bench.source("eula"), awaiting: patient).fallbackReason == nil)
        #expect(try await store.text(for: bench.source("eula"), awaiting: soon).fallbackReason == nil)
        // A check that is not older than the timeout counts as the response.
        bench.time.shiftDate(by: .seconds(2))
        #expect(try await store.text(for: bench.source("eula"), awaiting: soon).fallbackReason == nil)
        bench.serve(eula: 2)
        bench.time.shiftDate(by: .seconds(60))
        let text = try await store.text(for: bench.source("eula"), awaiting: soon)
        #expect(text.text == "Bundled terms 1" && text.fallbackReason?.code.rawValue == "checkedRecently")
        #expect(bench.origin.requests(to: "/versions.json").count == 1)
        bench.time.shiftDate(by: .seconds(15 * 60))
        #expect(line(try await store.text(for: bench.source("eula"), awaiting: soon)) == "2.0.0 remote: Remote terms 2")
    }

    @Test func `T8: a wait for an unexpired unversioned text sends no request and reports the recent check`() async throws {
        bench.serve("notes", "Notes 1")
        let store = try bench.store()
        try await store.register(bench.notes)
        #expect(try await store.text(for: bench.notes, awaiting: soon).fallbackReason == nil)
        bench.time.shiftDate(by: .seconds(60))
        #expect(try await store.text(for: bench.notes, awaiting: soon).fallbackReason?.code.rawValue == "checkedRecently")
        let bundled = try bench.store("bundled")
        try await bundled.register(TextSource(identifier: "eula", bundleFile: BundleFile(fileName: "eula", fileExtension: "txt")))
        #expect(try await bundled.text(for: bench.source("eula"), awaiting: soon).fallbackReason == nil)
    }

    /// The clock may be set back before the next check.
    @Test(arguments: [nil, "legal"], [(true, 1), (false, 1), (true, -3_600)] as [(hasValidator: Bool, seconds: Int)])
    func `T4: bytes published after their version replace the old ones at the next check`(
        group: String?, row: (hasValidator: Bool, seconds: Int)
    ) async throws {
        func serve(_ name: String, _ text: String) {
            if row.hasValidator { bench.serve(name, text) } else { bench.origin.on(.get, "/\(name).txt") { _ in .text(text) } }
        }
        bench.serve(manifest: #"{"eula":"2.0.0","privacy":"2.0.0"}"#)
        for name in ["eula", "privacy"] { serve(name, "Old \(name)") }
        let store = try await bench.started(group: group).refreshed()
        // The manifest is published before its texts.
        bench.serve(manifest: #"{"eula":"3.0.0","privacy":"3.0.0"}"#)
        bench.time.shiftDate(by: .seconds(1))
        try await store.refresh()
        #expect(line(try await store.text(for: bench.source("eula"))) == "3.0.0 remote: Old eula")
        for name in ["eula", "privacy"] { serve(name, "New \(name)") }
        bench.time.shiftDate(by: .seconds(row.seconds))
        try await store.refresh()
        #expect(line(try await store.text(for: bench.source("eula"))) == "3.0.0 remote: New eula")
        #expect(line(try await store.text(for: bench.source("privacy"))) == "3.0.0 remote: New privacy")
        for _ in 0..<3 {
            bench.time.shiftDate(by: .seconds(1))
            try await store.refresh()
        }
        let count = bench.origin.requests(to: "/eula.txt").count
        bench.time.shiftDate(by: .seconds(1))
        try await store.refresh()
        #expect(bench.origin.requests(to: "/eula.txt").count == count, "one revalidation is enough")
    }

    @Test func `T4: a damaged text is fetched again, even if older bytes of its version are still there`() async throws {
        bench.serve(eula: 2)
        bench.serve("eula", "Old terms")
        let store = try await bench.started().refreshed()
        bench.serve("eula", "New terms")
        bench.time.shiftDate(by: .seconds(1))
        try await store.refresh()
        #expect(line(try await store.text(for: "eula")) == "2.0.0 remote: New terms")
        try bench.place.damageRecord(of: "New terms")
        let next = try await bench.started()
        #expect(line(try await next.text(for: "eula", awaiting: patient)) == "2.0.0 remote: New terms")
        #expect(bench.events.faults.contains { $0.code == .damagedFile })
    }

    @Test func `T4: a text with a digest is not revalidated`() async throws {
        bench.serve(manifest: #"{"texts":{"eula":{"version":"2.0.0","sha256":"\#(sha256("Remote terms 2"))"}}}"#)
        bench.serve("eula", "Remote terms 2")
        let store = try await bench.started()
        for _ in 0..<3 {
            bench.time.shiftDate(by: .seconds(1))
            try await store.refresh()
        }
        #expect(bench.origin.requests(to: "/eula.txt").count == 1)
    }
}
