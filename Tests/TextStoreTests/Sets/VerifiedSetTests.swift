import Foundation
import LoopbackOrigin
import StoreCore
import Testing

@testable import TextStore

/// T7 with T15 and T16: sets that wait, epochs and withdrawals beside a verifier, late manifests and other processes.
struct VerifiedSetTests {
    let bench: Bench

    init() throws { bench = try Bench() }

    private struct Refused: Error {}

    private static let names = ["eula", "privacy"]

    /// Publishes versions of both texts as one set, each signed in a header field.
    private func serve(_ eula: Int, _ privacy: Int) {
        let entries = zip(Self.names, [eula, privacy]).map { #""\#($0)":{"version":"\#($1).0.0","group":"legal"}"# }
        bench.origin.on(.get, "/versions.json") { _ in
            .json(literal: #"{"texts":{\#(entries.joined(separator: ","))}}"#).setting("X-Signature", to: "good")
        }
        for (name, version) in zip(Self.names, [eula, privacy]) {
            bench.origin.on(.get, "/\(name).txt") { _ in .text("Remote \(name) \(version)").setting("X-Signature", to: "good") }
        }
    }

    private func store(
        _ activation: TextStorePolicy.Activation, refusing refused: Int? = nil, verifies: Bool = true
    ) throws -> TextStore {
        guard verifies else { return try bench.store(policy: TextStorePolicy(activation: activation)) }
        return try bench.store(
            policy: TextStorePolicy(activation: activation),
            verify: { verification in
                guard verification.headers["x-signature"] == "good" else { throw Refused() }
                if let refused, verification.identifier == "eula", verification.version?.description == "\(refused).0.0" { throw Refused() }
            })
    }

    private func sources(_ names: [String] = Self.names) -> [TextSource] { names.map { bench.source($0, group: "legal") } }

    private func shown(_ store: TextStore) async throws -> [String] {
        var found: [String] = []
        for name in Self.names { found.append(line(try await store.text(for: name))) }
        return found
    }

    @Test func `T4, T7: bytes that change under their version wait for activation, and are fetched once`() async throws {
        let policy = TextStorePolicy(activation: .manually)
        let store = try await bench.started(policy: policy)
        bench.serve(manifest: #"{"eula":"2.0.0"}"#)
        bench.serve("eula", "Old terms 2")
        try await store.refresh()
        try await store.activate()
        bench.serve("eula", "New terms 2")
        bench.time.shiftDate(by: .seconds(1))
        try await store.refresh()
        for _ in 0..<3 { _ = try await store.text(for: "eula", awaiting: patient) }
        #expect(bench.origin.requests(to: "/eula.txt").count == 2)
        #expect(try await store.activate())
        #expect(line(try await store.text(for: "eula")) == "2.0.0 remote: New terms 2")
    }
}
