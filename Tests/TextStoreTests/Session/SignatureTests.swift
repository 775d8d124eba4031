import Foundation
import LoopbackOrigin
import StoreCore
import StoreCoreTesting
import Testing
import Trials

@testable import TextStore

/// T7, T8, T15: verification of fetched and saved bytes before they are shown.
struct SignatureTests {
    let bench: Bench

    init() throws { bench = try Bench() }

    @Test(arguments: ["", "\u{FEFF}"])
    func `T15: bytes confirmed for another version are verified for that version, including a byte order mark`(mark: String) async throws {
        let seen = WatchedState<[String]>([])
        bench.serve(manifest: #"{"eula":"2.0.0"}"#)
        bench.serve("eula", mark + "Remote terms 2")
        let store = try bench.store(verify: { verification in
            guard let version = verification.version else { return }
            seen.update { $0.append("\(version) \(String(decoding: verification.bytes, as: UTF8.self))") }
            if version == SemanticVersion("2.2.0") { throw Refused() }
        })
        try await bench.start(store)
        try await store.refresh()
        bench.serve(manifest: #"{"eula":"2.1.0"}"#)
        try await store.refresh()
        let text = try await store.text(for: bench.source("eula"))
        #expect(line(text) == "2.1.0 remote: Remote terms 2" && text.isVerified)
        bench.serve(manifest: #"{"eula":"2.2.0"}"#)
        await expectError(.verificationFailed) { try await store.refresh() }
        #expect(line(try await store.text(for: bench.source("eula"))) == "2.1.0 remote: Remote terms 2")
        #expect(seen.current == ["2.0.0", "2.1.0", "2.2.0"].map { "\($0) \(mark)Remote terms 2" })
        #expect(bench.origin.requests(to: "/eula.txt").map(\.status) == [200, 304, 304])
    }

    private struct Refused: Error {}

    @Test func `T15: a trailing closure of a store receives events and verifies nothing`() async throws {
        bench.serve(eula: 2)
        let received = WatchedState(0)
        let fetcher = HTTPTextFetcher(deadline: hangLimit), directory = bench.place.file("state")
        let store = try TextStore(session: "legal", directory: directory, bundle: bench.bundle(), fetcher: fetcher, time: bench.time) { _ in
            received.update { $0 += 1 }
        }
        try await bench.start(store)
        try await store.refresh()
        let text = try await store.text(for: bench.source("eula"))
        #expect(text.text == "Remote terms 2" && !text.isVerified)
        #expect(received.current >= 2)
    }

    @Test(arguments: [false, true])
    func `T15: a saved text and manifest are verified before they are shown, even if an earlier verifier accepted them`(
        wasVerified: Bool
    ) async throws {
        bench.serve(eula: 2)
        try await bench.started(verify: wasVerified ? { @Sendable _ in } : nil).refresh()
        bench.origin.goDown()
        let seen = WatchedState<[String]>([])
        let store = try bench.store(verify: { verification in
            seen.update { $0.append(String(decoding: verification.bytes, as: UTF8.self)) }
            throw Refused()
        })
        try await bench.start(store)
        let text = try await store.text(for: bench.source("eula"))
        #expect(line(text) == "1.0.0 bundle: Bundled terms 1 (below floor)" && text.staleSince == nil)
        #expect(Set(seen.current) == ["Remote terms 2", #"{"eula":"2.0.0"}"#])
        for identifier in ["eula", nil] {
            try await bench.events.waitForRefusal { $0.code == .verificationFailed && $0.identifier == identifier }
        }
    }

    @Test func `T15: the last version source counts, even if the saved manifest of an earlier one is verified for longer`() async throws {
        bench.serve(eula: 2)
        try await bench.started().refresh()
        let isVerifying = WatchedState(false), gate = WatchedState(false)
        let store = try bench.store(verify: { verification in
            guard String(decoding: verification.bytes, as: UTF8.self) == #"{"eula":"2.0.0"}"# else { return }
            isVerifying.update { $0 = true }
            try await gate.wait { $0 ? () : nil }
        })
        let first = bench.versions, last = VersionSource(remoteFile: RemoteFile(url: bench.origin.url.appending(path: "other.json")))
        let setting = Task { await store.setVersionSource(first) }
        try await isVerifying.wait { $0 ? () : nil }
        await store.setVersionSource(last)
        gate.update { $0 = true }
        await setting.value
        let source = store.session.read { $0.versionSource }
        #expect(source == last)
    }

    @Test(
        arguments: [
            ("not UTF-8", Data([0x61, 0xC3, 0x28])), ("NUL", Data([0x61, 0])), ("empty", Data()), ("HTML", Data("<html>".utf8)),
            ("a manifest that is no JSON", nil),
        ] as [(String, Data?)])
    func `T15: the verifier sees the bytes of a text or manifest before they are parsed`(kind: String, body: Data?) async throws {
        bench.serve(manifest: body == nil ? "no JSON" : #"{"eula":"2.0.0"}"#)
        bench.origin.on(.get, "/eula.txt") { _ in .data(body ?? Data(), type: "text/plain") }
        let store = try bench.store(verify: { if body == nil || $0.identifier != nil && Data($0.bytes) == body { throw Refused() } })
        try await bench.start(store)
        await expectError(.verificationFailed) { try await store.refresh() }
    }

    // MARK: Saved bytes

    private func serve(_ version: Int) { bench.serve(eula: version, privacy: version) }

    @Test func `T15: a saved text that the verifier accepts is shown as verified`() async throws {
        serve(2)
        try await bench.started().refresh()
        bench.origin.goDown()
        let seen = WatchedState<[String]>([])
        let store = try await bench.started { verification in
            #expect(!verification.isListed)
            seen.update { $0.append("\(verification.identifier ?? "manifest") \(verification.version?.description ?? "-")") }
        }
        let eula = try await store.text(for: bench.source("eula"))
        #expect(line(eula) == "2.0.0 cache: Remote terms 2" && eula.isVerified && eula.staleSince == nil)
        #expect(seen.current.sorted() == ["eula 2.0.0", "manifest -", "privacy 2.0.0"])
        // A store without a verifier shows the mark that the files contain.
        #expect(try await bench.started().text(for: bench.source("eula")).isVerified == false)
    }

    @Test(arguments: [true, false])
    func `T15: a verifier that relies on the manifest refuses what was saved without one`(isVerifiedFirst: Bool) async throws {
        serve(2)
        let accepts = WatchedState(true)
        let verify: @Sendable (TextVerification) async throws -> Void = { if !$0.isListed, !accepts.current { throw Refused() } }
        try await bench.started(verify: isVerifiedFirst ? verify : nil).refresh()
        bench.origin.goDown()
        accepts.update { $0 = false }
        let text = try await bench.started(verify: verify).text(for: bench.source("eula"))
        #expect(line(text) == (isVerifiedFirst ? "2.0.0 cache: Remote terms 2" : "1.0.0 bundle: Bundled terms 1 (below floor)"))
    }

    @Test func `T15: a version that a 304 confirmed without a verifier is refused by one that relies on the manifest`() async throws {
        serve(2)
        let verify: @Sendable (TextVerification) async throws -> Void = { if $0.identifier != nil, !$0.isListed { throw Refused() } }
        try await bench.started(verify: verify).refresh()
        bench.serve(manifest: #"{"eula":"3.0.0","privacy":"2.0.0"}"#)
        #expect(try await bench.started().refreshed().versions() == ["3.0.0", "2.0.0"])
        #expect(bench.origin.requests(to: "/eula.txt").last?.status == 304)
        bench.origin.goDown()
        let lines = try await bench.started(verify: verify).lines()
        #expect(lines == ["2.0.0 cache: Remote terms 2 (below floor)", "2.0.0 cache: Remote privacy 2"])
    }

    @Test(arguments: [nil, "legal"])
    func `T7, T15: a refused saved text falls back to the verified previous one, together with its group`(group: String?) async throws {
        for version in 2...3 {
            serve(version)
            try await bench.started(group: group).refresh()
        }
        bench.origin.goDown()
        let store = try await bench.started(group: group) { if $0.identifier == "eula", $0.version?.major == 3 { throw Refused() } }
        #expect(
            try await store.lines() == [
                "2.0.0 cache: Remote terms 2 (below floor)",
                group == nil ? "3.0.0 cache: Remote privacy 3" : "2.0.0 cache: Remote privacy 2 (below floor)",
            ])
        #expect(try await store.text(for: bench.source("eula")).isVerified)
    }

    @Test func `T15: a refused saved text is fetched again without a validator`() async throws {
        serve(2)
        try await bench.started().refresh()
        let isRefused = WatchedState(true)
        let store = try await bench.started { verification in if verification.identifier == "eula", isRefused.current { throw Refused() } }
        isRefused.update { $0 = false }
        try await store.refresh()
        #expect(try await store.lines()[0] == "2.0.0 remote: Remote terms 2")
        #expect(bench.origin.requests(to: "/eula.txt").last?.status == 200)
    }

    @Test func `T8, T15: a hanging verification ends at its deadline, and texts fall back to the bundle`() async throws {
        serve(2)
        try await bench.started().refresh()
        bench.origin.goDown()
        // The verifier also ignores its cancellation.
        let gate = WatchedState(false)
        let opening = Task { [bench] in
            try await bench.started { _ in await Task { try? await gate.wait { $0 ? () : nil } }.value }.text(for: bench.source("eula"))
        }
        try await bench.time.advance(by: .seconds(30), sleepers: 2)
        // The manifest is verified next.
        try await bench.time.advance(by: .seconds(30), sleepers: 1)
        #expect(line(try await opening.value) == "1.0.0 bundle: Bundled terms 1 (below floor)")
        #expect(bench.events.refusals.filter { $0.code == .verificationFailed }.count == 3)
        gate.update { $0 = true }
    }

    @Test func `T8, T15: a fetched text with a hanging verification is refused after the deadline`() async throws {
        serve(2)
        let gate = WatchedState(false), hasBegun = WatchedState(false)
        let store = try await bench.started { verification in
            guard verification.identifier == "eula" else { return }
            hasBegun.update { $0 = true }
            await Task { try? await gate.wait { $0 ? () : nil } }.value
        }
        let refreshing = Task { try await store.refresh() }
        // The deadline of the verification counts from its begin.
        try await hasBegun.wait { $0 ? () : nil }
        try await bench.time.sleepers(atLeast: 1)
        try await store.session.wait { $0.flights.count == 1 && $0.manifestFlight == nil ? () : nil }
        bench.time.advance(by: .seconds(30))
        await expectError(.verificationFailed, of: "eula") { try await refreshing.value }
        #expect(try await store.lines() == ["1.0.0 bundle: Bundled terms 1", "2.0.0 remote: Remote privacy 2"])
        gate.update { $0 = true }
    }

    @Test func `T15: saved texts are verified concurrently`() async throws {
        serve(2)
        try await bench.started().refresh()
        bench.origin.goDown()
        let inside = WatchedState(0)
        let store = try await bench.started { verification in
            guard verification.identifier != nil else { return }
            inside.update { $0 += 1 }
            try await inside.wait { $0 == 2 ? () : nil }
        }
        #expect(try await store.lines() == ["2.0.0 cache: Remote terms 2", "2.0.0 cache: Remote privacy 2"])
    }

    @Test func `T15: canceling a registration does not make the verifier refuse a saved text`() async throws {
        serve(2)
        try await bench.started().refresh()
        bench.origin.goDown()
        let inside = WatchedState(0), gate = WatchedState(false)
        let store = try bench.store(verify: { _ in
            inside.update { $0 += 1 }
            try await gate.wait { $0 ? () : nil }
        })
        let registering = Task { [bench] in try await store.register(bench.source("eula")) }
        try await inside.wait { $0 == 1 ? () : nil }
        registering.cancel()
        gate.update { $0 = true }
        try? await registering.value
        #expect(try await store.text(for: bench.source("eula")).text == "Remote terms 2")
        #expect(bench.events.refusals.allSatisfy { $0.code != .verificationFailed })
    }

    @Test func `T15: a detached signature in a header field is verified at the fetch and at the next start`() async throws {
        bench.origin.on(.get, "/versions.json") { _ in .json(literal: #"{"eula":"2.0.0"}"#).setting("X-Signature", to: "of the manifest") }
        bench.origin.on(.get, "/eula.txt") { _ in
            .text("\u{FEFF}Remote terms 2").setting("X-Signature", to: "of 2.0.0").setting("Set-Cookie", to: "secret=1")
        }
        let seen = WatchedState<[String]>([])
        for _ in 1...2 {
            let store = try bench.store(verify: { verification in
                let expected = verification.identifier == nil ? "of the manifest" : "of \(verification.version?.description ?? "-")"
                guard verification.headers["x-signature"] == expected, verification.headers["set-cookie"] == nil else { throw Refused() }
                seen.update { $0.append(String(decoding: verification.bytes, as: UTF8.self)) }
            })
            try await bench.start(store)
            if seen.current.count < 2 { _ = try await store.text(for: bench.source("eula"), awaiting: patient) }
            let text = try await store.text(for: bench.source("eula"))
            #expect(text.text == "Remote terms 2" && text.version == SemanticVersion("2.0.0") && text.isVerified)
            bench.origin.goDown()
        }
        #expect(seen.current.filter { $0 == "\u{FEFF}Remote terms 2" }.count == 2)
        #expect(seen.current.filter { $0 == #"{"eula":"2.0.0"}"# }.count == 2)
    }

    @Test func `T15: a text saved by another store of the session is shown only after its verification`() async throws {
        serve(2)
        let inside = WatchedState<[Int]>([]), gate = WatchedState(false)
        let store = try await bench.started { verification in
            guard verification.identifier == "eula", let version = verification.version else { return }
            inside.update { $0.append(Int(version.major)) }
            if version.major == 3 { try await gate.wait { $0 ? () : nil } }
        }
        try await store.refresh()
        serve(3)
        try await bench.started().refresh()
        bench.origin.goDown()
        // This store reads the other one's files when it takes the session's lock.
        store.report(try await store.shelf.accept(revision: 1))
        try await inside.wait { $0.last == 3 ? () : nil }
        #expect(line(try await store.text(for: bench.source("eula"))).hasPrefix("2.0.0 remote: Remote terms 2"))
        gate.update { $0 = true }
        try await store.session.wait { $0.resolved["eula"]?.text.version?.major == 3 ? () : nil }
        let text = try await store.text(for: bench.source("eula"))
        #expect(line(text) == "3.0.0 cache: Remote terms 3" && text.isVerified)
    }

    @Test(arguments: [true, false])
    func `T7, T15: a waiting set is verified before it is activated`(isGood: Bool) async throws {
        serve(2)
        let policy = TextStorePolicy(activation: .manually)
        try await bench.started(policy: policy, group: "legal").refresh()
        bench.origin.goDown()
        let next = try bench.store(policy: policy, verify: { if $0.identifier == "privacy", !isGood { throw Refused() } })
        try await next.register(bench.source("eula", group: "legal"))
        #expect(try await next.activate() == isGood)
        let text = try await next.text(for: bench.source("eula"))
        #expect(line(text) == (isGood ? "2.0.0 cache: Remote terms 2" : "- bundle: Bundled terms 1 (below floor)") && text.isVerified)
    }
}
