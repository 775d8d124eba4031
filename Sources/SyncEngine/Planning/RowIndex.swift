/// An index of a table's rows by the hash of their keys: open addressing with linear probing, four bytes per slot.
///
/// The keys stay in the table, whereas a dictionary would store them again.
struct RowIndex: Sendable {
    /// The row plus one; 0 marks an empty slot.
    private var places: [UInt32] = []
    /// By row; compared before the keys, and needed to grow without reading the keys.
    private var hashes: [UInt32] = []
    private var count = 0

    /// Differs from process to process, so it is never written to disk.
    static func hash(_ key: some Hashable) -> UInt32 { UInt32(truncatingIfNeeded: key.hashValue) }

    /// Returns the row with a hash for which `isSame` returns `true`; `nil` if there is none.
    func position(_ hash: UInt32, where isSame: (_ row: Int) -> Bool) -> Int? {
        guard !places.isEmpty else { return nil }
        var place = Int(hash) & (places.count - 1)
        while places[place] != 0 {
            let row = Int(places[place]) - 1
            if hashes[row] == hash, isSame(row) { return row }
            place = (place + 1) & (places.count - 1)
        }
        return nil
    }

    /// Adds the row behind the last one.
    mutating func insert(_ hash: UInt32, at row: Int) {
        hashes.append(hash)
        count += 1
        if count * 4 > places.count * 3 {
            let all = places.filter { $0 != 0 }
            places = [UInt32](repeating: 0, count: max(16, places.count * 2))
            for word in all { put(word) }
        }
        put(UInt32(row + 1))
    }

    /// Removes a row and closes the gap, so that no lookup passes a removed row (Knuth, TAOCP 3, 6.4 R).
    mutating func remove(_ hash: UInt32, at row: Int) {
        let mask = places.count - 1
        var gap = Int(hash) & mask
        while places[gap] != UInt32(row + 1) { gap = (gap + 1) & mask }
        var next = (gap + 1) & mask
        while places[next] != 0 {
            let home = Int(hashes[Int(places[next]) - 1]) & mask
            if (next - home) & mask >= (next - gap) & mask {
                places[gap] = places[next]
                gap = next
            }
            next = (next + 1) & mask
        }
        places[gap] = 0
        count -= 1
    }

    private mutating func put(_ word: UInt32) {
        var place = Int(hashes[Int(word) - 1]) & (places.count - 1)
        while places[place] != 0 { place = (place + 1) & (places.count - 1) }
        places[place] = word
    }
}
