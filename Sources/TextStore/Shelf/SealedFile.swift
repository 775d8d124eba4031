import StoreCore
internal import StorePlatform

/// A whole file with a checksum in its head: a read returns the written bytes, or nothing.
enum SealedFile {
    /// The kind that distinguishes this module's temporary files from others.
    static let temporaryKind = "text"
    private static let magic = Array("SHtext01".utf8)
    private static let headSize = 16

    /// Writes a file atomically.
    ///
    /// - Throws: ``TextStoreError/Code/fileSystem``; the old file then remains.
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
            throw TextStoreError(.fileSystem, "cannot save a file of the session: \(error.message)", underlyingError: error)
        }
    }

    /// Reads a file.
    ///
    /// - Returns: The written bytes; `nil` if the file does not exist.
    /// - Throws: ``TextStoreError/Code/damagedFile`` or ``TextStoreError/Code/fileSystem``.
    static func read(_ name: String, in directory: Directory) throws(TextStoreError) -> [UInt8]? {
        var reader = try Reader(directory)
        return try reader.read(name) { Array($0) }
    }

    /// Returns the raw bytes of a file with its status, which is `nil` if the file does not exist.
    static func contents(of name: String, in directory: Directory) throws(TextStoreError) -> ([UInt8], FileStatus?) {
        var reader = try Reader(directory)
        var bytes: [UInt8] = []
        let status = try reader.contents(of: name) { bytes = Array($0) }
        return (bytes, status)
    }

    /// Returns the written bytes from the raw ones; `nil` if their checksum or head is wrong.
    private static func payload(of bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        guard bytes.count >= headSize, bytes.starts(with: magic) else { return nil }
        let payload = UnsafeRawBufferPointer(rebasing: bytes[headSize...])
        let sealed = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: magic.count, as: UInt64.self))
        return Checksum64.of(payload) == sealed ? payload : nil
    }

    /// Reads files of one directory in sequence with one directory handle and one buffer.
    ///
    /// A start reads thousands of small files, for which paths and allocations would cost more than the bytes.
    struct Reader {
        let directory: Directory
        /// The open directory; `nil` if it does not exist.
        private let handle: DirectoryHandle?
        private var buffer: [UInt8] = []

        init(_ directory: Directory) throws(TextStoreError) {
            self.directory = directory
            do throws(StoreError) { handle = try DirectoryHandle(opening: directory) } catch { throw Self.failed(error) }
        }

        /// Reads a file.
        ///
        /// - Parameters:
        ///   - name: The file's name.
        ///   - body: Converts the written bytes, which are valid during the call only.
        /// - Returns: The body's result; `nil` if the file does not exist.
        /// - Throws: ``TextStoreError/Code/damagedFile`` or ``TextStoreError/Code/fileSystem``.
        mutating func read<Value>(_ name: String, _ body: (UnsafeRawBufferPointer) -> Value) throws(TextStoreError) -> Value? {
            guard let file = try open(name) else { return nil }
            // One read suffices for most files. Larger, damaged, and special files take the slower path.
            if let value = readAtOnce(file, body) { return value }
            var value: Value?
            _ = try contents(of: file) { bytes in value = SealedFile.payload(of: bytes).map(body) }
            if let value { return value }
            throw TextStoreError(
                .damagedFile,
                "cannot use \(directory.path(of: name)): its head or checksum is wrong; the file is ignored")
        }

        /// Passes the raw bytes of a file to a closure.
        ///
        /// - Returns: The status of the file; `nil` if it does not exist, and then the closure is not called.
        mutating func contents(of name: String, _ body: (UnsafeRawBufferPointer) -> Void) throws(TextStoreError) -> FileStatus? {
            guard let file = try open(name) else { return nil }
            return try contents(of: file, body)
        }

        private func open(_ name: String) throws(TextStoreError) -> OpenFile? {
            guard let handle else { return nil }
            do throws(StoreError) { return try OpenFile(reading: name, in: handle) } catch {
                guard error.isOfSocket else { throw Self.failed(error) }
                throw TextStoreError(
                    .damagedFile, "cannot use \(directory.path(of: name)): a socket is in its place; the file is ignored",
                    underlyingError: error)
            }
        }

        private mutating func readAtOnce<Value>(_ file: borrowing OpenFile, _ body: (UnsafeRawBufferPointer) -> Value) -> Value? {
            if buffer.isEmpty { buffer = [UInt8](repeating: 0, count: 1 << 14) }
            return buffer.withUnsafeMutableBytes { buffer in
                // The slower path reports the error.
                guard let count = try? file.read(atOnceInto: buffer), count < buffer.count else { return nil }
                return SealedFile.payload(of: UnsafeRawBufferPointer(rebasing: buffer[..<count])).map(body)
            }
        }

        private mutating func contents(
            of file: borrowing OpenFile, _ body: (UnsafeRawBufferPointer) -> Void
        ) throws(TextStoreError) -> FileStatus {
            do throws(StoreError) {
                let status = try file.status()
                // A directory or a pipe in the file's place is treated as a damaged file.
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
            TextStoreError(.fileSystem, "cannot read a file of the session: \(error.message)", underlyingError: error)
        }
    }
}
