import Foundation
import StoreCoreTesting
import StoreTrials
import Trials

@testable import StoreCore

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
        fetcher: ScriptedFetcher<Int, Int> = .counting(), reports: Bool = false, scope: CacheScope? = nil, listsKeys: Bool = true,
        saved: Int? = nil
    ) {
        self.fetcher = fetcher
        let cacher = GatedCacher<Int, Int>(expiry: expiry, listsKeys: listsKeys)
        self.cacher = cacher
        let onEvent: (@Sendable (StoreEvent<Int>) -> Void)? = reports ? events.append : nil
        store = Store(backing, over: cacher, fetcher: fetcher, policy: policy, time: time, scope: scope, onEvent: onEvent)
        if let saved { cacher.put(record(saved), param: 1) }
    }

    /// The number of live keys.
    var liveKeys: Int { store.engine.state.withLock { $0.live.count } }

    /// The number of callers waiting for a key.
    func waiting(_ param: Int = 1) -> Int { store.waiting(param) }

    /// Waits until the given number of callers wait for a key.
    func callers(_ count: Int, of param: Int = 1) async throws { try await until("\(count) callers wait") { self.waiting(param) == count } }

    /// Requires the content of key 1, and waits until the fetch runs, which the test holds, and the caller waits for it.
    func heldCaller() async throws -> Task<Int, any Error> {
        fetcher.hold()
        let caller = try await waitingCaller()
        try await fetcher.started(count: 1)
        return caller
    }

    /// Requires the content of key 1, and waits until the caller waits for it alone.
    func waitingCaller() async throws -> Task<Int, any Error> {
        let caller = caller()
        try await callers(1)
        return caller
    }

    /// Requires the content of a key.
    func caller(of param: Int = 1) -> Task<Int, any Error> { Task { [handle = store[param]] in try await handle.requireData() } }

    /// Updates key 1, and observes it from its first state on.
    func observeUpdate(_ content: Int) async throws -> RecordingObserver<Int> {
        await store[1].update(content)
        return try await observeFirst(store[1].publish())
    }

    /// Begins to clear the store, and waits until the cacher is being cleared, which the test holds.
    func heldClear() async throws -> Task<Void, any Error> {
        cacher.hold(.removeAll)
        let clear = Task { [store] in try await store.clear() }
        try await cacher.began(.removeAll)
        return clear
    }

    /// Waits until the events so far are delivered, which callers and observers may precede.
    func allEvents() async throws { try await until("all events are delivered") { self.events.all.count == Int(self.store.eventCount) } }

    /// Waits until no key is live and nothing is left to prefetch.
    func idle() async throws { try await until("no live keys") { self.store.isPrefetchQueueEmpty && self.liveKeys == 0 } }

    /// The number of callers known to a key's machine, including those that are not suspended yet.
    func registered(_ param: Int = 1) -> Int {
        store.engine.state.withLock { $0.live[BoxedKey(param)]?.value.machine.desk.callers.count ?? 0 }
    }

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

    func record(fetchedAgo age: Duration = .zero, _ content: Int, validator: Validator? = nil) -> CacheRecord<Int> {
        CacheRecord(content: content, fetchedAt: time.date.addingTimeInterval(-age.timeInterval), validator: validator)
    }
}

/// An error with advice, which allows stale content by its kind.
struct Advice: FailureAdvising {
    var failureKind = FailureKind.transient
    var retryAfter: Duration?
    var attempts = 1
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

extension Store where Param == Int {
    /// The callers that wait together for a key's content.
    func callerGroup(_ param: Int) -> SharedResult<CallerResult<BoxedContent>>? {
        engine.state.withLock { $0.live[BoxedKey(param)]?.value.callerGroup?.result }
    }
}
