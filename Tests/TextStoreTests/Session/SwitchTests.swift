import Foundation
import LoopbackOrigin
import StoreCore
import Testing

@testable import TextStore

/// Late responses, sets with bundled and fetched texts, and policies that change between starts.
struct SwitchTests {
    let bench: Bench

    init() throws { bench = try Bench() }

    @Test func `T7: a set is complete on the shelf even if only one of its texts is new`() async throws {
        bench.serve(eula: 2, privacy: 1, group: "g")
        try await bench.started().refresh()
        bench.origin.goDown()
        // The next version of the app bundles another privacy policy but older terms, so the cached set stays.
        let store = try await bench.started(bundle: bench.bundle(eula: 1, privacy: 3))
        #expect(try await store.lines() == ["2.0.0 cache: Remote terms 2", "1.0.0 cache: Bundled privacy 1"])
        // In the version after that, no bundled text is older, so the bundled set is used.
        let next = try await bench.started(bundle: bench.bundle(eula: 2, privacy: 3))
        #expect(try await next.lines() == ["2.0.0 bundle: Bundled terms 2", "3.0.0 bundle: Bundled privacy 3"])
    }

    @Test(arguments: [TextStorePolicy.Activation.immediately, .atNextLaunch])
    func `T7: a set that waited in an earlier process is activated at the next start`(later: TextStorePolicy.Activation) async throws {
        bench.serve(eula: 2)
        let waiting = try await bench.started(policy: TextStorePolicy(activation: .atNextLaunch)).refreshed()
        #expect(try await waiting.versions() == ["1.0.0", "1.0.0"])
        bench.origin.goDown()
        let store = try await bench.started(policy: TextStorePolicy(activation: later))
        #expect(line(try await store.text(for: bench.source("eula"))) == "2.0.0 cache: Remote terms 2")
    }

    @Test func `T1: a missing bundled file is reported by name, and the origin's text is used`() async throws {
        bench.serve(eula: 2)
        let store = try await bench.started(bundle: try bench.bundle([:]))
        await expectError(.notAvailable, of: "privacy") { try await store.text(for: bench.source("privacy")) }
        try await bench.events.waitForRefusal { $0.code == .unreadableBundleFile && $0.identifier == "privacy" }
        try await bench.events.waitForRefusal { $0.code == .unreadableBundleFile && $0.description.contains("versions.json") }
        #expect(line(try await store.text(for: bench.source("eula"), awaiting: patient)) == "2.0.0 remote: Remote terms 2")
    }

    @Test func `T4: an API key is sent only to the origin in the source, not to another one in a manifest`() async throws {
        let other = try LoopbackOrigin()
        other.on(.get, "/eula-2.txt") { _ in .text("Remote terms 2") }
        let address = other.url.appending(path: "eula-2.txt").absoluteString
        bench.serve(manifest: #"{"texts":{"eula":{"version":"2.0.0","url":"\#(address)"},"privacy":{"version":"2.0.0","url":"p/2.txt"}}}"#)
        bench.origin.on(.get, "/p/2.txt") { _ in .text("Remote privacy 2") }
        let store = try bench.store()
        for name in ["eula", "privacy"] {
            let file = RemoteFile(url: bench.origin.url.appending(path: name), headers: ["X-Key": "secret"])
            try await store.register(TextSource(identifier: name, remoteFile: file))
        }
        await store.setVersionSource(bench.versions)
        try await store.refresh()
        #expect(other.requests.map { $0.headers["X-Key"] } == [nil])
        #expect(bench.origin.requests(to: "/p/2.txt").map { $0.headers["X-Key"] } == ["secret"])
        other.stop()
    }

    @Test func `T4: an address in a manifest keeps its escapes, and what needs one gets one`() async throws {
        bench.serve(manifest: #"{"texts":{"eula":{"version":"2.0.0","url":" p/a%20b cé.txt"}}}"#)
        let store = try bench.store()
        try await store.register(TextSource(identifier: "eula", remoteFile: RemoteFile(url: bench.origin.url)))
        await store.setVersionSource(bench.versions)
        // The origin has no such file, and only the request matters.
        await #expect(throws: TextStoreError.self) { try await store.refresh() }
        #expect(bench.origin.requests.map(\.target).last == "/p/a%20b%20c%C3%A9.txt")
    }

    @Test func `T7: a damaged text without a previous one returns its whole set to the bundle`() async throws {
        bench.serve(eula: 2, privacy: 2)
        try await bench.started(group: "legal").refresh()
        bench.origin.goDown()
        let name = try #require(bench.place.files.first { $0.hasSuffix(".text") })
        #expect(try bench.place.damage(name) == 1)
        let store = try await bench.started(group: "legal")
        #expect(
            try await store.lines() == ["1.0.0 bundle: Bundled terms 1 (below floor)", "1.0.0 bundle: Bundled privacy 1 (below floor)"])
    }
}
