internal import Foundation
internal import StoreCore
internal import TextStore
internal import Trials

extension Experiment {
    static var texts: [Experiment] { [read(.bundled), read(.refreshed), parse, sort, coldStart, register] }

    private enum Sourcing {
        /// From the bundle alone, independent of time.
        case bundled
        /// With a server's manifest, which is checked again after its interval.
        case refreshed
    }

    private static func read(_ sourcing: Sourcing) -> Experiment {
        let figure =
            switch sourcing {
            case .bundled: Figure(name: "text-read", title: "one of 100 resident texts, read without waiting", unit: .nanoseconds)
            case .refreshed: Figure(name: "text-read-refreshed", title: "the same, with a manifest that expires", unit: .nanoseconds)
            }
        return Experiment(section: .texts, figures: [figure]) { scale in
            let times = scale.times(4_000, quick: 1_000)
            let library = try Library(count: 100)
            let sources = library.sources(areRemote: sourcing == .refreshed)
            let store = try library.store()
            try await store.register(sources)
            if sourcing == .refreshed {
                await store.setVersionSource(library.versions)
                try await store.refresh()
            }
            let byHand = HandwrittenTexts(directory: library.bundle.bundleURL)
            guard let version = HandwrittenVersion("1.0.0") else { return [] }
            for source in sources {
                byHand.keep(.init(text: try await store.text(for: source).text, version: version), as: source.identifier)
            }
            return [
                .mutex {
                    let watch = Stopwatch()
                    var size = 0
                    for _ in 0..<times {
                        for source in sources { size &+= try await byHand.text(for: source.identifier).text.utf8.count }
                    }
                    blackHole(size)
                    return [watch.nanoseconds / Double(times * sources.count)]
                },
                .storehouse {
                    let watch = Stopwatch()
                    var size = 0
                    for _ in 0..<times { for source in sources { size &+= try await store.text(for: source).text.utf8.count } }
                    blackHole(size)
                    withExtendedLifetime(library) {}
                    return [watch.nanoseconds / Double(times * sources.count)]
                },
            ]
        }
    }

    private static let parse = Experiment(.texts, "version-parse", "one semantic version parsed") { scale in
        let texts = versions(1_000)
        let times = scale.times(1_000, quick: 200)
        return [
            .mutex {
                // Kept, because the compiler may omit an unused version.
                var versions: [HandwrittenVersion] = []
                versions.reserveCapacity(texts.count)
                let watch = Stopwatch()
                for _ in 0..<times {
                    versions.removeAll(keepingCapacity: true)
                    for text in texts { if let version = HandwrittenVersion(text) { versions.append(version) } }
                }
                blackHole(versions)
                return [watch.nanoseconds / Double(times * texts.count)]
            },
            .storehouse {
                var versions: [SemanticVersion] = []
                versions.reserveCapacity(texts.count)
                let watch = Stopwatch()
                for _ in 0..<times {
                    versions.removeAll(keepingCapacity: true)
                    for text in texts { if let version = SemanticVersion(text) { versions.append(version) } }
                }
                blackHole(versions)
                return [watch.nanoseconds / Double(times * texts.count)]
            },
        ]
    }

    private static let sort = Experiment(.texts, "version-sort", "100 000 semantic versions sorted") { _ in
        let texts = versions(100_000)
        let (byHand, ours) = (texts.compactMap { HandwrittenVersion($0) }, texts.compactMap { SemanticVersion($0) })
        return [
            .mutex {
                let watch = Stopwatch()
                blackHole(byHand.sorted().count)
                return [watch.nanoseconds]
            },
            .storehouse {
                let watch = Stopwatch()
                blackHole(ours.sorted().count)
                return [watch.nanoseconds]
            },
        ]
    }

    private static let coldStart = Experiment(.texts, "text-cold-start", "1 000 saved texts of 8 KB, until each can be read") { scale in
        let library = try Library(count: 1_000)
        let sources = library.sources(areRemote: true)
        let earlier = try library.store()
        try await earlier.register(sources)
        await earlier.setVersionSource(library.versions)
        try await earlier.refresh()
        let paths = try library.savedFiles()
        precondition(paths.count >= 1_000, "the first process saved only \(paths.count) files")
        return [
            .mutex {
                let watch = Stopwatch()
                // Kept, as a reader of the texts would keep them.
                var texts: [[UInt8]] = []
                for path in paths { texts.append(try loadByHand(path)) }
                return [withExtendedLifetime(texts) { watch.nanoseconds }]
            },
            .storehouse {
                let watch = Stopwatch()
                let store = try library.store()
                try await store.register(sources)
                for source in sources { blackHole(try await store.text(for: source).version) }
                // Releasing the texts is not part of a start.
                return [withExtendedLifetime(store) { watch.nanoseconds }]
            },
        ]
    }

