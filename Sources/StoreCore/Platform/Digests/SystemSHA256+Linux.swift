#if !canImport(Darwin)
/// The compression function of OpenSSL's libcrypto, which uses the processor's own instructions.
///
/// Loading the library costs time and memory, so only long messages use it, unless other code of the process has loaded it already.
enum SystemSHA256 {
    /// The length in bytes from which a message uses the library.
    static let worthwhileLength: UInt64 = isLoaded ? 1024 : 8 << 20

    private static let names = ["libcrypto.so.3", "libcrypto.so.1.1"]

    private static var isLoaded: Bool { names.contains { dlopen($0, RTLD_LAZY | RTLD_NOLOAD) != nil } }

    /// The beginning of `SHA256_CTX`: eight words of state, the length in bits as two words, then an incomplete block and its length.
    private static let contextSize = 112

    private typealias Update = @convention(c) @Sendable (UnsafeMutableRawPointer, UnsafeRawPointer, Int) -> Int32

    /// `SHA256_Update`; `nil` where the library is missing, and in programs without dynamic symbols.
    private static let update: Update? = names.lazy.compactMap { systemFunction("SHA256_Update", in: $0) }.first

    /// Compresses whole blocks of 64 bytes into the eight words of the hash value; returns `false`, and leaves them, without the library.
    static func compress(_ state: UnsafeMutableRawBufferPointer, blocks: UnsafeRawBufferPointer) -> Bool {
        guard let update, let base = blocks.baseAddress, state.count == 32, blocks.count.isMultiple(of: 64) else { return false }
        return withUnsafeTemporaryAllocation(byteCount: contextSize, alignment: 8) { context in
            guard let start = context.baseAddress else { return false }
            context.initializeMemory(as: UInt8.self, repeating: 0)
            context.copyMemory(from: UnsafeRawBufferPointer(state))
            guard update(start, base, blocks.count) == 1 else { return false }
            state.copyMemory(from: UnsafeRawBufferPointer(rebasing: context[..<32]))
            return true
        }
    }
}
#endif
