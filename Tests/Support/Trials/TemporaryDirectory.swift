public import Foundation

/// The parent of all temporary files and directories of this process.
private let parent: URL = {
    let url = FileManager.default.temporaryDirectory.appending(path: "storehouse-\(UUID().uuidString)", directoryHint: .isDirectory)
    try? FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    atexit { try? removeFollowed(parent) }
    return url
}()

/// The address of a missing file or directory in the system's temporary directory.
///
/// The file or directory is removed when the process ends. A test need not remove it, and often cannot: a store or an outbox works for a
/// moment after its last user, and makes its directory again.
///
/// - Parameter pathExtension: The extension of its name.
public func temporaryURL(_ pathExtension: String = "") -> URL {
    let url = parent.appending(path: UUID().uuidString)
    return pathExtension.isEmpty ? url : url.appendingPathExtension(pathExtension)
}

/// A directory on the real disk, removed with its contents when the test releases it.
public final class TemporaryDirectory: Sendable {
    /// Its address.
    public let url: URL

    /// Creates a directory in the system's temporary directory, or in another one, such as a small disk.
    public init(in parent: String? = nil) throws {
        url = parent.map { URL(filePath: $0, directoryHint: .isDirectory).appending(path: UUID().uuidString) } ?? temporaryURL()
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit {
        // Ignores errors: the end of the process removes it too.
        try? FileManager.default.removeItem(at: url)
    }

    /// The address of a file in it.
    public func file(_ name: String) -> URL { url.appending(path: name, directoryHint: .notDirectory) }

    /// All names in it, sorted.
    public var names: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: url.path(percentEncoded: false)).sorted() }
    }
}
