import Foundation
import StoreCore
import TextStore
import Trials

/// An app that fetches one version of its texts after another and is killed meanwhile.
///
/// Arguments: the directory, the texts' set (`-` for none), the first version, and after which step of which save to die (`-` for never);
/// then, if wanted, the names of its texts with commas between, how far one version is from the next, how many versions to fetch, and
/// what the process may not do: `limited` (files beyond 5 000 bytes), `nobody` (what takes root's rights); or how the manifests are ordered:
/// `locked` (the highest revision), `recovered` (the next epoch, with rollbacks); or `accepting` for a process that accepts each version
/// instead of fetching it. After each version it prints the version that it has, and after the last what the next start has.
@main
enum TextCrashWriter {
    static func main() async throws {
        let arguments = CommandLine.arguments
        let directory = URL(filePath: arguments[1], directoryHint: .isDirectory)
        let group = arguments[2] == "-" ? nil : arguments[2]
        let first = Int(arguments[3]) ?? 1
        let death = Int(arguments[4])
        let steps = Lock(0)
        let options = FileWriteOptions { (_: FileWriteOptions.Step) throws(StoreError) in
            let count = steps.withLock { steps in
                steps += 1
                return steps
            }
            if count == death { killSelf() }
        }
        let names = (arguments.count > 5 ? arguments[5] : "one,two,three").split(separator: ",").map(String.init)
        let mode = arguments.count > 8 ? arguments[8] : ""
        let press = Press(names: names, first: first, stride: arguments.count > 6 ? Int(arguments[6]) ?? 1 : 1, mode: mode)
        guard let base = URL(string: "http://127.0.0.1:1") else { return }
        let store = try TextStore(
            session: "crash", directory: directory, bundle: .main, fetcher: press,
            policy: TextStorePolicy(checkInterval: .seconds(3600), acceptedEpoch: 1),
            time: .system, options: options)
        let texts = names.map { name in
            TextSource(identifier: name, remoteFile: RemoteFile(url: base.appending(path: name)), group: group)
        }
        let count = arguments.count > 7 ? Int(arguments[7]) ?? 0 : Int.max
        switch mode {
        case "limited": limitFileSize(5_000)
        case "nobody": becomeNobody()
        default: break
        }
        if mode == "accepting" { return try await accept(names[0], press, count, store) }
        try await store.register(texts)
        await store.setVersionSource(VersionSource(remoteFile: RemoteFile(url: base.appending(path: "versions.json"))))
        for _ in 0..<count {
            do { try await store.refresh() } catch let error as TextStoreError where error.code == .belowFloor {
                // Another process is ahead.
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
        let next = try TextStore(session: "crash", directory: directory)
        try await next.register(texts)
        var found: [String] = []
        for text in texts { found.append((try? await next.text(for: text))?.version?.major.description ?? "nothing") }
        say("restart \(found.joined(separator: " "))")
    }
}

extension TextCrashWriter {
    /// Accepts one version after another, and says each when it is saved.
    private static func accept(_ name: String, _ press: Press, _ count: Int, _ store: TextStore) async throws {
        for _ in 0..<count {
            let version = SemanticVersion("\(press.version).0.0")
            try await store.accept(VersionedText(identifier: name, text: "\(name) \(press.version)", version: version))
            say("\(press.version)")
            press.next()
        }
    }
}

/// An origin that prints one version after another, every text of it telling its version.
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
        // A text's address says its version: a manifest that was got before goes with the texts that it names.
        let version = Int(name) ?? 0
        let body =
            "\(file.url.deletingLastPathComponent().lastPathComponent) \(version) " + String(repeating: "x", count: version &* 7919 % 6000)
        return .modified(RemoteText(bytes: Data(body.utf8), contentType: "text/plain"))
    }
}
