import Foundation
import StoreCore
import TextStore

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// An app that fetches one version of its texts after another and is killed meanwhile.
///
/// Arguments: the directory, the texts' set (`-` for none), the first version, and after which step of which save to die (`-` for never).
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
        let press = Press(first: first)
        guard let base = URL(string: "http://127.0.0.1:1") else { return }
        let store = try TextStore(
            session: "crash", directory: directory, bundle: .main, fetcher: press, policy: TextStorePolicy(checkInterval: .zero),
            time: .system, options: options)
        let texts = ["one", "two", "three"].map { name in
            TextSource(identifier: name, remoteFile: RemoteFile(url: base.appending(path: name)), group: group)
        }
        try await store.register(texts)
        await store.setVersionSource(VersionSource(remoteFile: RemoteFile(url: base.appending(path: "versions.json"))))
        while true {
            try await store.refresh()
            say("\(press.version)")
            press.next()
        }
    }

    static func say(_ line: String) {
        let bytes = Array((line + "\n").utf8)
        _ = write(1, bytes, bytes.count)
    }

    static func killSelf() {
        kill(getpid(), SIGKILL)
        while true { pause() }
    }
}

/// An origin that prints one version after another, every text of it telling its version.
final class Press: RevalidatingFetcher {
    private let current: Lock<Int>

    init(first: Int) { current = Lock(first) }

    var version: Int { current.withLock { $0 } }

    func next() { current.withLock { $0 += 1 } }

    func fetch(param file: RemoteFile, revalidating validator: Validator?) async throws -> FetchResult<RemoteText> {
        let version = version
        let name = file.url.lastPathComponent
        let body =
            name == "versions.json"
            ? #"{"one":"\#(version).0.0","two":"\#(version).0.0","three":"\#(version).0.0"}"#
            : "\(name) \(version) " + String(repeating: "x", count: version &* 7919 % 6000)
        return .modified(RemoteText(bytes: Data(body.utf8), contentType: "text/plain"))
    }
}
