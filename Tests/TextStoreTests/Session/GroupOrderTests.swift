import Foundation
import LoopbackOrigin
import StoreCore
import Testing
import Trials

@testable import TextStore

/// T2, T3, T7: groups with texts that are registered one after the other.
struct GroupOrderTests {
    let bench: Bench

    init() throws { bench = try Bench() }

    enum Step: String, CaseIterable, Sendable { case eula, privacy, versions }

    @Test(arguments: Step.permutations)
    func `T2, T3, T7: registering a group one by one never shows a bundled text that its cached set overrides, nor raises its floor`(
        steps: [Step]
    ) async throws {
        bench.serve(eula: 2, privacy: 2)
        try await bench.started(group: "legal").refresh()
        bench.origin.goDown()
        // The next app version bundles a newer privacy policy but older terms.
        let updated = try bench.bundle(eula: 1, privacy: 3)
        // Two starts, because the first one may save state that the second one reads.
        for _ in 0..<2 {
            let store = try bench.store(bundle: updated)
            for step in steps {
                switch step {
                case .versions: await store.setVersionSource(bench.versions)
                default:
                    let source = bench.source(step.rawValue, group: "legal")
                    try await store.register(source)
                    #expect(try await store.text(for: source).version == SemanticVersion("2.0.0"))
                }
            }
            #expect(try await store.lines() == ["2.0.0 cache: Remote terms 2", "2.0.0 cache: Remote privacy 2"])
            let floors = await store.shelf.floors.texts
            #expect(floors.mapValues { $0.rank.version?.description } == ["eula": "2.0.0", "privacy": "2.0.0"])
        }
    }

    @Test(arguments: Step.permutations)
    func `T3, T7: a set that a manifest defined stays whole until the next manifest arrives`(steps: [Step]) async throws {
        bench.serve(eula: 2, privacy: 2, group: "legal")
        try await bench.started().refresh()
        bench.origin.goDown()
        // The next version of the app has another manifest address, one newer text, and one older text.
        let updated = try bench.bundle(eula: 1, privacy: 3)
        var versions = bench.versions
        versions.remoteFile?.url = bench.origin.url.appending(path: "elsewhere.json")
        let store = try bench.store(bundle: updated)
        for step in steps {
            if step == .versions { await store.setVersionSource(versions) } else { try await store.register(bench.source(step.rawValue)) }
        }
        #expect(try await store.lines() == ["2.0.0 cache: Remote terms 2", "2.0.0 cache: Remote privacy 2"])
        #expect(await store.shelf.floors.texts["privacy"]?.rank.version == SemanticVersion("2.0.0"))
        try await store.clear()
        #expect(try await store.lines() == ["1.0.0 bundle: Bundled terms 1 (below floor)", "3.0.0 bundle: Bundled privacy 3"])
    }

    @Test func `T7: a rewritten pointer keeps its groups`() async throws {
        var pointer = Pointer()
        func place(_ name: String, _ version: String) -> Pointer.Place {
            Pointer.Place(file: RecordName(of: name), rank: Rank(version: SemanticVersion(version)), digest: digest(name))
        }
        pointer.take(.switched(dropped: ["group/g"], activated: ["a": place("a", "1.0.0"), "b": place("b", "1.0.0")]))
        pointer.take(.waits(set: "group/g", ["a": place("a", "2.0.0")]))
        pointer.take(.waits(set: "group/h", ["c": place("c", "2.0.0")]))
        pointer.take(
            .switched(dropped: ["group/g", "group/h"], activated: pointer.pending.values.reduce(into: [:]) { $0.merge($1) { $1 } }))
        pointer.take(.switched(dropped: ["text/d"], activated: ["d": place("d", "1.0.0")]))
        let read = try Pointer.Change.whole(pointer).bytes.withUnsafeBytes { bytes in try Pointer.Change(reading: bytes) }
        guard case .whole(let whole) = read else {
            Issue.record("\(read)")
            return
        }
        let expected = ["group/g": ["a": "2.0.0", "b": "1.0.0"], "group/h": ["c": "2.0.0"]]
        for pointer in [pointer, whole] {
            #expect(pointer.groups.mapValues { $0.mapValues { $0.version?.description ?? "-" } } == expected)
        }
        pointer.take(.switched(dropped: ["text/a"], activated: ["a": place("a", "3.0.0")]))
        #expect(pointer.groups["group/g"]?.keys.sorted() == ["b"])
    }

