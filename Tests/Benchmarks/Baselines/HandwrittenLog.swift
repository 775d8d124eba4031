#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#if canImport(SwiftOverlayShims)
internal import SwiftOverlayShims
#endif
#elseif canImport(Musl)
internal import Musl
#endif
internal import StoreCore
import StorePlatform
internal import Synchronization

/// A handwritten log: each entry is a length, a checksum and the bytes, appended under the lock of another file.
///
/// Under the lock, it reads the entries of other processes, and cuts the rest of an interrupted append. It does not notice a log that was
/// replaced.
final class HandwrittenLog: Sendable {
    private let file: Int32
    private let lock: Int32
    /// The offset behind the last entry that was read or written. Its lock keeps the threads of this process apart.
    private let end = Mutex(0)

    init(_ directory: String) throws {
        file = open(directory + "/log", O_RDWR | O_CREAT | O_CLOEXEC, mode_t(0o600))
        lock = open(directory + "/lock", O_RDWR | O_CREAT | O_CLOEXEC, mode_t(0o600))
        guard file >= 0, lock >= 0 else { throw CallFailed("open") }
    }

    deinit {
        close(file)
        close(lock)
    }

    func append(_ record: UnsafeRawBufferPointer) throws {
        var entry: [UInt8] = []
        entry.reserveCapacity(16 + record.count)
        withUnsafeBytes(of: record.count.littleEndian) { entry.append(contentsOf: $0) }
        withUnsafeBytes(of: Checksum64.of(record).littleEndian) { entry.append(contentsOf: $0) }
        entry.append(contentsOf: record)
        try end.withLock { end in
            guard flock(lock, LOCK_EX) == 0 else { throw CallFailed("flock") }
            defer { flock(lock, LOCK_UN) }
            var status = stat()
            guard fstat(file, &status) == 0 else { throw CallFailed("fstat") }
            if Int(status.st_size) != end { end = try catchUp(from: end, to: Int(status.st_size)) }
            guard pwrite(file, entry, entry.count, off_t(end)) == entry.count else { throw CallFailed("pwrite") }
            end += entry.count
        }
    }

    /// Reads the entries of other processes, and cuts the rest of an interrupted append.
    private func catchUp(from end: Int, to size: Int) throws -> Int {
        var bytes = [UInt8](repeating: 0, count: max(0, size - end))
        guard pread(file, &bytes, bytes.count, off_t(end)) == bytes.count else { throw CallFailed("pread") }
        let end = end + bytes.withUnsafeBytes { Self.entries($0) { _ in } }
        guard ftruncate(file, off_t(end)) == 0 else { throw CallFailed("ftruncate") }
        return end
    }

    /// Reads the whole log, and calls a closure for each intact record.
    static func read(_ path: String, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        try loadByHand(path).withUnsafeBytes { _ = try entries($0, body) }
    }

    /// Calls a closure for each intact record, and returns the offset behind the last one.
    private static func entries(_ bytes: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) throws -> Void) rethrows -> Int {
        var at = 0
        while at + 16 <= bytes.count {
            let count = Int(littleEndian: bytes.loadUnaligned(fromByteOffset: at, as: Int.self))
            let sum = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: at + 8, as: UInt64.self))
            guard count >= 0, count <= bytes.count - at - 16 else { break }
            let record = UnsafeRawBufferPointer(rebasing: bytes[at + 16..<at + 16 + count])
            guard Checksum64.of(record) == sum else { break }
            try body(record)
            at += 16 + count
        }
        return at
    }
}
