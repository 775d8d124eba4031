internal import Foundation
internal import StoreCore

/// A file that is about to be sent: as it was when the request was built, or not at all.
struct FileSource: Sendable {
    private let path: String
    private let status: FileStatus

    /// The length in bytes.
    var length: Int64 { Int64(status.size) }

    /// Looks at a file.
    ///
    /// - Throws: ``RouteFault/Code/unreadableFile``.
    init(of url: URL) throws(RouteFault) {
        guard url.isFileURL else {
            throw RouteFault(.unreadableFile, in: "body", "its address is not that of a file; download it first")
        }
        // A link is a fair name for a file to send, and the file is opened without following any.
        path = url.resolvingSymlinksInPath().path(percentEncoded: false)
        do {
            guard let file = try OpenFile(reading: path) else {
                throw RouteFault(.unreadableFile, in: "body", "there is no file at \(path)")
            }
            status = try file.status()
        } catch let fault as RouteFault {
            throw fault
        } catch {
            throw RouteFault(.unreadableFile, in: "body", "\(error)")
        }
        guard status.kind == .regular else {
            throw RouteFault(.unreadableFile, in: "body", "\(path) is a directory or a device; send a plain file")
        }
    }

    /// The file as a body of its own.
    var stream: HTTPBodyStream {
        HTTPBodyStream(length: length, isReplayable: true) {
            let reader = try self.open()
            return { upTo in try reader.read(upTo: upTo) }
        }
    }

    /// Opens the file for one reading.
    ///
    /// - Throws: ``RouteFault/Code/changedFile`` where it is not what it was when the request was built.
    func open() throws(RouteFault) -> FileReader {
        do {
            guard let file = try OpenFile(reading: path) else { throw changed }
            let now = try file.status()
            guard now.size == status.size, now.modified == status.modified, now.inode == status.inode else { throw changed }
            return FileReader(file, length: status.size, changed: changed)
        } catch let fault as RouteFault {
            throw fault
        } catch {
            throw RouteFault(.unreadableFile, in: "body", "\(error)")
        }
    }

    private var changed: RouteFault {
        RouteFault(
            .changedFile, in: "body",
            "\(path) changed after its length was announced; send it again once nobody writes to it, or send a copy")
    }
}

/// One reading of a file, from its first byte.
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

    /// The next bytes; `nil` at the end.
    ///
    /// - Throws: ``RouteFault/Code/changedFile`` where the file turns out shorter or longer than it was.
    func read(upTo count: Int) throws -> Data? {
        try offset.withLock { offset throws in
            // At the end one byte more is asked for, which must not be there.
            let wanted = max(1, min(count, length - offset))
            var data = Data(count: wanted)
            let got = try data.withUnsafeMutableBytes { try file.read(into: $0, at: offset) }
            if offset == length {
                guard got == 0 else { throw changed }
                return nil
            }
            guard got == wanted else { throw changed }
            offset += got
            return data
        }
    }
}
