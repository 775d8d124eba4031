import Foundation
import StoreCore
import StorePlatform
import TextStore

/// A manifest as a file, with the entries of each text in their order.
struct ManifestFile: Codable, Equatable {
    struct Entry: Codable, Equatable {
        struct Conditions: Codable, Equatable {
            var percent: Double?
            var from: String?
            var app: String?
            var platforms: [String]?
            var draw: String?
        }

        var version: String
        var url: String?
        var sha256: String?
        var length: Int?
        var group: String?
        var rollback: Bool?
        /// The highest version that a rollback has withdrawn; only this tool reads it.
        var withdrawn: String?
        var when: Conditions?
    }

    /// One entry, or several with conditions.
    struct Entries: Codable, Equatable {
        var all: [Entry]

        init(_ all: [Entry]) { self.all = all }

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if let version = try? container.decode(String.self) {
                all = [Entry(version: version)]
            } else if let list = try? container.decode([Entries].self) {
                // Each entry of a list has either form, too.
                all = list.flatMap(\.all)
            } else {
                all = [try container.decode(Entry.self)]
            }
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            if all.count == 1 { try container.encode(all[0]) } else { try container.encode(all) }
        }
    }

    var epoch: UInt64?
    var revision: UInt64?
    var expires: String?
    var texts: [String: Entries] = [:]

    /// Reads a manifest, in its plain form too.
    init(reading data: Data) throws {
        // The store's own reader finds the problems that a decoder ignores, such as a text that is listed twice.
        let manifest = try VersionManifest(parsing: data, limit: .max)
        if let problem = manifest.problems.first {
            throw Refusal("the manifest has a malformed entry for “\(problem.identifier)”: \(problem.reason); correct it first")
        }
        if let plain = try? JSONDecoder().decode([String: String].self, from: data) {
            texts = plain.mapValues { Entries([Entry(version: $0)]) }
        } else {
            self = try JSONDecoder().decode(ManifestFile.self, from: data)
        }
    }

    init() {}

    func bytes() throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return try encoder.encode(self) + Data("\n".utf8)
    }
}

/// The reason why a manifest is not published, with the remedy.
struct Refusal: Error, Equatable, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// The next manifest, as it follows from the last one and the texts of a directory; decided without a file or a clock.
struct Publication: Equatable {
    /// A text of the directory.
    struct Source: Equatable {
        /// The path below the directory: `eula@2.0.0.txt`, or `eula/de@2.0.0.txt` for a language.
        var path: String
        var bytes: Data
    }

    struct Options: Equatable {
        var rollbacks: Set<String> = []
        var removals: Set<String> = []
        var groups: [String: String] = [:]
        var percents: [String: Double] = [:]
        /// Further conditions of the new version of a text.
        var conditions: [String: ManifestFile.Entry.Conditions] = [:]
        var revision: UInt64?
        /// Whether to raise the epoch, after a revision that was published too high.
        var recovers = false
        var expires: String?
        var isSigned = false
        /// The size of the largest file that the apps read; the default of `RemoteFile`.
        var limit = 1_000_000
    }

    struct Change: Equatable {
        var identifier: String
        var from: String?
        var to: String?
        /// The path of the old text, for a comparison.
        var oldPath: String?
        var newPath: String?
    }

    var manifest: ManifestFile
    var changes: [Change]
    var notes: [String]

    /// The largest increase of a revision that devices take without an event.
    static let usualJump: UInt64 = 100_000_000

