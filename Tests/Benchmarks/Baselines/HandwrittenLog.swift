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

/// A handwritten log: each entry is a length, a checksum and the bytes, appended under the lock of another file.
///
/// It does not notice a log that was replaced, and does not cut the rest of an interrupted append.
final class HandwrittenLog: Sendable {
    private let file: Int32
    private let lock: Int32

    init(_ directory: String) throws {
        file = open(directory + "/log", O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, mode_t(0o600))
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
        guard flock(lock, LOCK_EX) == 0 else { throw CallFailed("flock") }
        defer { flock(lock, LOCK_UN) }
        guard write(file, entry, entry.count) == entry.count else { throw CallFailed("write") }
    }

    /// Reads the whole log, and calls a closure for each intact record.
    static func read(_ path: String, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        try loadByHand(path).withUnsafeBytes { bytes in
            var at = 0
            while at + 16 <= bytes.count {
                let count = Int(littleEndian: bytes.loadUnaligned(fromByteOffset: at, as: Int.self))
                let sum = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: at + 8, as: UInt64.self))
                guard count >= 0, count <= bytes.count - at - 16 else { return }
                let record = UnsafeRawBufferPointer(rebasing: bytes[at + 16..<at + 16 + count])
                guard Checksum64.of(record) == sum else { return }
                try body(record)
                at += 16 + count
            }
        }
    }
}
