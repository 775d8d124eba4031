internal import Foundation

/// Directories that are removed after the experiment.
final class BenchmarkDirectory: Sendable {
    let root = FileManager.default.temporaryDirectory.appending(path: "storehouse-benchmarks-\(UUID().uuidString)")

    /// Returns the path of a file in the root; calling it retains the directory.
    func file(_ name: String) -> String { root.appending(path: name).path(percentEncoded: false) }

    func makeDirectory() throws -> String {
        let url = root.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        return url.path(percentEncoded: false)
    }

    /// Removes a directory before the experiment ends, for rounds that fill the disk.
    func remove(_ path: String) {
        // A leftover is removed with the root.
        try? FileManager.default.removeItem(atPath: path)
    }

    deinit {
        // The system empties its temporary directory anyway.
        try? FileManager.default.removeItem(at: root)
    }
}
