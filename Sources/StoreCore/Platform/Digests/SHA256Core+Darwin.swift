#if canImport(Darwin)
internal import CryptoKit

/// SHA-256 by CryptoKit, which uses the processor's own instructions.
struct SHA256Core: Sendable {
    private var hash = CryptoKit.SHA256()

    mutating func update(_ bytes: UnsafeRawBufferPointer) { hash.update(bufferPointer: bytes) }

    /// Returns the digest of all bytes so far.
    mutating func finish() -> SHA256.Digest {
        hash.finalize().withUnsafeBytes { SHA256.Digest(bigEndianBytes: $0) }
    }

    static func digest(of bytes: UnsafeRawBufferPointer) -> SHA256.Digest {
        var core = SHA256Core()
        core.update(bytes)
        return core.finish()
    }
}
#endif
