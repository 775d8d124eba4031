import Foundation
@testable import StoreCore

/// A directory on the real disk, removed with its contents when the test releases it.
final class TemporaryDirectory: Sendable {
    let url: URL

    init(in parent: String = NSTemporaryDirectory()) throws {
        url = URL(filePath: parent, directoryHint: .isDirectory)
            .appending(path: "storehouse-\(UUID().uuidString)", directoryHint: .isDirectory)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit {
        // Ignores errors: a directory that is left behind does no harm.
        try? FileManager.default.removeItem(at: url)
    }

    var directory: Directory { Directory(path: url.path(percentEncoded: false)) }

    func file(_ name: String) -> URL { url.appending(path: name, directoryHint: .notDirectory) }

    /// All names, sorted.
    var names: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: url.path(percentEncoded: false)).sorted() }
    }

    var records: [String] { get throws { try names.filter { RecordFiles.digest(in: $0) != nil } } }
    var temporaries: [String] { get throws { try names.filter { RecordFiles.isTemporary($0) } } }

    func bytes(_ name: String) throws -> [UInt8] { try Array(Data(contentsOf: file(name))) }
    func write(_ bytes: [UInt8], _ name: String) throws { try Data(bytes).write(to: file(name)) }

    /// Sets the last use of a file to the given time ago.
    func age(_ name: String, by duration: Duration) throws {
        try setModified(file(name).path(percentEncoded: false), nanoseconds: FileStatus.now() - duration.saturatedNanoseconds)
    }

    func status(_ name: String) throws -> FileStatus? { try directory.status(of: name) }
}

/// The name of a key's file.
func fileName(_ key: some Encodable) throws -> String { try FileKey(key).fileName }

func record<Content>(_ content: Content, at seconds: TimeInterval = 1000) -> CacheRecord<Content> {
    CacheRecord(content: content, fetchedAt: Date(timeIntervalSinceReferenceDate: seconds))
}
