import Foundation
import StoreCore
internal import StorePlatform
import SyncEngine
import Trials

/// Files that have other paths in each generation, with the same contents: cycles, chains, and directories with new names.
enum MovedFiles {
    static func content(_ number: Int) -> [UInt8] { Array(repeating: UInt8(number), count: 1_000 + number) }

    static func path(_ number: Int, generation: Int, count: Int) -> String {
        switch number % 4 {
        case 0: "cycle/\((number / 4 + generation) % ((count + 3) / 4))"
        case 1: "chain/\(number / 4 + generation)"
        case 2: "directory-\(generation)/\(number)"
        // A file becomes a directory, and a directory a file.
        default: generation % 2 == 0 ? "shape/\(number)" : "shape/\(number)/inner"
        }
    }

    private static func list(_ count: Int, generation: Int) -> [ListedFile] {
        (0..<count).map { number in
            let content = content(number)
            return ListedFile(
                path: path(number, generation: generation, count: count), version: "\(number)", byteCount: Int64(content.count),
                sha256: SHA256.digest(of: content).hex)
        }
    }

    /// Runs a pass over the list of a generation; prints each transfer, and the generation from which changes are requested.
    static func synchronize(_ count: Int, generation: Int, in directory: URL, durability: Durability, asChanges: Bool) async throws {
        let state = directory.appending(path: ".storehouse/list")
        let target = DirectoryTarget(directory: directory, transfer: Transfer(), durability: durability) {
            DeltaSource(saving: state, fullEvery: asChanges ? .max : 0) {
                (ListedSource(list(count, generation: generation)), token: "\(generation)")
            } changes: { token in
                say("since \(token)")
                let new = list(count, generation: generation)
                let old = list(count, generation: Int(token) ?? 0).filter { !Set(new.map(\.path)).contains($0.path) }
                return ListChanges(old.map { .removed($0.key) } + new.map { .set($0) }, token: "\(generation)", since: token)
            }
        }
        await SyncCrashWriter.synchronize(target) { $0.movedCount }
    }

    private struct Transfer: FileTransfer {
        func transfer(_ file: ListedFile, into part: FilePart) async throws {
            say("transfers \(file.path)")
            try part.append(content(Int(file.version) ?? 0))
        }
    }
}