    /// - Throws: ``Refusal``.
    init(of sources: [Source], after last: ManifestFile?, _ given: Options = Options()) throws {
        manifest = ManifestFile()
        (changes, notes) = ([], [])
        var newest: [String: (version: SemanticVersion, source: Source)] = [:]
        for source in sources.sorted(by: { $0.path < $1.path }) {
            let (identifier, version) = try Self.name(of: source.path)
            try Self.check(source, given.limit)
            if let known = newest[identifier] {
                if known.version == version {
                    throw Refusal(
                        "“\(known.source.path)” and “\(source.path)” have equal versions, because build metadata do not count; remove one")
                }
                if known.version > version { continue }
            }
            newest[identifier] = (version, source)
        }
        // A rollback publishes the version that is left when the newer files are gone.
        guard !newest.isEmpty else { throw Refusal("the directory has no texts; add files such as eula@1.0.0.txt") }
        let options = given.spread(over: Set(newest.keys))
        for (name, kind) in options.rollbacks.map({ ($0, "--rollback") }) + options.groups.keys.map({ ($0, "--group") })
            + options.percents.keys.map({ ($0, "--percent") }) + options.conditions.keys.map({ ($0, "a condition") })
        where newest[name] == nil {
            throw Refusal("\(kind) names “\(name)”, which is no text of the directory; correct the name")
        }
        for name in options.removals.sorted() where last?.texts[name] == nil && last?.texts.keys.contains(languageOf: name) != true {
            throw Refusal("--remove names “\(name)”, which the last manifest does not list; correct the name")
        }
        // A text in one language may be removed for the sake of its languages.
        for name in options.removals.sorted()
        where newest[name] != nil || (last?.texts[name] == nil && newest.keys.contains(languageOf: name)) {
            throw Refusal("--remove names “\(name)”, which still has a file in the directory; move the file away first")
        }
        try setEdition(after: last, options)
        manifest.expires = options.expires
        for (identifier, found) in newest.sorted(by: { $0.key < $1.key }) {
            try add(identifier, found.version, found.source, last?.texts[identifier]?.all ?? [], options)
        }
        let files = Dictionary(sources.map { (Self.address(of: $0.path), $0.bytes) }) { $1 }
        for (identifier, entries) in manifest.texts.sorted(by: { $0.key < $1.key }) {
            for case let (entry, url?) in entries.all.map({ ($0, $0.url) }) {
                if let bytes = files[url] {
                    try Self.check(bytes, against: entry, of: identifier)
                } else {
                    notes.append(
                        "\(identifier): the other devices need \(entry.version) on the server, and the directory does not have \(url)")
                }
            }
        }
        for identifier in (last?.texts.keys.sorted() ?? []) where newest[identifier] == nil {
            let text = identifier.split(separator: "/").dropLast().joined(separator: "/")
            guard options.removals.contains(identifier) || (options.removals.contains(text) && last?.texts[text] == nil) else {
                throw Refusal(
                    "the last manifest lists “\(identifier)”, and the directory does not have it; devices would keep it unconfirmed for "
                        + "ever. Add its file, or pass --remove \(identifier)")
            }
            let old = last?.texts[identifier]?.all ?? []
            changes.append(Change(identifier: identifier, from: old.first?.version))
            // Devices that have missed a rollback still show the withdrawn version.
            let shown = (old.map(\.version) + old.compactMap(\.withdrawn)).compactMap { SemanticVersion($0) }.max()
            notes.append(
                "\(identifier): if it returns, its version has to exceed \(shown?.description ?? "the last one"), which devices have shown")
        }
    }

    /// Reads identifier and version from a path.
    private static func name(of path: String) throws -> (String, SemanticVersion) {
        guard path.hasSuffix(".txt") || path.hasSuffix(".md"), let at = path.lastIndex(of: "@"), let end = path.lastIndex(of: "."),
            at < end, at > path.startIndex
        else { throw Refusal("“\(path)” is not named as a text; write identifier@version.txt, such as eula@1.0.0.txt") }
        do {
            let version = try SemanticVersion(parsing: String(path[path.index(after: at)..<end]))
            if version.isPreRelease {
                throw Refusal("“\(path)” is a pre-release, which apps refuse by default; publish the release, or move the file away")
            }
            if let slash = path[..<at].lastIndex(of: "/") { try checkLanguage(String(path[path.index(after: slash)..<at]), of: path) }
            return (String(path[..<at]), version)
        } catch let error as SemanticVersion.Malformed {
            throw Refusal("“\(path)” has no version: \(error.reason); write identifier@version.txt, such as eula@1.0.0.txt")
        }
    }

    /// Refuses a name that no app looks up.
    private static func checkLanguage(_ tag: String, of path: String) throws {
        let usual: String
        do throws(TextStoreError) { usual = try TextLanguages.usualTag(tag) } catch {
            throw Refusal("“\(path)” is in a folder, so “\(tag)” is a language: \(error.message)")
        }
        if usual != tag { throw Refusal("“\(path)” would not be found, because apps look for “\(usual)”; rename the file") }
    }

    /// Refuses what a store would refuse as a text.
    private static func check(_ source: Source, _ limit: Int) throws {
        func refuse(_ reason: String) -> Refusal { Refusal("“\(source.path)” \(reason)") }
        // HTML in Markdown is intended, and the app declares the type.
        let markupType = source.path.hasSuffix(".md") ? "text/markdown" : nil
        if let error = TextStoreError(refusing: source.bytes, markupType: markupType, limit: limit) {
            let remedy = error.code == .tooLarge ? " of the file in the apps, and pass --limit" : ""
            throw refuse("would be refused by apps: \(error.message)\(remedy)")
        }
        if String(decoding: source.bytes, as: UTF8.self).allSatisfy({ $0.isWhitespace || $0 == "\u{FEFF}" }) {
            throw refuse("is empty, and apps keep the old text then; write it")
        }
    }

