import Foundation
import LoopbackOrigin
import StoreCore
import Testing

@testable import TextStore

/// The path of a text from the bundle to the origin and to the disk, over real HTTP and real files.
struct ThreadTests {
    let bench: Bench

    init() throws { bench = try Bench() }

    @Test func `T8, T12: a bundled text is available at once, a newer one after waiting, and again offline after a restart`() async throws {
        bench.serve(eula: 2)
        let store = try await bench.started()
        #expect(line(try await store.text(for: bench.source("privacy"))) == "1.0.0 bundle: Bundled privacy 1")
        #expect(line(try await store.text(for: bench.source("eula"), awaiting: patient)) == "2.0.0 remote: Remote terms 2")
        bench.origin.goDown()
        // The first states have both kinds of local text without a network.
        let second = try await bench.started()
        for (name, expected) in [("eula", "2.0.0 cache: Remote terms 2"), ("privacy", "1.0.0 bundle: Bundled privacy 1")] {
            #expect(line(try await second.text(for: bench.source(name))) == expected)
            var states = second.publish(bench.source(name)).makeAsyncIterator()
            #expect(await states.next()?.content.map(line) == expected)
        }
    }
}
