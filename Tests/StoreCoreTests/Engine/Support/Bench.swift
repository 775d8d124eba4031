import Foundation
import Synchronization
import Testing
import Trials

@testable import StoreCore

/// What stands behind a store under test.
enum Backing: CaseIterable, Sendable {
    /// Memory alone.
    case memory
    /// Memory in front of a cacher that a test commands.
    case tiered
    /// That cacher alone.
    case plain

    static let withCacher: [Backing] = [.tiered, .plain]
}

/// A store of numbers with everything around it in the test's hands.
final class Bench: Sendable {
    let time = ManualTime()
    let fetcher: ScriptedFetcher<Int, Int>
    /// The cacher behind the store; a store in memory alone never calls it.
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
            store = Store(
                cacher: TieredCacher(over: cacher), fetcher: fetcher, policy: policy, time: time, scope: scope, onEvent: onEvent)
        case .plain:
            store = Store(cacher: cacher, fetcher: fetcher, policy: policy, time: time, scope: scope, onEvent: onEvent)
        }
    }

    /// How many keys the engine keeps.
    var liveKeys: Int { store.engine.state.withLock { $0.live.count } }

    /// How many callers wait in the engine for a key.
    func waiting(_ param: Int = 1) -> Int { store.waiting(param) }

    /// Lets other tasks run until so many callers wait.
    func callers(_ count: Int, of param: Int = 1) async throws {
        try await until("\(count) callers wait") { self.waiting(param) == count }
    }

    /// Lets other tasks run until the engine keeps no key.
    func idle() async throws {
        try await until("no live keys") { self.store.isPrefetchQueueEmpty && self.liveKeys == 0 }
    }

    func record(fetchedAgo age: Duration = .zero, _ content: Int, validator: Validator? = nil) -> CacheRecord<Int> {
        CacheRecord(content: content, fetchedAt: time.date.addingTimeInterval(-age.timeInterval), validator: validator)
    }
}

extension ScriptedFetcher where Content == Int {
    /// Answers each request with its number.
    static func counting(cancellation: ScriptedCancellation = .honoured) -> ScriptedFetcher {
        ScriptedFetcher(cancellation: cancellation) { .success($0.number) }
    }
}

/// Events in the order of their delivery.
final class EventLog: Sendable {
    private let events = WatchedState<[StoreEvent<Int>]>([])

    @Sendable func append(_ event: StoreEvent<Int>) { events.update { $0.append(event) } }

    /// The events in the order of their numbers.
    var all: [StoreEvent<Int>] { events.current.sorted { $0.number < $1.number } }
    var names: [String] { all.map(\.kind.name) }

    /// Waits for an event of this name.
    func first(_ name: String, count: Int = 1) async throws {
        try await events.wait { $0.count { $0.kind.name == name } >= count ? () : nil }
    }
}

extension StoreEventKind {
    /// The kind in a word or two.
    var name: String {
        switch self {
        case .hit: "hit"
        case .miss: "miss"
        case .coalesced: "coalesced"
        case .fetchBegan: "began"
        case .fetchEnded(_, duration: _, .modified): "ended"
        case .fetchEnded(_, duration: _, .notModified): "confirmed"
        case .fetchEnded(_, duration: _, .failed): "failed"
        case .fetchEnded(_, duration: _, .cancelled): "cancelled"
        case .retried: "retried"
        case .saved: "saved"
        case .removed: "removed"
        case .cacherFault(let operation, _): "fault \(operation)"
        case .evicted: "evicted"
        case .aboveCostLimit: "aboveCostLimit"
        case .droppedAsOutdated: "outdated"
        case .droppedUnsaved: "droppedUnsaved"
        }
    }
}

extension Task where Failure == any Error {
    /// How the task ended.
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
    /// The engine as an object, to see whether it is freed.
    var engineObject: AnyObject { engine }

    /// How many events there have been.
    var eventCount: UInt64 { engine.state.withLock { $0.events } }
}

extension Store where Param == Int, Content == Int {
    /// Asks for a state as an observer does who has left meanwhile.
    ///
    /// - Returns: Whether he was told that he is gone.
    func waitAsObserver(at place: ObserverPlace) async -> Bool {
        await suspend { engine.wait(.max, at: place, $0) }
        if case .gone = engine.look(.max, at: place) { return true }
        return false
    }
}

