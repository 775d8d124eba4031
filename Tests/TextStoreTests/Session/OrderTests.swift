import Foundation
import LoopbackOrigin
import StoreCore
import Testing
import Trials

@testable import TextStore

/// T2, T3: order and floors over real files and real HTTP.
struct OrderTests {
    let bench: Bench

    init() throws { bench = try Bench() }

    enum Step: String, CaseIterable, Sendable { case eula, privacy, versions, again }

    /// All orders; those that begin with the version source also with its response before the next step.
    private static let cases: [([Step], Bool)] =
        Step.permutations.map { ($0, false) } + Step.permutations.filter { $0.first == .versions }.map { ($0, true) }

    @Test(arguments: part(of: cases, each: 4))
    func `T2: every order of registrations, version source, and responses ends in the same state`(
        steps: [Step], answersFirst: Bool
    ) async throws {
        bench.serve(eula: 2, privacy: 1)
        let store = try bench.store()
        for step in steps {
            switch step {
            case .eula: try await store.register(bench.source("eula"))
            case .privacy: try await store.register(bench.source("privacy"))
            case .versions: await store.setVersionSource(bench.versions)
            case .again: try await store.register([bench.source("eula"), bench.source("privacy")])
            }
            if answersFirst, step == .versions { try await bench.events.waitForChecks(1) }
        }
        #expect(line(try await store.text(for: bench.source("eula"), awaiting: patient)) == "2.0.0 remote: Remote terms 2")
        #expect(line(try await store.text(for: bench.source("privacy"), awaiting: patient)) == "1.0.0 bundle: Bundled privacy 1")
        #expect(bench.events.refusals.isEmpty && bench.events.faults.isEmpty)
        #expect(bench.events.saved == ["eula 2.0.0"])
    }

    @Test func `T2: concurrent registration ends in the same state`() async throws {
        bench.serve(eula: 2)
        let store = try bench.store()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<20 {
                group.addTask { await #expect(throws: Never.self) { try await store.register(bench.source("eula")) } }
                group.addTask { await store.setVersionSource(bench.versions) }
            }
        }
        #expect(line(try await store.text(for: bench.source("eula"), awaiting: patient)) == "2.0.0 remote: Remote terms 2")
    }

    @Test func `T2: another source for a known identifier is refused and changes nothing`() async throws {
        let store = try await bench.started()
        let other = TextSource(identifier: "eula", bundleFile: BundleFile(fileName: "another"))
        await expectError(.conflictingSource, of: "eula") { try await store.register([bench.source("third"), other]) }
        await expectError(.unknownIdentifier) { try await store.text(for: bench.source("third")) }
        #expect(line(try await store.text(for: bench.source("eula"))) == "1.0.0 bundle: Bundled terms 1")
    }

