internal import StoreCore

/// The SHA-256 hash function of FIPS 180-4, for names and digests of whole files.
///
/// Add any number of pieces, then get the digest. On platforms with CryptoKit, that library uses the processor's own instructions.
/// Elsewhere the implementation is plain Swift, at about 450 MB/s in a release build. On Linux, OpenSSL's libcrypto hashes messages of more
/// than 1 KB where the process has loaded it, and the rest of a message of more than 8 MB where it is installed.
package struct SHA256: Sendable {
    private var core = SHA256Core()

    package init() {}

    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        core.update(bytes)
    }

    package mutating func update(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { update($0) }
    }

    /// Adds the bytes of a file as the next piece of the message.
    ///
    /// - Parameters:
    ///   - start: The offset of the first byte.
    ///   - end: The offset behind the last byte; the piece ends earlier if the file does.
    ///   - read: Reads from an offset until the buffer is full or the file ends, and returns the number of bytes.
    /// - Returns: The number of bytes added.
    /// - Throws: The error of the closure; the hash is then that of an unknown number of bytes.
    package mutating func update<Failure: Error>(
        from start: Int, to end: Int, _ read: (_ buffer: UnsafeMutableRawBufferPointer, _ offset: Int) throws(Failure) -> Int
    ) throws(Failure) -> Int {
        var buffer = [UInt8](repeating: 0, count: min(max(end - start, 1), 1 << 18))
        var offset = start
        while offset < end {
            let size = min(buffer.count, end - offset)
            let count = try buffer.withUnsafeMutableBufferPointer { buffer throws(Failure) -> Int in
                try read(UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[..<size]), offset)
            }
            if count == 0 { break }
            buffer.withUnsafeBytes { update(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
            offset += count
        }
        return offset - start
    }

    /// Returns the digest of all bytes added so far; more can be added afterward.
    package func digest() -> Digest {
        var end = core
        return end.finish()
    }

    package static func digest(of bytes: UnsafeRawBufferPointer) -> Digest {
        SHA256Core.digest(of: bytes)
    }

    package static func digest(of bytes: [UInt8]) -> Digest {
        bytes.withUnsafeBytes { digest(of: $0) }
    }
}

extension SHA256 {
    /// The 256 bits of a digest, held inline instead of in an array.
    package struct Digest: Hashable, Sendable, CustomStringConvertible {
        /// The digest as four numbers, most significant first.
        private let words: (UInt64, UInt64, UInt64, UInt64)

        package init(_ first: UInt64, _ second: UInt64, _ third: UInt64, _ fourth: UInt64) {
            words = (first, second, third, fourth)
        }

        /// Creates a digest from 32 bytes, the most significant first.
        package init(bigEndianBytes bytes: UnsafeRawBufferPointer) {
            func word(_ index: Int) -> UInt64 { UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: index * 8, as: UInt64.self)) }
            self.init(word(0), word(1), word(2), word(3))
        }

        /// Reads 64 lower-case hexadecimal digits; `nil` for anything else.
        package init?(hex: some Collection<UInt8>) {
            // Contiguous, because a generic loop is not specialized for callers in other modules and is ten times slower.
            let words =
                if let words = hex.withContiguousStorageIfAvailable(Self.words(hex:)) { words } else {
                    Array(hex).withUnsafeBufferPointer(Self.words(hex:))
                }
            guard let words else { return nil }
            self.words = words
        }

        private static func words(hex: UnsafeBufferPointer<UInt8>) -> (UInt64, UInt64, UInt64, UInt64)? {
            guard hex.count == 64 else { return nil }
            guard let first = UInt64(hexadecimal: hex[0..<16]), let second = UInt64(hexadecimal: hex[16..<32]),
                let third = UInt64(hexadecimal: hex[32..<48]), let fourth = UInt64(hexadecimal: hex[48..<64])
            else { return nil }
            return (first, second, third, fourth)
        }

        /// The digest as 32 bytes, the most significant first.
        package var bytes: [UInt8] {
            [words.0, words.1, words.2, words.3].flatMap { word in (0..<8).map { UInt8(truncatingIfNeeded: word >> (56 - 8 * $0)) } }
        }

        /// The digest as 64 lower-case hexadecimal digits.
        package var hex: String {
            String(unsafeUninitializedCapacity: 64) { digits in
                write(hex: digits)
                return 64
            }
        }

        /// Writes the digest as 64 lower-case hexadecimal digits to a buffer.
        package func write(hex digits: UnsafeMutableBufferPointer<UInt8>) {
            words.0.write(hexadecimal: digits, at: 0)
            words.1.write(hexadecimal: digits, at: 16)
            words.2.write(hexadecimal: digits, at: 32)
            words.3.write(hexadecimal: digits, at: 48)
        }

        package var description: String { hex }

        package static func == (lhs: Digest, rhs: Digest) -> Bool { lhs.words == rhs.words }

        package func hash(into hasher: inout Hasher) {
            // Any part of a digest is as random as the whole.
            hasher.combine(words.0)
            hasher.combine(words.1)
        }
    }
}
