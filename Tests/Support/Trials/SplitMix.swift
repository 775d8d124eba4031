/// A reproducible random number generator (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators).
public struct SplitMix: RandomNumberGenerator, Sendable {
    private var state: UInt64

    /// Makes a generator.
    public init(seed: some BinaryInteger) { state = UInt64(truncatingIfNeeded: seed) }

    /// Returns the next 64 bits.
    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// Returns a number from zero to just below a bound.
    public mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }
}

/// Returns bytes that follow from a seed: a block of a prime length, again and again, because a test makes many of them.
public func pseudorandomBytes(_ count: Int, seed: Int) -> [UInt8] {
    var chance = SplitMix(seed: seed)
    let block = (0..<1_009).map { _ in UInt8(truncatingIfNeeded: chance.next()) }
    var bytes: [UInt8] = []
    while bytes.count < count { bytes += block }
    bytes.removeLast(bytes.count - count)
    return bytes
}
