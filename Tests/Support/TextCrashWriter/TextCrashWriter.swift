import Foundation
import StoreCore
internal import StorePlatform
import TextStore
import Trials

/// An app that fetches one version of its texts after another until it is killed.
///
/// Required arguments: the directory, the texts' group (`-` for none), the first version, and the number of the save step after which to
/// die (`-` for never). Optional arguments: the comma-separated names of the texts, the stride between versions, the number of versions,
/// and a mode. The modes restrict the process: `limited` (no file beyond 5 000 bytes), `unprivileged` (no superuser rights). Or they change
/// its manifests: `locked` (the highest revision), `recovered` (the next epoch, with rollbacks). In the mode `accepting`, the process
/// accepts each version instead of fetching it, and in the mode `evidence`, an account accepts it, and withdraws each third one. In the mode
/// `clearing`, it deletes all texts. In the mode `following`, it observes the first text without a server and prints each shown version; in
/// the mode `resting`, it reads that text once. Otherwise, the process prints each version that it has, and at the end the versions of the
/// next start.
@main
enum TextCrashWriter {
    static func main() async throws {
        let arguments = CommandLine.arguments
        let directory = URL(filePath: arguments[1], directoryHint: .isDirectory)
        let group = arguments[2] == "-" ? nil : arguments[2]
        let first = Int(arguments[3]) ?? 1
        let death = Int(arguments[4])
        let steps = WatchedState(0)
        let options = FileWriteOptions { (_: FileWriteOptions.Step) throws(StoreError) in
            if steps.increment() == death { killSelf() }
        }
        let names = (arguments.count > 5 ? arguments[5] : "one,two,three").split(separator: ",").map(String.init)
        let mode = arguments.count > 8 ? arguments[8] : ""
        let press = Press(names: names, first: first, stride: arguments.count > 6 ? Int(arguments[6]) ?? 1 : 1, mode: mode)
        guard let base = URL(string: "http://127.0.0.1:1") else { return }
        let store = try TextStore(
            session: "crash", directory: directory, bundle: .main, fetcher: press,
            policy: TextStorePolicy(
                checkInterval: .seconds(3600), acceptedEpoch: 1, evidence: mode == "evidence" ? .allAcceptances : .none),
            time: .system, options: options, patience: hangLimit)
        let texts = names.map { name in
            TextSource(identifier: name, remoteFile: RemoteFile(url: base.appending(path: name)), group: group)
        }
        let count = arguments.count > 7 ? Int(arguments[7]) ?? 0 : Int.max
        switch mode {
        case "limited": limitFileSize(5_000)
        case "unprivileged": becomeNobody()
        default: break
        }
        switch mode {
        case "accepting", "evidence": return try await accept(names[0], press, count, store, keepsEvidence: mode == "evidence")
        case "clearing": return try await store.clear()
        case "following", "resting": return try await observe(names[0], store, isFollowing: mode == "following")
        default: break
        }
        try await store.register(texts)
        await store.setVersionSource(VersionSource(remoteFile: RemoteFile(url: base.appending(path: "versions.json"))))
        for _ in 0..<count {
            do { try await store.refresh() } catch let error as TextStoreError where error.isBelowFloor {
                // Another process has a higher version.
            } catch {
                guard count < .max else { return say("failed \(error)") }
                let shown = try? await store.text(for: texts[0])
                let code = (error as? TextStoreError)?.code.rawValue ?? "\(error)"
                say("failed \(press.version) \(code), shows \(shown?.version?.major.description ?? "nothing")")
                press.next()
                continue
            }
            let version = try await store.text(for: texts[0]).version?.major ?? 0
            if version == press.version { say("\(version)") }
            press.next()
        }
        let next = try TextStore(
            session: "crash", directory: directory, bundle: .main, fetcher: press, policy: TextStorePolicy(), time: .system,
            options: FileWriteOptions(), patience: hangLimit)
        try await next.register(texts)
        var found: [String] = []
        for text in texts { found.append((try? await next.text(for: text))?.version?.major.description ?? "nothing") }
        say("restart \(found.joined(separator: " "))")
    }
}

extension TextCrashWriter {
    /// Accepts one version after another, and prints each after its save. With evidence, an account accepts each version and withdraws each
    /// third one, which is printed as a negative number.
    private static func accept(_ name: String, _ press: Press, _ count: Int, _ store: TextStore, keepsEvidence: Bool) async throws {
        for _ in 0..<count {
            let version = press.version, account = keepsEvidence ? "\(version)" : nil
            let text = VersionedText(identifier: name, text: "\(name) \(version)", version: SemanticVersion("\(version).0.0"))
            try await store.save(Acceptance(of: text, by: account, at: Date()), text.text)
            say("\(version)")
            if keepsEvidence, version % 3 == 0, try await store.withdrawAcceptances(of: name, account: account) { say("-\(version)") }
            press.next()
        }
    }

    /// Prints the versions of a text that other processes switch; without following, only the first one.
    private static func observe(_ name: String, _ store: TextStore, isFollowing: Bool) async throws {
        try await store.register(TextSource(identifier: name))
        func show(_ text: VersionedText?) { say(text?.version?.major.description ?? "nothing") }
        guard isFollowing else {
            show(try? await store.text(for: name))
            return try await untilCanceled()
        }
        for await state in store.publish(name) { show(state.content) }
    }
}

/// An origin that publishes one version after another; every text contains its version.
final class Press: RevalidatingFetcher {
    private let names: [String]
    private let stride: Int
    private let mode: String
    private let current: Lock<Int>

    init(names: [String], first: Int, stride: Int, mode: String) {
        self.names = names
        self.mode = mode
        self.stride = stride
        current = Lock(first)
    }

    var version: Int { current.withLock { $0 } }

    func next() { current.withLock { $0 += stride } }

    func fetch(param file: RemoteFile, revalidating validator: Validator?) async throws -> FetchResult<RemoteText> {
        let name = file.url.lastPathComponent
        guard name != "versions.json" else {
            let order =
                switch mode {
                case "locked": #""revision":\#(UInt64.max),"#
                case "recovered": #""epoch":1,"revision":\#(version),"#
                default: ""
                }
            let rollback = mode == "recovered" ? #","rollback":true"# : ""
            let entries = names.map { [version] in #""\#($0)":{"version":"\#(version).0.0","url":"\#($0)/\#(version)"\#(rollback)}"# }
            let manifest = #"{\#(order)"texts":{\#(entries.joined(separator: ","))}}"#
            return .modified(RemoteText(bytes: Data(manifest.utf8), contentType: "text/plain"))
        }
        // A text's address contains its version, so an older manifest leads to the texts that it lists.
        let version = Int(name) ?? 0
        let body =
            "\(file.url.deletingLastPathComponent().lastPathComponent) \(version) " + String(repeating: "x", count: version &* 7919 % 6000)
        return .modified(RemoteText(bytes: Data(body.utf8), contentType: "text/plain"))
    }
}

extension TextStoreError {
    /// Whether the version of a text, or of one of its set, is below the floor.
    fileprivate var isBelowFloor: Bool { code == .belowFloor || (underlyingError as? TextStoreError)?.code == .belowFloor }
}
