import Foundation
import StoreCore
import StorePlatform
import Trials
@testable import SyncEngine

/// A directory on the real disk, a list, an origin in memory, and a count of transferred bytes.
final class DirectoryBench: Sendable {
    struct Origin: Sendable {
        var contents: [String: String] = [:]
        var listed: [ListedFile]?
        var tags: [String: String] = [:]
        /// The number of bytes after which a transfer fails, by path.
        var breaks: [String: Int] = [:]
        /// Called with the path before each transfer.
        var onTransfer: (@Sendable (String) throws -> Void)?
        var transferred = 0
        var transfers: [String] = []
        var lists = 0
    }

    private let directory: TemporaryDirectory
    var url: URL { directory.url }
    var journal: URL { url.appending(path: ".storehouse/journal") }
    let origin = Lock(Origin())
    /// The closure of `onStep`.
    let probe = Lock<(@Sendable (TargetStep) throws -> Void)?>(nil)

    /// Creates the directory in the system's temporary directory, or in another one, such as a small disk.
    init(_ contents: [String: String] = [:], in parent: String? = nil) throws {
        directory = try TemporaryDirectory(in: parent)
        origin.withLock { $0.contents = contents }
    }

    subscript(path: String) -> String? {
        get { origin.withLock { $0.contents[path] } }
        set { origin.withLock { $0.contents[path] = newValue } }
    }

    var transferred: Int { origin.withLock { $0.transferred } }

    /// Replaces the contents of the origin, and forgets its transfers.
    func publish(_ contents: [String: String]) {
        origin.withLock { ($0.contents, $0.transfers, $0.transferred) = (contents, [], 0) }
    }

    /// Calls a closure just before each step of the next passes; an error makes the step fail.
    func onStep(_ body: @escaping @Sendable (TargetStep) throws -> Void) { probe.withLock { $0 = body } }

    func target(
        foreignFiles: ForeignFiles = .keep, layers: MirrorLayers = MirrorLayers(), folding: NameFolding? = nil,
        durability: Durability = .crash
    ) -> DirectoryTarget<ListedSource<ListedFile>, BenchTransfer> {
        DirectoryTarget(
            directory: url, transfer: BenchTransfer(bench: self), durability: durability, foreignFiles: foreignFiles, layers: layers,
            folding: folding,
            probe: { [unowned self] step in try probe.withLock { $0 }?(step) }
        ) { [self] in
            ListedSource(
                origin.withLock { origin in
                    origin.lists += 1
                    return origin.listed
                        ?? origin.contents.map { path, text in
                            ListedFile(path: path, sha256: digest(text), byteCount: Int64(text.utf8.count))
                        }.sorted { $0.path < $1.path }
                })
        }
    }

    /// Synchronizes the directory with its first contents.
    func synced() async throws -> DirectoryBench {
        try await sync()
        return self
    }

    @discardableResult
    func sync(
        _ overrides: SyncOverrides = [], localEdits: LocalEdits = .overwrite, foreignFiles: ForeignFiles = .keep,
        layers: MirrorLayers = MirrorLayers(), folding: NameFolding? = nil, durability: Durability = .crash, stopsOnError: Bool = false,
        concurrency: Int = 0,
        removalTiming: RemovalTiming = .afterDownloads
    ) async throws -> SyncReport {
        let options = SyncOptions(
            concurrency: concurrency, stopsOnError: stopsOnError, removalTiming: removalTiming,
            removalLimit: .unlimited, updateLimit: .unlimited, retry: .never,
            localEdits: localEdits)
        return try await OneWaySynchronizer(
            processor: target(foreignFiles: foreignFiles, layers: layers, folding: folding, durability: durability), options: options
        )
        .sync(overriding: overrides)
    }

    func write(_ text: String, _ path: String) throws {
        let file = url.appending(path: path)
        try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(text.utf8).write(to: file)
    }

    /// All files with their content, without those of the target itself.
    var files: [String: String] { get throws { try contents(of: url) } }

    /// The paths of all files by their bytes, without those of the target itself.
    var keys: Set<PathKey> {
        get throws {
            let all = try FileManager.default.subpathsOfDirectory(atPath: url.path(percentEncoded: false)).filter {
                !$0.hasPrefix(".storehouse")
            }
            var isDirectory: ObjCBool = false
            return Set(
                all.filter { path in
                    let path = url.path(percentEncoded: false) + "/" + path
                    return FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory) && !isDirectory.boolValue
                }.map { PathKey($0) })
        }
    }

    func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: url.appending(path: path).path(percentEncoded: false)) }
}