extension Store {
    /// Whether every key given to `prefetch` has been taken, and its machine has heard of it.
    var isPrefetchQueueEmpty: Bool { engine.state.withLock { $0.prefetching.isEmpty && $0.prefetching.taken == 0 } }

    /// How many tasks take keys from the prefetch queue.
    var prefetchers: Int { engine.state.withLock { $0.prefetching.workers.count } }
}

extension PaginationStore {
    /// Whether every key given to `prefetch` has been taken, and its machine has heard of it.
    var isPrefetchQueueEmpty: Bool { lists.isPrefetchQueueEmpty }

    /// How many callers wait in the engine for a list.
    func waiting(_ param: Param) -> Int { lists.waiting(param) }

    /// Of how many lists at rest the engine keeps the merge index.
    var restingIndexes: Int { lists.engine.state.withLock { $0.restingIndexes.count } }

    /// How many lists the engine keeps.
    var liveKeys: Int { lists.engine.state.withLock { $0.live.count } }
}

extension Store {
    /// How many callers wait in the engine for a key.
    func waiting(_ param: Param) -> Int {
        engine.state.withLock { state in
            guard let key = state.live[BoxedKey(param)]?.value else { return 0 }
            return key.callers.count + (key.crowd?.count ?? 0)
        }
    }

    /// Whether the engine keeps no key and the cacher is left alone.
    var engineIsIdle: Bool { engine.state.withLock { $0.live.isEmpty && $0.lane.running == 0 && !$0.lane.isBarred } }

    /// How many triggers run.
    var triggerCount: Int { engine.state.withLock { $0.triggers.count } }

    /// How many keys the engine has room for.
    var liveCapacity: Int { engine.state.withLock { $0.live.capacity } }
}

extension Bench {
    /// How many callers a key's machine knows, those without a continuation included.
    func registered(_ param: Int = 1) -> Int {
        store.engine.state.withLock { $0.live[BoxedKey(param)]?.value.machine.callers.count ?? 0 }
    }
}

extension Bench {
    /// How many places for observers a key has, taken or not.
    func observerPlaces(_ param: Int = 1) -> Int { store.engine.state.withLock { $0.live[BoxedKey(param)]?.value.observers.count ?? 0 } }

    /// For how many observers a key has room.
    func observerCapacity(_ param: Int = 1) -> Int {
        store.engine.state.withLock { $0.live[BoxedKey(param)]?.value.observers.capacity ?? 0 }
    }

    /// For how many callers a key's machine has room.
    func callerCapacity(_ param: Int = 1) -> Int {
        store.engine.state.withLock {
            if case .many(let callers) = $0.live[BoxedKey(param)]?.value.machine.callers { callers.capacity } else { 0 }
        }
    }
}

extension Store {
    /// How many fetches of live keys run.
    var runningFetches: Int { engine.state.withLock { $0.live.all.reduce(0) { $0 + $1.value.fetches.count } } }
}

extension Store {
    /// What the engine is busy with, for the message of a test that waited in vain.
    var engineSummary: String {
        engine.state.withLock { state in
            let keys = state.live.all.map { cell in
                let key = cell.value
                let machine = key.machine
                return
                    "\(key.param): \(machine.observers) observers, callers \(machine.callers), waiting \(key.callers.map(\.number).sorted()), "
                    + "flight \(String(describing: machine.flight)), lane \(machine.lane), fetches \(key.fetches.map(\.ticket.number)), "
                    + "read \(machine.isRead), debt \(String(describing: machine.debt)), patches \(machine.patches.count)"
            }
            return "running \(state.lane.running), barred \(state.lane.isBarred), deferred \(state.lane.deferred.count); "
                + keys.joined(separator: "; ")
        }
    }
}

extension Store where Param == Int {
    /// Those who wait for a key's content together.
    func crowd(_ param: Int) -> Crowd<CallerAnswer<BoxedContent>>? {
        engine.state.withLock { $0.live[BoxedKey(param)]?.value.crowd }
    }

    /// Tells the engine that the last of a crowd has left.
    func dissolve(_ crowd: Crowd<CallerAnswer<BoxedContent>>, of param: Int) { engine.dissolve(crowd, of: BoxedKey(param)) }
}
