internal import Foundation
internal import RemoteHTTP
internal import StoreCore
internal import StorePlatform

/// A file to send, unchanged since the request was built.
struct FileSource: Sendable {
    private let path: String
    private let status: FileStatus

    var length: Int64 { Int64(status.size) }

    init(of url: URL) throws(RouteFault) {
        guard url.isFileURL else {
            throw RouteFault(.unreadableFile, in: "body", "its URL is not a file URL; download it first")
        }
        // Resolves links here, because `OpenFile` does not follow them.
        path = url.resolvingSymlinksInPath().path(percentEncoded: false)
        do {
            guard let file = try OpenFile(reading: path) else {
                throw RouteFault(.unreadableFile, in: "body", "the file \(path) does not exist; check its path")
            }
            status = try file.status()
        } catch {
            // The system may protect the file until the user unlocks the device, or lack a descriptor.
            throw error as? RouteFault ?? RouteFault(.unreadableFile, in: "body", "\(error)", changeKind: .transient)
        }
        guard status.kind == .regular else {
            throw RouteFault(.unreadableFile, in: "body", "\(path) is a directory or a device; send a regular file")
        }
    }

    /// Opens the file to read it once; throws ``RouteFault/Code/changedFile`` if it changed since the request was built.
    ///
    /// A file that `mayHaveGrown` is sent up to the announced length.
    func open(mayHaveGrown: Bool = false) throws(RouteFault) -> FileReader {
        do {
            guard let file = try OpenFile(reading: path) else { throw changed }
            let now = try file.status()
            let isSame = now.size == status.size && now.modified == status.modified
            guard now.inode == status.inode, isSame || mayHaveGrown && now.size > status.size else { throw changed }
            return FileReader(file, length: status.size, changed: changed)
        } catch {
            throw error as? RouteFault ?? RouteFault(.unreadableFile, in: "body", "\(error)")
        }
    }

    private var changed: RouteFault {
        RouteFault(
            .changedFile, in: "body",
            "\(path) changed after its length was announced; send it again after the writing has ended, or send a copy")
    }
}

final class FileReader: Sendable {
    private let file: OpenFile
    private let length: Int
    private let changed: RouteFault
    private let offset = Lock(0)

    fileprivate init(_ file: consuming OpenFile, length: Int, changed: RouteFault) {
        self.file = file
        self.length = length
        self.changed = changed
    }

    /// The next bytes; `nil` at the end. Throws ``RouteFault/Code/changedFile`` if the file is shorter than announced.
    func read(upTo count: Int) throws -> Data? {
        try offset.withLock { offset throws in
            let rest = length - offset
            guard rest > 0 else { return nil }
            var data = Data(count: max(1, min(count, rest)))
            let got = try data.withUnsafeMutableBytes { try file.read(into: $0, at: offset) }
            guard got == data.count else { throw changed }
            offset += got
            return data
        }
    }
}
