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
