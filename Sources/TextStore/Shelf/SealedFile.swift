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
        withUnsafeBytes(of: payload.withUnsafeBytes { Checksum64.of($0) }.littleEndian) { bytes.append(contentsOf: $0) }
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
    static func read(_ name: String, in directory: Directory) throws(TextStoreError) -> [UInt8]? {
        var reader = try Reader(directory)
        return try reader.read(name) { Array($0) }
    }

    /// The bytes of a file as they are, and what the system knows of it; no status where there is no file.
    static func contents(of name: String, in directory: Directory) throws(TextStoreError) -> ([UInt8], FileStatus?) {
        var reader = try Reader(directory)
        var bytes: [UInt8] = []
        let status = try reader.contents(of: name) { bytes = Array($0) }
        return (bytes, status)
    }

    /// Reads files of one directory one after the other: it is opened once, and all of them come through one buffer.
    ///
    /// A start reads thousands of small files; their paths and their memory would cost more than their bytes.
    struct Reader {
        let directory: Directory
        /// `nil` where there is no directory, and then no file.
        private let handle: DirectoryHandle?
        private var buffer: [UInt8] = []

        init(_ directory: Directory) throws(TextStoreError) {
            self.directory = directory
            do throws(StoreError) { handle = try DirectoryHandle(opening: directory) } catch { throw Self.failed(error) }
        }

        /// Reads a file.
        ///
        /// - Parameters:
        ///   - name: Its name.
        ///   - body: Takes from what was written what is wanted; the bytes are gone afterwards.
        /// - Returns: What the body made of it; `nil` where there is no such file.
        /// - Throws: ``TextStoreError/Code/damagedFile`` or ``TextStoreError/Code/fileSystem``.
        mutating func read<Value>(_ name: String, _ body: (UnsafeRawBufferPointer) -> Value) throws(TextStoreError) -> Value? {
            var payload: Result<Value, TextStoreError>?
            let status = try contents(of: name) { [directory] bytes in
                func damaged(_ reason: String) -> Result<Value, TextStoreError> {
                    .failure(TextStoreError(.damagedFile, "reading \(directory.path(of: name)): \(reason); it is not used"))
                }
                guard bytes.count >= headSize, bytes.starts(with: magic) else {
                    return payload = damaged("it does not begin as a file of a session")
                }
                let content = UnsafeRawBufferPointer(rebasing: bytes[headSize...])
                let sealed = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: magic.count, as: UInt64.self))
                payload = Checksum64.of(content) == sealed ? .success(body(content)) : damaged("its checksum is wrong")
            }
            return status == nil ? nil : try payload?.get()
        }

        /// Hands on the bytes of a file as they are.
        ///
        /// - Returns: What the system knows of the file; `nil` where there is none, and then nothing is handed on.
        mutating func contents(of name: String, _ body: (UnsafeRawBufferPointer) -> Void) throws(TextStoreError) -> FileStatus? {
            do throws(StoreError) {
                guard let handle, let file = try OpenFile(reading: name, in: handle) else { return nil }
                let status = try file.status()
                // Read as a damaged file: whoever put a directory or a pipe there did not write one of ours.
                let size = status.kind == .regular ? status.size : 0
                if buffer.count < size { buffer = [UInt8](repeating: 0, count: max(size, 1 << 14)) }
                var failure: StoreError?
                buffer.withUnsafeMutableBytes { buffer in
                    do throws(StoreError) {
                        let count = try file.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<size]))
                        body(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
                    } catch {
                        failure = error
                    }
                }
                if let failure { throw failure }
                return status
            } catch {
                throw Self.failed(error)
            }
        }

        private static func failed(_ error: StoreError) -> TextStoreError {
            TextStoreError(.fileSystem, "reading a file of the session: \(error.message)", underlyingError: error)
        }
    }
}
