import Testing
@testable import StoreCore
@testable import StorePlatform

struct SHA256Tests {
    /// Examples of FIPS 180-4 (csrc.nist.gov, SHA256.pdf and the SHA-2 additional test vectors).
    @Test(arguments: [
        ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        ),
        (
            "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
            "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"
        ),
    ])
    func `a standard message has its standard digest`(message: String, digest: String) {
        #expect(SHA256.digest(of: Array(message.utf8)).hex == digest)
    }

    @Test func `a million letters have their standard digest, in pieces of any size`() {
        var hash = SHA256()
        var rest = 1_000_000
        var piece = 1
        while rest > 0 {
            let count = min(piece, rest)
            hash.update([UInt8](repeating: UInt8(ascii: "a"), count: count))
            rest -= count
            piece = (piece * 7 + 3) % 5000 + 1
        }
        #expect(hash.digest().hex == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0")
    }

    @Test func `a long message has the same digest in large pieces, which the system's library may hash, and in small ones`() {
        let block = (0..<1 << 16).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 8) }
        var (large, small) = (SHA256(), SHA256())
        for round in 0..<20 {
            // Not a multiple of the block's 64 bytes.
            let piece = Array(block.dropFirst(round))
            large.update(piece)
            for start in stride(from: 0, to: piece.count, by: 1_000) { small.update(Array(piece[start..<min(start + 1_000, piece.count)])) }
        }
        #expect(large.digest() == small.digest())
        let whole = [UInt8](repeating: UInt8(ascii: "a"), count: 16 << 20)
        #expect(SHA256.digest(of: whole).hex == "5b6ff2e19d0da0fe323061018fc381393492884e74af8296c81ab9cb2694783a")
    }

    @Test(arguments: [1024, 4096])
    func `messages around a length from which the system's library hashes them have the same digest in small pieces`(_ length: Int) {
        for length in length - 70...length + 140 {
            let message = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ length) }
            var small = SHA256()
            for start in stride(from: 0, to: length, by: 100) { small.update(Array(message[start..<min(start + 100, length)])) }
            #expect(SHA256.digest(of: message) == small.digest())
        }
    }

    @Test func `messages of every length around block boundaries have the digests of an independent implementation`() {
        var all = SHA256()
        for length in 0..<300 {
            let message = (0..<length).map { UInt8(truncatingIfNeeded: $0 * 31 + length) }
            all.update(SHA256.digest(of: message).bytes)
        }
        #expect(all.digest().hex == "148b894486945a24e834868db010090f61da189d018f0bf543b188081480175d")
    }

    @Test func `reading an intermediate digest does not change the final one`() {
        var hash = SHA256()
        hash.update(Array("ab".utf8))
        #expect(hash.digest() == SHA256.digest(of: Array("ab".utf8)))
        hash.update(Array("c".utf8))
        #expect(hash.digest() == SHA256.digest(of: Array("abc".utf8)))
    }

    @Test func `only lowercase hexadecimal digits of the right length are read as a digest`() {
        let digest = SHA256.digest(of: [])
        #expect(SHA256.Digest(hex: Array(digest.hex.utf8)) == digest)
        #expect(SHA256.Digest(hex: Array(digest.hex.uppercased().utf8)) == nil)
        #expect(SHA256.Digest(hex: Array(digest.hex.dropLast().utf8)) == nil)
        #expect(SHA256.Digest(hex: Array((digest.hex.dropLast() + "g").utf8)) == nil)
    }

    @Test func `each byte at each position is accepted exactly if it is a hexadecimal digit`() {
        func number(_ digits: [UInt8]) -> UInt64? { digits.withUnsafeBufferPointer { UInt64(hexadecimal: $0[...]) } }
        for place in 0..<16 {
            for other in "0f9a".utf8 {
                for character in UInt8.min ... .max {
                    var digits = [UInt8](repeating: other, count: 16)
                    digits[place] = character
                    let text = String(decoding: digits, as: UTF8.self)
                    let isDigit = "0123456789abcdef".utf8.contains(character)
                    #expect(number(digits) == (isDigit ? UInt64(text, radix: 16) : nil), "\(digits)")
                }
            }
        }
        #expect(number(Array("0123456789abcdef".utf8)) == 0x0123_4567_89ab_cdef)
        #expect(number(Array("fedcba9876543210".utf8)) == 0xfedc_ba98_7654_3210)
        #expect(number(Array("0123456789abcde".utf8)) == nil)
    }
}

struct Checksum64Tests {
    /// Published values of XXH64 with seed zero.
    @Test(arguments: [
        ("", 0xef46_db37_51d8_e999 as UInt64),
        ("abc", 0x44bc_2cf5_ad77_0999),
        ("Nobody inspects the spammish repetition", 0xfbce_a83c_8a37_8bf1),
    ])
    func `a known message has its known checksum`(message: String, checksum: UInt64) {
        #expect(Array(message.utf8).withUnsafeBytes { Checksum64.of($0) } == checksum)
    }

    @Test func `messages of every length, each seeded by the previous checksum, match an independent implementation`() {
        var checksum: UInt64 = 0
        for length in 0..<200 {
            let message = (0..<length).map { UInt8(truncatingIfNeeded: $0 * 31 + length) }
            checksum = message.withUnsafeBytes { Checksum64.of($0, seed: checksum) }
        }
        #expect(checksum == 0x7df9_7051_14a9_3033)
    }
}
