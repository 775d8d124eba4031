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

    /// What was written, of all bytes of a file; `nil` where they are others.
    private static func payload(of bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        guard bytes.count >= headSize, bytes.starts(with: magic) else { return nil }
        let payload = UnsafeRawBufferPointer(rebasing: bytes[headSize...])
        let sealed = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: magic.count, as: UInt64.self))
        return Checksum64.of(payload) == sealed ? payload : nil
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
            guard let file = try open(name) else { return nil }
            // Most files come whole at once; what is longer, damaged or no file at all is looked at more closely.
            if let value = readAtOnce(file, body) { return value }
            var value: Value?
            _ = try contents(of: file) { bytes in value = SealedFile.payload(of: bytes).map(body) }
            if let value { return value }
            throw TextStoreError(
                .damagedFile,
                "reading \(directory.path(of: name)): it does not begin as a file of a session, or its checksum is wrong; it is not used")
        }

        /// Hands on the bytes of a file as they are.
        ///
        /// - Returns: What the system knows of the file; `nil` where there is none, and then nothing is handed on.
        mutating func contents(of name: String, _ body: (UnsafeRawBufferPointer) -> Void) throws(TextStoreError) -> FileStatus? {
            guard let file = try open(name) else { return nil }
            return try contents(of: file, body)
        }

        private func open(_ name: String) throws(TextStoreError) -> OpenFile? {
            guard let handle else { return nil }
            do throws(StoreError) { return try OpenFile(reading: name, in: handle) } catch { throw Self.failed(error) }
        }

        private mutating func readAtOnce<Value>(_ file: borrowing OpenFile, _ body: (UnsafeRawBufferPointer) -> Value) -> Value? {
            if buffer.isEmpty { buffer = [UInt8](repeating: 0, count: 1 << 14) }
            return buffer.withUnsafeMutableBytes { buffer in
                // What keeps it from being read is told by who looks more closely.
                guard let count = try? file.read(atOnceInto: buffer), count < buffer.count else { return nil }
                return SealedFile.payload(of: UnsafeRawBufferPointer(rebasing: buffer[..<count])).map(body)
            }
        }

        private mutating func contents(
            of file: borrowing OpenFile, _ body: (UnsafeRawBufferPointer) -> Void
        ) throws(TextStoreError) -> FileStatus {
            do throws(StoreError) {
                let status = try file.status()
                // Read as a damaged file: whoever put a directory or a pipe there did not write one of ours.
                let size = status.kind == .regular ? status.size : 0
                if buffer.count < size { buffer = [UInt8](repeating: 0, count: max(size, 1 << 14)) }
                try buffer.withUnsafeMutableBufferPointer { buffer throws(StoreError) in
                    let buffer = UnsafeMutableRawBufferPointer(buffer)
                    let count = try file.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<size]))
                    body(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
                }
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
