public import Foundation

/// Removes a directory that other users follow, and that they may make again at any moment.
///
/// - Throws: The file system's error if the directory was not empty in a hundred attempts.
public func removeFollowed(_ directory: URL) throws {
    for _ in 0..<100 {
        if (try? FileManager.default.removeItem(at: directory)) != nil { return }
        if !FileManager.default.fileExists(atPath: directory.path(percentEncoded: false)) { return }
    }
    try FileManager.default.removeItem(at: directory)
}
