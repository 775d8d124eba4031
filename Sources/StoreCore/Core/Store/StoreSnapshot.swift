/// The contents and the work of a store at one moment, for metrics, health pages and tests.
///
/// ```swift
/// let snapshot = users.snapshot()
/// gauge("unsaved records", snapshot.unsavedKeys)
/// ```
///
/// <doc:LookingInside> shows the same numbers in a browser.
public struct StoreSnapshot: Hashable, Sendable {
    /// The name that was passed to the store.
    public var name: String
    /// The number of records in memory; `nil` if the cacher has no memory in front.
    public var recordsInMemory: Int?
    /// The total cost of these records, in the unit of the cacher's `cost`, such as bytes; `nil` if the cacher has no memory in front.
    public var costInMemory: Int?
    /// The number of keys with observers, callers, work in progress, or unsaved content.
    public var liveKeys = 0
    /// The number of observers of all keys.
    public var observers = 0
    /// The number of running fetches, including the connections of streams.
    public var fetches = 0
    /// The number of these fetches that wait because of the limit `fetchWidth`.
    public var waitingFetches = 0
    /// The number of keys with content that the cacher does not have yet, or failed to take.
    public var unsavedKeys = 0
    /// The number of keys with a failed last save or removal; they count as unsaved keys too.
    public var failedSaves = 0
    /// The number of running calls of the cacher.
    public var cacherCalls = 0
    /// Whether keys wait to be prefetched.
    public var isPrefetching = false
    /// Whether the store was closed.
    public var isClosed = false
}

extension Store {
    /// Counts the contents and the work of the store.
    ///
    /// Cost: one look at each live key, under the lock of the store. An idle store has few live keys.
    ///
    /// - Returns: The counts of one moment; those of records in memory and of waiting fetches may be slightly newer.
    public func snapshot() -> StoreSnapshot {
        var snapshot = engine.snapshot()
        (snapshot.recordsInMemory, snapshot.costInMemory) = (memory?.count, memory?.totalCost)
        snapshot.waitingFetches = engine.fetches.waitingCount
        return snapshot
    }
}

extension StoreEngine {
    fileprivate func snapshot() -> StoreSnapshot {
        state.withLock { state in
            var snapshot = StoreSnapshot(name: name)
            snapshot.liveKeys = state.live.count
            snapshot.cacherCalls = state.queue.running + (state.queue.isClearing ? 1 : 0)
            snapshot.isPrefetching = !state.prefetching.isEmpty
            snapshot.isClosed = state.isClosed
            for key in state.live.values { key.value.count(in: &snapshot) }
            return snapshot
        }
    }
}

extension LiveKey {
    // Mutating, so that the machine is read in place.
    fileprivate mutating func count(in snapshot: inout StoreSnapshot) {
        snapshot.observers += observers.count
        snapshot.fetches += fetches.count
        if machine.saving.failure != nil { snapshot.failedSaves += 1 }
        if machine.saving.failure != nil || machine.saving.tried != machine.book.revision { snapshot.unsavedKeys += 1 }
    }
}
