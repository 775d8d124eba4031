import Foundation
import StorePlatform
import TextStore

/// `terms publish`: makes, checks, signs, and compares the manifest of a directory of texts.
struct PublishCommand {
    var directory: URL
    var name = "versions.json"
    var last: URL?
    var key: URL?
    var options = Publication.Options()
    var isDry = false

    static let usage = """
        usage: terms publish <directory> [--dry-run] [--key <private-key.pem>]
                             [--last <manifest>] [--percent <text>=<number>]
                             [--app <text>=<version>] [--platforms <text>=<names>]
                             [--from <text>=<date>]
                             [--group <text>=<set>] [--rollback <text>]
                             [--remove <text>] [--expires <days>] [--recover]
                             [--revision <number>] [--limit <bytes>]

        Writes <directory>/versions.json, the manifest of the newest version of each
        text. A text is a file identifier@version.txt, such as eula@2.0.0.txt, and a
        language of a text is a file in a folder, such as eula/de@2.0.0.txt. Keeps the
        sets of the last manifest, picks the next revision, and shows what changes.

          --dry-run   checks and compares, but writes nothing
          --key       signs with OpenSSL (P-256 or RSA, SHA-256): versions.json.sig
          --last      the manifest that devices have; usually versions.json itself
          --percent   offers the new version to a share of the devices
          --app       offers it to this version of the app and higher ones
          --platforms offers it to some platforms, such as ios,macos
          --from      offers it from a time on, such as 2030-01-01T00:00:00Z
          --group     names the set of a text
          --rollback  orders the way back to an older version
          --remove    removes a text from the manifest
          --expires   the days until the manifest expires
          --recover   raises the epoch, after a revision that was published too high
          --revision  a revision of your own
          --limit     the size of the largest file that the apps read

        exit codes: 0 the manifest was written, or would be; 1 a file or OpenSSL
        failed; 2 devices would refuse the manifest; 64 invalid arguments.
        """

    init(_ arguments: [String]) throws {
        var rest = arguments[...], places: [String] = [], parsed = Publication.Options()
        var isDryRun = false, keyPath: String?, lastPath: String?
        func value(of option: String) throws -> String {
            guard let value = rest.popFirst(), !value.hasPrefix("--") else { throw Mistake("\(option) needs a value") }
            return value
        }
        func pair(of option: String) throws -> (String, String) {
            let text = try value(of: option)
            guard let sign = text.lastIndex(of: "="), sign > text.startIndex, text.index(after: sign) < text.endIndex else {
                throw Mistake("\(option) \(text) is not of the form text=value")
            }
            return (String(text[..<sign]), String(text[text.index(after: sign)...]))
        }
        while let argument = rest.popFirst() {
            switch argument {
            case "--dry-run": isDryRun = true
            case "--recover": parsed.recovers = true
            case "--key": keyPath = try value(of: argument)
            case "--last": lastPath = try value(of: argument)
            case "--rollback": parsed.rollbacks.insert(try value(of: argument))
            case "--remove": parsed.removals.insert(try value(of: argument))
            case "--group":
                let (text, group) = try pair(of: argument)
                parsed.groups[text] = group
            case "--percent":
                let (text, number) = try pair(of: argument)
                guard let percent = Double(number) else { throw Mistake("--percent \(number) is not a number") }
                parsed.percents[text] = percent
            case "--app":
                let (text, version) = try pair(of: argument)
                parsed.conditions[text, default: .init()].app = version
            case "--platforms":
                let (text, names) = try pair(of: argument)
                parsed.conditions[text, default: .init()].platforms = names.split(separator: ",").map(String.init)
            case "--from":
                let (text, date) = try pair(of: argument)
                parsed.conditions[text, default: .init()].from = date
            case "--expires":
                guard let days = Double(try value(of: argument)), (0.01...36_500).contains(days) else {
                    throw Mistake("--expires is not a number of days")
                }
                parsed.expires = Date(timeIntervalSinceNow: days * 86_400).formatted(.iso8601)
            case "--revision":
                guard let revision = UInt64(try value(of: argument)) else { throw Mistake("--revision is not a number") }
                parsed.revision = revision
            case "--limit":
                guard let limit = Int(try value(of: argument)), limit > 0 else { throw Mistake("--limit is not a size") }
                parsed.limit = limit
            case _ where argument.hasPrefix("-"): throw Mistake("unknown option \(argument)")
            default: places.append(argument)
            }
        }
        guard places.count == 1, !places[0].isEmpty else { throw Mistake("publish needs one directory") }
        directory = URL(filePath: places[0], directoryHint: .isDirectory)
        (isDry, options) = (isDryRun, parsed)
        (key, last) = (keyPath.map { URL(filePath: $0) }, lastPath.map { URL(filePath: $0) })
        options.isSigned = key != nil
    }

