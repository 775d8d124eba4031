import Foundation
import Trials
internal import StorePlatform
internal import StoreFiles

@testable import StoreFiles
@testable import StoreCore

extension TemporaryDirectory {
    var directory: Directory { Directory(path: url.path(percentEncoded: false)) }

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
func fileName(_ key: some Hashable & Codable) throws -> String { try FileKey(key).fileName }

func record<Content>(_ content: Content, at seconds: TimeInterval = 1000) -> CacheRecord<Content> {
    CacheRecord(content: content, fetchedAt: Date(timeIntervalSinceReferenceDate: seconds))
}