    @Test func `T7: a text that waits alone does not tear a newer waiting set`() async throws {
        let policy = TextStorePolicy(activation: .manually)
        bench.serve(eula: 3)
        let store = try await bench.started(policy: policy).refreshed()
        bench.serve(eula: 4, privacy: 4, group: "legal")
        try await store.refresh()
        #expect(try await store.activate())
        #expect(try await store.lines() == ["4.0.0 remote: Remote terms 4", "4.0.0 remote: Remote privacy 4"])
        #expect(bench.place.files.filter { $0.hasSuffix(".text") }.count == 2)
    }

    @Test func `T2, T7: a text that joins a set during its fetch is fetched and switched with it`() async throws {
        bench.serve(eula: 2, privacy: 2)
        let http = HTTPTextFetcher(deadline: hangLimit), isOpen = WatchedState(false)
        let store = try bench.store(
            fetcher: RevalidatingClosureFetcher { file, validator in
                if file.url.lastPathComponent == "eula.txt" { try await isOpen.wait { $0 ? () : nil } }
                return try await http.fetch(param: file, revalidating: validator)
            })
        await store.setVersionSource(bench.versions)
        try await store.register(bench.source("eula", group: "legal"))
        try await store.session.wait { $0.flights.isEmpty ? nil : () }
        try await store.register(bench.source("privacy", group: "legal"))
        isOpen.update { $0 = true }
        let privacy = try await store.text(for: "privacy", awaiting: patient)
        #expect(line(privacy) == "2.0.0 remote: Remote privacy 2")
        #expect(try await store.lines() == ["2.0.0 remote: Remote terms 2", "2.0.0 remote: Remote privacy 2"])
    }

    @Test func `T3: a start that raises no floor writes nothing`() async throws {
        bench.serve(eula: 2, privacy: 2)
        bench.serve("notes", "Notes")
        let store = try await bench.started()
        try await store.register(bench.notes)
        try await store.refresh()
        bench.origin.goDown()
        let updated = try bench.bundle(eula: 3, privacy: 1)
        func start() async throws -> [Data] {
            let store = try await bench.started(bundle: updated)
            try await store.register(bench.notes)
            #expect(line(try await store.text(for: bench.source("eula"))) == "3.0.0 bundle: Bundled terms 3")
            let names = bench.place.files.filter { $0.contains("floor") || $0.contains("pointer") }
            #expect(names.count == 4)
            return try names.map { try Data(contentsOf: bench.place.file($0)) }
        }
        let first = try await start()
        #expect(try await start() == first)
    }

    @Test func `T2: registering a large group one by one has the same result as registering it at once`() async throws {
        let names = (0..<150).map { "text-\($0)" }
        func bundle(_ version: Int) throws -> Bundle {
            var files = Dictionary(uniqueKeysWithValues: names.map { ($0 + ".txt", "Text \(version) of \($0)") })
            files["versions.json"] = "{" + names.map { #""\#($0)":"\#(version).0.0""# }.joined(separator: ",") + "}"
            return try bench.bundle(files)
        }
        let versions = VersionSource(bundleFile: BundleFile(fileName: "versions", fileExtension: "json"))
        let sources = names.map { name in
            TextSource(identifier: name, bundleFile: BundleFile(fileName: name, fileExtension: "txt"), group: "g")
        }
        for version in 1...2 {
            let bundle = try bundle(version)
            let oneByOne = try bench.store("one by one", bundle: bundle), atOnce = try bench.store("at once", bundle: bundle)
            await oneByOne.setVersionSource(versions)
            for source in sources.shuffled() { try await oneByOne.register(source) }
            try await atOnce.register(sources)
            await atOnce.setVersionSource(versions)
            for source in sources {
                let text = try await oneByOne.text(for: source)
                #expect(try await atOnce.text(for: source) == text && text.version == SemanticVersion("\(version).0.0"))
            }
            #expect(await oneByOne.shelf.floors == atOnce.shelf.floors)
        }
        #expect(bench.events.faults.isEmpty)
    }
}
