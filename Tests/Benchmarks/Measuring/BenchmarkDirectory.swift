internal import Foundation

/// Directories that are removed when the experiment has ended, and not before.
final class BenchmarkDirectory: Sendable {
    let root = FileManager.default.temporaryDirectory.appending(path: "storehouse-benchmarks-\(UUID().uuidString)")

    /// A file directly in the root; by asking here, whoever uses it keeps the directory.
    func file(_ name: String) -> String { root.appending(path: name).path(percentEncoded: false) }

    func makeDirectory() throws -> String {
        let url = root.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        return url.path(percentEncoded: false)
    }

    /// Removes a directory before the experiment ends, for rounds that fill the disk.
    func remove(_ path: String) {
        // What stays is removed with the root.
        try? FileManager.default.removeItem(atPath: path)
    }

    deinit {
        // Rubbish in the system's directory for rubbish.
        try? FileManager.default.removeItem(at: root)
    }
}