extension DirectoryBench {
    /// Starts `SyncCrashWriter` in the directory.
    func writer(_ generation: Int, count: Int, _ durability: Durability = .crash, mode: String = "") throws -> ChildProcess {
        let arguments = [url.path(percentEncoded: false), "\(generation)", "\(count)", durability == .power ? "power" : "crash", mode]
        return try ChildProcess("SyncCrashWriter", arguments)
    }

    /// Runs `mirror` with a list into the directory; returns its exit code and its output.
    func mirror(
        _ list: String, _ options: [String] = [], after setup: String = "", joinsErrors: Bool = true
    ) async throws -> (code: Int32, output: String) {
        try await runMirror([list, url.path(percentEncoded: false), "--plain"] + options, after: setup, joinsErrors: joinsErrors)
    }
}

/// Runs `mirror` to its end, after other commands or variables of the shell; returns its exit code and its output.
func runMirror(
    _ arguments: [String], after setup: String = "", joinsErrors: Bool = true
) async throws -> (code: Int32, output: String) {
    let script = setup + #" exec "$0" "$@""# + (joinsErrors ? " 2>&1" : "")
    let child = try ChildProcess("/bin/sh", ["-c", script, try ChildProcess.path(of: "mirror")] + arguments)
    let code = try await child.ending()
    return (code, child.rest)
}

extension ChildProcess {
    /// The remaining lines of output; the process has then ended.
    var lines: [String] {
        defer { wait() }
        return rest.split(separator: "\n").map(String.init)
    }
}

extension MirrorLayers {
    init(_ change: (inout MirrorLayers) -> Void) {
        self.init()
        change(&self)
    }
}

/// All files of a directory with their content, without those of a target itself.
func contents(of directory: URL) throws -> [String: String] {
    var all: [String: String] = [:]
    for path in try FileManager.default.subpathsOfDirectory(atPath: directory.path(percentEncoded: false)) {
        let file = directory.appending(path: path)
        guard !path.hasPrefix(".storehouse"), try file.resourceValues(forKeys: [.isRegularFileKey]).isRegularFile ?? false else { continue }
        all[path] = String(decoding: try Data(contentsOf: file), as: UTF8.self)
    }
    return all
}

/// An error of the disk in any operation.
func diskError(_ code: POSIXErrorCode) -> StoreError { .fileSystem("working", path: "/", errno: code.rawValue) }

func digest(_ text: String) -> String { SHA256.digest(of: Array(text.utf8)).hex }

extension ListedFile {
    /// Creates the entry for content at a path of a server, which begins with a slash.
    init(_ path: String, _ content: Data) {
        self.init(path: String(path.dropFirst()), sha256: SHA256.digest(of: Array(content)).hex, byteCount: Int64(content.count))
    }
}

/// A transfer given by a closure.
struct ClosureTransfer<Item: FileItem>: FileTransfer {
    private let body: @Sendable (Item, FilePart) async throws -> Void

    init(_ body: @escaping @Sendable (Item, FilePart) async throws -> Void) { self.body = body }

    func transfer(_ item: Item, into part: FilePart) async throws { try await body(item, part) }
}

/// A transfer that breaks off after the first half of an item.
final class HalfTransfer<Item: FileItem>: FileTransfer {
    /// The offset of each attempt; `nil` if it did not resume.
    let offsets = Lock<[Int64?]>([])

    func transfer(_ item: Item, into part: FilePart) async throws {
        let offset = part.resumePoint?.offset
        offsets.withLock { $0.append(offset) }
        try part.begin(at: offset ?? 0, validator: "\"1\"")
        try part.append([UInt8](repeating: 1, count: 40_000))
        if offset == nil { throw Trouble.lasting }
    }
}

struct BenchTransfer: FileTransfer {
    unowned let bench: DirectoryBench

    func transfer(_ file: ListedFile, into part: FilePart) async throws {
        try bench.origin.withLock { $0.onTransfer }?(file.path)
        let (text, tag, limit) = bench.origin.withLock { origin in
            origin.transfers.append(file.path)
            return (origin.contents[file.path] ?? "", origin.tags[file.path] ?? "\"1\"", origin.breaks[file.path])
        }
        let bytes = Array(text.utf8)
        var place = part.resumePoint.flatMap { $0.validator == tag ? Int($0.offset) : nil } ?? 0
        try part.begin(at: Int64(place), validator: tag)
        while place < bytes.count {
            if let limit, place >= limit { throw Trouble.passing }
            let end = min(place + 10_000, bytes.count, limit ?? .max)
            try part.append(Array(bytes[place..<end]))
            bench.origin.withLock { [place] in $0.transferred += end - place }
            place = end
        }
    }
}
