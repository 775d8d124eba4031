internal import Foundation
import StoreCore

/// A whole file with a checksum in front: what is read is what was written, or nothing.
enum SealedFile {
    /// Tells our temporary files from those of others.
    static let temporaryKind = "text"
    private static let magic = Array("SHtext01".utf8)
    private static let headSize = 16

    /// Writes a file in one step, old or new and never half.
    ///
    /// - Throws: ``TextStoreError/Code/fileSystem``; the old file is then still there.
    static func write(
        _ payload: [UInt8], as name: String, in directory: Directory, options: FileWriteOptions
    ) throws(TextStoreError) {
        var bytes = magic
        bytes.reserveCapacity(headSize + payload.count)
        withUnsafeBytes(of: checksum(payload[...]).littleEndian) { bytes.append(contentsOf: $0) }
        bytes.append(contentsOf: payload)
        do {
            try AtomicFile.write(bytes, as: name, in: directory, kind: temporaryKind, options: options)
        } catch {
            throw TextStoreError(.fileSystem, "saving a file of the session: \(error.message)", underlyingError: error)
        }
    }

    /// Reads a file.
    ///
    /// - Returns: What was written; `nil` where there is no such file.
    /// - Throws: ``TextStoreError/Code/damagedFile`` or ``TextStoreError/Code/fileSystem``.
    static func read(_ name: String, in directory: Directory) throws(TextStoreError) -> ArraySlice<UInt8>? {
        let bytes: [UInt8]
        do throws(StoreError) {
            guard let found = try contents(of: directory.path(of: name)) else { return nil }
            bytes = found
        } catch {
            throw TextStoreError(.fileSystem, "reading a file of the session: \(error.message)", underlyingError: error)
        }
        let path = directory.path(of: name)
        guard bytes.count >= headSize, bytes.starts(with: magic) else {
            throw TextStoreError(.damagedFile, "reading \(path): it does not begin as a file of a session; it is not used")
        }
        let payload = bytes[headSize...]
        let sealed = bytes[magic.count..<headSize].reversed().reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
        guard checksum(payload) == sealed else {
            throw TextStoreError(.damagedFile, "reading \(path): its checksum is wrong; it is not used")
        }
        return payload
    }

    private static func contents(of path: String) throws(StoreError) -> [UInt8]? {
        guard let file = try OpenFile(reading: path) else { return nil }
        let status = try file.status()
        // Read as a damaged file: whoever put a directory or a pipe there did not write one of ours.
        guard status.kind == .regular else { return [] }
        var bytes = [UInt8](repeating: 0, count: status.size)
        let read = bytes.withUnsafeMutableBytes { buffer in Result { () throws(StoreError) in try file.read(into: buffer) } }
        return Array(bytes.prefix(try read.get()))
    }

    private static func checksum(_ bytes: ArraySlice<UInt8>) -> UInt64 {
        bytes.withUnsafeBytes { Checksum64.of($0) }
    }
}
