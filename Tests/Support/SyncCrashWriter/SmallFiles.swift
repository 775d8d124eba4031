import Foundation
import StoreCore
internal import StorePlatform
import SyncEngine
import Trials

/// Many small files, and a list of them in NDJSON that is produced while it is read.
enum SmallFiles {
    private static func path(_ number: Int) -> String { "directory-\(number % 64)/document-\(number).txt" }
    private static func content(_ number: Int) -> [UInt8] { Array("file \(number)".utf8) }

    static func write(_ count: Int, to directory: URL) throws {
        for number in 0..<min(count, 64) {
            let inner = directory.appending(path: path(number)).deletingLastPathComponent()
            try FileManager.default.createDirectory(at: inner, withIntermediateDirectories: true)
        }
        for number in 0..<count { try Data(content(number)).write(to: directory.appending(path: path(number))) }
    }

    /// Runs a pass, and prints the number of unchanged files and the process's peak memory in kilobytes.
    static func synchronize(_ count: Int, in directory: URL) async throws {
        let target = DirectoryTarget(directory: directory, transfer: NoTransfer(), durability: .crash) {
            StreamedSource<ListedFile> { ListBytes(Lines(count: count), length: nil) }
        }
        let report = try await OneWaySynchronizer(processor: target).sync()
        say("\(report.unchangedCount) \(peakMemory ?? 0)")
    }

    /// The list in pieces of 100 lines.
    private struct Lines: AsyncSequence, AsyncIteratorProtocol, Sendable {
        let count: Int
        var number = 0

        init(count: Int) { self.count = count }

        func makeAsyncIterator() -> Lines { self }

        mutating func next() async -> Data? {
            guard number <= count else { return nil }
            var text = ""
            let end = Swift.min(number + 100, count)
            for number in number..<end {
                let digest = SHA256.digest(of: SmallFiles.content(number)).hex
                text += "{\"path\":\"\(SmallFiles.path(number))\",\"sha256\":\"\(digest)\",\"size\":\(SmallFiles.content(number).count)}\n"
            }
            if end == count { text += "{\"count\":\(count)}\n" }
            number = end == count ? count + 1 : end
            return Data(text.utf8)
        }
    }

    private struct NoTransfer: FileTransfer {
        func transfer(_ file: ListedFile, into part: FilePart) async throws { say("transfers \(file.path)") }
    }

    /// The process's peak resident memory in kilobytes; `nil` if the system does not report it.
    private static var peakMemory: Int? {
        guard let status = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8) else { return nil }
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
        return line.flatMap { Int($0.filter(\.isNumber)) }
    }
}
