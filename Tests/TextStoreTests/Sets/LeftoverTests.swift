import Foundation
import LoopbackOrigin
import StoreCore
import StoreFiles
import StoreCoreTesting
import Testing
import Trials

@testable import TextStore

/// Texts that a fetch, a rollback, an observer, or a failed removal leaves behind.
struct LeftoverTests {
    let bench: Bench

    init() throws { bench = try Bench() }

    @Test(arguments: [7, nil, 5])
    func `T3: after a rollback, a bundle with a manifest no older than the rollback counts as newer`(revision: Int?) async throws {
        bench.serve(manifest: #"{"revision":5,"texts":{"eula":"99.0.0"}}"#)
        bench.serve("eula", "Remote terms 99")
        let store = try await bench.started().refreshed()
        bench.serve(manifest: #"{"revision":6,"texts":{"eula":{"version":"1.1.0","rollback":true}}}"#)
        bench.serve("eula", "Remote terms 1.1")
        try await store.refresh()
        let texts = #"{"eula":"2.0.0"}"#
        let updated = try bench.bundle([
            "eula.txt": "Bundled terms 2", "privacy.txt": "p",
            "versions.json": revision.map { #"{"revision":\#($0),"texts":\#(texts)}"# } ?? texts,
        ])
        bench.origin.goDown()
        let text = try await bench.started(bundle: updated).text(for: bench.source("eula"))
        #expect(line(text) == (revision == 7 ? "2.0.0 bundle: Bundled terms 2" : "1.1.0 cache: Remote terms 1.1"))
    }

    @Test func `T7: a missing text of a set of 40 does not cause the 39 verified ones to be fetched again`() async throws {
        let names = (0..<40).map { "text-\($0)" }
        let entries = names.map { #""\#($0)":{"version":"1.0.0","sha256":"\#(sha256("Text of \($0)"))"}"# }
        bench.serve(manifest: #"{"texts":{\#(entries.joined(separator: ","))}}"#)
        for name in names.dropLast() { bench.serve(name, "Text of \(name)") }
        let store = try bench.store(bundle: bench.bundle([:]))
        try await store.register(
            names.map { name in
                TextSource(identifier: name, remoteFile: RemoteFile(url: bench.origin.url.appending(path: "\(name).txt")), group: "g")
            })
        await store.setVersionSource(bench.versions)
        for _ in 0..<3 { _ = await #expect(throws: TextStoreError.self) { try await store.refresh() } }
        #expect(bench.origin.requests(to: "/text-0.txt").count == 1)
        #expect(bench.origin.requests(to: "/text-39.txt").count == 3)
        bench.serve("text-39", "Text of text-39")
        try await store.refresh()
        #expect(try await store.text(for: TextSource(identifier: "text-0")).text == "Text of text-0")
        #expect(bench.origin.requests.filter { $0.path.hasPrefix("/text-") && $0.status == 200 }.count == 40)
    }

    @Test func `T7: a verified text that the disk refuses is saved later without another fetch`() async throws {
        let text = "Remote terms 2", state = bench.place.file("state")
        let source = TextSource(identifier: "eula", remoteFile: RemoteFile(url: bench.origin.url.appending(path: "eula.txt")))
        bench.serve(manifest: #"{"texts":{"eula":{"version":"2.0.0","sha256":"\#(sha256(text))"}}}"#)
        bench.origin.on(.get, "/eula.txt") { _ in
            // A file in place of the directory refuses the save.
            try? FileManager.default.removeItem(at: state)
            try? Data().write(to: state)
            return .text(text)
        }
        let store = try bench.store(bundle: bench.bundle([:]))
        try await store.register(source)
        await store.setVersionSource(bench.versions)
        await #expect(throws: TextStoreError.self) { try await store.text(for: source, awaiting: patient) }
        #expect(bench.events.refusals.last?.code == .fileSystem)
        try FileManager.default.removeItem(at: state)
        try await store.refresh()
        #expect(try await store.text(for: source).text == text)
        #expect(bench.origin.requests(to: "/eula.txt").count == 1)
    }

    @Test func `T15: the deadline of a fetch excludes the time in the queue`() async throws {
        let begun = WatchedState(0), released = WatchedState(0), count = 18
        bench.origin.on(.get, "/slow.txt") { _ in
            let number = begun.increment()
            try? await released.wait { $0 >= number ? () : nil }
            return .text("late")
        }
        let fetcher = HTTPTextFetcher(deadline: .seconds(5), time: bench.time)
        let file = RemoteFile(url: bench.origin.url.appending(path: "slow.txt"))
        let fetches = (0..<count).map { _ in Task { try await fetcher.fetch(param: file, revalidating: nil) } }
        var ended = 0
        while ended < count {
            let (before, wanted) = (ended, min(count, ended + 6))
            try await begun.wait { $0 >= wanted ? () : nil }
            bench.time.advance(by: .seconds(4))
            released.update { $0 = wanted }
            ended = max(before + 1, wanted)
        }
        for fetch in fetches { await #expect(throws: Never.self) { _ = try await fetch.value } }
    }

    @Test(arguments: [true, false])
    func `T4: a record file swapped for another one is a fault, and its text falls back`(isAlone: Bool) async throws {
        let other = try Bench()
        for (bench, text) in [(bench, "Remote terms 2"), (other, "Forged terms 2")] {
            bench.serve(manifest: #"{"eula":"2.0.0"}"#)
            bench.serve("eula", text)
            try await bench.started().refresh()
            bench.origin.goDown()
        }
        let file = try #require(bench.place.files.first { $0.hasSuffix(".text") })
        let forged = try #require(other.place.files.first { $0.hasSuffix(".text") })
        try Data(contentsOf: other.place.file(forged)).write(to: bench.place.file(file))
        let store = try bench.store()
        try await store.register((isAlone ? ["eula"] : ["eula", "privacy"]).map { bench.source($0) })
        await store.setVersionSource(bench.versions)
        #expect(line(try await store.text(for: bench.source("eula"))) == "1.0.0 bundle: Bundled terms 1 (below floor)")
        try await bench.events.waitForFault { $0.code == .damagedFile && $0.identifier == "eula" }
    }

    @Test(arguments: [TextStoreError.Code.withdrawn, .unreachable, nil])
    func `T9: the end of a set's fetch clears its flight in the same step, and only transient failures are retried`(
        code: TextStoreError.Code?
    ) throws {
        var session = SessionState()
        try session.register([bench.source("eula")])
        session.load(["eula"], [:])
        session.setFlight(1, of: "text/eula")
        let plan = SetPlan(ticket: 1, key: "text/eula", items: [], offers: ["eula": session.offer(for: "eula")])
        let now = bench.time.now, kept = record("eula", "1.0.0", "one")
        session.setEnded(plan, code.map { TextStoreError($0, "") }, keeping: [kept], at: SessionMoment(bench.time))
        #expect(session.flights.isEmpty)
        #expect(session.failures["text/eula"]?.error.code == code)
        #expect(session.failures["text/eula"]?.kept == (code == nil ? nil : ["eula": kept]))
        #expect(session.failures["text/eula"]?.retryAt == (code == .unreachable ? now.advanced(by: .seconds(5)) : nil))
        session.retryAll(at: now)
        #expect(session.failures["text/eula"]?.retryAt == (code == .unreachable ? now : nil))
    }

    @Test func `T8: a read finds nothing due for a text with a fetch in flight`() throws {
        var session = SessionState()
        let sources = ["eula", "privacy"].map { bench.source($0) }, text = digest("bundled")
        try session.register(sources)
        let bundled = SessionState.BundledText(text: "bundled", digest: text, fileDigest: text)
        session.load(["eula", "privacy"], ["eula": .success(bundled), "privacy": .success(bundled)])
        session.replaceManifest(nil)
        _ = session.resolve()
        func isDue(_ identifier: String) -> Bool? { session.see(identifier, at: SessionMoment(bench.time))?.isDue }
        #expect(isDue("eula") == true && isDue("privacy") == true)
        session.setFlight(1, of: "text/eula")
        #expect(isDue("eula") == false && isDue("privacy") == true)
        session.setFlight(nil, of: "text/eula")
        #expect(isDue("eula") == true)
    }

    @Test func `T14: an observer that leaves twice is counted once`() async throws {
        bench.serve(manifest: #"{"eula":"1.0.0"}"#)
        let store = try await bench.started()
        var staying = store.publish(bench.source("eula")).makeAsyncIterator()
        _ = await staying.next()
        let leaving = Task { [bench] in
            var states = store.publish(bench.source("eula")).makeAsyncIterator()
            while await states.next() != nil {}
            // An ended iterator stays ended.
            return await states.next() == nil
        }
        try await store.session.wait { $0.observers["eula"] == 2 ? () : nil }
        leaving.cancel()
        #expect(await leaving.value)
        #expect(store.session.read { $0.observers["eula"] } == 1)
        withExtendedLifetime(staying) {}
    }

    @Test func `T14: a file that cannot be removed is reported as a fault, and the newer text is stored`() async throws {
        let shelf = bench.place.shelf()
        _ = await shelf.admit(["eula"], activatesPending: false)
        _ = try await shelf.store("text/eula", [record("eula", "1.0.0", "one")], isActivated: true)
        let file = try #require(bench.place.files.first { $0.hasSuffix(".text") })
        _ = try await shelf.store("text/eula", [record("eula", "2.0.0", "two")], isActivated: true)
        // A nonempty directory cannot be removed like a file.
        try FileManager.default.removeItem(at: bench.place.file(file))
        try FileManager.default.createDirectory(at: bench.place.file(file).appending(path: "in the way"), withIntermediateDirectories: true)
        let outcome = try await shelf.store("text/eula", [record("eula", "3.0.0", "three")], isActivated: true)
        #expect(outcome?.faults.contains { $0.code == .fileSystem && $0.message.contains("removing") } == true)
        #expect(shelf.session.read { $0.held["eula"]?.active?.text } == "three")
    }

    @Test func `T3: each save of a floor writes only that floor`() async throws {
        let shelf = bench.place.shelf()
        // Few enough that the file is not rewritten meanwhile.
        let names = (0..<8).map { "text-\($0)" }
        _ = await shelf.admit(names, activatesPending: false)
        func size() throws -> Int { try Data(contentsOf: bench.place.file("floor.0")).count }
        var sizes: [Int] = []
        for name in names {
            let before = sizes.isEmpty ? LogFormat.headerSize : try size()
            _ = try await shelf.store("text/\(name)", [record(name, "1.0.0", name)], isActivated: true)
            sizes.append(try size() - before)
        }
        #expect(Set(sizes).count == 1, "\(sizes)")
    }

    @Test func `T10: a restart compares the next version with the wording that was shown last`() async throws {
        for text in ["Old bytes", "New bytes"] {
            _ = try await bench.place.shelf().store("text/eula", [record("eula", "1.0.0", text)], isActivated: true)
        }
        let outcome = try await bench.place.shelf().store("text/eula", [record("eula", "1.1.0", "New bytes")], isActivated: true)
        #expect(outcome?.increases.map(\.textChanged) == [false])
    }

    @Test func `T3, T10: a bundled text that a manifest removes from a cached set raises its floor and is reported once`() async throws {
        bench.serve(eula: 2, privacy: 2, group: "legal")
        try await bench.started().refresh()
        let store = try await bench.started(bundle: bench.bundle(eula: 3, privacy: 1))
        #expect(line(try await store.text(for: "eula")) == "2.0.0 cache: Remote terms 2")
        var increases = store.versionIncreases.makeAsyncIterator()
        bench.serve(manifest: #"{"eula":"2.0.0","privacy":"2.0.0"}"#)
        try await store.refresh()
        // The store reports increases before the manifest's task ends.
        for task in store.tasks.withLock({ Array($0.values) }) { await task.value }
        #expect(line(try await store.text(for: "eula")) == "3.0.0 bundle: Bundled terms 3")
        try #require(store.session.read { $0.held["eula"]?.floor?.rank.version } == SemanticVersion("3.0.0"))
        let increase = await increases.next()
        #expect(increase?.identifier == "eula" && increase?.from == SemanticVersion("2.0.0") && increase?.to == SemanticVersion("3.0.0"))
    }
}
