import Console
import Foundation
import LoopbackOrigin
import StoreCore
import TextStore

/// `terms`: the gate of an app, for the terms of the bookshop or for texts at another address.
struct GateCommand {
    enum Action: Equatable { case ask, accept, decline, withdraw, export(String) }

    /// The manifest that `terms publish` has made; `nil` for the terms of the bookshop.
    var manifest: URL?
    /// The directory of the texts that come with the app.
    var bundled: URL?
    var key: URL?
    /// The directory of texts and acceptances. Acceptances are evidence, so the system must not purge it.
    var state = TextStore.defaultDirectory.appending(path: "storehouse-terms", directoryHint: .isDirectory)
    var chosen: Set<String> = []
    var languages: [String] = []
    var account: String?
    /// The facts about the app that the conditions of a manifest ask for.
    var audience = TextAudience()
    var action = Action.ask
    var isOffline = false
    var isFresh = false

    static let usage = """
        usage: terms [--url <address>] [--bundle <directory>] [--key <public.pem>]
                     [--text <name>] [--language <tags>] [--account <name>]
                     [--app <version>] [--platform <name>]
                     [--accept | --decline | --withdraw | --export <file>]
                     [--state <directory>] [--offline] [--fresh] [--plain]
               terms publish <directory> (see terms publish --help)

        The gate of an app: shows the current texts, or what has changed since they
        were accepted, and asks for acceptance, which is saved for later starts.
        Without an address, the texts are bundled terms and newer ones from an origin
        in this process.

          --url       the address of a directory that terms publish has prepared, or
                      of its manifest
          --bundle    a copy of such a directory, as the texts that come with the app
          --key       the publisher's public key: refuses a manifest without its
                      signature, from the field x-signature or the file .sig
          --text      one of the texts, instead of all; may be repeated
          --language  the preferred languages, such as de-AT,fr; by default those of
                      the system
          --account   the account that accepts, instead of the user of the device
          --app       the version of the app, for conditions of the manifest
          --platform  the platform of the app, for conditions of the manifest
          --accept    accepts the texts without asking
          --decline   accepts nothing, and asks nothing
          --withdraw  withdraws the acceptances
          --export    writes all acceptances with their wordings: JSON Lines, or a
                      table if the file ends in .csv; - is the standard output
          --state     the directory of saved texts and acceptances
          --offline   starts without a network
          --fresh     deletes the state of earlier starts of the bundled terms first
          --plain     prints plain lines, as when the output is not a terminal

        Answers are lines of the standard input: y or yes accepts.

        exit codes: 0 the gate is open, or the acceptances are withdrawn or exported;
        1 the gate failed; 2 the gate is closed; 64 invalid arguments.
        """

    init(_ arguments: [String]) throws {
        var rest = arguments[...], actions: [Action] = []
        func value(of option: String) throws -> String {
            guard let value = rest.popFirst(), !value.isEmpty, !value.hasPrefix("--") else { throw Mistake("\(option) needs a value") }
            return value
        }
        while let argument = rest.popFirst() {
            switch argument {
            case "--url": manifest = try Self.manifest(at: try value(of: argument))
            case "--bundle": bundled = URL(filePath: try value(of: argument), directoryHint: .isDirectory)
            case "--key": key = URL(filePath: try value(of: argument))
            case "--state": state = URL(filePath: try value(of: argument), directoryHint: .isDirectory)
            case "--text": chosen.insert(try value(of: argument))
            case "--language":
                languages = try value(of: argument).split(separator: ",").map(String.init)
                guard !languages.isEmpty else { throw Mistake("--language needs a value") }
                for tag in languages {
                    do throws(TextStoreError) { _ = try TextLanguages.usualTag(tag) } catch {
                        throw Mistake("--language: \(error.message)")
                    }
                }
            case "--account": account = try value(of: argument)
            case "--platform": audience.platform = try value(of: argument)
            case "--app":
                let version = try value(of: argument)
                audience.appVersion = SemanticVersion(version, mode: .lenient)
                if audience.appVersion == nil { throw Mistake("--app \(version) is not a version such as 3.1.0") }
            case "--accept": actions.append(.accept)
            case "--decline": actions.append(.decline)
            case "--withdraw": actions.append(.withdraw)
            case "--export": actions.append(.export(try value(of: argument)))
            case "--offline": isOffline = true
            case "--fresh": isFresh = true
            default: throw Mistake("unknown option \(argument)")
            }
        }
        guard actions.count <= 1 else { throw Mistake("--accept, --decline, --withdraw, and --export exclude each other; pass one") }
        action = actions.first ?? .ask
        if manifest == nil, bundled != nil || key != nil || !chosen.isEmpty {
            throw Mistake("--bundle, --key, and --text need the address; pass --url")
        }
        if manifest != nil, isFresh { throw Mistake("--fresh would delete evidence of acceptances; pass --withdraw, or another --state") }
    }