    /// Refuses other bytes under a published version, with which devices would not accept the file.
    private static func check(_ bytes: Data, against entry: ManifestFile.Entry, of identifier: String) throws {
        guard let known = entry.sha256, known.lowercased() != SHA256.digest(of: Array(bytes)).hex else { return }
        throw Refusal(
            "“\(identifier)” \(entry.version) has other bytes than last time: users have accepted that wording under this version. Give the "
                + "new wording a higher version")
    }

    private mutating func setEdition(after last: ManifestFile?, _ options: Options) throws {
        let (epoch, revision) = (last?.epoch ?? 0, last?.revision ?? 0)
        if options.recovers {
            guard last != nil else {
                throw Refusal("--recover needs the last manifest, because the new epoch has to exceed its epoch; pass --last")
            }
            guard epoch < .max else { throw Refusal("the epoch cannot be raised further; use another address and another session") }
            manifest.epoch = epoch + 1
            manifest.revision = options.revision ?? 1
            guard manifest.revision ?? 1 <= Self.usualJump else {
                throw Refusal("--revision \(manifest.revision ?? 1) would begin the new epoch as high as the last one ended; leave it out")
            }
            notes.append(
                options.isSigned
                    ? "epoch \(epoch + 1): apps take it because their verifier accepts its signature"
                    : "epoch \(epoch + 1) without a signature: apps refuse it until their policy has acceptedEpoch = \(epoch + 1), or their bundle orders it"
            )
            return
        }
        manifest.epoch = last?.epoch
        guard revision < .max else {
            throw Refusal("the last revision is the highest one, so every later manifest would be refused; publish with --recover")
        }
        let next = options.revision ?? revision + 1
        if last != nil, next <= revision {
            throw Refusal(
                "revision \(next) is not above the last one, \(revision): devices that have accepted \(revision) refuse it, because they "
                    + "cannot distinguish it from a replayed manifest. Leave out --revision")
        }
        if next - revision > Self.usualJump {
            throw Refusal(
                "revision \(next) exceeds the last one by more than \(Self.usualJump): devices would report a jump, and each later revision "
                    + "would have to exceed it, up to a number that none can exceed. Leave out --revision")
        }
        manifest.revision = next
    }

