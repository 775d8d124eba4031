import Foundation
import LoopbackOrigin
import StoreCore
import StoreCoreTesting
import Testing
import Trials

@testable import TextStore

/// T18: texts in several languages, of a real origin and on a real disk.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct LanguageTests {
    private let bench: Bench

    init() throws { bench = try Bench() }

    private static let languages = ["en", "de", "de-AT", "fr"]

    private func source(_ identifier: String = "eula", _ listed: [String] = languages, group: String? = nil) -> TextSource {
        let files = listed.map { tag in
            (
                tag,
                TextLanguages.Files(
                    bundleFile: tag == "de-AT" ? nil : BundleFile(fileName: "\(identifier)-\(tag)", fileExtension: "txt"),
                    remoteFile: RemoteFile(url: bench.origin.url.appending(path: "\(identifier)-\(tag).txt")))
            )
        }
        return TextSource(
            identifier: identifier, languages: TextLanguages(Dictionary(uniqueKeysWithValues: files), development: "en"), group: group)
    }

    private func bundle() throws -> Bundle {
        var files = [
            "versions.json":
                #"{"eula/en":"1.0.0","eula/de":"1.0.0","eula/fr":"1.0.0","privacy/en":"1.0.0","privacy/de":"1.0.0","privacy/fr":"1.0.0"}"#
        ]
        for identifier in ["eula", "privacy"] {
            for tag in Self.languages where tag != "de-AT" { files["\(identifier)-\(tag).txt"] = "Bundled \(identifier) in \(tag)" }
        }
        return try bench.bundle(files)
    }

    private func started(
        _ preferred: [String]?, _ sources: [TextSource]? = nil, policy: TextStorePolicy = TextStorePolicy()
    ) async throws -> TextStore {
        let store = try bench.store(bundle: bundle(), policy: policy)
        if let preferred { try await store.setLanguages(preferred) }
        try await store.register(sources ?? [source()])
        await store.setVersionSource(bench.versions)
        return store
    }

    private func serve(_ versions: [String: String]) {
        bench.serve(manifest: "{" + versions.sorted { $0.key < $1.key }.map { #""\#($0)":"\#($1)""# }.joined(separator: ",") + "}")
        for (member, version) in versions { bench.serve(member.replacing("/", with: "-"), "Remote \(member) \(version)") }
    }

    private func shown(_ store: TextStore, _ identifier: String = "eula") async throws -> String {
        let text = try await store.text(for: identifier)
        #expect(text.identifier == identifier)
        return "\(text.language ?? "-") " + line(text)
    }

    @Test func `T7, T18: a waiting set keeps the languages that only another store uses, so that neither fetches again`() async throws {
        serve(["eula/en": "2.0.0", "eula/de": "2.0.0", "eula/fr": "2.0.0"])
        let texts = [source("eula", ["en", "de", "fr"], group: "legal")], policy = TextStorePolicy(activation: .manually)
        let german = try await started(["de"], texts, policy: policy), french = try await started(["fr"], texts, policy: policy)
        for store in [german, french, german, french] { try await store.refresh() }
        for tag in ["de", "fr"] { #expect(bench.origin.requests(to: "/eula-\(tag).txt").count == 1) }
        #expect(try await german.activate())
        #expect(try await shown(german) == "de 2.0.0 remote: Remote eula/de 2.0.0")
        bench.origin.goDown()
        let next = try await started(["fr"], texts, policy: policy)
        #expect(try await shown(next) == "fr 2.0.0 cache: Remote eula/fr 2.0.0")
    }

    @Test func `T18: each language has its own version, floor, and record, over restarts and offline`() async throws {
        serve(["eula/en": "3.0.0", "eula/de": "2.0.0"])
        let first = try await started(["de-AT"])
        try await first.refresh()
        #expect(try await shown(first) == "de 2.0.0 remote: Remote eula/de 2.0.0")
        try await first.setLanguages(["en"])
        #expect(try await shown(first) == "en 3.0.0 remote: Remote eula/en 3.0.0")
        bench.origin.goDown()
        let next = try await started(["de"])
        #expect(try await shown(next) == "de 2.0.0 cache: Remote eula/de 2.0.0")
        try await next.setLanguages(["fr"])
        #expect(try await shown(next) == "fr 1.0.0 bundle: Bundled eula in fr")
        try await next.setLanguages(["es", "en"])
        #expect(try await shown(next) == "en 3.0.0 cache: Remote eula/en 3.0.0")
        let floors = await next.shelf.floors.texts.mapValues { $0.rank.version?.description }
        #expect(floors == ["eula/en": "3.0.0", "eula/de": "2.0.0", "eula/fr": "1.0.0"])
    }

    @Test func `T18: changing the language switches all observers in one step, offline, and to no other text first`() async throws {
        bench.origin.goDown()
        let store = try await started(["de"], [source(), source("privacy")])
        var observers = [store.publish("eula").makeAsyncIterator(), store.publish("privacy").makeAsyncIterator()]
        for number in observers.indices { #expect(await observers[number].next()?.content?.language == "de") }
        for language in ["fr", "en", "de"] {
            try await store.setLanguages([language])
            for number in observers.indices {
                var seen: [String?] = []
                repeat { seen.append(await observers[number].next()?.content?.language) } while seen.last != language
                // A state of the old language may have been published for the end of a fetch, but no third language.
                #expect(Set(seen).subtracting([language]).count <= 1, "\(seen)")
            }
        }
    }

    @Test func `T18: a better language appears as soon as it has arrived, and its failure is the reason until then`() async throws {
        serve(["eula/de": "1.0.0", "eula/de-AT": "2.0.0"])
        bench.origin.on(.get, "/eula-de-AT.txt") { _ in .status(503) }
        let store = try await started(["de-AT"])
        let fallback = try await store.text(for: "eula", awaiting: patient)
        #expect(fallback.language == "de" && fallback.fallbackReason?.code == .unexpectedStatus)
        var observer = store.publish("eula").makeAsyncIterator()
        #expect(await observer.next()?.content?.language == "de")
        bench.serve("eula-de-AT", "Remote eula/de-AT 2.0.0")
        try await store.refresh()
        #expect(try await shown(store) == "de-AT 2.0.0 remote: Remote eula/de-AT 2.0.0")
        while await observer.next()?.content?.language != "de-AT" {}
    }

    @Test func `T18, T17: a better language that waits for its activation is the reason of the fallback`() async throws {
        serve(["eula/de": "1.0.0", "eula/de-AT": "2.0.0"])
        let store = try await started(["de-AT"], policy: TextStorePolicy(activation: .manually))
        try await store.refresh()
        let waiting = try await store.text(for: "eula", awaiting: patient)
        #expect(waiting.language == "de" && waiting.fallbackReason?.code == .unconfirmed)
        #expect(try await store.activate())
        #expect(try await store.text(for: "eula").language == "de-AT")
    }

    @Test func `T18, T2: setting languages before, between, or after the registrations ends in the same state`() async throws {
        serve(["eula/en": "3.0.0", "eula/de": "2.0.0", "privacy/en": "1.1.0", "privacy/de": "1.2.0"])
        for seed in seeds(UInt64(24), quick: 5) {
            var dice = SplitMix(seed: seed)
            let store = try bench.store("order-\(seed)", bundle: bundle())
            let sources = [source(), source("privacy")], versions = bench.versions
            let steps: [@Sendable () async throws -> Void] = [
                { try await store.setLanguages(["de-AT", "fr"]) }, { try await store.register(sources[0]) },
                { try await store.register(sources[1]) }, { await store.setVersionSource(versions) },
                { try await store.register(sources) },
            ]
            let order = steps.shuffled(using: &dice)
            if Bool.random(using: &dice) {
                for step in order { try await step() }
            } else {
                try await withThrowingTaskGroup { group in
                    for step in order { group.addTask { try await step() } }
                    try await group.waitForAll()
                }
            }
            try await store.refresh()
            #expect(try await shown(store) == "de 2.0.0 remote: Remote eula/de 2.0.0", "seed \(seed)")
            #expect(try await shown(store, "privacy") == "de 1.2.0 remote: Remote privacy/de 1.2.0", "seed \(seed)")
        }
    }

    @Test func `T18, T2: a registration examines the languages of new texts only, and a change of languages those of all`() async throws {
        bench.origin.goDown()
        let store = try await started(["de"])
        let de = try LanguageChoice.preferred(["de"])
        #expect(store.session.read { $0.languages?.members(for: nil).count } == 0)
        #expect(store.session.read { $0.languages?.members(for: de).count } == 2)
        var session = store.session.current
        try session.register([source("privacy")])
        #expect(session.missingMembers().map(\.identifier).sorted() == ["privacy/de", "privacy/en"])
        #expect(session.missingMembers(for: de).count == 2)
        try await store.register(source("privacy"))
        #expect(try await shown(store, "privacy") == "de 1.0.0 bundle: Bundled privacy in de")
    }

    @Test func `T18, I1: a snapshot describes the language that is shown`() async throws {
        bench.origin.goDown()
        let store = try await started(["fr"])
        try await store.accept(store.text(for: "eula"))
        let text = try #require(await store.snapshot().first { $0.identifier == "eula" })
        #expect(text.text == "Bundled eula in fr" && text.version == SemanticVersion("1.0.0") && text.origin == .bundle && text.isAccepted)
    }

    @Test func `T18: the last of concurrent calls counts, for all texts`() async throws {
        bench.origin.goDown()
        for seed in seeds(UInt64(20), quick: 3) {
            let store = try bench.store("last-\(seed)", bundle: bundle())
            try await store.register([source(), source("privacy")])
            async let first: Void = store.setLanguages(["fr"])
            async let second: Void = store.setLanguages(["de"])
            _ = try await (first, second)
            let languages = [try await store.text(for: "eula").language, try await store.text(for: "privacy").language]
            #expect(Set(languages).count == 1, "seed \(seed): \(languages)")
            try await store.setLanguages(["en"])
            #expect(try await store.text(for: "eula").language == "en")
        }
    }

    @Test func `T18: a text whose name is a language of another one is a conflict, and registrations stay all or none`() async throws {
        let store = try bench.store(bundle: bundle())
        try await store.register(source())
        let names = ["eula/de", "eula/fr"]
        for conflict in names.map({ TextSource(identifier: $0) }) + names.map({ source($0, ["en"]) }) + [source("eula", ["en", "de"])] {
            await expectError(.conflictingSource) { try await store.register([source("privacy"), conflict]) }
            await #expect(throws: TextStoreError.self) { try await store.text(for: "privacy") }
        }
        let other = try bench.store("other", bundle: bundle())
        try await other.register(TextSource(identifier: "eula/fr"))
        await expectError(.conflictingSource) { try await other.register(source()) }
        await expectError(.conflictingSource) { try await other.register([source("privacy"), TextSource(identifier: "privacy/de")]) }
        var both = source("privacy")
        both.bundleFile = BundleFile(fileName: "privacy")
        await expectError(.invalidLanguage) { try await other.register([both]) }
        await expectError(.invalidLanguage) { try await other.setLanguages(["de", "none_"]) }
    }

    @Test func `T18, T7: a set with languages switches in all languages at once`() async throws {
        func manifest(_ version: Int, without missing: String? = nil) {
            var versions: [String: String] = [:]
            for member in ["eula/en", "eula/de", "privacy/en", "privacy/de"] where member != missing { versions[member] = "\(version).0.0" }
            serve(versions)
        }
        manifest(2)
        let store = try await started(
            ["de"], [source("eula", ["en", "de"], group: "legal"), source("privacy", ["en", "de"], group: "legal")])
        try await store.refresh()
        func expectAll(_ version: String) async throws {
            for language in ["de", "en"] {
                try await store.setLanguages([language])
                #expect(try await store.versions() == [version, version], "\(language)")
            }
        }
        // One text of the next set is missing, in a language that is not shown.
        manifest(3)
        bench.origin.on(.get, "/privacy-en.txt") { _ in .status(503) }
        await #expect(throws: TextStoreError.self) { try await store.refresh() }
        try await expectAll("2.0.0")
        manifest(3, without: "eula/de")
        await #expect(throws: TextStoreError.self) { try await store.refresh() }
        manifest(3)
        try await store.refresh()
        try await expectAll("3.0.0")
    }

    @Test func `T18, T13: one acceptance covers all languages of its version if the policy says so`() async throws {
        for policy in [Acceptance.Languages.each, .together] {
            let store = try bench.store("accepting-\(policy)", bundle: bundle(), policy: TextStorePolicy(acceptedLanguages: policy))
            bench.origin.goDown()
            defer { try? bench.origin.comeBack() }
            try await store.setLanguages(["de"])
            try await store.register(source())
            await store.setVersionSource(bench.versions)
            let german = try await store.text(for: "eula")
            try await store.accept(german)
            #expect(try await store.acceptance(of: "eula")?.language == "de")
            try await store.setLanguages(["en"])
            let english = try await store.text(for: "eula")
            for granularity in [Acceptance.Granularity.any, .minor, .major, .digest] {
                #expect(await store.needsAcceptance(of: english, granularity: granularity) == (policy == .each), "\(policy) \(granularity)")
                #expect(await !store.needsAcceptance(of: german, granularity: granularity))
            }
        }
    }

    @Test func `T18, T20: the changes since an acceptance are those of the accepted language`() async throws {
        serve(["eula/en": "2.0.0", "eula/de": "2.0.0"])
        let store = try bench.store(bundle: bundle(), policy: TextStorePolicy(evidence: .allAcceptances))
        try await store.setLanguages(["de"])
        try await store.register(source("eula", ["en", "de", "fr"]))
        try await store.accept(store.text(for: "eula"))
        await store.setVersionSource(bench.versions)
        try await store.refresh()
        try await store.setLanguages(["en"])
        let accepted = try #require(try await store.acceptance(of: "eula"))
        #expect(try await store.changes(since: accepted) == TextDifference(from: "Bundled eula in de", to: "Remote eula/de 2.0.0"))
        // After a restart, the accepted language is not in use.
        bench.origin.goDown()
        let cases: [([String], TextStoreError.Code?)] = [(["en", "de", "fr"], nil), (["en", "fr"], .unknownIdentifier)]
        for (listed, code) in cases {
            let next = try bench.store(bundle: bundle(), policy: TextStorePolicy(evidence: .allAcceptances))
            try await next.setLanguages(["en"])
            try await next.register(source("eula", listed))
            do {
                let changes = try await next.changes(since: accepted)
                #expect(changes == TextDifference(from: "Bundled eula in de", to: "Remote eula/de 2.0.0") && code == nil)
            } catch let error as TextStoreError {
                #expect(error.code == code)
            }
            #expect(try await next.text(for: "eula").language == "en")
        }
    }

    /// Observers, fetches, failures, restarts, and switches in random order. After each step that waits, the shown text is the best
    /// available language, in the highest version that its device has seen.
    @Test func `T18: random histories of languages, fetches, and restarts show the best language and no lower version`() async throws {
        for seed in seeds(UInt64(40), quick: 4) {
            var dice = SplitMix(seed: seed)
            let session = "history-\(seed)"
            var published: [String: Int] = [:], highest = ["en": 1, "de": 1, "fr": 1], preferred = ["de-AT"]
            func open() async throws -> TextStore {
                let store = try bench.store(session, bundle: bundle(), policy: TextStorePolicy(checkInterval: .zero))
                try await store.setLanguages(preferred)
                try await store.register(source())
                await store.setVersionSource(bench.versions)
                return store
            }
            serve([:])
            var store = try await open()
            var observer: Task<Void, any Error>?
            for step in 0..<14 {
                switch Int.random(in: 0..<6, using: &dice) {
                case 0, 1:
                    preferred = Array(["de-AT", "de", "fr", "en", "es"].shuffled(using: &dice).prefix(Int.random(in: 1...3, using: &dice)))
                    // The switch meets fetches in flight.
                    let current = store
                    let refresh = Task { try? await current.refresh() }
                    try await current.setLanguages(preferred)
                    _ = await refresh.value
                case 2:
                    let tag = Self.languages[Int.random(in: 0..<4, using: &dice)]
                    published[tag, default: 1] += Int.random(in: 1...2, using: &dice)
                    serve(Dictionary(uniqueKeysWithValues: published.map { ("eula/\($0)", "\($1).0.0") }))
                case 3: store = try await open()
                case 4:
                    observer?.cancel()
                    observer = Task { [store] in
                        var languages: [String?] = []
                        for await state in store.publish("eula") { languages.append(state.content?.language) }
                    }
                default: break
                }
                _ = try? await store.refresh()
                let chain = try LanguageChoice(try #require(source().languages)).chain(for: LanguageChoice.preferred(preferred))
                for tag in chain.map(\.description) { if let version = published[tag] { highest[tag] = max(highest[tag] ?? 0, version) } }
                let expected = try #require(chain.map(\.description).first { highest[$0] != nil })
                let text = try await store.text(for: "eula")
                let (language, version) = (text.language, text.version)
                #expect(
                    language == expected && version?.major == highest[expected].map(UInt64.init) && !text.isBelowFloor,
                    "seed \(seed), step \(step): \(language ?? "-") \(version?.description ?? "-"), \(preferred), \(published)")
            }
            observer?.cancel()
        }
    }

    /// A set of two texts in two languages: publications, some of them incomplete, switches, acceptances, and restarts in random order.
    @Test func `T18, T7, T13: random histories of a set never mix versions, and keep acceptances over languages and restarts`() async throws
    {
        for seed in seeds(UInt64(30), quick: 3) {
            var dice = SplitMix(seed: seed)
            let session = "set-\(seed)", members = ["eula/en", "eula/de", "privacy/en", "privacy/de"]
            var published = 1, accepted: UInt64 = 0, preferred = ["de"]
            func publish(without missing: String?) {
                published += 1
                let entries = members.map { [published] member in
                    let text = "Remote \(member) \(published)"
                    return #""\#(member)":{"version":"\#(published).0.0","sha256":"\#(sha256(text))"}"#
                }
                bench.serve(manifest: #"{"revision":\#(published),"texts":{\#(entries.joined(separator: ","))}}"#)
                for member in members {
                    let name = member.replacing("/", with: "-")
                    if member == missing {
                        bench.origin.on(.get, "/\(name).txt") { _ in .status(503) }
                    } else {
                        bench.serve(name, "Remote \(member) \(published)")
                    }
                }
            }
            func open() async throws -> TextStore {
                let policy = TextStorePolicy(checkInterval: .zero, acceptedLanguages: .together, evidence: .allAcceptances)
                let store = try bench.store(session, bundle: bundle(), policy: policy)
                try await store.setLanguages(preferred)
                try await store.register(["eula", "privacy"].map { source($0, ["en", "de"], group: "legal") })
                await store.setVersionSource(bench.versions)
                return store
            }
            publish(without: nil)
            var store = try await open()
            for step in 0..<12 {
                switch Int.random(in: 0..<5, using: &dice) {
                case 0: publish(without: Bool.random(using: &dice) ? members.randomElement(using: &dice) : nil)
                case 1:
                    preferred = Bool.random(using: &dice) ? ["de"] : ["en"]
                    let current = store
                    let refresh = Task { try? await current.refresh() }
                    try await current.setLanguages(preferred)
                    _ = await refresh.value
                case 2: store = try await open()
                case 3:
                    let text = try await store.text(for: "eula")
                    try await store.accept(text)
                    accepted = max(accepted, text.version?.major ?? 0)
                default: break
                }
                // The two reads below are not one step, so no fetch may be in flight.
                _ = try? await store.refresh()
                let (eula, privacy) = (try await store.text(for: "eula"), try await store.text(for: "privacy"))
                #expect(eula.language == preferred[0] && privacy.language == preferred[0], "seed \(seed), step \(step)")
                #expect(eula.version == privacy.version, "seed \(seed), step \(step): a mixed set")
                let isNeeded = await store.needsAcceptance(of: eula, granularity: .digest)
                #expect(
                    isNeeded == (eula.version?.major ?? 0 > accepted) || eula.version?.major ?? 0 < accepted, "seed \(seed), step \(step)")
                #expect(await store.needsAcceptance(of: eula) == (eula.version?.major ?? 0 > accepted), "seed \(seed), step \(step)")
            }
        }
    }
}
