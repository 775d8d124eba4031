import Foundation
import LoopbackOrigin
import StoreCore
internal import StorePlatform
import StoreCoreTesting
import Testing
import Trials

@testable import TextStore

extension TemporaryDirectory {
    /// The regular files in the directory, by their relative paths.
    var files: [String] {
        let found = FileManager.default.enumerator(at: url, includingPropertiesForKeys: [.isRegularFileKey])
        return (found?.compactMap { $0 as? URL } ?? [])
            .filter { (try? $0.resourceValues(forKeys: [.isRegularFileKey]).isRegularFile) == true }
            .map { String($0.path(percentEncoded: false).dropFirst(url.path(percentEncoded: false).count + 1)) }.sorted()
    }

    /// Changes one byte of every file whose path contains a word.
    ///
    /// - Returns: The number of these files.
    @discardableResult
    func damage(_ word: String) throws -> Int {
        let found = files.filter { $0.contains(word) }
        for name in found {
            var bytes = try Data(contentsOf: file(name))
            guard !bytes.isEmpty else { continue }
            bytes[bytes.count / 2] ^= 0x55
            try bytes.write(to: file(name))
        }
        return found.count
    }

    /// Makes a bundle of some files.
    func bundle(_ name: String, _ files: [String: String]) throws -> Bundle {
        let directory = url.appending(path: "\(name).bundle", directoryHint: .isDirectory)
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        for (file, text) in files { try Data(text.utf8).write(to: directory.appending(path: file)) }
        return try #require(Bundle(url: directory))
    }
}

/// The events of a store, in order.
final class Events: Sendable {
    private let all = WatchedState<[TextStoreEvent]>([])

    func record(_ event: TextStoreEvent) { all.update { $0.append(event) } }

    var refusals: [TextStoreError] { all.current.compactMap { if case .refused(let error) = $0 { error } else { nil } } }
    var faults: [TextStoreError] { all.current.compactMap { if case .fault(let error) = $0 { error } else { nil } } }
    var saved: [String] {
        all.current.compactMap { if case .saved(let id, let version) = $0 { "\(id) \(version?.description ?? "-")" } else { nil } }
    }
    /// The epoch and revision events.
    var described: [String] { Events.described(all.current) }

    private static func described(_ events: [TextStoreEvent]) -> [String] {
        events.compactMap {
            switch $0 {
            case .epochRaised(let from, let to): "epoch \(from) to \(to)"
            case .revisionJumped(let from, let to): "jump \(from) to \(to)"
            default: nil
            }
        }
    }
    var checks: Int { all.current.reduce(0) { if case .checked = $1 { $0 + 1 } else { $0 } } }

    // Events follow the results that they report, so a test waits for them.

    func waitForRefusal(_ isExpected: @escaping @Sendable (TextStoreError) -> Bool) async throws {
        try await all.wait { events in
            for case .refused(let error) in events where isExpected(error) { return () }
            return nil
        }
    }

    func waitForFault(_ isExpected: @escaping @Sendable (TextStoreError) -> Bool) async throws {
        try await all.wait { events in
            for case .fault(let error) in events where isExpected(error) { return () }
            return nil
        }
    }

    func waitForDescriptions(_ expected: [String]) async throws {
        try await all.wait { Events.described($0).count >= expected.count ? () : nil }
        #expect(described == expected)
    }

    func waitForRefusal(_ code: TextStoreError.Code, of identifier: String? = nil) async throws -> TextStoreError {
        try await all.wait { events in
            for case .refused(let error) in events where error.code == code && error.identifier == identifier { return error }
            return nil
        }
    }

    func waitForChecks(_ count: Int) async throws {
        try await all.wait { events in events.reduce(0) { if case .checked = $1 { $0 + 1 } else { $0 } } >= count ? () : nil }
    }
}

/// An origin, a disk, and an app's bundle, with stores that are opened over them one after another.
struct Bench {
    let origin: LoopbackOrigin
    let place: TemporaryDirectory
    let time = ManualTime()
    let events = Events()

    init() throws {
        origin = try LoopbackOrigin()
        place = try TemporaryDirectory()
    }

    static let appBundle = [
        "eula.txt": "Bundled terms 1", "privacy.txt": "Bundled privacy 1", "versions.json": #"{"eula":"1.0.0","privacy":"1.0.0"}"#,
    ]

    func bundle(_ files: [String: String] = appBundle) throws -> Bundle { try place.bundle("app-\(UUID().uuidString)", files) }

    func store(
        _ session: String = "legal", bundle: Bundle? = nil, policy: TextStorePolicy = TextStorePolicy(),
        fetcher: some RevalidatingFetcher<RemoteFile, RemoteText> = HTTPTextFetcher(deadline: hangLimit),
        verify: (@Sendable (TextVerification) async throws -> Void)? = nil
    ) throws -> TextStore {
        try TextStore(
            session: session, directory: place.file("state"), bundle: try bundle ?? self.bundle(), fetcher: fetcher, policy: policy,
            time: time, options: FileWriteOptions(durability: policy.durability), patience: hangLimit,
            verify: verify.map { TextVerifier($0) }, onEvent: { [events] in events.record($0) })
    }

    /// Opens the session of the processes of `TextCrashWriter`, without bundled texts.
    ///
    /// These processes may stall on a busy machine while they hold the session's lock, as other stores of a test may.
    func storeOfWriters() throws -> TextStore {
        try TextStore(
            session: "crash", directory: place.url, bundle: bundle([:]), fetcher: HTTPTextFetcher(deadline: hangLimit),
            policy: TextStorePolicy(), time: .system, options: FileWriteOptions(), patience: hangLimit,
            onEvent: { [events] in events.record($0) })
    }

