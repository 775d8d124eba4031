import Foundation
import LoopbackOrigin
import StoreCore
import Testing

@testable import TextStore

/// T15: what the app's own verification has not seen is not shown as verified.
struct SignatureTests {
    let bench: Bench

    init() throws { bench = try Bench() }

    @Test(arguments: ["", "\u{FEFF}"])
    func `T15 bytes that the origin confirms for another version are verified for that one, byte order mark included`(
        mark: String
    ) async throws {
        struct Refused: Error {}
        let seen = WatchedState<[String]>([])
        bench.serve(manifest: #"{"eula":"2.0.0"}"#)
        bench.serve("eula", mark + "Remote terms 2")
        let store = try bench.store(verify: { verification in
            guard let version = verification.version else { return }
            seen.update { $0.append("\(version) \(String(decoding: verification.bytes, as: UTF8.self))") }
            if version == SemanticVersion("2.2.0") { throw Refused() }
        })
        try await store.register(bench.source("eula"))
        await store.setVersionSource(bench.versions)
        try await store.refresh()
        bench.serve(manifest: #"{"eula":"2.1.0"}"#)
        try await store.refresh()
        let text = try await store.text(for: bench.source("eula"))
        #expect(line(text) == "2.1.0 remote: Remote terms 2" && text.isVerified)
        bench.serve(manifest: #"{"eula":"2.2.0"}"#)
        let error = await #expect(throws: TextStoreError.self) { try await store.refresh() }
        #expect(error?.code == .verificationFailed)
        #expect(line(try await store.text(for: bench.source("eula"))) == "2.1.0 remote: Remote terms 2")
        #expect(seen.current == ["2.0.0", "2.1.0", "2.2.0"].map { "\($0) \(mark)Remote terms 2" })
        #expect(bench.origin.requests(to: "/eula.txt").map(\.status) == [200, 304, 304])
    }
}
