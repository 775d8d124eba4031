import Foundation
import LoopbackOrigin
import StoreCore
import StoreFiles
import Testing
import Trials

@testable import TextStore

/// T4: files of a session that another version of the framework has written.
struct OtherVersionTests {
    private let bench: Bench

    init() throws { bench = try Bench() }

    /// Replaces files of the session with intact ones of another version.
    ///
    /// - Returns: The content of the new files by their paths.
    private func replace(_ names: [String], version: UInt32 = 2) throws -> [String: Data] {
        var replaced: [String: Data] = [:]
        for path in bench.place.files where names.contains(where: { path.hasSuffix("/\($0)") }) {
            let isJournal = path.hasSuffix("pointer.0") || path.hasSuffix("pointer.1") || path.contains("/floor.")
            let bytes =
                isJournal
                ? LogFormat("SHjotext", version: version, noun: "a journal of texts").header + [1, 2, 3]
                : SealedFile("SHtext01", version: version, temporaryKind: "text").encode(Array("{}".utf8))
            replaced[path] = Data(bytes)
            try Data(bytes).write(to: bench.place.file(path))
        }
        #expect(replaced.count == names.count)
        return replaced
    }

    private func expectUnchanged(_ files: [String: Data]) throws {
        for (path, bytes) in files { #expect(try Data(contentsOf: bench.place.file(path)) == bytes, "\(path)") }
    }

    /// Leaves a session with a fetched and accepted text, and no store.
    private func prepare(_ policy: TextStorePolicy = TextStorePolicy()) async throws {
        bench.serve(eula: 2)
        let store = try await bench.started(policy: policy).refreshed()
        try await store.accept(store.text(for: "eula"))
    }

    private func waitForReport(of name: String) async throws {
        let subjects = ["/\(name)", "/\(name), a journal of texts,"]
        try await bench.events.waitForFault { fault in
            fault.code == .damagedFile && subjects.contains { fault.message.contains("\($0) has version 2") }
        }
    }

    // MARK: Acceptances and manifests

    @Test(arguments: [["accepted.0", "accepted.1"], ["accepted.0"], ["accepted.1"]], [0, 2] as [UInt32])
    func `T4, T13: acceptances of another version stay, and no acceptance is saved over them`(
        names: [String], version: UInt32
    ) async throws {
        try await prepare()
        let files = try replace(names, version: version)
        let store = try await bench.started()
        let text = try await store.text(for: "eula")
        #expect(await store.needsAcceptance(of: text) == (names.count == 2))
        if names.count == 2 { try await bench.events.waitForFault { $0.isOfOtherVersion } }
        let error = await expectError(.damagedFile) { try await store.accept(text, account: "ada") }
        #expect(error?.message.contains("/\(names[0]) has version \(version), and this program reads version 1") == true)
        if names.count == 2 { await #expect(throws: TextStoreError.self) { try await store.withdrawAcceptances(of: "eula") } }
        try expectUnchanged(files)
        // The remedy.
        for path in files.keys { try FileManager.default.removeItem(at: bench.place.file(path)) }
        try await store.accept(text, account: "ada")
        #expect(await !store.needsAcceptance(of: text, account: "ada"))
    }

    @Test func `T4, T13: with evidence, an acceptance is in the evidence, and the acceptances of another version stay`() async throws {
        let policy = TextStorePolicy(evidence: .allAcceptances)
        try await prepare(policy)
        let files = try replace(["accepted.0", "accepted.1"])
        let store = try await bench.started(policy: policy)
        let text = try await store.text(for: "eula")
        // The evidence has the first acceptance, too.
        #expect(await !store.needsAcceptance(of: text))
        try await bench.events.waitForFault { $0.isOfOtherVersion }
        try await store.accept(text, account: "ada")
        #expect(await !store.needsAcceptance(of: text, account: "ada"))
        #expect(try await store.acceptanceRecords().count == 2)
        try expectUnchanged(files)
    }

    @Test(arguments: [["manifest.0"], ["floor.0", "floor.1"]])
    func `T4: a manifest or floors of another version stay, are reported, and prevent no new text`(names: [String]) async throws {
        try await prepare()
        let files = try replace(names)
        bench.serve(eula: 3)
        let store = try await bench.started().refreshed()
        #expect(try await line(store.text(for: "eula")) == "3.0.0 remote: Remote terms 3")
        try await bench.events.waitForFault { $0.isOfOtherVersion && $0.message.hasPrefix("cannot save") }
        for name in names { try await waitForReport(of: name) }
        try expectUnchanged(files)
    }

    // MARK: Journals

    @Test(arguments: [["pointer.0", "pointer.1"], ["pointer.0"], ["pointer.1"]])
    func `T4: a journal of records of another version stays, and so do the records`(names: [String]) async throws {
        try await prepare()
        let records = bench.place.files.filter { $0.hasSuffix(".text") }
        #expect(!records.isEmpty)
        let files = try replace(names)
        for path in records { try bench.place.age(path, by: .seconds(36_000)) }
        bench.serve(eula: 3)
        let store = try await bench.started()
        // With one copy left, the text is known; without any, the bundled one is shown.
        let expected = names.count == 2 ? "Bundled terms 1" : "Remote terms 2"
        #expect(try await store.text(for: "eula").text == expected)
        try await waitForReport(of: names[0])
        let refused = await #expect(throws: TextStoreError.self) { try await store.refresh() }
        let kept = await #expect(throws: TextStoreError.self) { try await store.clear() }
        for error in [refused, kept] {
            #expect(error?.code == .damagedFile)
            #expect(error?.message.contains("/\(names[0]), a journal of texts, has version 2") == true)
        }
        try expectUnchanged(files)
        #expect(Set(bench.place.files).isSuperset(of: records))
        // The remedy.
        for path in files.keys { try FileManager.default.removeItem(at: bench.place.file(path)) }
        try await store.refresh()
        #expect(try await line(store.text(for: "eula")) == "3.0.0 remote: Remote terms 3")
    }
}
