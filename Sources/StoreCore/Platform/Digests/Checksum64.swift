/// XXH64, a fast 64-bit checksum that detects accidental damage; it does not protect against forgery.
///
/// One damaged file in 2⁶⁴ passes. At a few GB/s the checksum costs little compared to reading a file.
///
/// Source: the xxHash specification 0.1.1, "XXH64 algorithm".
package enum Checksum64 {
    private static let prime1: UInt64 = 0x9E37_79B1_85EB_CA87
    private static let prime2: UInt64 = 0xC2B2_AE3D_27D4_EB4F
    private static let prime3: UInt64 = 0x1656_67B1_9E37_79F9
    private static let prime4: UInt64 = 0x85EB_CA77_C2B2_AE63
    private static let prime5: UInt64 = 0x27D4_EB2F_1656_67C5

    /// Returns the checksum of some bytes. With the checksum of earlier bytes as the seed, it chains the two.
    package static func of(_ bytes: UnsafeRawBufferPointer, seed: UInt64 = 0) -> UInt64 {
        var position = 0
        var sum: UInt64
        if bytes.count >= 32 {
            var lane1 = seed &+ prime1 &+ prime2
            var lane2 = seed &+ prime2
            var lane3 = seed
            var lane4 = seed &- prime1
            while position &+ 32 <= bytes.count {
                lane1 = round(lane1, word(bytes, position))
                lane2 = round(lane2, word(bytes, position &+ 8))
                lane3 = round(lane3, word(bytes, position &+ 16))
                lane4 = round(lane4, word(bytes, position &+ 24))
                position &+= 32
            }
            sum = rotate(lane1, 1) &+ rotate(lane2, 7) &+ rotate(lane3, 12) &+ rotate(lane4, 18)
            sum = merge(merge(merge(merge(sum, lane1), lane2), lane3), lane4)
        } else {
            sum = seed &+ prime5
        }
        sum &+= UInt64(bytes.count)
        while position &+ 8 <= bytes.count {
            sum = rotate(sum ^ round(0, word(bytes, position)), 27) &* prime1 &+ prime4
            position &+= 8
        }
        if position &+ 4 <= bytes.count {
            let half = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: position, as: UInt32.self))
            sum = rotate(sum ^ (UInt64(half) &* prime1), 23) &* prime2 &+ prime3
            position &+= 4
        }
        while position < bytes.count {
            sum = rotate(sum ^ (UInt64(bytes[position]) &* prime5), 11) &* prime1
            position &+= 1
        }
        sum = (sum ^ (sum >> 33)) &* prime2
        sum = (sum ^ (sum >> 29)) &* prime3
        return sum ^ (sum >> 32)
    }

    @inline(__always)
    private static func round(_ lane: UInt64, _ input: UInt64) -> UInt64 {
        rotate(lane &+ input &* prime2, 31) &* prime1
    }

    @inline(__always)
    private static func merge(_ sum: UInt64, _ lane: UInt64) -> UInt64 {
        (sum ^ round(0, lane)) &* prime1 &+ prime4
    }

    @inline(__always)
    private static func word(_ bytes: UnsafeRawBufferPointer, _ position: Int) -> UInt64 {
        UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: position, as: UInt64.self))
    }

    @inline(__always)
    private static func rotate(_ x: UInt64, _ count: UInt64) -> UInt64 {
        (x &<< count) | (x &>> (64 &- count))
    }
}