    private mutating func add(
        _ identifier: String, _ version: SemanticVersion, _ source: Source, _ last: [ManifestFile.Entry], _ options: Options
    ) throws {
        let digest = SHA256.digest(of: Array(source.bytes)).hex
        var entry = ManifestFile.Entry(
            version: version.description, url: Self.address(of: source.path), sha256: digest, length: source.bytes.count)
        let highest = last.compactMap { entry in SemanticVersion(entry.version).map { ($0, entry) } }.max { $0.0 < $1.0 }
        let usual = last.last
        entry.group = options.groups[identifier] ?? usual?.group
        let isRollback = options.rollbacks.contains(identifier)
        let withdrawn = last.compactMap { $0.withdrawn.flatMap { SemanticVersion($0) } }.max()
        if version == withdrawn {
            throw Refusal(
                "“\(identifier)” \(version) was withdrawn, and users may have accepted its wording; publish it with a higher version")
        }
        if let highest, version < highest.0 {
            guard isRollback else {
                throw Refusal(
                    "“\(identifier)” would go back from \(highest.0) to \(version): devices that have shown \(highest.0) refuse a lower version. "
                        + "Publish the old wording with a higher version, or pass --rollback \(identifier)")
            }
            entry.rollback = true
            entry.withdrawn = max(withdrawn ?? highest.0, highest.0).description
        } else if isRollback {
            throw Refusal("--rollback \(identifier) has no effect: \(version) is not below the last version; leave it out")
        } else if let withdrawn, version < withdrawn {
            // Devices that have not seen the rollback yet still show the withdrawn version.
            (entry.rollback, entry.withdrawn) = (true, withdrawn.description)
        }
        if let same = last.first(where: { SemanticVersion($0.version) == version }) {
            try Self.check(source.bytes, against: same, of: identifier)
            // Devices that have not seen the rollback yet need its order in every later manifest.
            entry.rollback = entry.rollback ?? same.rollback
        }
        var entries = [entry], conditions = options.conditions[identifier]
        if let percent = options.percents[identifier] {
            guard percent.isFinite, (0...100).contains(percent) else {
                throw Refusal("--percent \(identifier) is not from 0 to 100; correct it")
            }
            conditions = conditions ?? ManifestFile.Entry.Conditions()
            conditions?.percent = percent
            // The texts of a set and the languages of a text share a draw. A raised share keeps its draw, so that no device loses the text.
            let draw = (entry.group ?? identifier).split(separator: "/").first.map(String.init)
            let before = last.first { $0.version == entry.version && $0.when?.percent != nil }
            conditions?.draw = before == nil ? draw : before.flatMap { Self.draw(of: $0, identifier, in: entry.group) }
        }
        if let conditions {
            // The other devices keep the entries of the last manifest.
            let rest = last.filter { SemanticVersion($0.version).map { $0 < version } ?? false }
            guard let lowest = rest.last, lowest.when == nil else {
                throw Refusal(
                    "the conditions of “\(identifier)” need a lower version that the other devices keep, and the last manifest has none; publish "
                        + "that version to all devices first")
            }
            entries[0].when = conditions
            entries += rest.map { old in
                var old = old
                // The other devices may show the withdrawn version, too.
                if entry.rollback == true { (old.rollback, old.withdrawn) = (true, entry.withdrawn ?? old.withdrawn) }
                let draw = old.when?.percent == nil ? old.when?.draw : Self.draw(of: old, identifier, in: entry.group)
                old.when?.draw = draw
                old.group = entry.group
                return old
            }
            let before = last.first { $0.version == entry.version }?.when?.percent
            if let before, let percent = conditions.percent, before > percent {
                notes.append("\(identifier): devices of the larger share of \(before) % keep \(version), and report the lower entry")
            }
        }
        if options.isSigned, let open = entries.first(where: { $0.sha256 == nil }) {
            throw Refusal(
                "“\(identifier)” \(open.version) has no digest in the last manifest, so a signature would not cover its bytes; publish "
                    + "that version from this directory to all devices first")
        }
        if let before = last.first, before.version == entry.version, before.when != entries[0].when {
            let audience = entries[0].when.map { $0.percent.map { "\($0) % of the" } ?? "some" } ?? "all"
            notes.append("\(identifier) \(version): its conditions have changed, and it is offered to \(audience) devices from now on")
        }
        manifest.texts[identifier] = ManifestFile.Entries(entries)
        let old = last.first { $0.version != entry.version }?.version
        if last.first?.version != entry.version {
            changes.append(
                Change(
                    identifier: identifier, from: last.isEmpty ? nil : usual?.version ?? old, to: entry.version,
                    oldPath: usual?.url?.removingPercentEncoding, newPath: source.path))
        }
    }

    /// Returns the draw of an old share in a new group; `nil` if the entry needs none, because its group has not changed.
    private static func draw(of old: ManifestFile.Entry, _ identifier: String, in group: String?) -> String? {
        old.when?.draw ?? (old.group == group ? nil : old.group ?? identifier)
    }

    /// Returns the address of a path, relative to the manifest's.
    private static func address(of path: String) -> String {
        var allowed = CharacterSet.urlPathAllowed
        // A colon would make the first part a scheme.
        allowed.remove(charactersIn: ":")
        return path.addingPercentEncoding(withAllowedCharacters: allowed) ?? path
    }
}

extension Publication.Options {
    /// Returns the options with those of a text in languages given to each language that has none of its own.
    func spread(over names: Set<String>) -> Self {
        func spread<Value>(_ values: [String: Value], _ joined: (Value, Value) -> Value = { own, _ in own }) -> [String: Value] {
            var result = values
            for (name, value) in values where !names.contains(name) {
                for language in names where language.hasPrefix(name + "/") {
                    result[name] = nil
                    result[language] = values[language].map { joined($0, value) } ?? value
                }
            }
            return result
        }
        var options = self
        options.rollbacks = Set(spread(Dictionary(uniqueKeysWithValues: rollbacks.map { ($0, true) })).keys)
        (options.groups, options.percents) = (spread(groups), spread(percents))
        options.conditions = spread(conditions) { own, general in
            var own = own
            (own.app, own.platforms, own.from) = (own.app ?? general.app, own.platforms ?? general.platforms, own.from ?? general.from)
            return own
        }
        return options
    }
}

extension Collection<String> {
    /// Returns whether there is a language of a text.
    fileprivate func contains(languageOf name: String) -> Bool { contains { $0.hasPrefix(name + "/") } }
}