    private static func manifest(at text: String) throws -> URL {
        guard let url = URL(string: text), let scheme = url.scheme?.lowercased(), ["http", "https"].contains(scheme),
            url.host()?.isEmpty == false
        else { throw Mistake("--url \(text) is not an address such as https://example.com/texts") }
        return url.pathExtension == "json" ? url : url.appending(path: "versions.json")
    }

    /// Runs the command, and returns the exit code.
    func run(_ screen: Screen) async -> Int32 {
        do { return try await perform(screen) ? 0 : 2 } catch {
            let work = isExport ? "export the acceptances" : action == .withdraw ? "withdraw the acceptances" : "open the gate"
            screen.complain("cannot \(work): \(Mistake.reason(of: error))")
            return 1
        }
    }

    private func perform(_ screen: Screen) async throws -> Bool {
        if let manifest { return try await perform(at: manifest, screen) }
        if isFresh, FileManager.default.fileExists(atPath: bookshopState.path(percentEncoded: false)) {
            try FileManager.default.removeItem(at: bookshopState)
        }
        let publisher = isOffline || isExport ? nil : try Publisher()
        defer { publisher?.origin.stop() }
        // Without a network, the publisher's usual address, which the saved manifest may have.
        let base = try publisher?.origin.url ?? Self.manifest(at: "http://127.0.0.1:\(Publisher.usualPort)").deletingLastPathComponent()
        if !isExport {
            let place = publisher == nil ? "without network" : "the publisher is a server in this process, at \(base.absoluteString)"
            screen.title("Terms", "an app's gate; \(place)")
        }
        let store = try makeStore("terms", in: bookshopState, .module, TermsFetcher(isOffline: isOffline), screen)
        let terms = TextSource(
            identifier: "terms", bundleFile: BundleFile(fileName: "terms", fileExtension: "txt", subdirectory: "Texts"),
            remoteFile: RemoteFile(url: base.appending(path: "terms.txt")))
        let versions = VersionSource(
            bundleFile: BundleFile(fileName: "versions", fileExtension: "json", subdirectory: "Texts"),
            remoteFile: RemoteFile(url: base.appending(path: "versions.json")))
        return try await perform([terms], versions, store, screen)
    }

    private var isExport: Bool { if case .export = action { true } else { false } }

    /// A directory of its own, because it may be deleted.
    private var bookshopState: URL { state.appending(path: "bookshop", directoryHint: .isDirectory) }

    private func perform(at manifest: URL, _ screen: Screen) async throws -> Bool {
        if !isExport { screen.title("Terms", "the gate for the texts at \(manifest.absoluteString)") }
        if let key { try Signature.checkPublicKey(key) }
        if key == nil, manifest.scheme?.lowercased() == "http", !["127.0.0.1", "localhost", "::1"].contains(manifest.host() ?? "") {
            screen.warning("without HTTPS and without --key, a server in between can replace the texts")
        }
        var app = Bundle.main
        if let bundled {
            guard let found = Bundle(url: bundled) else {
                throw Mistake("there is no directory \(bundled.path(percentEncoded: false)); make it with terms publish")
            }
            app = found
        }
        let fetcher = TermsFetcher(signed: key == nil ? nil : manifest, isOffline: isOffline)
        let store = try makeStore(manifest.absoluteString, in: state, app, fetcher, screen)
        if isExport { return try await perform([], nil, store, screen) }
        let sources = try await catalog(manifest, fetcher, screen).sources(beside: manifest)
        let names = sources.map(\.identifier)
        if let unknown = chosen.subtracting(names).min() {
            throw Mistake("there is no text “\(unknown)”; pass --text with one of: \(names.joined(separator: ", "))")
        }
        let versions = VersionSource(
            bundleFile: bundled.map { _ in BundleFile(fileName: "versions", fileExtension: "json") },
            remoteFile: RemoteFile(url: manifest), audience: audience)
        return try await perform(sources.filter { chosen.isEmpty || chosen.contains($0.identifier) }, versions, store, screen)
    }

