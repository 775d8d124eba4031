import Foundation
import LoopbackOrigin
import StoreCore
import StorePlatform
import SyncEngine

/// A demonstration with an origin inside this process and a temporary directory.
enum Demo {
    /// Runs three times: with new files only, without changes, and with some changes.
    static func run(_ options: Options) async throws -> Int32 {
        let directory = FileManager.default.temporaryDirectory.appending(path: "storehouse-mirror-\(UUID().uuidString)")
        let files = Lock<[String: String]>([:])
        files.withLock { files in
            for number in 1...40 { files["films/\(1900 + number)/reel.txt"] = String(repeating: "frame \(number)\n", count: number * 100) }
        }
        let origin = try LoopbackOrigin { request in
            let all = files.withLock { $0 }
            if request.path == "/manifest.json" { return .json(all.map { ListedFile($0, $1) }.sorted { $0.path < $1.path }) }
            guard let text = all[String(request.path.dropFirst())] else { return .notFound(for: request) }
            return .data(Data(text.utf8)).tagged().ranged(by: request)
        }
        defer {
            origin.stop()
            // If this fails, the system later empties the temporary directory.
            try? FileManager.default.removeItem(at: directory)
        }
        let show = Show(options)
        let manifest = origin.url.appending(path: "manifest.json")
        func step(_ title: String) async throws -> Int32 {
            show.line(title)
            let code = try await Mirror.run(options, manifest: manifest, directory: directory)
            // A dry run changes nothing, but the next step needs the result of this one.
            if options.isDryRun { try await Mirror.synchronizer(options, manifest: manifest, directory: directory).sync() }
            return code
        }
        show.line("Storehouse · a mirror of \(manifest)\n")
        var codes = [try await step("1  everything is new"), try await step("2  nothing to do")]
        files.withLock { files in
            files["films/1901/reel.txt"] = "restored"
            files["films/1902/reel.txt"] = nil
            files["films/1903/reel.txt"] = nil
            files["films/1999/reel.txt"] = "found"
        }
        codes.append(try await step("3  one file has changed, two are gone, one is new"))
        return codes.max() ?? 0
    }
}

extension ListedFile {
    fileprivate init(_ path: String, _ text: String) {
        self.init(path: path, sha256: SHA256.digest(of: Array(text.utf8)).hex, byteCount: Int64(text.utf8.count), url: path)
    }
}
