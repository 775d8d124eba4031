import Foundation
import LoopbackOrigin
import StoreCore
import Testing

@testable import TextStore

/// T7: what a newer manifest has taken back is not activated.
struct WithdrawnSetTests {
    let bench: Bench

    init() throws { bench = try Bench() }

    private func serve(_ version: Int) {
        bench.serve(manifest: #"{"eula":"\#(version).0.0","privacy":"\#(version).0.0"}"#)
        for name in ["eula", "privacy"] { bench.serve(name, "Remote \(name) \(version)") }
    }

    private func shown(_ store: TextStore) async throws -> [String?] {
        var found: [String?] = []
        for name in ["eula", "privacy"] { found.append(try await store.text(for: bench.source(name)).version?.description) }
        return found
    }

    @Test(arguments: [nil, "legal"], [TextStorePolicy.Activation.manually, .atNextLaunch])
    func `T7: a waiting set that a newer manifest takes back is not activated, by hand or at the next launch`(
        group: String?, activation: TextStorePolicy.Activation
    ) async throws {
        let policy = TextStorePolicy(activation: activation)
        let store = try await bench.started(policy: policy, group: group)
        serve(2)
        try await store.refresh()
        serve(1)
        try await store.refresh()
        #expect(try await store.activate() == false)
        #expect(try await shown(store) == ["1.0.0", "1.0.0"])
        #expect(bench.events.refusals.contains { $0.code.rawValue == "withdrawn" })
        #expect(!bench.place.files.contains { $0.hasSuffix(".text") })
        bench.origin.goDown()
        #expect(try await shown(bench.started(policy: policy, group: group)) == ["1.0.0", "1.0.0"])
    }

    @Test func `T7: a waiting set is not activated at the next launch after a newer manifest took it back`() async throws {
        let policy = TextStorePolicy(activation: .atNextLaunch)
        let store = try await bench.started(policy: policy, group: "legal")
        serve(2)
        try await store.refresh()
        bench.serve(manifest: #"{"eula":"2.0.0","privacy":"1.0.0"}"#)
        // The set changes to one that needs another text; nothing of it is fetched.
        bench.origin.on(.get, "/eula.txt") { _ in .status(404) }
        try? await store.refresh()
        bench.origin.goDown()
        #expect(try await shown(bench.started(policy: policy, group: "legal")) == ["1.0.0", "1.0.0"])
    }

    @Test func `T7: a waiting set that the newest manifest still lists is activated`() async throws {
        let store = try await bench.started(policy: TextStorePolicy(activation: .manually), group: "legal")
        serve(2)
        try await store.refresh()
        bench.serve(manifest: #"{"privacy":"2.0.0","eula":"2.0.0"}"#)
        try await store.refresh()
        #expect(try await store.activate())
        #expect(try await shown(store) == ["2.0.0", "2.0.0"])
        #expect(try await store.activate() == false)
        #expect(bench.origin.requests(to: "/eula.txt").count == 1)
    }

    @Test(arguments: [TextStorePolicy.Activation.immediately, .manually])
    func `T7: a text that arrives after a newer manifest took it back is not stored`(activation: TextStorePolicy.Activation) async throws {
        let events = bench.events, manifests = Lock(["2.0.0", "1.0.0"])
        let store = try bench.store(
            policy: TextStorePolicy(activation: activation),
            fetcher: RevalidatingClosureFetcher { file, _ in
                guard file.url.lastPathComponent == "versions.json" else {
                    // The text arrives when the newer manifest is here.
                    try await events.waitForChecks(2)
                    return .modified(RemoteText(bytes: Data("Remote terms 2".utf8), contentType: "text/plain"))
                }
                let version = manifests.withLock { $0.count > 1 ? $0.removeFirst() : $0[0] }
                return .modified(RemoteText(bytes: Data(#"{"eula":"\#(version)"}"#.utf8), contentType: "application/json"))
            })
        try await store.register(bench.source("eula"))
        await store.setVersionSource(bench.versions)
        try await events.waitForChecks(1)
        try await store.refresh()
        #expect(line(try await store.text(for: bench.source("eula"))) == "1.0.0 bundle: Bundled terms 1")
        #expect(try await store.activate() == false)
        #expect(events.saved.isEmpty)
    }
}
