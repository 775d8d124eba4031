public import Foundation

/// A directory on the real disk, removed with its contents when the test releases it.
public final class TemporaryDirectory: Sendable {
    /// Its address.
    public let url: URL

    /// Creates a directory in the system's temporary directory, or in another one, such as a small disk.
    public init(in parent: String = NSTemporaryDirectory()) throws {
        url = URL(filePath: parent, directoryHint: .isDirectory)
            .appending(path: "storehouse-\(UUID().uuidString)", directoryHint: .isDirectory)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit {
        // Ignores errors: a directory that is left behind does no harm.
        try? FileManager.default.removeItem(at: url)
    }

    /// The address of a file in it.
    public func file(_ name: String) -> URL { url.appending(path: name, directoryHint: .notDirectory) }
}
