import Foundation
import LoopbackOrigin
import StoreCore
import StoreCoreTesting
import Testing
import Trials

@testable import TextStore

/// T7: random histories of manifests, restarts, and bundles, against a reference model.
///
/// `STOREHOUSE_SEEDS=500` sets the number of histories, and `STOREHOUSE_SEED=7` runs only that seed.
struct SetHistoryTests {
    private static let names = ["a", "b", "c"]

    /// An origin with every version of every text except the missing ones.
    private final class Origin: RevalidatingFetcher {
        let manifest = Lock("{}")
        let missing = Lock<Set<String>>([])

        func fetch(param file: RemoteFile, revalidating validator: Validator?) async throws -> FetchResult<RemoteText> {
            let name = file.url.lastPathComponent
            if name == "versions.json" {
                return .modified(RemoteText(bytes: Data(manifest.withLock { $0 }.utf8), contentType: "application/json"))
            }
            if missing.withLock({ $0.contains(name) }) { throw TextStoreError(.unexpectedStatus, "it is missing") }
            return .modified(RemoteText(bytes: Data(name.utf8), contentType: "text/plain"))
        }
    }

    /// The expected versions of the three texts on the device.
    private struct Model {
        var bundle = [1, 1, 1]
        var cached: [Int]?
        var waiting: [Int]?
        var floors = [1, 1, 1]
        var visible: [Int] {
            guard let cached else { return bundle }
            let pairs = zip(bundle, cached)
            return pairs.allSatisfy { $0 >= $1 } && pairs.contains { $0 > $1 } ? bundle : cached
        }

        mutating func shown() { floors = zip(floors, visible).map(max) }

        /// Takes a manifest; `nil` for one that is not acceptable as a whole.
        mutating func take(_ published: [Int]?, missing: Set<String>, isManual: Bool) {
            if waiting != published { waiting = nil }
            guard let published, zip(published, floors).allSatisfy({ $0 >= $1 }), zip(published, visible).contains(where: { $0 > $1 })
            else { return }
            let isComplete = names.indices.allSatisfy { number in
                !missing.contains("\(names[number])-\(published[number])") || cached?[number] == published[number]
                    || bundle[number] == published[number] || waiting?[number] == published[number]
            }
            guard isComplete else { return }
            if isManual { waiting = published } else { cached = published }
            shown()
        }

        mutating func activate() {
            if let waiting, zip(waiting, floors).allSatisfy({ $0 >= $1 }) { cached = waiting }
            waiting = nil
            shown()
        }
    }

    @Test func `T7: the visible versions of a set were always published or bundled together`() async throws {
        for seed in seeds(UInt64(40), quick: 6) {
            let history = try await run(seed)
            if let history { Issue.record("seed \(seed):\n\(history)") }
        }
    }

    /// Runs one history.
    ///
    /// - Returns: The history if its state differs from the model's; `nil` otherwise.
    private func run(_ seed: UInt64) async throws -> String? {
        var dice = SplitMix(seed: seed)
        let bench = try Bench(), origin = Origin(), isManual = seed.isMultiple(of: 3), isGroupedByManifest = seed.isMultiple(of: 2)
        var model = Model(), together: Set<[Int]> = [[1, 1, 1]], history = ""
        var store = try await start(bench, origin, model.bundle, isManual, isGroupedByManifest)
        for _ in 0..<16 {
            bench.time.shiftDate(by: .seconds(Int.random(in: 0...2, using: &dice)))
            switch Int.random(in: 0..<10, using: &dice) {
            case 0..<7:
                let versions = model.floors.map { max(1, $0 + Int.random(in: -1...2, using: &dice)) }
                let bad = Int.random(in: 0..<12, using: &dice)
                let missing = Int.random(in: 0..<4, using: &dice) == 0 ? "\(Self.names[bad % 3])-\(versions[bad % 3])" : ""
                origin.missing.withLock { $0 = [missing] }
                origin.manifest.withLock { $0 = Self.manifest(versions, bad, isGroupedByManifest) }
                if bad > 5 { together.insert(versions) }
                history += "manifest \(versions), \(bad), missing \(missing)\n"
                // Refusals are expected here.
                try? await store.refresh()
                model.take(bad > 5 ? versions : nil, missing: [missing], isManual: isManual)
            case 7 where isManual:
                history += "activate\n"
                try await store.activate()
                model.activate()
            default:
                if Bool.random(using: &dice) {
                    model.bundle = model.bundle.map { $0 + Int.random(in: 0...3, using: &dice) }
                    together.insert(model.bundle)
                }
                history += "start with \(model.bundle)\n"
                // Missing texts prevent the new start from fetching anything by itself before it is examined.
                origin.missing.withLock { $0 = Set(Self.names.flatMap { name in (1...60).map { "\(name)-\($0)" } }) }
                store = try await start(bench, origin, model.bundle, isManual, isGroupedByManifest)
                model.shown()
            }
            var found: [Int] = []
            for name in Self.names {
                let text = try await store.text(for: TextSource(identifier: name))
                found.append(Int(text.version?.major ?? 0))
                if text.text != "\(name)-\(found.last ?? 0)" { return history + "\(name) is “\(text.text)”" }
            }
            guard found == model.visible, together.contains(found) else { return history + "\(found) instead of \(model.visible)" }
        }
        return nil
    }

    private func start(
        _ bench: Bench, _ origin: Origin, _ versions: [Int], _ isManual: Bool, _ isGroupedByManifest: Bool
    ) async throws -> TextStore {
        var files = Dictionary(uniqueKeysWithValues: zip(Self.names, versions).map { ("\($0).txt", "\($0)-\($1)") })
        files["versions.json"] = Self.manifest(versions, 11, isGroupedByManifest)
        let store = try bench.store(
            bundle: bench.bundle(files), policy: TextStorePolicy(activation: isManual ? .manually : .immediately), fetcher: origin)
        let group = isGroupedByManifest ? nil : "set"
        try await store.register(
            Self.names.map { name in
                TextSource(
                    identifier: name, bundleFile: BundleFile(fileName: name, fileExtension: "txt"),
                    remoteFile: RemoteFile(url: bench.origin.url.appending(path: name)), group: group)
            })
        await store.setVersionSource(bench.versions)
        // A later refresh must not join the requests that this start sends by itself.
        for name in Self.names { _ = try await store.text(for: TextSource(identifier: name), awaiting: patient) }
        return store
    }

    /// Makes a manifest of three texts; below 6, one of them is not acceptable.
    private static func manifest(_ versions: [Int], _ bad: Int, _ isGrouped: Bool) -> String {
        let group = isGrouped ? #","group":"set""# : ""
        var entries = zip(names, versions).map { #""\#($0)":{"version":"\#($1).0.0","url":"\#($0)-\#($1)"\#(group)}"# }
        let number = bad % 3
        switch bad {
        case 0..<3: entries[number] = entries[number].replacing(".0.0", with: ".0")
        case 3: entries[number] = entries[number].replacing(".0.0", with: ".0.0-rc.1")
        case 4: entries[number] += "," + entries[number]
        case 5: entries[number] = entries[number].replacing(#""url""#, with: #""sha256":"abc","url""#)
        default: break
        }
        return #"{"texts":{\#(entries.joined(separator: ","))}}"#
    }
}
