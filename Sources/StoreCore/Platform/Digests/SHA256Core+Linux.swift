#if !canImport(Darwin)

/// SHA-256 in plain Swift for platforms without CryptoKit (FIPS 180-4 §6.2).
struct SHA256Core: Sendable {
    /// The hash value so far (§5.3.3).
    private var state = State()
    /// The bytes of an incomplete block.
    private var pending: [UInt8] = []
    /// The message's length so far, in bytes.
    private var length: UInt64 = 0

    private struct State: Sendable {
        var a: UInt32 = 0x6a09_e667
        var b: UInt32 = 0xbb67_ae85
        var c: UInt32 = 0x3c6e_f372
        var d: UInt32 = 0xa54f_f53a
        var e: UInt32 = 0x510e_527f
        var f: UInt32 = 0x9b05_688c
        var g: UInt32 = 0x1f83_d9ab
        var h: UInt32 = 0x5be0_cd19
    }

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        length &+= UInt64(bytes.count)
        var rest = bytes[...]
        if !pending.isEmpty {
            let head = rest.prefix(64 - pending.count)
            pending.append(contentsOf: head)
            rest = rest.dropFirst(head.count)
            guard pending.count == 64 else { return }
            pending.withUnsafeBytes { SHA256Core.compress(&state, blocks: $0) }
            pending.removeAll(keepingCapacity: true)
        }
        let whole = rest.count & ~63
        SHA256Core.compress(&state, blocks: UnsafeRawBufferPointer(rebasing: rest.prefix(whole)), of: length)
        pending.append(contentsOf: rest.dropFirst(whole))
    }

    /// Pads the message (§5.1.1) and returns its digest.
    mutating func finish() -> SHA256.Digest {
        let pending = pending
        return pending.withUnsafeBytes { finish(pending: $0) }
    }

    /// The digest of a message that is there as a whole, without copying it.
    static func digest(of bytes: UnsafeRawBufferPointer) -> SHA256.Digest {
        var core = SHA256Core()
        core.length = UInt64(bytes.count)
        let whole = bytes.count & ~63
        compress(&core.state, blocks: UnsafeRawBufferPointer(rebasing: bytes[..<whole]), of: core.length)
        return core.finish(pending: UnsafeRawBufferPointer(rebasing: bytes[whole...]))
    }

    private mutating func finish(pending: UnsafeRawBufferPointer) -> SHA256.Digest {
        let bits = length &<< 3
        withUnsafeTemporaryAllocation(byteCount: 128, alignment: 8) { tail in
            let size = pending.count < 56 ? 64 : 128
            let blocks = UnsafeMutableRawBufferPointer(rebasing: tail[..<size])
            blocks.initializeMemory(as: UInt8.self, repeating: 0)
            blocks.copyMemory(from: pending)
            blocks[pending.count] = 0x80
            blocks.storeBytes(of: bits.bigEndian, toByteOffset: size - 8, as: UInt64.self)
            SHA256Core.compress(&state, blocks: UnsafeRawBufferPointer(blocks))
        }
        func pair(_ high: UInt32, _ low: UInt32) -> UInt64 { UInt64(high) << 32 | UInt64(low) }
        return SHA256.Digest(pair(state.a, state.b), pair(state.c, state.d), pair(state.e, state.f), pair(state.g, state.h))
    }

    /// Compresses whole blocks of a message; the system's library does so for long messages. `length` is the message's length so far.
    private static func compress(_ state: inout State, blocks: UnsafeRawBufferPointer, of length: UInt64) {
        if length >= SystemSHA256.worthwhileLength, blocks.count >= 1024,
            withUnsafeMutableBytes(of: &state, { SystemSHA256.compress($0, blocks: blocks) })
        {
            return
        }
        compress(&state, blocks: blocks)
    }

    /// The compression function over any number of whole blocks (§6.2.2).
    private static func compress(_ state: inout State, blocks: UnsafeRawBufferPointer) {
        guard let base = blocks.baseAddress else { return }
        withUnsafeTemporaryAllocation(of: UInt32.self, capacity: 16) { schedule in
            guard let w = schedule.baseAddress else { return }
            constants.withUnsafeBufferPointer { table in
                guard let k = table.baseAddress else { return }
                for start in stride(from: 0, to: blocks.count, by: 64) {
                    compress(&state, block: base + start, schedule: w, constants: k)
                }
            }
        }
    }

    @inline(__always)
    private static func compress(
        _ state: inout State, block: UnsafeRawPointer, schedule w: UnsafeMutablePointer<UInt32>, constants k: UnsafePointer<UInt32>
    ) {
        for t in 0..<16 { w[t] = UInt32(bigEndian: block.loadUnaligned(fromByteOffset: t &* 4, as: UInt32.self)) }
        var s = state
        // Sixteen rounds at a time, so that the working variables take turns instead of being moved, and the words of the schedule that the
        // next sixteen need replace the old ones: a fifth faster than a schedule of all 64 words.
        var t = 0
        while true {
            round(s.a, s.b, s.c, &s.d, s.e, s.f, s.g, &s.h, k[t] &+ w[0])
            round(s.h, s.a, s.b, &s.c, s.d, s.e, s.f, &s.g, k[t &+ 1] &+ w[1])
            round(s.g, s.h, s.a, &s.b, s.c, s.d, s.e, &s.f, k[t &+ 2] &+ w[2])
            round(s.f, s.g, s.h, &s.a, s.b, s.c, s.d, &s.e, k[t &+ 3] &+ w[3])
            round(s.e, s.f, s.g, &s.h, s.a, s.b, s.c, &s.d, k[t &+ 4] &+ w[4])
            round(s.d, s.e, s.f, &s.g, s.h, s.a, s.b, &s.c, k[t &+ 5] &+ w[5])
            round(s.c, s.d, s.e, &s.f, s.g, s.h, s.a, &s.b, k[t &+ 6] &+ w[6])
            round(s.b, s.c, s.d, &s.e, s.f, s.g, s.h, &s.a, k[t &+ 7] &+ w[7])
            round(s.a, s.b, s.c, &s.d, s.e, s.f, s.g, &s.h, k[t &+ 8] &+ w[8])
            round(s.h, s.a, s.b, &s.c, s.d, s.e, s.f, &s.g, k[t &+ 9] &+ w[9])
            round(s.g, s.h, s.a, &s.b, s.c, s.d, s.e, &s.f, k[t &+ 10] &+ w[10])
            round(s.f, s.g, s.h, &s.a, s.b, s.c, s.d, &s.e, k[t &+ 11] &+ w[11])
            round(s.e, s.f, s.g, &s.h, s.a, s.b, s.c, &s.d, k[t &+ 12] &+ w[12])
            round(s.d, s.e, s.f, &s.g, s.h, s.a, s.b, &s.c, k[t &+ 13] &+ w[13])
            round(s.c, s.d, s.e, &s.f, s.g, s.h, s.a, &s.b, k[t &+ 14] &+ w[14])
            round(s.b, s.c, s.d, &s.e, s.f, s.g, s.h, &s.a, k[t &+ 15] &+ w[15])
            t &+= 16
            if t == 64 { break }
            extend(&w[0], w[1], w[9], w[14])
            extend(&w[1], w[2], w[10], w[15])
            extend(&w[2], w[3], w[11], w[0])
            extend(&w[3], w[4], w[12], w[1])
            extend(&w[4], w[5], w[13], w[2])
            extend(&w[5], w[6], w[14], w[3])
            extend(&w[6], w[7], w[15], w[4])
            extend(&w[7], w[8], w[0], w[5])
            extend(&w[8], w[9], w[1], w[6])
            extend(&w[9], w[10], w[2], w[7])
            extend(&w[10], w[11], w[3], w[8])
            extend(&w[11], w[12], w[4], w[9])
            extend(&w[12], w[13], w[5], w[10])
            extend(&w[13], w[14], w[6], w[11])
            extend(&w[14], w[15], w[7], w[12])
            extend(&w[15], w[0], w[8], w[13])
        }
        state.a &+= s.a
        state.b &+= s.b
        state.c &+= s.c
        state.d &+= s.d
        state.e &+= s.e
        state.f &+= s.f
        state.g &+= s.g
        state.h &+= s.h
    }

    @inline(__always)
    private static func round(
        _ a: UInt32, _ b: UInt32, _ c: UInt32, _ d: inout UInt32, _ e: UInt32, _ f: UInt32, _ g: UInt32, _ h: inout UInt32, _ kw: UInt32
    ) {
        let big1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)
        let choice = g ^ (e & (f ^ g))
        let first = h &+ big1 &+ choice &+ kw
        let big0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)
        let majority = (a & b) | (c & (a | b))
        d &+= first
        h = first &+ big0 &+ majority
    }

    /// Replaces a word of the message schedule with the word sixteen positions later (§6.2.2, step 1).
    @inline(__always)
    private static func extend(_ w0: inout UInt32, _ w1: UInt32, _ w9: UInt32, _ w14: UInt32) {
        let small0 = rotate(w1, 7) ^ rotate(w1, 18) ^ (w1 &>> 3)
        let small1 = rotate(w14, 17) ^ rotate(w14, 19) ^ (w14 &>> 10)
        w0 = w0 &+ small0 &+ w9 &+ small1
    }

    @inline(__always)
    private static func rotate(_ x: UInt32, _ count: UInt32) -> UInt32 {
        (x &>> count) | (x &<< (32 &- count))
    }

    /// The round constants of FIPS 180-4 §4.2.2.
    private static let constants: [UInt32] = [
        0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1, 0x923f_82a4, 0xab1c_5ed5,
        0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3, 0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174,
        0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da,
        0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7, 0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967,
        0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13, 0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85,
        0xa2bf_e8a1, 0xa81a_664b, 0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070,
        0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3,
        0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208, 0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2,
    ]
}
#endif
