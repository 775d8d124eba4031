import Foundation
import StoreCore
import StoreCoreTesting
import Testing
import Trials

@testable import TextStore

/// T17: random manifests, failures, restarts, and app updates.
struct RandomConfirmationTests {
    private static let names = ["a", "b", "c"]

    private struct Published: Sendable {
        var manifest = "{}"
        var edition = Edition()
        var isDown = false
        var missing: Set<String> = []
    }

    private struct Gone: Error {}

    private static func text(_ name: String, _ version: Int) -> String { "Text \(name) \(version)" }

    private static func publish(_ origin: inout Published, _ random: inout SplitMix) {
        if Int.random(in: 0..<8, using: &random) == 0 { origin.edition = Edition(epoch: origin.edition.epoch + 1) }
        origin.edition.revision += 1
        origin.missing = []
        let entries = names.compactMap { name -> String? in
            let version = Int.random(in: 1...4, using: &random)
            var fields = [#""version":"\#(version).0.0""#, #""url":"http://x/\#(name)-\#(version)""#]
            switch Int.random(in: 0..<12, using: &random) {
            case 0: return nil
            case 1: fields[0] = #""version":"\#(version).x""#
            case 2: fields[0] = #""version":"\#(version).0.0-beta""#
            case 3: fields.append(#""sha256":"\#(sha256("other"))""#)
            case 4: origin.missing.insert("\(name)-\(version)")
            case 5, 6: fields.append(#""rollback":true"#)
            case 7, 8: fields.append(#""sha256":"\#(sha256(text(name, version)))""#)
            default: break
            }
            return #""\#(name)":{\#(fields.joined(separator: ","))}"#
        }
        origin.manifest =
            #"{"epoch":\#(origin.edition.epoch),"revision":\#(origin.edition.revision),"texts":{\#(entries.joined(separator: ","))}}"#
    }

    private static func bundle(_ place: TemporaryDirectory, _ version: Int, _ edition: Edition?, isRollback: Bool) throws -> Bundle {
        var files = Dictionary(uniqueKeysWithValues: names.map { ("\($0).txt", text($0, version)) })
        let entries = names.map { #""\#($0)":{"version":"\#(version).0.0","rollback":\#(isRollback)}"# }.joined(separator: ",")
        let order = edition.map { #""epoch":\#($0.epoch),"revision":\#($0.revision),"# } ?? #""revision":0,"#
        files["versions.json"] = "{\(order)\"texts\":{\(entries)}}"
        return try place.bundle("app-\(UUID().uuidString)", files)
    }

    /// Expects that exactly the confirmed texts look current.
    private static func check(_ store: TextStore, _ context: String) async throws {
        for name in names {
            let awaited = try await store.text(for: name, awaiting: .remote(timeout: .seconds(1)))
            let text = try await store.text(for: name)
            guard let manifest = store.session.read({ $0.manifest }) else { continue }
            let entry = manifest.entries[name]
            let isListed = entry?.version.description == text.version?.description
            let isConfirmed = isListed && entry?.sha256.map { $0 == text.digest } ?? true
            // A text below the floor waits for the same version of a later rollback.
            if isConfirmed, text.isBelowFloor { continue }
            #expect(
                (text.staleSince == nil) == isConfirmed, "\(context): \(name) \(line(text)), listed \(entry?.version.description ?? "-")")
            if awaited.fallbackReason == nil { #expect(isConfirmed, "\(context): \(name) \(line(awaited))") }
        }
    }

    @Test(.timeLimit(.minutes(hangMinutes)), arguments: part(of: seeds(UInt64(40), sanitized: 10), each: 13), [nil, "group"])
    func `T17: in every random history, exactly the confirmed texts look current`(seed: UInt64, group: String?) async throws {
        var random = SplitMix(seed: seed)
        let place = try TemporaryDirectory(), origin = Lock(Published()), time = ManualTime()
        let fetcher = RevalidatingClosureFetcher<RemoteFile, RemoteText> { file, _ in
            let name = file.url.lastPathComponent
            let (manifest, isGone) = origin.withLock { ($0.manifest, $0.isDown || $0.missing.contains(name)) }
            guard !isGone else { throw Gone() }
            let parts = name.split(separator: "-")
            let body = parts.count == 2 ? Self.text(String(parts[0]), Int(parts[1]) ?? 0) : manifest
            return .modified(RemoteText(bytes: Data(body.utf8), contentType: parts.count == 2 ? "text/plain" : "application/json"))
        }
        let activation = [TextStorePolicy.Activation.immediately, .manually, .atNextLaunch][Int(seed % 3)]
        let versions = VersionSource(
            bundleFile: BundleFile(fileName: "versions", fileExtension: "json"),
            remoteFile: RemoteFile(url: try #require(URL(string: "http://x/versions.json"))))
        let sources = try Self.names.map { name in
            TextSource(
                identifier: name, bundleFile: BundleFile(fileName: name, fileExtension: "txt"),
                remoteFile: RemoteFile(url: try #require(URL(string: "http://x/\(name)-1"))), group: group)
        }
        func start(_ bundle: Bundle) async throws -> TextStore {
            let store = try TextStore(
                session: "random", directory: place.file("state"), bundle: bundle, fetcher: fetcher,
                policy: TextStorePolicy(activation: activation, acceptedEpoch: .max), time: time)
            if Bool.random(using: &random) {
                await store.setVersionSource(versions)
                try await store.register(sources)
            } else {
                for source in sources { try await store.register(source) }
                await store.setVersionSource(versions)
            }
            return store
        }
        var bundle = try Self.bundle(place, 1, nil, isRollback: false)
        var store = try await start(bundle), history: [String] = []
        for _ in 0..<30 {
            switch Int.random(in: 0..<10, using: &random) {
            case 0...2:
                origin.withLock { Self.publish(&$0, &random) }
                history.append("publish")
            case 3...5:
                try? await store.refresh()
                history.append("refresh")
            case 6:
                if Int.random(in: 0..<3, using: &random) == 0 {
                    let version = Int.random(in: 1...4, using: &random), isRollback = Bool.random(using: &random)
                    let edition = origin.withLock { origin -> Edition? in
                        guard isRollback else { return nil }
                        origin.edition.revision += 1
                        return origin.edition
                    }
                    bundle = try Self.bundle(place, version, edition, isRollback: isRollback)
                    history.append("update \(version)\(isRollback ? " back" : "")")
                }
                store = try await start(bundle)
                history.append("restart")
            case 7:
                _ = try await store.activate()
                history.append("activate")
            case 8 where Bool.random(using: &random):
                try await store.clear()
                history.append("clear")
            case 8:
                origin.withLock { $0.isDown.toggle() }
                history.append("toggle")
            default:
                time.advance(by: .seconds(Int.random(in: 1...2000, using: &random)))
                history.append("wait")
            }
            try await Self.check(store, "seed \(seed): \(history.joined(separator: ", "))")
        }
    }
}
