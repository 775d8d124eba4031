/// Memory that mirrors the engine's records, so that a hit needs no transition.
///
/// Closures instead of a protocol: they are compiled in the module that creates the cacher and knows the types of its key and content.
@usableFromInline
package final class FrontMemory: Sendable {
    /// Returns the record of a key and its monotonic deadline; the deadline is `.min` if the memory does not know it.
    @usableFromInline let entry: @Sendable (_ key: BoxedKey) -> (record: CacheRecord<BoxedContent>, deadline: Int64)?
    /// Adds a record, and evicts records beyond the bounds. `discarded` holds the content of the older record in most cases.
    @usableFromInline let put:
        @Sendable (_ key: BoxedKey, _ record: CacheRecord<BoxedContent>, _ deadline: Int64, _ discarded: Few<BoxedContent>) -> Drop?
    @usableFromInline let remove: @Sendable (_ key: BoxedKey) -> (any Sendable)?
    /// Removes the record that mirrors the engine's, so that only the engine holds its content.
    @usableFromInline let lend: @Sendable (_ key: BoxedKey, _ details: RecordDetails?) -> (any Sendable)?
    @usableFromInline let removeAll: @Sendable () -> any Sendable
    @usableFromInline let keys: @Sendable () -> [BoxedKey]

    // What leaves memory is returned and released outside the lock, so that no `deinit` of user code runs under it.

    /// The records that left memory for another, the number of those beyond the bounds, and the cost and limit of a rejected record.
    @usableFromInline typealias Drop = (records: any Sendable, evicted: Int, refusal: (cost: Int, limit: Int)?)

    @inlinable
    init<Key: Hashable & Sendable, Value: Sendable>(_ table: MemoryTable<Key, Value>) {
        entry = { key in
            guard let (record, deadline) = table.entry(of: key.value(as: Key.self)) else { return nil }
            return (record.holding(BoxedContent(record.content)), deadline)
        }
        put = { key, record, deadline, discarded in
            let dropped = table.put(key.value(as: Key.self), record.holding(record.content.value(as: Value.self)), deadline: deadline)
            if let refusal = dropped.refusal { return (dropped, 0, refusal) }
            if dropped.evicted.isEmpty {
                guard let replaced = dropped.replaced else { return nil }
                // The transition still holds the same objects, so their release here frees nothing, and the update needs no allocation.
                if case .one(let content) = discarded, isSameBitForBit(replaced, content.value(as: Value.self)) { return nil }
            }
            return (dropped, dropped.evicted.count, nil)
        }
        remove = { key in table.remove(key.value(as: Key.self)) }
        lend = { key, details in
            // A record that was saved directly through the cacher has no deadline. It is replaced when the list has grown.
            let entry = table.remove(key.value(as: Key.self)) { $0.deadline != .min && $0.record.details === details }
            // Only the key is kept: the list would be copied to grow if its content were.
            return entry?.key
        }
        removeAll = { table.removeAll() }
        keys = { table.keys().map { BoxedKey($0) } }
    }
}

/// Whether two values have the same bytes, and so hold the same objects. Bytes of padding may differ, which costs only an allocation.
@inlinable
func isSameBitForBit<Value>(_ one: Value, _ other: Value) -> Bool {
    withUnsafeBytes(of: one) { one in withUnsafeBytes(of: other) { other in one.elementsEqual(other) } }
}
