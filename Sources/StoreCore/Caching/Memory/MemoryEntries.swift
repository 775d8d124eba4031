/// One key of a memory table.
@usableFromInline
struct MemoryEntry<Param: Hashable & Sendable, Content: Sendable>: Sendable {
    @usableFromInline let key: Param
    @usableFromInline var record: CacheRecord<Content>
    /// Until when the content is valid, in nanoseconds of the store's monotonic clock: `.max` is for ever and needs no look at the clock,
    /// `.min` is for the engine alone to judge.
    @usableFromInline var deadline: Int64
    @usableFromInline var cost: Int
    /// Neighbours in the order of last use, as positions in the table's entries; -1 at the ends.
    @usableFromInline var newer: Int32
    @usableFromInline var older: Int32
    /// The part of the key's hash that places it in the index.
    @usableFromInline let hash: UInt32

    @inlinable
    init(key: Param, hash: UInt32, record: CacheRecord<Content>, deadline: Int64, cost: Int) {
        self.key = key
        self.hash = hash
        self.record = record
        self.deadline = deadline
        self.cost = cost
        newer = -1
        older = -1
    }
}

/// The entries of a memory table: a dense array with the order of last use threaded through it, and an index by hash.
///
/// Not `Dictionary` beside a list, for two reasons that were measured: one look-up touches two cache lines in place of three, and an
/// entry costs 8 bytes of index at a load of at most three quarters, in place of key, position and bit map. All operations are O(1).
@usableFromInline
struct MemoryEntries<Param: Hashable & Sendable, Content: Sendable>: Sendable {
    @usableFromInline var entries: ContiguousArray<MemoryEntry<Param, Content>> = []
    /// Open addressing with linear probing: the upper half is the hash, the lower half the entry's position plus one; 0 is empty.
    @usableFromInline var index: ContiguousArray<UInt64> = []
    @usableFromInline var newest: Int32 = -1
    @usableFromInline var oldest: Int32 = -1
    @usableFromInline var totalCost = 0

    @usableFromInline
    init() {}

    @inlinable var count: Int { entries.count }

    // MARK: Looking up

    @inlinable
    static func hash(_ key: Param) -> UInt32 { UInt32(truncatingIfNeeded: key.hashValue) }

    /// The position of a key's entry, or -1.
    @inlinable
    func position(of key: Param) -> Int {
        let mask = index.count &- 1
        guard mask >= 0 else { return -1 }
        let hash = Self.hash(key)
        var bucket = Int(hash) & mask
        while true {
            let word = index[bucket]
            if word == 0 { return -1 }
            if UInt32(truncatingIfNeeded: word >> 32) == hash {
                let position = Int(word & 0xFFFF_FFFF) &- 1
                if entries[position].key == key { return position }
            }
            bucket = (bucket &+ 1) & mask
        }
    }

    /// Makes an entry the one used last.
    @inlinable
    mutating func touch(_ position: Int) {
        let here = Int32(truncatingIfNeeded: position)
        guard here != newest else { return }
        unlink(position)
        linkAsNewest(position)
    }

    @inlinable
    mutating func unlink(_ position: Int) {
        let newer = entries[position].newer
        let older = entries[position].older
        if newer >= 0 { entries[Int(newer)].older = older } else { newest = older }
        if older >= 0 { entries[Int(older)].newer = newer } else { oldest = newer }
    }

    @inlinable
    mutating func linkAsNewest(_ position: Int) {
        let here = Int32(truncatingIfNeeded: position)
        entries[position].newer = -1
        entries[position].older = newest
        if newest >= 0 { entries[Int(newest)].newer = here } else { oldest = here }
        newest = here
    }

    // MARK: Changing

    /// Puts an entry in, in place of the key's older one, which is returned so that it can be released outside the lock.
    @inlinable
    mutating func put(_ key: Param, _ record: CacheRecord<Content>, deadline: Int64, cost: Int) -> CacheRecord<Content>? {
        let found = position(of: key)
        if found >= 0 {
            let replaced = entries[found].record
            totalCost += cost - entries[found].cost
            entries[found].record = record
            entries[found].deadline = deadline
            entries[found].cost = cost
            touch(found)
            return replaced
        }
        growIndexIfNeeded()
        // Arrays double; with entries of this size that would leave a third of the memory unused on average.
        if entries.count == entries.capacity { entries.reserveCapacity(max(16, entries.count + entries.count / 4)) }
        let entry = MemoryEntry(key: key, hash: Self.hash(key), record: record, deadline: deadline, cost: cost)
        entries.append(entry)
        totalCost += cost
        place(hash: entry.hash, position: entries.count - 1)
        linkAsNewest(entries.count - 1)
        return nil
    }

    /// Takes a key's entry out; the last entry of the array moves into its place.
    @inlinable
    mutating func remove(at position: Int) -> MemoryEntry<Param, Content> {
        unlink(position)
        totalCost -= entries[position].cost
        vacate(bucket(of: position))
        let last = entries.count - 1
        if position != last {
            index[bucket(of: last)] = UInt64(entries[last].hash) << 32 | UInt64(position + 1)
            let (newer, older) = (entries[last].newer, entries[last].older)
            if newer >= 0 { entries[Int(newer)].older = Int32(position) } else { newest = Int32(position) }
            if older >= 0 { entries[Int(older)].newer = Int32(position) } else { oldest = Int32(position) }
            entries.swapAt(position, last)
        }
        return entries.removeLast()
    }

    /// Takes out the entries used longest ago until at most `count` are left and they cost at most `cost`.
    @inlinable
    mutating func trim(count limit: Int, cost: Int) -> [MemoryEntry<Param, Content>] {
        var removed: [MemoryEntry<Param, Content>] = []
        while oldest >= 0, count > limit || totalCost > cost {
            removed.append(remove(at: Int(oldest)))
        }
        return removed
    }

    // MARK: The index

    @inlinable
    func bucket(of position: Int) -> Int {
        let mask = index.count - 1
        var bucket = Int(entries[position].hash) & mask
        while index[bucket] & 0xFFFF_FFFF != UInt64(position + 1) { bucket = (bucket + 1) & mask }
        return bucket
    }

    @inlinable
    mutating func place(hash: UInt32, position: Int) {
        let mask = index.count - 1
        var bucket = Int(hash) & mask
        while index[bucket] != 0 { bucket = (bucket + 1) & mask }
        index[bucket] = UInt64(hash) << 32 | UInt64(position + 1)
    }

    /// Empties a bucket and closes the gap, so that no look-up ever has to step over a grave (Knuth, TAOCP 3, 6.4 R).
    @inlinable
    mutating func vacate(_ bucket: Int) {
        let mask = index.count - 1
        var gap = bucket
        var next = (bucket + 1) & mask
        while index[next] != 0 {
            let home = Int(index[next] >> 32) & mask
            if (next - home) & mask >= (next - gap) & mask {
                index[gap] = index[next]
                gap = next
            }
            next = (next + 1) & mask
        }
        index[gap] = 0
    }

    @inlinable
    mutating func growIndexIfNeeded() {
        guard (entries.count + 1) * 4 > index.count * 3 else { return }
        index = ContiguousArray(repeating: 0, count: max(16, index.count * 2))
        for position in entries.indices { place(hash: entries[position].hash, position: position) }
    }
}
