@usableFromInline
struct MemoryEntry<Param: Hashable & Sendable, Content: Sendable>: Sendable {
    @usableFromInline let key: Param
    @usableFromInline var record: CacheRecord<Content>
    /// The end of the content's validity, in nanoseconds of the store's monotonic clock. `.max` means forever and needs no clock reading;
    /// `.min` leaves the decision to the engine.
    @usableFromInline var deadline: Int64
    @usableFromInline var cost: Int
    /// Neighbors in the order of last use, as positions in the table's entries; -1 at the ends.
    @usableFromInline var newer: Int32
    @usableFromInline var older: Int32
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

/// The entries of a memory table: a dense array, linked in the order of last use, and an index by hash.
///
/// Measured against a `Dictionary` with a list: a look-up touches fewer cache lines, and an entry costs 8 bytes of index instead of key,
/// position and bit map. All operations are O(1).
@usableFromInline
struct MemoryEntries<Param: Hashable & Sendable, Content: Sendable>: Sendable {
    @usableFromInline var entries: ContiguousArray<MemoryEntry<Param, Content>> = []
    @usableFromInline var index = HashIndex()
    @usableFromInline var newest: Int32 = -1
    @usableFromInline var oldest: Int32 = -1
    /// The sum of all costs. It cannot overflow: `UInt128` holds 2³¹ entries of the largest cost.
    @usableFromInline var totalCost: UInt128 = 0

    @usableFromInline
    init() {}

    @inlinable var count: Int { entries.count }

    // MARK: Look-up

    /// Returns the position of a key's entry, or -1.
    @inlinable
    func position(of key: Param) -> Int {
        index.position(HashIndex.hash(key)) { entries[$0].key == key }
    }

    /// Marks an entry as the most recently used.
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

    // MARK: Changes

    /// Adds or replaces an entry; returns the replaced content, so that it can be released outside the lock.
    @inlinable
    mutating func put(
        _ key: Param, hash: UInt32, _ record: CacheRecord<Content>, deadline: Int64, cost: Int
    ) -> Content? {
        let found = index.position(hash) { entries[$0].key == key }
        if found >= 0 {
            var replaced = record
            swap(&entries[found].record, &replaced)
            totalCost = totalCost - UInt128(entries[found].cost) + UInt128(cost)
            entries[found].deadline = deadline
            entries[found].cost = cost
            touch(found)
            return replaced.content
        }
        // Arrays double their capacity, which would leave a third of the memory unused on average for entries of this size.
        if entries.count == entries.capacity { entries.reserveCapacity(max(16, entries.count + entries.count / 4)) }
        let entry = MemoryEntry(key: key, hash: hash, record: record, deadline: deadline, cost: cost)
        entries.append(entry)
        totalCost += UInt128(cost)
        index.insert(entry.hash, at: entries.count - 1)
        linkAsNewest(entries.count - 1)
        return nil
    }

    /// Removes the entry at a position; the last entry of the array moves there.
    @inlinable
    mutating func remove(at position: Int) -> MemoryEntry<Param, Content> {
        unlink(position)
        totalCost -= UInt128(entries[position].cost)
        index.remove(entries[position].hash, at: position)
        let last = entries.count - 1
        if position != last {
            index.move(entries[last].hash, from: last, to: position)
            let (newer, older) = (entries[last].newer, entries[last].older)
            if newer >= 0 { entries[Int(newer)].older = Int32(position) } else { newest = Int32(position) }
            if older >= 0 { entries[Int(older)].newer = Int32(position) } else { oldest = Int32(position) }
            entries.swapAt(position, last)
        }
        return entries.removeLast()
    }

    /// Returns whether there are more entries than `limit`, or their cost exceeds `cost`; a cost of `Int.max` means no limit.
    @inlinable
    func exceeds(count limit: Int, cost: Int) -> Bool {
        count > limit || (cost < .max && totalCost > UInt128(cost))
    }

    /// Removes the least recently used entries until at most `limit` remain and they cost at most `cost`.
    @inlinable
    mutating func trim(count limit: Int, cost: Int) -> [MemoryEntry<Param, Content>] {
        var removed: [MemoryEntry<Param, Content>] = []
        while oldest >= 0, exceeds(count: limit, cost: cost) {
            removed.append(remove(at: Int(oldest)))
        }
        return removed
    }
}
