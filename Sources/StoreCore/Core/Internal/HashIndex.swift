/// The positions of an array's elements by their hashes: open addressing with linear probing.
///
/// The index holds neither elements nor keys, only 8 bytes for each element at a load of at most three quarters. A look-up touches two
/// cache lines where a dictionary touches three, and growing hashes nothing again. The owner compares elements with equal hashes. All
/// operations are O(1).
@usableFromInline
package struct HashIndex: Sendable {
    /// The upper half is the hash, the lower half the position plus one; 0 is empty.
    @usableFromInline var words: ContiguousArray<UInt64> = []
    @usableFromInline var count = 0

    @inlinable
    package init() {}

    @inlinable
    package static func hash(_ key: some Hashable) -> UInt32 { hash(ofValue: key.hashValue) }

    /// The part of a hash value that the index uses. The multiplication spreads values that differ only in a few bits (Knuth, TAOCP 3, 6.4).
    @inlinable
    static func hash(ofValue value: Int) -> UInt32 {
        UInt32(truncatingIfNeeded: (UInt64(truncatingIfNeeded: value) &* 0x9E37_79B9_7F4A_7C15) >> 32)
    }

    /// The first bucket of a hash. Higher hashes have higher buckets, so that growing reads and writes memory in order.
    @inlinable
    @inline(__always)
    static func home(_ hash: UInt32, among buckets: Int) -> Int {
        Int(truncatingIfNeeded: (UInt64(hash) &* UInt64(truncatingIfNeeded: buckets)) >> 32)
    }

    /// Returns the position of the element with this hash that the closure accepts; -1 without one.
    @inlinable
    @inline(__always)
    package func position(_ hash: UInt32, where isSame: (_ position: Int) -> Bool) -> Int {
        let mask = words.count &- 1
        guard mask >= 0 else { return -1 }
        var bucket = Self.home(hash, among: mask &+ 1)
        while true {
            let word = words[bucket]
            if word == 0 { return -1 }
            if UInt32(truncatingIfNeeded: word >> 32) == hash {
                let position = Int(word & 0xFFFF_FFFF) &- 1
                if isSame(position) { return position }
            }
            bucket = (bucket &+ 1) & mask
        }
    }

    @inlinable
    mutating func reserveCapacity(_ capacity: Int) {
        guard capacity * 4 > words.count * 3 else { return }
        var size = max(16, words.count * 2)
        while capacity * 4 > size * 3 { size *= 2 }
        var larger = ContiguousArray<UInt64>(repeating: 0, count: size)
        larger.withUnsafeMutableBufferPointer { larger in
            for word in words where word != 0 {
                var bucket = Self.home(UInt32(truncatingIfNeeded: word >> 32), among: size)
                while larger[bucket] != 0 { bucket = (bucket &+ 1) & (size &- 1) }
                larger[bucket] = word
            }
        }
        words = larger
    }

    /// Adds an element that is not in the index.
    @inlinable
    package mutating func insert(_ hash: UInt32, at position: Int) {
        reserveCapacity(count + 1)
        let mask = words.count &- 1
        var bucket = Self.home(hash, among: words.count)
        while words[bucket] != 0 { bucket = (bucket &+ 1) & mask }
        words[bucket] = Self.word(hash, position)
        count += 1
    }

    /// Adds consecutive elements, up to the first one that the index already has; returns their number. Neither closure may use this index.
    @inlinable
    mutating func insert(
        _ newCount: Int, from position: Int, hash: (_ offset: Int) -> UInt32, isSame: (_ offset: Int, _ position: Int) -> Bool
    ) -> Int {
        reserveCapacity(count + newCount)
        // The buffer pointer makes the array check its uniqueness once and not for each element. The first bucket of each element is read
        // before any is decided on, so that the processor loads several cache lines of the table at once.
        let inserted = withUnsafeTemporaryAllocation(of: (hash: UInt32, word: UInt64).self, capacity: newCount) { probes in
            words.withUnsafeMutableBufferPointer { words in
                let mask = words.count &- 1
                for offset in 0..<newCount {
                    let hash = hash(offset)
                    probes.initializeElement(at: offset, to: (hash, words[Self.home(hash, among: mask &+ 1)]))
                }
                for offset in 0..<newCount {
                    let hash = probes[offset].hash
                    var bucket = Self.home(hash, among: mask &+ 1)
                    // An element before this one may have taken a bucket that was empty.
                    var word = probes[offset].word == 0 ? words[bucket] : probes[offset].word
                    while word != 0 {
                        let isAlike = UInt32(truncatingIfNeeded: word >> 32) == hash
                        if isAlike, isSame(offset, Int(word & 0xFFFF_FFFF) &- 1) { return offset }
                        bucket = (bucket &+ 1) & mask
                        word = words[bucket]
                    }
                    words[bucket] = Self.word(hash, position + offset)
                }
                return newCount
            }
        }
        count += inserted
        return inserted
    }

    @inlinable
    mutating func move(_ hash: UInt32, from position: Int, to newPosition: Int) {
        words[bucket(hash, position)] = Self.word(hash, newPosition)
    }

    /// Removes an element and closes the gap, so that the table needs no marks for removed elements (Knuth, TAOCP 3, 6.4 R).
    @inlinable
    package mutating func remove(_ hash: UInt32, at position: Int) {
        let mask = words.count - 1
        var gap = bucket(hash, position)
        var next = (gap + 1) & mask
        while words[next] != 0 {
            let home = Self.home(UInt32(truncatingIfNeeded: words[next] >> 32), among: words.count)
            if (next - home) & mask >= (next - gap) & mask {
                words[gap] = words[next]
                gap = next
            }
            next = (next + 1) & mask
        }
        words[gap] = 0
        count -= 1
    }

    @inlinable
    static func word(_ hash: UInt32, _ position: Int) -> UInt64 { UInt64(hash) << 32 | UInt64(UInt32(position + 1)) }

    @inlinable
    func bucket(_ hash: UInt32, _ position: Int) -> Int {
        let mask = words.count &- 1
        let word = Self.word(hash, position)
        var bucket = Self.home(hash, among: words.count)
        while words[bucket] != word { bucket = (bucket &+ 1) & mask }
        return bucket
    }
}
