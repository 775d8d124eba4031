internal import Foundation
internal import StoreCore
package import StorePlatform

extension TemporaryDirectory {
    package var directory: Directory { Directory(path: url.path(percentEncoded: false)) }

    package func bytes(_ name: String) throws -> [UInt8] { try Array(Data(contentsOf: file(name))) }
    package func write(_ bytes: [UInt8], _ name: String) throws { try Data(bytes).write(to: file(name)) }

    /// Sets the last use of a file to the given time ago.
    package func age(_ name: String, by duration: Duration) throws {
        try setModified(file(name).path(percentEncoded: false), nanoseconds: FileStatus.now() - duration.saturatedNanoseconds)
    }

    package func status(_ name: String) throws -> FileStatus? { try directory.status(of: name) }

    /// The identity, the size and the times of each file and directory in it, by path.
    package var fingerprint: [String: String] {
        get throws {
            let root = url.path(percentEncoded: false)
            let names = FileManager.default.enumerator(atPath: root)?.compactMap { $0 as? String } ?? []
            return try (names + [""]).reduce(into: [:]) { prints, name in
                let status = try FileStatus.of(path: root + "/" + name)
                prints[name] = status.map { "\($0.inode) \($0.size) \($0.modified)" }
            }
        }
    }
}