    private func makeStore(
        _ session: String, in directory: URL, _ bundle: Bundle, _ fetcher: TermsFetcher, _ screen: Screen
    ) throws -> TextStore {
        // Each start of this program asks the publisher, also soon after a failure.
        let policy = TextStorePolicy(
            checkInterval: .zero, backOff: .exponential(base: .milliseconds(10), cap: .milliseconds(10)), acceptedLanguages: .together,
            evidence: .allAcceptances)
        return try TextStore(
            session: session, directory: directory, bundle: bundle, fetcher: fetcher, policy: policy,
            verify: key.map { Signature.verifier($0) },
            onEvent: { [isExport] event in
                switch event {
                // The standard output may be the export.
                case .fault(let error):
                    let reason = Mistake.reason(of: error)
                    if isExport { screen.complain(reason) } else { screen.warning(reason) }
                // A failure that may pass is the reason of a fallback, which the gate shows.
                case .refused(let error) where error.failureKind != .transient: screen.warning("refused: \(Mistake.reason(of: error))")
                default: break
                }
            })
    }

    private func perform(_ sources: [TextSource], _ versions: VersionSource?, _ store: TextStore, _ screen: Screen) async throws -> Bool {
        let names = sources.map(\.identifier)
        switch action {
        case .export(let path): return try await export(store, to: path, screen)
        case .withdraw:
            for name in names {
                let isWithdrawn = try await store.withdrawAcceptances(of: name, account: account)
                screen.note(isWithdrawn ? "\(name): the acceptances are withdrawn" : "\(name) was not accepted")
            }
            return true
        case .ask, .accept, .decline:
            if !languages.isEmpty { try await store.setLanguages(languages) }
            try await store.register(sources)
            if let versions { await store.setVersionSource(versions) }
            let answer: Bool? = action == .accept ? true : action == .decline ? false : nil
            return await Gate(store: store, screen: screen, account: account, answer: answer).open(names)
        }
    }

    private func export(_ store: TextStore, to path: String, _ screen: Screen) async throws -> Bool {
        let bytes = try await store.exportAcceptances(as: path.lowercased().hasSuffix(".csv") ? .csv : .jsonLines)
        guard path != "-" else {
            try FileHandle.standardOutput.write(contentsOf: bytes)
            return true
        }
        try bytes.write(toOutput: URL(filePath: path))
        screen.good("\(path) has every acceptance and withdrawal of this address\n")
        return true
    }

    /// Reads which texts there are from the bundle, or from the manifest at the address; without a network, as an earlier start has read.
    private func catalog(_ manifest: URL, _ fetcher: TermsFetcher, _ screen: Screen) async throws -> Catalog {
        if let bundled { return try Catalog(bundledIn: bundled) }
        let place = state.appending(path: "addresses.json"), address = manifest.absoluteString
        var known = (try? JSONDecoder().decode([String: [String]].self, from: try Data(contentsOf: place))) ?? [:]
        do {
            guard case .modified(let text, _, _) = try await fetcher.fetch(param: RemoteFile(url: manifest), revalidating: nil) else {
                throw Mistake("the server sent no manifest; check the address")
            }
            if let key { try Signature.check(text.bytes, text.headers["x-signature"], key) }
            let names = try Catalog.names(in: text.bytes)
            if known[address] != names {
                known[address] = names
                try FileManager.default.createDirectory(at: state, withIntermediateDirectories: true)
                try JSONEncoder().encode(known).write(to: place, options: .atomic)
            }
        } catch {
            guard known[address] != nil else { throw error }
            screen.warning("the texts are those of an earlier start: \(Mistake.reason(of: error))")
        }
        return Catalog(of: known[address] ?? [])
    }
}