    private static let register = Experiment(
        section: .texts,
        figures: [
            Figure(name: "text-register", title: "each of 1 000 bundled texts registered one by one", unit: .nanoseconds),
            Figure(name: "text-register-4000", title: "the increase with 4 000 texts, each", unit: .nanoseconds),
        ],
        rounds: 3
    ) { _ in
        let libraries = (few: try Library(count: 1_000), many: try Library(count: 4_000))
        return [
            .storehouse {
                let few = try await libraries.few.registerOneByOne(), many = try await libraries.many.registerOneByOne()
                return [few, max(0, many - few)]
            }
        ]
    }

    /// Makes typical versions of projects: releases, some pre-releases, and some with build metadata.
    private static func versions(_ count: Int) -> [String] {
        var dice = SplitMix(seed: 7)
        return (0..<count).map { _ in
            var text = "\(dice.below(20)).\(dice.below(50)).\(dice.below(200))"
            if dice.below(3) == 0 { text += ["-alpha.", "-beta.", "-rc."][dice.below(3)] + "\(dice.below(12))" }
            if dice.below(5) == 0 { text += "+build.\(dice.below(10_000))" }
            return text
        }
    }
}

/// Texts of 8 KB in a bundle and at an immediate origin, with a directory for sessions.
private final class Library: RevalidatingFetcher {
    let bundle: Bundle
    let versions: VersionSource
    private let place = BenchmarkDirectory()
    private let address: URL
    private let manifest: Data
    private let names: [String]

    init(count: Int) throws {
        names = (0..<count).map { "text-\($0)" }
        let app = place.root.appending(path: "app.bundle", directoryHint: .isDirectory)
        try FileManager.default.createDirectory(at: app, withIntermediateDirectories: true)
        for name in names { try Data(Self.text(name, 1).utf8).write(to: app.appending(path: name + ".txt")) }
        manifest = Data(("{" + names.map { #""\#($0)":"2.0.0""# }.joined(separator: ",") + "}").utf8)
        try Data(("{" + names.map { #""\#($0)":"1.0.0""# }.joined(separator: ",") + "}").utf8)
            .write(to: app.appending(path: "versions.json"))
        guard let bundle = Bundle(url: app), let address = URL(string: "https://example.org/texts") else {
            throw CocoaError(.fileNoSuchFile)
        }
        self.bundle = bundle
        self.address = address
        versions = VersionSource(
            bundleFile: BundleFile(fileName: "versions", fileExtension: "json"),
            remoteFile: RemoteFile(url: address.appending(path: "versions.json")))
    }

    static func text(_ name: String, _ version: Int) -> String {
        let line = "\(name), version \(version): the user has read and accepts these terms of use.\n"
        return String(repeating: line, count: 8_192 / line.utf8.count)
    }

    func sources(areRemote: Bool) -> [TextSource] {
        names.map { name in
            TextSource(
                identifier: name, bundleFile: areRemote ? nil : BundleFile(fileName: name, fileExtension: "txt"),
                remoteFile: areRemote ? RemoteFile(url: address.appending(path: name)) : nil)
        }
    }

    func store(_ session: String = "texts") throws -> TextStore {
        try TextStore(session: session, directory: place.root, bundle: bundle, fetcher: self)
    }

    /// Returns the paths of the saved texts.
    func savedFiles() throws -> [String] {
        let found = FileManager.default.enumerator(at: place.root, includingPropertiesForKeys: nil)
        return (found?.compactMap { $0 as? URL } ?? []).map { $0.path(percentEncoded: false) }.filter { $0.hasSuffix(".text") }
    }

    /// Measures the time of one registration, in nanoseconds.
    func registerOneByOne() async throws -> Double {
        let store = try store(UUID().uuidString), sources = sources(areRemote: false)
        await store.setVersionSource(VersionSource(bundleFile: versions.bundleFile))
        let watch = Stopwatch()
        for source in sources { try await store.register(source) }
        return watch.nanoseconds / Double(sources.count)
    }

    func fetch(param file: RemoteFile, revalidating validator: Validator?) async throws -> FetchResult<RemoteText> {
        let name = file.url.lastPathComponent
        let bytes = name == "versions.json" ? manifest : Data(Self.text(name, 2).utf8)
        return .modified(RemoteText(bytes: bytes, contentType: "text/plain"))
    }
}