    /// Publishes, and returns the exit code.
    func run(_ screen: Screen) -> Int32 {
        do {
            let before = try lastManifest()
            let publication = try Publication(of: try sources(), after: before, options)
            screen.title("Manifest", "revision \(publication.manifest.revision ?? 0) of epoch \(publication.manifest.epoch ?? 0)")
            if before == nil { screen.note("the first manifest: if devices have one already, pass that one with --last") }
            for change in publication.changes { show(change, on: screen) }
            if publication.changes.isEmpty { screen.note("no text has changed") }
            for note in publication.notes { screen.warning(note) }
            let bytes = try publication.manifest.bytes()
            guard bytes.count <= options.limit else {
                throw Refusal(
                    "the manifest has \(bytes.count) bytes, and apps read \(options.limit); divide the texts, or let the apps raise the limit "
                        + "of its file and pass --limit")
            }
            // The store's own reader finds malformed conditions, before any device does.
            _ = try ManifestFile(reading: bytes)
            let encoded = try key.map { try Signature.sign(bytes, $0) }
            guard !isDry else {
                screen.good("nothing is written: this was a dry run\n")
                return 0
            }
            try write(bytes, encoded, on: screen)
            return 0
        } catch let refusal as Refusal {
            screen.complain("refused: \(refusal)")
            return 2
        } catch {
            screen.complain("cannot publish: \(Mistake.reason(of: error))")
            return 1
        }
    }

    private var file: URL { directory.appending(path: name) }
    private var signature: URL { directory.appending(path: name + ".sig") }

    private func lastManifest() throws -> ManifestFile? {
        let place = last ?? file
        guard last != nil || FileManager.default.fileExists(atPath: place.path(percentEncoded: false)) else { return nil }
        return try ManifestFile(reading: try Data(contentsOf: place))
    }

    private func sources() throws -> [Publication.Source] {
        let root = directory.resolvingSymlinksInPath().path(percentEncoded: false)
        var isDirectory: ObjCBool = false
        guard FileManager.default.fileExists(atPath: root, isDirectory: &isDirectory), isDirectory.boolValue,
            let found = FileManager.default.enumerator(atPath: root)
        else {
            throw Mistake("there is no directory \(directory.path(percentEncoded: false))")
        }
        var sources: [Publication.Source] = []
        for case let path as String in found where !path.split(separator: "/").contains(where: { $0.hasPrefix(".") }) {
            // A server follows a link to a file, too.
            let place = URL(filePath: root, directoryHint: .isDirectory).appending(path: path).resolvingSymlinksInPath()
            guard try place.resourceValues(forKeys: [.isRegularFileKey]).isRegularFile == true, path != name, path != name + ".sig" else {
                continue
            }
            sources.append(Publication.Source(path: path, bytes: try Data(contentsOf: place)))
        }
        return sources
    }

    private func show(_ change: Publication.Change, on screen: Screen) {
        guard let to = change.to else { return screen.warning("\(change.identifier) is removed") }
        screen.good(change.from.map { "\(change.identifier): \($0) → \(to)" } ?? "\(change.identifier): \(to) is new")
        func text(_ path: String?) -> String? {
            path.flatMap { try? String(contentsOf: directory.appending(path: $0), encoding: .utf8) }
        }
        guard let old = text(change.oldPath), let new = text(change.newPath), change.from != nil else { return }
        screen.show(TextDifference(from: old, to: new))
    }

    private func write(_ bytes: Data, _ encoded: String?, on screen: Screen) throws {
        guard let encoded else {
            if FileManager.default.fileExists(atPath: signature.path(percentEncoded: false)) {
                // The signature of the last manifest would not fit.
                try FileManager.default.removeItem(at: signature)
                screen.warning("\(name).sig is deleted, and apps with the key refuse this manifest; pass --key to sign it")
            }
            try bytes.write(to: file, options: .atomic)
            screen.good("\(name) is written: upload the texts first, and then the manifest\n")
            return
        }
        try Data(encoded.utf8).write(to: signature, options: .atomic)
        try bytes.write(to: file, options: .atomic)
        screen.good("\(name) and \(name).sig are written: upload the texts first, and then both")
        screen.note("a server that can set header fields may send the signature with \(name):")
        screen.write("\nx-signature: \(encoded)\n\n")
    }
}