    @Test func `T2: registering one by one has the same result as at once, and the cost per text stays constant`()
        async throws
    {
        let names = (0..<160).map { "text-\($0)" }
        var files = Dictionary(uniqueKeysWithValues: names.map { ($0 + ".txt", "Text of \($0)") })
        files["versions.json"] = "{" + names.map { #""\#($0)":"1.0.0""# }.joined(separator: ",") + "}"
        let bundle = try bench.bundle(files)
        let sources = names.map { name in TextSource(identifier: name, bundleFile: BundleFile(fileName: name, fileExtension: "txt")) }
        func opened(_ session: String) async throws -> TextStore {
            let store = try bench.store(session, bundle: bundle)
            await store.setVersionSource(VersionSource(bundleFile: BundleFile(fileName: "versions", fileExtension: "json")))
            return store
        }
        // Other processes share the machine, so the shortest times of early and late texts count. With a cost that grows with the number
        // of the texts, the ratio would be five or more.
        var ratios: [Double] = []
        for round in 0..<10 where ratios.allSatisfy({ $0 > 3 }) {
            let store = try await opened("many \(round)")
            var times: [Duration] = []
            for source in sources {
                let began = ContinuousClock.now
                try await store.register(source)
                times.append(ContinuousClock.now - began)
            }
            ratios.append((times[130..<160].min() ?? .zero) / (times[10..<25].min() ?? .zero))
        }
        #expect(ratios.contains { $0 <= 3 }, "\(ratios)")

        let many = try await opened("many 0"), atOnce = try await opened("at once")
        for store in [many, atOnce] { try await store.register(sources) }
        for name in names {
            let source = TextSource(identifier: name)
            #expect(try await many.text(for: source) == atOnce.text(for: source))
        }
        #expect(await many.shelf.floors == atOnce.shelf.floors)
        #expect(bench.events.faults.isEmpty)
    }

    /// Runs a store that fetches version 2.
    private func fetched() async throws {
        bench.serve(eula: 2, privacy: 1)
        let store = try await bench.started()
        #expect(line(try await store.text(for: bench.source("eula"), awaiting: patient)) == "2.0.0 remote: Remote terms 2")
    }

    /// The record itself is the floor if both copies of the floors are damaged.
    @Test(arguments: [nil, "floor", "text", "pointer"])
    func `T3: an older version from the origin is refused after any damage, and a lost text leads to an older one that is marked`(
        damage: String?
    ) async throws {
        try await fetched()
        if let damage { #expect(try bench.place.damage(damage) > 0) }
        let isLost = damage == "text" || damage == "pointer"
        // Otherwise the saved manifest would cause another fetch of the text.
        if isLost { #expect(try bench.place.damage("manifest") == 1) }
        bench.serve(manifest: #"{"eula":"1.5.0"}"#)
        bench.serve("eula", "Remote terms 1.5")
        let store = try await bench.started()
        await expectError(.belowFloor) { try await store.refresh() }
        let expected = isLost ? "1.0.0 bundle: Bundled terms 1 (below floor)" : "2.0.0 cache: Remote terms 2"
        #expect(line(try await store.text(for: bench.source("eula"))) == expected)
        try await bench.events.waitForRefusal { $0.code == .belowFloor && $0.identifier == "eula" }
        guard isLost else { return }
        try await bench.events.waitForFault { $0.code == .damagedFile }
        #expect(bench.events.saved == ["eula 2.0.0"])
    }

    @Test(arguments: ["floor.0", "floor.1"])
    func `T3: one damaged copy of the floors loses nothing`(name: String) async throws {
        try await fetched()
        #expect(try bench.place.damage(name) == 1)
        try await bench.started().clear()
        bench.origin.goDown()
        let store = try await bench.started()
        #expect(line(try await store.text(for: bench.source("eula"))) == "1.0.0 bundle: Bundled terms 1 (below floor)")
    }

    @Test func `T3: a rollback needs a higher revision that orders it, and holds against bundles and older manifests`() async throws {
        try await fetched()
        bench.serve("eula", "Remote terms 1.5")
        bench.serve(manifest: #"{"revision":7,"texts":{"eula":{"version":"1.5.0"}}}"#)
        let store = try await bench.started()
        await expectError(.belowFloor) { try await store.refresh() }
        #expect(try await store.text(for: bench.source("eula")).version == SemanticVersion("2.0.0"))
        bench.serve(manifest: #"{"revision":8,"texts":{"eula":{"version":"1.5.0","rollback":true}}}"#)
        try await store.refresh()
        #expect(line(try await store.text(for: bench.source("eula"))) == "1.5.0 remote: Remote terms 1.5")
        bench.serve(manifest: #"{"revision":6,"texts":{"eula":"2.0.0"}}"#)
        await expectError(.outdatedManifest) { try await store.refresh() }
        let updated = try bench.bundle(["eula.txt": "Bundled terms 1.9", "privacy.txt": "p", "versions.json": #"{"eula":"1.9.0"}"#])
        let second = try await bench.started(bundle: updated)
        #expect(line(try await second.text(for: bench.source("eula"))) == "1.5.0 cache: Remote terms 1.5")
    }
}
