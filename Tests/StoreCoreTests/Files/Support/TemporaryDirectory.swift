import Foundation
@testable import StoreCore

/// A directory on the real disk, removed with everything in it when the test lets go of it.
final class TemporaryDirectory: Sendable {
    let url: URL

    init(in parent: String = NSTemporaryDirectory()) throws {
        url = URL(filePath: parent, directoryHint: .isDirectory)
            .appending(path: "storehouse-\(UUID().uuidString)", directoryHint: .isDirectory)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit {
        // A test's rubbish: the next start of the machine takes it too.
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

    /// Makes a file look as if it was last used so long ago.
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
