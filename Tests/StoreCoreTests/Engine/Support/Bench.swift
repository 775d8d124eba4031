import Foundation
import Synchronization
import Testing
import Trials
import StoreCoreTesting

@testable import StoreCore

/// The cachers of a store under test.
enum Backing: CaseIterable, Sendable {
    /// A `MemoryCacher` only.
    case memory
    /// A `TieredCacher` over a cacher controlled by the test.
    case tiered
    /// The controlled cacher only.
    case plain

    static let withCacher: [Backing] = [.tiered, .plain]
}

/// A store of numbers with a fetcher, a cacher and a clock controlled by the test.
final class Bench: Sendable {
    let time = ManualTime()
    let fetcher: ScriptedFetcher<Int, Int>
    /// The cacher behind the store; a store in memory never calls it.
    let cacher: GatedCacher<Int, Int>
    let store: Store<Int, Int>
    let events = EventLog()

    init(
        _ backing: Backing = .memory, expiry: Expiry = .never, policy: StorePolicy = .default,
        fetcher: ScriptedFetcher<Int, Int> = .counting(), reports: Bool = false, scope: CacheScope? = nil, listsKeys: Bool = true
    ) {
        self.fetcher = fetcher
        let cacher = GatedCacher<Int, Int>(expiry: expiry, listsKeys: listsKeys)
        self.cacher = cacher
        let onEvent: (@Sendable (StoreEvent<Int>) -> Void)? = reports ? events.append : nil
        switch backing {
        case .memory:
            store = Store(
                cacher: MemoryCacher(expiry: expiry), fetcher: fetcher, policy: policy, time: time, scope: scope, onEvent: onEvent)
        case .tiered:
            store = Store(cacher: TieredCacher(over: cacher), fetcher: fetcher, policy: policy, time: time, scope: scope, onEvent: onEvent)
        case .plain: store = Store(cacher: cacher, fetcher: fetcher, policy: policy, time: time, scope: scope, onEvent: onEvent)
        }
    }

    /// The number of live keys.
    var liveKeys: Int { store.engine.state.withLock { $0.live.count } }

    /// The number of callers waiting for a key.
    func waiting(_ param: Int = 1) -> Int { store.waiting(param) }

    /// Waits until the given number of callers wait for a key.
    func callers(_ count: Int, of param: Int = 1) async throws { try await until("\(count) callers wait") { self.waiting(param) == count } }

    /// Waits until the events so far are delivered, which callers and observers may precede.
    func allEvents() async throws { try await until("all events are delivered") { self.events.all.count == Int(self.store.eventCount) } }

    /// Waits until no key is live and nothing is left to prefetch.
    func idle() async throws { try await until("no live keys") { self.store.isPrefetchQueueEmpty && self.liveKeys == 0 } }

    func record(fetchedAgo age: Duration = .zero, _ content: Int, validator: Validator? = nil) -> CacheRecord<Int> {
        CacheRecord(content: content, fetchedAt: time.date.addingTimeInterval(-age.timeInterval), validator: validator)
    }
}

extension ScriptedFetcher where Content == Int {
    /// Returns the number of each request as its content.
    static func counting(cancellation: ScriptedCancellation = .honored) -> ScriptedFetcher {
        ScriptedFetcher(cancellation: cancellation) { .success($0.number) }
    }
}

/// Records events in the order of their delivery.
final class EventLog: Sendable {
    private let events = WatchedState<[StoreEvent<Int>]>([])

    @Sendable func append(_ event: StoreEvent<Int>) { events.update { $0.append(event) } }

    /// The events in the order of their numbers.
    var all: [StoreEvent<Int>] { events.current.sorted { $0.number < $1.number } }
    var names: [String] { all.map(\.kind.name) }

    /// Waits for events with this name.
    func first(_ name: String, count: Int = 1) async throws {
        try await events.wait { $0.count { $0.kind.name == name } >= count ? () : nil }
    }
}

