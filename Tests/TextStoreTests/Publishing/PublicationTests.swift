import Foundation
import LoopbackOrigin
import StoreCore
import StoreCoreTesting
import Testing
import Trials

@testable import TextStore
@testable import terms

/// T22: the publisher's tool makes manifests that devices accept, and refuses the others.
struct PublicationTests {
    private func sources(_ texts: [String: String]) -> [Publication.Source] {
        texts.map { Publication.Source(path: $0, bytes: Data($1.utf8)) }
    }

    private func publish(
        _ texts: [String: String], after last: ManifestFile? = nil, _ change: (inout Publication.Options) -> Void = { _ in }
    ) throws -> Publication {
        var options = Publication.Options()
        change(&options)
        return try Publication(of: sources(texts), after: last, options)
    }

    private func refusal(
        _ texts: [String: String], after last: ManifestFile? = nil, _ change: (inout Publication.Options) -> Void = { _ in }
    ) -> String {
        let error = #expect(throws: Refusal.self) { try publish(texts, after: last, change) }
        return error?.description ?? ""
    }

    @Test func `T22: a manifest lists the newest version of each text and language, with digest, length, and the next revision`() throws {
        let texts = [
            "eula@1.0.0.txt": "one", "eula@1.10.0.txt": "ten", "eula@1.9.0.txt": "nine", "faq/de@2.0.0.txt": "zwei", "a:b c@1.0.0.md": "x",
        ]
        let first = try publish(texts)
        let eula = try #require(first.manifest.texts["eula"]?.all.first)
        #expect(eula.version == "1.10.0" && eula.sha256 == sha256("ten") && eula.length == 3 && eula.url == "eula@1.10.0.txt")
        #expect(first.manifest.texts["faq/de"]?.all.first?.url == "faq/de@2.0.0.txt")
        #expect(first.manifest.texts["a:b c"]?.all.first?.url == "a%3Ab%20c@1.0.0.md")
        #expect(first.manifest.revision == 1 && first.manifest.epoch == nil && first.changes.count == 3)
        // The store reads what the tool writes, and the tool reads it back.
        let read = try VersionManifest(parsing: first.manifest.bytes())
        #expect(read.problems == [] && read.entries.count == 3 && read.revision == 1)
        #expect(try ManifestFile(reading: first.manifest.bytes()) == first.manifest)
        let next = try publish(texts, after: first.manifest)
        #expect(next.manifest.revision == 2 && next.changes == [] && next.manifest.texts == first.manifest.texts)
        let plain = Data(#"{"eula":"1.0.0"}"#.utf8)
        #expect(try publish(["eula@2.0.0.txt": "x"], after: ManifestFile(reading: plain)).manifest.revision == 1)
        // Apps may read larger files than by default.
        #expect(try ManifestFile(reading: plain + Data(repeating: 0x20, count: 1_000_000)).texts.keys.sorted() == ["eula"])
    }

    @Test func `T22: what devices would punish is refused with the reason and the remedy`() throws {
        let last = try publish(["eula@2.0.0.txt": "two"]) { $0.revision = 7 }.manifest
        var high = last
        high.revision = .max
        let plain = try ManifestFile(reading: Data(#"{"eula":"1.0.0"}"#.utf8))
        let cases: [(String, String)] = [
            (refusal(["eula@3.0.0.txt": "three"], after: plain) { ($0.percents, $0.isSigned) = (["eula": 10], true) }, "would not cover"),
            (refusal(["eula@2.0.0.txt": "two"], after: last) { $0.revision = 7 }, "is not above the last one"),
            (refusal(["eula@2.0.0.txt": "two"], after: last) { $0.revision = 3 }, "Leave out --revision"),
            (refusal(["eula@2.0.0.txt": "two"], after: last) { $0.revision = 200_000_000 }, "would report a jump"),
            (refusal(["eula@2.0.0.txt": "two"], after: high), "publish with --recover"),
            (refusal(["eula@1.0.0.txt": "one"], after: last), "pass --rollback eula"),
            (refusal(["eula@2.0.0.txt": "two"], after: last) { $0.rollbacks = ["eula"] }, "has no effect"),
            (refusal(["eula@2.0.0.txt": "other"], after: last), "a higher version"),
            // The devices outside of the share read the lower version.
            (refusal(["eula@3.0.0.txt": "3", "eula@2.0.0.txt": "other"], after: last) { $0.percents = ["eula": 10] }, "“eula” 2.0.0 has"),
            (refusal(["faq@1.0.0.txt": "one"], after: last), "pass --remove eula"),
            (refusal(["eula@2.0.0.txt": "two"]) { $0.recovers = true }, "needs the last manifest"),
            (refusal(["eula@3.0.0.txt": "three"], after: last) { $0.percents = ["eula": 120] }, "from 0 to 100"),
            (refusal(["eula@3.0.0.txt": "three"], after: last) { $0.percents = ["eula": .nan] }, "from 0 to 100"),
            (refusal(["eula@3.0.0.txt": "three"]) { $0.percents = ["eula": 10] }, "publish that version to all devices first"),
            (refusal(["eula@3.0.0.txt": "three"], after: last) { $0.percents = ["faq": 10] }, "correct the name"),
            (refusal(["eula@2.0.0.txt": "two"], after: high) { ($0.recovers, $0.revision) = (true, UInt64.max) }, "leave it out"),
            (refusal(["eula@2.0.0.txt": "two"], after: last) { $0.removals = ["eula"] }, "move the file away first"),
            (refusal(["eula@2.0.0.txt": "two"], after: last) { $0.removals = ["faq"] }, "correct the name"),
        ]
        for (message, remedy) in cases { #expect(message.contains(remedy), "\(message)") }
    }

    @Test(
        arguments: [
            "eula.txt", "eula@1.0.txt", "eula@1.0.0", "@1.0.0.txt", "eula@.txt", "eula@1.0.0-rc.1.txt", "eula@01.0.0.txt", "notes.pdf",
            "eula/de_AT@1.0.0.txt", "eula/DE@1.0.0.txt", "eula/@1.0.0.txt", "eula/deutschland@1.0.0.txt",
        ])
    func `T22: a file that is no text of a version is refused by its name`(path: String) {
        #expect(refusal([path: "text"]).contains("“\(path)”"))
    }

    @Test func `T22: a text that apps would refuse is not published`() throws {
        // A store takes the last two for a portal's page, and removes a byte order mark.
        let texts = [
            "", " \n", "\u{FEFF}", "\u{FEFF} \n", "a\u{0}b", String(repeating: "x", count: 1_000_001), "<center>Terms", " <!doctype html>",
        ]
        for text in texts { #expect(!refusal(["eula@1.0.0.txt": text]).isEmpty, "\(text.prefix(20))") }
        #expect(try publish(["eula@1.0.0.md": "<center>Terms"]).changes.count == 1)
        let large = ["eula@1.0.0.txt": String(repeating: "x", count: 1_000_001)]
        #expect(refusal(large).contains("raise the limit of the file in the apps, and pass --limit"))
        #expect(try publish(large) { $0.limit = 1_000_001 }.changes.count == 1)
        let bytes = Publication.Source(path: "eula@1.0.0.txt", bytes: Data([0xC3, 0x28]))
        #expect(throws: Refusal.self) { try Publication(of: [bytes], after: nil) }
        #expect(refusal(["eula@1.0.0+a.txt": "a", "eula@1.0.0+b.txt": "b"]).contains("remove one"))
        #expect(refusal([:]).contains("no texts"))
    }

    @Test func `T22: a rollback stays ordered until a newer version, and sets and shares go on`() throws {
        let first = try publish(["eula@2.0.0.txt": "two"]) { $0.groups = ["eula": "legal"] }.manifest
        let back = try publish(["eula@1.0.0.txt": "one"], after: first) { $0.rollbacks = ["eula"] }.manifest
        #expect(back.texts["eula"]?.all.first?.rollback == true && back.texts["eula"]?.all.first?.group == "legal")
        #expect(try publish(["eula@1.0.0.txt": "one"], after: back).manifest.texts["eula"]?.all.first?.rollback == true)
        let next = try publish(["eula@2.1.0.txt": "three"], after: back) { $0.percents = ["eula": 10] }.manifest
        let entries = try #require(next.texts["eula"]?.all)
        #expect(entries.map(\.version) == ["2.1.0", "1.0.0"] && entries[0].when?.percent == 10 && entries[1].rollback == true)
        let more = try publish(["eula@2.1.0.txt": "three"], after: next) { $0.percents = ["eula": 50] }.manifest
        #expect(more.texts["eula"]?.all.map(\.version) == ["2.1.0", "1.0.0"] && more.texts["eula"]?.all.first?.when?.percent == 50)
        let fewer = try publish(["eula@2.1.0.txt": "three"], after: more) { $0.percents = ["eula": 20] }
        #expect(fewer.notes.count == 3 && fewer.notes.last?.contains("does not have eula@1.0.0.txt") == true)
        let kept = try publish(["eula@2.1.0.txt": "three", "eula@1.0.0.txt": "one"], after: more) { $0.percents = ["eula": 50] }
        #expect(kept.notes == [])
        // Conditions that are left out are not dropped silently.
        let some = try publish(["eula@2.1.0.txt": "three"], after: more) { $0.conditions = ["eula": .init(app: "3.1", platforms: ["ios"])] }
        #expect(some.manifest.texts["eula"]?.all.first?.when?.app == "3.1" && some.notes.first?.contains("to some devices") == true)
        #expect(try publish(["eula@2.1.0.txt": "three"], after: some.manifest).notes.first?.contains("to all devices") == true)
        // The devices of the larger share keep the version between.
        let newer = try publish(["eula@2.2.0.txt": "four"], after: more) { $0.percents = ["eula": 10] }.manifest
        #expect(newer.texts["eula"]?.all.map(\.version) == ["2.2.0", "2.1.0", "1.0.0"])
        let all = try publish(["eula@2.1.0.txt": "three"], after: more).manifest
        #expect(all.texts["eula"]?.all.map(\.version) == ["2.1.0"] && all.texts["eula"]?.all.first?.when == nil)
        #expect(try VersionManifest(parsing: more.bytes()).problems == [])
    }

    @Test func `T22: an option of a text applies to each of its languages that has none of its own`() throws {
        let names = ["eula/de", "eula/en"]
        func texts(_ version: Int) -> [String: String] {
            Dictionary(uniqueKeysWithValues: names.map { ("\($0)@\(version).0.0.txt", "\($0) \(version)") })
        }
        let first = try publish(texts(1)).manifest
        let second = try publish(texts(2), after: first) { options in
            (options.percents, options.groups) = (["eula": 10, "eula/en": 20], ["eula": "legal"])
            options.conditions = ["eula": .init(from: "2030-01-01T00:00:00Z", app: "1.0.0"), "eula/en": .init(app: "3.0.0")]
        }.manifest
        let entries = names.map { second.texts[$0]?.all.first }
        #expect(entries.map { $0?.when?.percent } == [10, 20] && entries.map { $0?.group } == ["legal", "legal"])
        #expect(entries.map { $0?.when?.app } == ["1.0.0", "3.0.0"] && entries.allSatisfy { $0?.when?.from != nil })
        let back = try publish(texts(1), after: publish(texts(2), after: first).manifest) { $0.rollbacks = ["eula"] }.manifest
        #expect(names.allSatisfy { back.texts[$0]?.all.first?.rollback == true })
        #expect(try publish(["faq@1.0.0.txt": "faq"], after: second) { $0.removals = ["eula"] }.manifest.texts.keys.sorted() == ["faq"])
    }

    @Test func `T21, T22: a share of a set reaches the same devices with each text, and a raised share keeps its draw`() throws {
        let sets = ["eula/de": "legal/de", "eula/en": "legal/en", "faq": "legal"]
        func publish(_ version: Int, _ percent: Double?, after last: ManifestFile?, _ groups: [String: String]) throws -> ManifestFile {
            let texts = Dictionary(uniqueKeysWithValues: sets.keys.map { ("\($0)@\(version).0.0.txt", "text \(version)") })
            return try self.publish(texts, after: last) { options in
                options.groups = groups
                for name in sets.keys { options.percents[name] = percent }
            }.manifest
        }
        let some = try publish(2, 10, after: publish(1, nil, after: nil, sets), [:])
        let more = try publish(2, 50, after: some, ["faq": "other"])
        for manifest in [some, more] { #expect(Set(manifest.texts.values.map { $0.all.first?.when?.draw }) == ["legal"]) }
        #expect(more.texts["faq"]?.all.first?.group == "other")
        // A share without a draw has that of its group, or of its text.
        let written = Data(#"{"texts":{"faq":[{"version":"2.0.0","when":{"percent":10}},"1.0.0"]}}"#.utf8)
        let rows: [(String, [String?])] = [("2.0.0", ["faq", nil]), ("3.0.0", ["legal", "faq", nil])]
        for (version, draws) in rows {
            let moved = try self.publish(["faq@\(version).txt": "text"], after: ManifestFile(reading: written)) { options in
                (options.percents, options.groups) = (["faq": 20], ["faq": "legal"])
            }
            #expect(moved.manifest.texts["faq"]?.all.map(\.when?.draw) == draws)
        }
    }

    @Test func `T22: devices that missed a rollback get its order until a version above the withdrawn one`() throws {
        let first = try publish(["eula@3.0.0.txt": "three"]).manifest
        let back = try publish(["eula@1.0.0.txt": "one"], after: first) { $0.rollbacks = ["eula"] }.manifest
        let between = try publish(["eula@2.0.0.txt": "two"], after: back).manifest
        let entry = try #require(between.texts["eula"]?.all.first)
        #expect(entry.rollback == true && entry.withdrawn == "3.0.0")
        #expect(refusal(["eula@3.0.0.txt": "three"], after: between).contains("was withdrawn"))
        let share = try publish(["eula@4.0.0.txt": "four"], after: back) { $0.percents = ["eula": 10] }.manifest
        let again = refusal(["eula@3.0.0.txt": "other"], after: share) { $0.rollbacks = ["eula"] }
        #expect(again.contains("was withdrawn"), "users have accepted another wording of this version")
        let above = try #require(try publish(["eula@3.0.1.txt": "four"], after: between).manifest.texts["eula"]?.all.first)
        #expect(above.rollback == nil && above.withdrawn == nil)
        #expect(try VersionManifest(parsing: between.bytes()).problems == [])
        let removed = try publish(["faq@1.0.0.txt": "faq"], after: between) { $0.removals = ["eula"] }
        #expect(removed.notes.contains { $0.contains("has to exceed 3.0.0") })
    }

    @Test func `T22: a text in one language is removed for the sake of its languages`() throws {
        let single = try publish(["eula@1.0.0.txt": "one"]).manifest, languages = ["eula/en@2.0.0.txt": "two", "eula/de@2.0.0.txt": "zwei"]
        #expect(refusal(languages, after: single).contains("pass --remove eula"))
        let both = try publish(languages, after: single) { $0.removals = ["eula"] }.manifest
        #expect(both.texts.keys.sorted() == ["eula/de", "eula/en"])
        #expect(refusal(languages, after: both) { $0.removals = ["eula"] }.contains("still has a file"))
        var mixed = both
        mixed.texts["eula"] = single.texts["eula"]
        #expect(refusal(["eula/en@2.0.0.txt": "two"], after: mixed) { $0.removals = ["eula"] }.contains("pass --remove eula/de"))
    }

    @Test func `T22, T16: a recovery raises the epoch, and says what unsigned manifests need`() throws {
        var high = try publish(["eula@2.0.0.txt": "two"]).manifest
        high.revision = .max
        let recovered = try publish(["eula@2.0.0.txt": "two"], after: high) { $0.recovers = true }
        #expect(recovered.manifest.epoch == 1 && recovered.manifest.revision == 1)
        #expect(recovered.notes.first?.contains("acceptedEpoch = 1") == true)
        let signed = try publish(["eula@2.0.0.txt": "two"], after: recovered.manifest) { ($0.recovers, $0.isSigned) = (true, true) }
        #expect(signed.manifest.epoch == 2 && signed.notes.first?.contains("verifier") == true)
        #expect(try publish(["eula@2.0.0.txt": "two"], after: signed.manifest).manifest.epoch == 2)
    }

    /// Random directories and options, one publication after another, to a device that fetches each, and to devices that miss some.
    @Test func `T22: a device accepts every manifest that the tool publishes, and never goes back without a rollback`() throws {
        for seed in seeds(UInt64(300), quick: 30) {
            var dice = SplitMix(seed: seed)
            var last: ManifestFile?, devices = [(edition: Edition?, floor: Floor?)](repeating: (nil, nil), count: 4)
            for _ in 0..<12 {
                let version = Int.random(in: 1...9, using: &dice)
                let publication = try? publish(["eula@\(version).0.0.txt": "text \(version)"], after: last) { options in
                    if Int.random(in: 0..<4, using: &dice) == 0 { options.rollbacks = ["eula"] }
                    if Int.random(in: 0..<6, using: &dice) == 0 { options.recovers = true }
                    if Int.random(in: 0..<4, using: &dice) == 0 { options.revision = UInt64.random(in: 0...40, using: &dice) }
                    if Bool.random(using: &dice) { options.percents = ["eula": Double.random(in: 0...100, using: &dice)] }
                }
                guard let publication else { continue }
                let manifest = try VersionManifest(parsing: publication.manifest.bytes())
                let found = try #require(manifest.edition)
                let shared = manifest.variants["eula"]?.map(\.version) ?? []
                for number in devices.indices where number == 0 || Bool.random(using: &dice) {
                    let (edition, floor) = devices[number]
                    #expect(edition.map { $0 < found } ?? true, "seed \(seed)")
                    let chosen = manifest.chosen(for: TextAudience(), on: UInt64(number), at: .distantPast)
                    let entry = try #require(chosen.entries["eula"])
                    var rank = floor?.rankOfOffered(entry, edition: found) ?? Rank(version: entry.version)
                    // A smaller share takes no text back.
                    if let floor, rank < floor.rank, shared.contains(where: { $0 == floor.rank.version }) { rank = floor.rank }
                    #expect(floor.map { $0.rank <= rank } ?? true, "seed \(seed): \(entry.version) is below the floor of \(number)")
                    devices[number] = (found, Floor(rank: rank, withdrawn: nil, digest: digest("text \(version)")))
                }
                last = publication.manifest
            }
        }
    }
}

#if os(macOS) || os(Linux)

/// T22: the tool as a process, and a store that verifies what it has signed.
@Suite(.serialized)
struct PublishCommandTests {
    private let place: TemporaryDirectory

    init() throws {
        place = try TemporaryDirectory()
        try write("eula@1.0.0.txt", "Terms one")
    }

    private func write(_ name: String, _ text: String) throws {
        let file = place.file("texts/\(name)")
        try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(text.utf8).write(to: file)
    }

    /// Runs a program; the output contains its errors.
    private func run(_ program: String, _ arguments: [String]) async throws -> (code: Int32, output: String) {
        // The shell replaces itself with the program.
        let process = try ChildProcess("/bin/sh", ["-c", #"exec "$0" "$@" 2>&1"#, program] + arguments)
        let output = process.rest
        return (try await process.ending(), output)
    }

    private func publish(_ rest: String...) async throws -> (code: Int32, output: String) {
        try await run(ChildProcess.path(of: "terms"), ["publish", place.file("texts").path(percentEncoded: false), "--plain"] + rest)
    }

    @Test func `T22: exit codes tell written, refused, and wrong usage apart, and lines have at most 80 columns`() async throws {
        let dry = try await publish("--dry-run")
        #expect(dry.code == 0 && !FileManager.default.fileExists(atPath: place.file("texts/versions.json").path))
        #expect(try await publish().code == 0)
        let manifest = try Data(contentsOf: place.file("texts/versions.json"))
        try write("eula@1.0.0.txt", "Terms changed")
        let refused = try await publish()
        #expect(refused.code == 2 && refused.output.contains("refused: ") && refused.output.contains("a higher version"))
        #expect(try Data(contentsOf: place.file("texts/versions.json")) == manifest)
        #expect(try await publish("--nothing").code == 64)
        #expect(try await publish("--percent", "eula").code == 64)
        #expect(try await publish("--app", "=3").code == 64)
        #expect(try await publish("--key").code == 64)
        #expect(try await publish("--last", "/nowhere.json").code == 1)
        let help = try await publish("--help")
        #expect(help.code == 0 && help.output.split(separator: "\n").allSatisfy { $0.count <= 80 })
        try write("eula@1.0.0.txt", "Terms one")
        let large = try await publish("--dry-run", "--limit", "50")
        #expect(large.code == 2 && large.output.contains("the manifest has "))
        #expect(try await publish("--limit", "0").code == 64)
        try write("eula@2.0.0.txt", "Terms two")
        let soon = try await publish("--from", "eula=soon")
        #expect(soon.code == 2 && soon.output.contains("a date and time such as"))
        let next = try await publish()
        #expect(next.code == 0 && next.output.contains("eula: 1.0.0 → 2.0.0") && next.output.contains("+ Terms two"))
        let link = place.file("texts/faq@1.0.0.txt"), target = place.file("texts/eula@1.0.0.txt")
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: target)
        #expect(try await publish("--dry-run").output.contains("faq: 1.0.0 is new"))
    }

    @Test func `T22: a store with a verifier takes what the tool has signed, and no other manifest`() async throws {
        let key = place.file("key.pem").path(percentEncoded: false), open = place.file("public.pem").path(percentEncoded: false)
        let made = try await run("/usr/bin/env", ["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key])
        try #require(made.code == 0, "OpenSSL's command line is needed: \(made.output)")
        #expect(try await run("/usr/bin/env", ["openssl", "pkey", "-in", key, "-pubout", "-out", open]).code == 0)
        let other = place.file("texts/eula@1.0.0.txt").path(percentEncoded: false)
        #expect(try await publish("--key", other).code == 1)
        #expect(try await publish("--key", other, "--dry-run").code == 1)
        let signed = try await publish("--key", key)
        #expect(signed.code == 0 && signed.output.contains("x-signature: "))
        let bytes = try Data(contentsOf: place.file("texts/versions.json"))
        let signature = String(decoding: try Data(contentsOf: place.file("texts/versions.json.sig")), as: UTF8.self)
        let (folder, text) = (place.file("check").path(percentEncoded: false), place.file("check.sig").path(percentEncoded: false))
        let verify: @Sendable (TextVerification) async throws -> Void = { verification in
            // The digests of a signed manifest cover its texts.
            if verification.isListed { return }
            struct Forged: Error {}
            guard let field = verification.headers["x-signature"], let raw = Data(base64Encoded: field) else { throw Forged() }
            try Data(verification.bytes).write(to: URL(filePath: folder))
            try raw.write(to: URL(filePath: text))
            let arguments = ["openssl", "dgst", "-sha256", "-verify", open, "-signature", text, folder]
            let isSigned = try ChildProcess.output(of: "/usr/bin/env", arguments, showsErrors: false) != nil
            guard isSigned else { throw Forged() }
        }
        for isForged in [false, true] {
            let bench = try Bench()
            var served = bytes
            if isForged { served.append(UInt8(ascii: " ")) }
            let manifest = String(decoding: served, as: UTF8.self)
            bench.origin.on(.get, "/versions.json") { _ in .json(literal: manifest).setting("x-signature", to: signature) }
            bench.origin.on(.get, "/eula@1.0.0.txt") { _ in .text("Terms one") }
            let store = try bench.store(bundle: bench.bundle([:]), verify: verify)
            try await store.register(TextSource(identifier: "eula"))
            await store.setVersionSource(VersionSource(remoteFile: RemoteFile(url: bench.origin.url.appending(path: "versions.json"))))
            let text = try? await store.text(for: "eula", awaiting: patient)
            #expect(text?.text == (isForged ? nil : "Terms one"))
        }
    }
}

#endif
