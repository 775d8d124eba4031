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
        let (bytes, status) = try contents(of: name, in: directory)
        guard status != nil else { return nil }
        func damaged(_ reason: String) -> TextStoreError {
            TextStoreError(.damagedFile, "reading \(directory.path(of: name)): \(reason); it is not used")
        }
        guard bytes.count >= headSize, bytes.starts(with: magic) else { throw damaged("it does not begin as a file of a session") }
        let payload = bytes[headSize...]
        let sealed = bytes.withUnsafeBytes { UInt64(littleEndian: $0.loadUnaligned(fromByteOffset: magic.count, as: UInt64.self)) }
        guard checksum(payload) == sealed else { throw damaged("its checksum is wrong") }
        return payload
    }

    /// The bytes of a file as they are, and what the system knows of it; no status where there is no file.
    static func contents(of name: String, in directory: Directory) throws(TextStoreError) -> ([UInt8], FileStatus?) {
        do throws(StoreError) {
            guard let file = try OpenFile(reading: directory.path(of: name)) else { return ([], nil) }
            let status = try file.status()
            // Read as a damaged file: whoever put a directory or a pipe there did not write one of ours.
            guard status.kind == .regular else { return ([], status) }
            var failure: StoreError?
            let bytes = [UInt8](unsafeUninitializedCapacity: status.size) { buffer, count in
                do throws(StoreError) { count = try file.read(into: UnsafeMutableRawBufferPointer(buffer)) } catch { failure = error }
            }
            if let failure { throw failure }
            return (bytes, status)
        } catch {
            throw TextStoreError(.fileSystem, "reading a file of the session: \(error.message)", underlyingError: error)
        }
    }

    private static func checksum(_ bytes: ArraySlice<UInt8>) -> UInt64 {
        bytes.withUnsafeBytes { Checksum64.of($0) }
    }
}