    /// Makes a store with both texts registered and versions set, like an app after its start.
    func started(
        _ session: String = "legal", bundle: Bundle? = nil, policy: TextStorePolicy = TextStorePolicy(), group: String? = nil,
        fetcher: HTTPTextFetcher = HTTPTextFetcher(deadline: hangLimit)
    ) async throws -> TextStore {
        let store = try store(session, bundle: bundle, policy: policy, fetcher: fetcher)
        try await store.register([source("eula", group: group), source("privacy", group: group)])
        await store.setVersionSource(versions)
        return store
    }

    /// Registers the terms with a store, and sets its versions.
    func start(_ store: TextStore) async throws {
        try await store.register(source("eula"))
        await store.setVersionSource(versions)
    }

    func source(_ identifier: String, group: String? = nil) -> TextSource {
        TextSource(
            identifier: identifier, bundleFile: BundleFile(fileName: identifier, fileExtension: "txt"),
            remoteFile: RemoteFile(url: origin.url.appending(path: "\(identifier).txt")), group: group)
    }

    var versions: VersionSource {
        VersionSource(
            bundleFile: BundleFile(fileName: "versions", fileExtension: "json"),
            remoteFile: RemoteFile(url: origin.url.appending(path: "versions.json")))
    }

    func serve(manifest: String) { origin.on(.get, "/versions.json") { .json(literal: manifest).tagged().revalidated(by: $0) } }

    /// Serves a version of the terms, and a manifest of it alone.
    func serve(eula version: Int) {
        serve(manifest: #"{"eula":"\#(version).0.0"}"#)
        serve("eula", "Remote terms \(version)")
    }

    func serve(_ identifier: String, _ text: String) { origin.on(.get, "/\(identifier).txt") { .text(text).tagged().revalidated(by: $0) } }
}

/// Returns a text as one line: version, origin, text.
func line(_ text: VersionedText) -> String {
    "\(text.version?.description ?? "-") \(text.origin.rawValue): \(text.text)" + (text.isBelowFloor ? " (below floor)" : "")
        + (text.fallbackReason.map { " (\($0))" } ?? "")
}

extension TextStore {
    /// Refreshes the store.
    func refreshed() async throws -> TextStore {
        try await refresh()
        return self
    }
}

extension TemporaryDirectory {
    /// Makes a shelf without a store.
    func shelf() -> Shelf {
        Shelf(
            directory: Directory(path: url.path(percentEncoded: false)), options: FileWriteOptions(), session: WatchedState(SessionState()),
            patience: hangLimit)
    }

    /// Makes a shelf with registered texts of the group `g`.
    func shelf(of names: [String]) async throws -> Shelf {
        let shelf = shelf()
        try shelf.session.update { session in
            Result { () throws(TextStoreError) in try session.register(names.map { TextSource(identifier: $0, group: "g") }) }
        }.get()
        _ = await shelf.admit(names, activatesPending: false)
        return shelf
    }

    /// Sets the time of a file's last change.
    func age(_ name: String, minutes: Double) throws {
        try FileManager.default.setAttributes([.modificationDate: Date(timeIntervalSinceNow: -60 * minutes)], ofItemAtPath: file(name).path)
    }
}

/// Makes a record as a store saves it.
func record(_ identifier: String, _ version: String?, _ text: String) -> TextRecord {
    TextRecord(
        identifier: identifier, text: text,
        facts: TextRecord.Facts(
            version: version.flatMap { SemanticVersion($0) }, digest: digest(text), fileDigest: digest(text),
            validator: Validator(entityTag: "\"\(text)\""), url: "http://x/", isVerified: true,
            fetchedAt: Date(timeIntervalSince1970: 5)))
}

func sha256(_ text: String) -> String { digest(text).hex }

func digest(_ text: String) -> SHA256.Digest { SHA256.digest(of: Array(text.utf8)) }

let patient = TextAwaiting.remote(timeout: .seconds(3600))

extension Shelf {
    /// Accepts a manifest of a revision that lists some versions.
    func accept(revision: UInt64?, _ versions: [String: String] = [:]) throws -> Outcome {
        var manifest = try VersionManifest(parsing: Data("{}".utf8))
        manifest.revision = revision
        manifest.entries = try versions.mapValues { VersionManifest.Entry(version: try SemanticVersion(parsing: $0)) }
        return try accept(manifest, TextStorePolicy(), isVerified: false) ?? Outcome()
    }
}

extension CaseIterable where Self: Equatable {
    /// All orders of all cases.
    static var permutations: [[Self]] {
        func all(_ cases: [Self]) -> [[Self]] {
            cases.isEmpty ? [[]] : cases.flatMap { first in all(cases.filter { $0 != first }).map { [first] + $0 } }
        }
        return all(Array(allCases))
    }
}

extension SessionMoment {
    /// The current moment under the default policy.
    init(_ time: some TimeSource) { self.init(date: time.date, instant: time.now, policy: TextStorePolicy()) }
}

extension ManualTime {
    /// Waits for sleepers, and advances the clocks.
    func advance(by duration: Duration, sleepers count: Int, fileID: String = #fileID, line: Int = #line) async throws {
        try await sleepers(atLeast: count, fileID: fileID, line: line)
        advance(by: duration)
    }
}