extension StoreEventKind {
    /// A short name of the kind.
    var name: String {
        switch self {
        case .hit: "hit"
        case .miss: "miss"
        case .coalesced: "coalesced"
        case .fetchBegan: "began"
        case .fetchEnded(_, duration: _, .modified): "ended"
        case .fetchEnded(_, duration: _, .notModified): "confirmed"
        case .fetchEnded(_, duration: _, .failed): "failed"
        case .fetchEnded(_, duration: _, .refused): "refused"
        case .fetchEnded(_, duration: _, .cancelled): "cancelled"
        case .retried: "retried"
        case .saved: "saved"
        case .removed: "removed"
        case .cacherFault(let operation, _): "fault \(operation)"
        case .evicted: "evicted"
        case .aboveCostLimit: "aboveCostLimit"
        case .droppedAsOutdated: "outdated"
        case .superseded: "superseded"
        case .droppedUnsaved: "droppedUnsaved"
        case .mismatchedIdentity: "mismatchedIdentity"
        }
    }
}

extension Task where Failure == any Error {
    /// The value as text, or the type of the error.
    var outcome: String {
        get async {
            switch await result {
            case .success(let value): "\(value)"
            case .failure(let error): "\(type(of: error))"
            }
        }
    }
}

extension Store {
    /// The engine as an object, for tests that it is released.
    var engineObject: AnyObject { engine }

    /// The number of events so far.
    var eventCount: UInt64 { engine.state.withLock { $0.events } }
}

extension Store where Param == Int, Content == Int {
    /// Waits for a state like an observer that has left in the meantime.
    ///
    /// - Returns: Whether the engine reports the observer as gone.
    func waitAsObserver(at place: Int) async -> Bool {
        await suspend {
            engine.wait(.max, at: place, $0)
        } onCancel: {
        }
        if case .gone = engine.look(.max, at: place) { return true }
        return false
    }
}

extension Store {
    /// Whether every key given to `prefetch` has been handed to its machine.
    var isPrefetchQueueEmpty: Bool { engine.state.withLock { $0.prefetching.isEmpty && $0.prefetching.taken == 0 } }

    /// The number of tasks that take keys from the prefetch queue.
    var prefetchers: Int { engine.state.withLock { $0.prefetching.workers.count } }
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

extension Store {
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
}

extension Bench {
    /// The number of callers known to a key's machine, including those that are not suspended yet.
    func registered(_ param: Int = 1) -> Int {
        store.engine.state.withLock { $0.live[BoxedKey(param)]?.value.machine.desk.callers.count ?? 0 }
    }
}

extension Bench {
    /// The number of a key's observers.
    func observers(_ param: Int = 1) -> Int { store.engine.state.withLock { $0.live[BoxedKey(param)]?.value.observers.count ?? 0 } }

    /// The number of observers for which a key has allocated space.
    func observerCapacity(_ param: Int = 1) -> Int {
        store.engine.state.withLock { $0.live[BoxedKey(param)]?.value.observers.capacity ?? 0 }
    }

    /// The number of callers for which a key's machine has allocated space.
    func callerCapacity(_ param: Int = 1) -> Int {
        store.engine.state.withLock { $0.live[BoxedKey(param)]?.value.machine.desk.callers.capacity ?? 0 }
    }
}

extension Store {
    /// The number of running fetches of live keys.
    var runningFetches: Int { engine.state.withLock { $0.live.values.reduce(0) { $0 + $1.value.fetches.count } } }
}

extension Store {
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
            return "\(state.queue); "
                + keys.joined(separator: "; ")
        }
    }
}

extension Store where Param == Int {
    /// The callers that wait together for a key's content.
    func callerGroup(_ param: Int) -> SharedResult<CallerResult<BoxedContent>>? {
        engine.state.withLock { $0.live[BoxedKey(param)]?.value.callerGroup?.result }
    }

    /// Tells the engine that the last caller of a group has left.
    func dissolve(_ callerGroup: SharedResult<CallerResult<BoxedContent>>, of param: Int) {
        engine.dissolve(callerGroup, of: BoxedKey(param))
    }
}
