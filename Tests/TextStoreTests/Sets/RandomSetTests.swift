import Foundation
import StoreCore
import StoreCoreTesting
import Testing
import Trials

@testable import TextStore

/// T3, T7, T13, T16: random histories of manifests, restarts, second stores, clears, and losses.
struct RandomSetTests {
    private static let names = ["a", "b", "c"]

    /// The origin of a history: its newest manifest, and the tuples that were published as a whole.
    private struct Published: Sendable {
        var manifest = "{}"
        var revision = 0
        var epoch = 0
        var isDown = false
        var missing: Set<String> = []
        var tuples: Set<[String]> = []
    }

    private static func text(_ name: String, _ version: Int) -> String { "Text \(name) \(version)" }

    /// Publishes the next manifest; some manifests have an unacceptable member.
    private static func publish(_ origin: inout Published, _ random: inout SplitMix) {
        let versions = names.map { _ in Int.random(in: 1...6, using: &random) }
        let spoiled = Int.random(in: 0..<9, using: &random), isRollback = Int.random(in: 0..<4, using: &random) == 0
        if Int.random(in: 0..<10, using: &random) == 0 {
            origin.epoch += 1
            origin.revision = 0
        }
        origin.revision += 1
        origin.missing = []
        var entries: [String] = []
        for (number, (name, version)) in zip(names, versions).enumerated() {
            var fields = [#""version":"\#(version).0.0""#, #""url":"http://x/\#(name)-\#(version)""#]
            if isRollback { fields.append(#""rollback":true"#) }
            let hasDigest = Bool.random(using: &random)
            if hasDigest { fields.append(#""sha256":"\#(sha256(text(name, version)))""#) }
            if number == 1 {
                switch spoiled {
                case 0: fields[0] = #""version":"\#(version).x""#
                case 1: fields = [fields[0], fields[1], #""sha256":"\#(sha256("other"))""#]
                case 2: fields[0] = #""version":"\#(version).0.0-beta""#
                case 3: origin.missing = ["\(name)-\(version)"]
                case 4: continue
                default: break
                }
            }
            entries.append(#""\#(name)":{\#(fields.joined(separator: ","))}"#)
        }
        origin.manifest =
            #"{"epoch":\#(origin.epoch),"revision":\#(origin.revision),"texts":{\#(entries.joined(separator: ","))}}"#
        if spoiled > 4 || spoiled == 3 { origin.tuples.insert(zip(names, versions).map { text($0, $1) }) }
    }

    private struct Refused: Error {}

    // With seed 12, one record of a set that another store has activated has a verdict, and the others have none yet.
    @Test(arguments: Set(part(of: seeds(UInt64(48)), each: 8)).union([12]).sorted())
    func `T3, T7, T13, T16: in every random history, a visible set was published as a whole`(seed: UInt64) async throws {
        var random = SplitMix(seed: seed)
        let place = try TemporaryDirectory(), origin = Lock(Published()), time = ManualTime()
        var bundled = 1, history: [String] = []
        /// The highest accepted version of each text.
        var accepted: [String: SemanticVersion] = [:]
        let fetcher = RevalidatingClosureFetcher<RemoteFile, RemoteText> { file, _ in
            let (manifest, isGone) = origin.withLock { ($0.manifest, $0.isDown || $0.missing.contains(file.url.lastPathComponent)) }
            guard !isGone else { throw Refused() }
            if file.url.pathExtension == "json" {
                return .modified(RemoteText(bytes: Data(manifest.utf8), contentType: "application/json"))
            }
            let parts = file.url.lastPathComponent.split(separator: "-")
            let text = Self.text(String(parts[0]), Int(parts[1]) ?? 0)
            return .modified(RemoteText(bytes: Data(text.utf8), contentType: "text/plain"))
        }
        func start() async throws -> TextStore {
            let version = bundled
            origin.withLock { _ = $0.tuples.insert(Self.names.map { Self.text($0, version) }) }
            var files = Dictionary(uniqueKeysWithValues: Self.names.map { ("\($0).txt", Self.text($0, version)) })
            files["versions.json"] = "{" + Self.names.map { #""\#($0)":"\#(version).0.0""# }.joined(separator: ",") + "}"
            let activations: [TextStorePolicy.Activation] = [.immediately, .atNextLaunch, .manually]
            let policy = TextStorePolicy(activation: activations.randomElement(using: &random) ?? .immediately, acceptedEpoch: .max)
            let store = try TextStore(
                session: "s", directory: place.file("state"), bundle: place.bundle("app-\(UUID().uuidString)", files), fetcher: fetcher,
                policy: policy, time: time, verify: Bool.random(using: &random) ? TextVerifier { _ in } : nil)
            let versions = VersionSource(
                bundleFile: BundleFile(fileName: "versions", fileExtension: "json"),
                remoteFile: RemoteFile(url: try #require(URL(string: "http://x/versions.json"))))
            let sources = Self.names.shuffled(using: &random).map { name in
                TextSource(identifier: name, bundleFile: BundleFile(fileName: name, fileExtension: "txt"), group: "g")
            }
            let isFirst = Bool.random(using: &random)
            if isFirst { await store.setVersionSource(versions) }
            // The texts of a group are registered together, after a version source, because the source makes fetches due.
            if isFirst || Bool.random(using: &random) {
                try await store.register(sources)
            } else {
                for source in sources { try await store.register(source) }
            }
            if !isFirst { await store.setVersionSource(versions) }
            return store
        }
        var stores = [try await start()]
        for _ in 0..<14 {
            let number = Int.random(in: 0..<stores.count, using: &random), store = stores[number]
            switch Int.random(in: 0..<12, using: &random) {
            case 0..<5:
                origin.withLock { Self.publish(&$0, &random) }
                history.append("publish \(origin.withLock { $0.manifest }), refresh \(number)")
                // A refused set is an error, but not a torn set.
                try? await store.refresh()
            case 5:
                history.append("activate \(number)")
                try await store.activate()
            case 6:
                history.append("clear \(number)")
                try await store.clear()
            case 7:
                if Bool.random(using: &random) { bundled = min(6, bundled + 1) }
                history.append("restart \(number) with \(bundled)")
                stores[number] = try await start()
            case 8:
                if stores.count == 1 { stores.append(try await start()) } else { stores.removeLast() }
                history.append("stores \(stores.count)")
            case 9:
                history.append("down or up")
                origin.withLock { $0.isDown.toggle() }
            case 10:
                history.append("accept \(number)")
                for name in Self.names {
                    let text = try await store.text(for: name)
                    try await store.accept(text)
                    if let version = text.version { accepted[name] = max(accepted[name] ?? version, version) }
                }
            default:
                time.shiftDate(by: .seconds(1))
                history.append("refresh \(number)")
                try? await store.refresh()
            }
            for (number, store) in stores.enumerated() {
                let (tuple, floors) = store.session.read { session in
                    (Self.names.map { session.resolved[$0]?.text }, Self.names.map { session.held[$0]?.floor })
                }
                #expect(
                    origin.withLock { $0.tuples.contains(tuple.map { $0?.text ?? "" }) },
                    "store \(number): \(tuple.map { $0?.text }) \(history)")
                for (text, floor) in zip(tuple, floors) {
                    guard let text, let version = text.version else { continue }
                    #expect(text.text == Self.text(text.identifier, Int(version.major)), "\(history)")
                    if let floor, let lowest = floor.rank.version, version < lowest { #expect(text.isBelowFloor, "\(history)") }
                    if await !store.needsAcceptance(of: text) {
                        #expect(accepted[text.identifier].map { $0 >= version } == true, "\(history)")
                    }
                }
            }
        }
    }
}
