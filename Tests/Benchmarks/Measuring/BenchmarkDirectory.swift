internal import Foundation

/// A directory of an experiment, which stays until the end of the program.
///
/// After thousands of removals, ext4 creates files up to five times slower for minutes, which would change the figures of later rows.
struct BenchmarkDirectory: Sendable {
    private static let all = FileManager.default.temporaryDirectory.appending(path: "storehouse-benchmarks-\(UUID().uuidString)")

    let root = all.appending(path: UUID().uuidString)

    /// Removes the directories of all experiments.
    static func removeAll() {
        // The system empties its temporary directory anyway.
        try? FileManager.default.removeItem(at: all)
    }

    /// Returns the path of a file in the root.
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
}
