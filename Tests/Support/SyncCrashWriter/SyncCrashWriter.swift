import Foundation
import StoreCore
internal import StorePlatform
import SyncEngine
import Trials

/// A process that mirrors files of known content into a directory, and is killed by its tests.
///
/// Arguments: the directory, the generation of the files' content, the number of files, `crash` or `power`, and optionally a mode:
///
/// - `hold`: stops in the middle of a transfer.
/// - `limited`: limits each file to 64 KB, as if the disk were full.
/// - `unprivileged`: drops root privileges first, and continues after failures.
/// - `protected`: as `unprivileged`, with files that not even their owner may write, and a list without digests and sizes.
/// - `plan`: only makes a plan without root privileges, and prints the number of unchanged files.
/// - `moves`: gives files of constant content other paths in each generation.
/// - `deltas`: the same, with a list that is requested as the changes since the generation of the last pass.
/// - `metadata`: gives files, links and directories other metadata in each generation.
/// - `fill`: only writes many small files.
/// - `idle`: runs a pass over these files without downloads, and prints the process's peak memory.
@main
struct SyncCrashWriter {
    static func main() async throws {
        var arguments = CommandLine.arguments.dropFirst().makeIterator()
        let directory = URL(filePath: arguments.next() ?? "", directoryHint: .isDirectory)
        let generation = arguments.next().flatMap { Int($0) } ?? 0
        let count = arguments.next().flatMap { Int($0) } ?? 0
        let durability: Durability = arguments.next() == "power" ? .power : .crash
        let mode = arguments.next()
        let holds = mode == "hold"
        if mode == "limited" { limitFileSize(65_536) }
        if mode == "unprivileged" || mode == "protected" || mode == "plan" { becomeNobody() }
        if mode == "fill" { return try SmallFiles.write(count, to: directory) }
        if mode == "moves" || mode == "deltas" {
            return try await MovedFiles.synchronize(
                count, generation: generation, in: directory, durability: durability, asChanges: mode == "deltas")
        }
        if mode == "metadata" {
            return await DescribedObjects.synchronize(count, generation: generation, in: directory, durability: durability)
        }
        if mode == "idle" { return try await SmallFiles.synchronize(count, in: directory) }
        let target = DirectoryTarget(
            directory: directory, transfer: MadeUpTransfer(holds: holds), durability: durability,
            modes: FileModes(files: mode == "protected" ? 0o444 : nil)
        ) {
            let files = MadeUpFiles.list(generation: generation, count: count)
            return ListedSource(mode == "protected" ? files.map { ListedFile(path: $0.path, version: $0.version) } : files)
        }
        do {
            if mode == "plan" { return say("\(try await OneWaySynchronizer(processor: target).plan().unchangedCount) unchanged") }
            let options = SyncOptions(stopsOnError: mode != "unprivileged", retry: .never)
            let report = try await OneWaySynchronizer(processor: target, options: options).sync(overriding: [
                .everythingChanged, .updateLimit,
            ])
            say(mode == "unprivileged" ? "done \(report.skipped.count) skipped" : "done")
        } catch let error as SyncError {
            let cause = error.underlyingError.map { "\($0)" } ?? ""
            say("failed \(error.code.rawValue) \(cause); failures: \(error.report?.failures.count ?? 0)")
        }
    }

    /// Runs a pass, and prints a number of its report, or the error.
    static func synchronize(_ target: some SyncProcessor, _ number: (SyncReport) -> Int) async {
        do {
            let report = try await OneWaySynchronizer(processor: target, options: SyncOptions(retry: .never)).sync()
            say("done \(number(report))")
        } catch {
            say("failed \(error)")
        }
    }
}

/// Files with content derived from their name and generation.
enum MadeUpFiles {
    static func content(_ number: Int, generation: Int) -> [UInt8] {
        let size = number % 3 == 0 ? 150_000 + number : 300 + number * 17
        return pseudorandomBytes(size, seed: number &* 7919 &+ generation &* 104_729 &+ 1)
    }

    static func list(generation: Int, count: Int) -> [ListedFile] {
        (0..<count).map { number in
            // Every fifth file keeps its content in all generations.
            let own = number % 5 == 0 ? 0 : generation
            let content = content(number, generation: own)
            return ListedFile(
                path: "d\(number % 4)/f\(number)", version: "\(own)", byteCount: Int64(content.count),
                sha256: SHA256.digest(of: content).hex)
        }
    }
}

/// Sends the content in small pieces, and prints the number of bytes of each.
struct MadeUpTransfer: FileTransfer {
    var holds = false

    func transfer(_ file: ListedFile, into part: FilePart) async throws {
        let number = file.path.split(separator: "f").last.flatMap { Int($0) } ?? 0
        let content = MadeUpFiles.content(number, generation: Int(file.version) ?? 0)
        let tag = "\"\(file.version)\""
        let offset = part.resumePoint.flatMap { $0.validator == tag ? Int($0.offset) : nil } ?? 0
        try part.begin(at: Int64(offset), validator: tag)
        var place = offset
        while place < content.count {
            let end = min(place + 20_000, content.count)
            try part.append(Array(content[place..<end]))
            say("\(file.path) \(end - place)")
            place = end
            if holds { while FileHandle.standardInput.availableData.isEmpty {} }
            await Task.yield()
        }
    }
}
