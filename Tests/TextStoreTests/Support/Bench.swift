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

    /// Damages the record of a text.
    func damageRecord(of text: String) throws {
        let name = files.first { $0.hasSuffix(".text") && (try? Data(contentsOf: file($0)))?.range(of: Data(text.utf8)) != nil }
        #expect(try damage(#require(name)) == 1)
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

    var refusals: [TextStoreError] { all.current.refusals }
    var faults: [TextStoreError] { all.current.faults }
    var saved: [String] {
        all.current.compactMap { if case .saved(let id, let version) = $0 { "\(id) \(version?.description ?? "-")" } else { nil } }
    }
    /// The epoch and revision events.
    var described: [String] { all.current.described }
    var checks: Int { all.current.checks }

    // Events follow the results that they report, so a test waits for them.

    func waitForRefusal(_ isExpected: @escaping @Sendable (TextStoreError) -> Bool) async throws {
        try await all.wait { $0.refusals.contains(where: isExpected) ? () : nil }
    }

    func waitForFault(_ isExpected: @escaping @Sendable (TextStoreError) -> Bool) async throws {
        try await all.wait { $0.faults.contains(where: isExpected) ? () : nil }
    }

    func waitForDescriptions(_ expected: [String]) async throws {
        try await all.wait { $0.described.count >= expected.count ? () : nil }
        #expect(described == expected)
    }

    func waitForChecks(_ count: Int) async throws { try await all.wait { $0.checks >= count ? () : nil } }
}

extension [TextStoreEvent] {
    fileprivate var refusals: [TextStoreError] { compactMap { if case .refused(let error) = $0 { error } else { nil } } }
    fileprivate var faults: [TextStoreError] { compactMap { if case .fault(let error) = $0 { error } else { nil } } }
    fileprivate var checks: Int { count { if case .checked = $0 { true } else { false } } }
    fileprivate var described: [String] {
        compactMap {
            switch $0 {
            case .epochRaised(let from, let to): "epoch \(from) to \(to)"
            case .revisionJumped(let from, let to): "jump \(from) to \(to)"
            default: nil
            }
        }
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

    func bundle(_ files: [String: String]) throws -> Bundle { try place.bundle("app-\(UUID().uuidString)", files) }

    /// Makes the bundle of an app with versions of both texts.
    func bundle(eula: Int = 1, privacy: Int = 1) throws -> Bundle {
        try bundle([
            "eula.txt": "Bundled terms \(eula)", "privacy.txt": "Bundled privacy \(privacy)",
            "versions.json": #"{"eula":"\#(eula).0.0","privacy":"\#(privacy).0.0"}"#,
        ])
    }

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
        fetcher: some RevalidatingFetcher<RemoteFile, RemoteText> = HTTPTextFetcher(deadline: hangLimit),
        verify: (@Sendable (TextVerification) async throws -> Void)? = nil
    ) async throws -> TextStore {
        let store = try store(session, bundle: bundle, policy: policy, fetcher: fetcher, verify: verify)
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

    /// A text without a version and without a bundled file.
    var notes: TextSource { TextSource(identifier: "notes", remoteFile: RemoteFile(url: origin.url.appending(path: "notes.txt"))) }

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

    /// Serves versions of both texts, and a manifest that lists them, as a set if it names their group.
    func serve(eula: Int, privacy: Int, group: String? = nil) {
        func entry(_ version: Int) -> String {
            group.map { #"{"version":"\#(version).0.0","group":"\#($0)"}"# } ?? #""\#(version).0.0""#
        }
        serve(manifest: #"{"texts":{"eula":\#(entry(eula)),"privacy":\#(entry(privacy))}}"#)
        serve("eula", "Remote terms \(eula)")
        serve("privacy", "Remote privacy \(privacy)")
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

    /// Returns the terms and the privacy policy as lines.
    func lines() async throws -> [String] { [line(try await text(for: "eula")), line(try await text(for: "privacy"))] }

    /// Returns the versions of both.
    func versions() async throws -> [String] {
        [try await text(for: "eula"), try await text(for: "privacy")].map { $0.version?.description ?? "-" }
    }
}

/// Expects that an operation fails with a code, and for a text if one is given.
@discardableResult
func expectError<Result>(
    _ code: TextStoreError.Code, of identifier: String? = nil, at location: SourceLocation = #_sourceLocation,
    _ body: () async throws -> Result
) async -> TextStoreError? {
    let error = await #expect(throws: TextStoreError.self, sourceLocation: location) { _ = try await body() }
    #expect(error?.code == code && (identifier == nil || error?.identifier == identifier), "\(error as Any)", sourceLocation: location)
    return error
}

extension TemporaryDirectory {
    /// Makes a shelf without a store.
    func shelf(verifies: Bool = false) -> Shelf {
        Shelf(
            directory: directory, options: FileWriteOptions(), session: WatchedState(SessionState()), verifies: verifies,
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
let soon = TextAwaiting.remote(timeout: .seconds(2))

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
