// Prefetching: keys wait in a queue, and a few workers take them, so that many keys overload neither the caller nor the origin.

/// The keys of one call of `prefetch`, taken in order.
@usableFromInline
final class PrefetchBatch: Sendable {
    private struct Keys: Sendable {
        var next = 0
        let count: Int
        var isCancelled = false
        /// `nil` once all keys are taken or the batch is canceled, so that a handle kept by the caller keeps no keys.
        var key: (@Sendable (_ position: Int) -> BoxedKey)?
    }

    private let keys: Lock<Keys>

    @usableFromInline
    init(count: Int, key: @escaping @Sendable (_ position: Int) -> BoxedKey) {
        keys = Lock(Keys(count: count, key: count > 0 ? key : nil))
    }

    var isCancelled: Bool { keys.withLock { $0.isCancelled } }

    func takeNext() -> BoxedKey? {
        let taken = keys.withLock { keys -> (Int, @Sendable (Int) -> BoxedKey)? in
            guard keys.next < keys.count, let key = keys.key else { return nil }
            keys.next += 1
            if keys.next == keys.count { keys.key = nil }
            return (keys.next - 1, key)
        }
        // The user's hash function runs here.
        return taken.map { $1($0) }
    }

    /// Drops the keys that have not been taken. Returns the storage of the dropped keys; release it outside every lock.
    @discardableResult
    func cancel() -> (any Sendable)? {
        keys.withLock { keys in
            let held = keys.key
            (keys.key, keys.isCancelled) = (nil, true)
            return held
        }
    }
}

/// The keys of a store that wait to be prefetched, the oldest call first.
struct PrefetchQueue {
    // A slice, because removing its first batch moves no other.
    private var batches: ArraySlice<PrefetchBatch> = []
    /// The tasks that take keys; never more than the policy's width.
    var workers: [CallerID: Task<Void, Never>] = [:]
    /// The number of keys that workers have taken but not yet passed to a machine.
    var taken = 0

    var isEmpty: Bool { batches.isEmpty }
    var first: PrefetchBatch? { batches.first }

    mutating func append(_ batch: PrefetchBatch) { batches.append(batch) }

    /// Drops the oldest batch, if it is still this one.
    mutating func dropFirst(_ batch: PrefetchBatch) {
        guard first === batch else { return }
        batches.removeFirst()
        // The storage of a slice keeps its former elements.
        if batches.isEmpty { batches = [] }
    }

    mutating func removeAll() -> ArraySlice<PrefetchBatch> {
        defer { batches = [] }
        return batches
    }
}

extension StoreEngine {
    /// Adds keys to the queue and starts a worker; a closed store cancels the batch.
    func prefetch(_ batch: PrefetchBatch) {
        let isClosed = state.withLock { state in
            guard !state.isClosed else { return true }
            state.prefetching.append(batch)
            startPrefetcher(&state)
            return false
        }
        if isClosed { batch.cancel() }
    }

    /// Starts one more worker, up to the width. Each worker starts the next, so a caller starts at most one.
    private func startPrefetcher(_ state: inout EngineState) {
        guard state.prefetching.workers.count < max(1, rules.policy.prefetchWidth) else { return }
        let id = nextID()
        // Created under the lock, so that the task is registered before it can end. It retains the store only while it takes a key.
        state.prefetching.workers[id] = Task.detached(priority: Task.currentPriority) { [weak self] in
            var skipped = 0
            while let admission = self?.prefetchNext(id) {
                switch admission {
                case .waiting(let result):
                    _ = await result.value { result.put(.cancelled) }
                case .immediate:
                    // Thousands of keys may be valid already, and other tasks need the thread.
                    skipped += 1
                    if skipped.isMultiple(of: 64) { await Task.yield() }
                }
            }
        }
    }

    /// Takes the next key and passes it to its machine. Returns `nil` if no key is left; the worker has then ended.
    private func prefetchNext(_ worker: CallerID) -> Admission? {
        while let batch = nextBatch(worker) {
            if let param = batch.takeNext() { return prefetch(param, of: batch) }
            state.withLock { state in
                state.prefetching.taken -= 1
                state.prefetching.dropFirst(batch)
            }
        }
        return nil
    }

    private func nextBatch(_ worker: CallerID) -> PrefetchBatch? {
        state.withLock { state in
            guard let batch = state.prefetching.first, !Task.isCancelled else {
                state.prefetching.workers[worker] = nil
                return nil
            }
            state.prefetching.taken += 1
            return batch
        }
    }

    private func prefetch(_ param: BoxedKey, of batch: PrefetchBatch) -> Admission {
        let id = nextID()
        return withEffects { state, effects -> Admission in
            state.prefetching.taken -= 1
            // Checked under the lock: after a store-wide `clear()`, no earlier key is fetched.
            guard !batch.isCancelled, let key = liveKey(param, &state, &effects) else { return .immediate(.cancelled) }
            let admission = take(key, &state, &effects) { key, transition in key.callerArrived(id, needing: .prefetch, &transition) }
            if case .waiting = admission, !state.prefetching.isEmpty { startPrefetcher(&state) }
            return admission
        }
    }
}
