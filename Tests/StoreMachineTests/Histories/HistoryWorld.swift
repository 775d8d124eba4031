import StoreCoreTesting
import StoreTrials
import Trials

@testable import StoreCore

/// A real store whose every step waits for a command, with the results of its observers and callers.
final class HistoryWorld: Sendable {
    let time = ManualTime()
    let origin = HistoryOrigin()
    let cacher: GatedCacher<Int, [Int]>
    let lists: PaginationStore<Int, Int>
    let clients = HistoryClients()
    let bell = Bell()

    init(_ backing: Backing, expiry: Expiry, policy: StorePolicy, window: Int?) {
        let cacher = GatedCacher<Int, [Int]>(expiry: expiry)
        cacher.hold(.load, .save, .remove, .removeAll)
        self.cacher = cacher
        lists =
            switch backing {
            case .memory: Self.lists(MemoryCacher(expiry: expiry), origin.fetcher, policy, window, time)
            case .tiered: Self.lists(TieredCacher(over: cacher), origin.fetcher, policy, window, time)
            case .plain: Self.lists(cacher, origin.fetcher, policy, window, time)
            }
        lists.revalidate(on: bell)
    }

    private static func lists(
        _ cacher: some Cacher<Int, [Int]>, _ fetcher: ScriptedPaginationFetcher<Int, Int>, _ policy: StorePolicy, _ window: Int?,
        _ time: ManualTime
    ) -> PaginationStore<Int, Int> {
        guard let window else { return PaginationStore(cacher: cacher, fetcher: fetcher, identity: .none, policy: policy, time: time) }
        return PaginationStore(
            cacher: cacher, fetcher: fetcher, paging: PagingPolicy(maximumPages: window), identity: .none, policy: policy, time: time)
    }

    func observe(_ id: Int, _ key: Int, forces: Bool) -> Task<Void, Never> {
        clients.observe(id, lists[key].publish(forceRefresh: forces)) { $0.summary }
    }

    /// Releases everything held, and holds nothing from now on.
    func open() {
        origin.fetcher.release()
        cacher.release()
        bell.end()
    }

    var isEmpty: Bool { clients.state.read { $0.open == 0 && $0.observers.isEmpty } }

    /// Returns why the store is not quiet; `nil` if it can only change by a command.
    ///
    /// Counts all work at both ends: fetches as begun and as held at the origin, and cacher calls as running and as held.
    func unrest(begun: Int, cancelled: Int, observers: Int) -> String? {
        lists.lists.engine.state.withLock { state in
            let origin = origin.counts
            if origin.begun != begun { return "fetches: \(origin.begun) begun, expected \(begun)" }
            if origin.cancelled != cancelled { return "fetches: \(origin.cancelled) canceled, expected \(cancelled)" }
            let keys = state.live.values.map(\.value)
            let fetches = keys.reduce(0) { $0 + $1.fetches.count }
            if fetches != origin.wanted.count { return "fetches: \(fetches) running, \(origin.wanted.count) held" }
            let calls = state.queue.running + (state.queue.isClearing ? 1 : 0)
            if calls != cacher.heldNumbers.count { return "cacher: \(calls) running, \(cacher.heldNumbers.count) held" }
            if !state.prefetching.isEmpty || state.prefetching.taken > 0 { return "prefetching: a key waits" }
            let clearing = (state.clearing?.suspendedCount ?? 0) + (state.nextClearing?.suspendedCount ?? 0)
            return clients.unrest(of: keys, clearing: clearing, observers: observers, now: time.now)
        }
    }

    var liveKeys: Set<Int> { lists.lists.engine.state.withLock { Set($0.live.values.map { $0.value.param.value(as: Int.self) }) } }
}
