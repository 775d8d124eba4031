@testable import StoreCore

// The state of a store's engine. Other test targets have a link to this file, because only a test may import StoreCore as testable.

extension Store {
    /// The engine as an object, for tests that it is released.
    var engineObject: AnyObject { engine }

    /// The number of events so far.
    var eventCount: UInt64 { engine.state.withLock { $0.events } }

    /// Whether every key given to `prefetch` has been handed to its machine.
    var isPrefetchQueueEmpty: Bool { engine.state.withLock { $0.prefetching.isEmpty && $0.prefetching.taken == 0 } }

    /// The number of tasks that take keys from the prefetch queue.
    var prefetchers: Int { engine.state.withLock { $0.prefetching.workers.count } }

    /// The number of callers waiting for a key.
    func waiting(_ param: Param) -> Int {
        engine.state.withLock { state in
            guard let key = state.live[BoxedKey(param)]?.value else { return 0 }
            return key.callers.count + (key.callerGroup?.result.count ?? 0)
        }
    }

    /// Whether no key is live and no cacher call runs.
    var engineIsIdle: Bool { engine.state.withLock { $0.live.isEmpty && $0.queue.running == 0 && !$0.queue.isBarred } }

    /// The number of running triggers.
    var triggerCount: Int { engine.state.withLock { $0.triggers.count } }

    /// The number of keys for which the engine has allocated space.
    var liveCapacity: Int { engine.state.withLock { $0.live.capacity } }

    /// The number of running fetches of live keys.
    var runningFetches: Int { engine.state.withLock { $0.live.values.reduce(0) { $0 + $1.value.fetches.count } } }

    /// Describes the engine's work in progress, for the message of a wait that timed out.
    var engineSummary: String {
        engine.state.withLock { state in
            let keys = state.live.values.map { cell in
                let key = cell.value
                let machine = key.machine
                return
                    "\(key.param): \(machine.desk.observers) observers, callers \(machine.desk.callers), waiting \(key.callers.keys.sorted()), "
                    + "flight \(String(describing: machine.origin.flight)), reading \(String(describing: machine.origin.reading)), saving \(String(describing: machine.saving.running)), fetches \(key.fetches.map(\.ticket.number)), "
                    + "read \(machine.origin.isKnown), failure \(String(describing: machine.saving.failure)), patches \(machine.book.patches.count)"
            }
            return "\(state.queue); " + keys.joined(separator: "; ")
        }
    }
}

extension PaginationStore {
    /// Whether every key given to `prefetch` has been handed to its machine.
    var isPrefetchQueueEmpty: Bool { lists.isPrefetchQueueEmpty }

    /// The number of callers waiting for a list.
    func waiting(_ param: Param) -> Int { lists.waiting(param) }

    /// The number of idle lists with a merge index in the engine.
    var idleIndexes: Int { lists.engine.state.withLock { $0.idleIndexes.count } }

    /// The number of live lists.
    var liveKeys: Int { lists.engine.state.withLock { $0.live.count } }
}
