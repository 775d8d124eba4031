internal import Synchronization

// Two fetches that wait for each other never end. Each wait of a fetch for a key is an edge of one graph across all stores, and a wait that
// would close a cycle is refused.

/// The identity of a live key in the graph of waits, with the number of fetches that wait for it.
///
/// A separate object, so that the graph neither compares nor retains user keys.
typealias FetchedKey = WatchedState<Int>

/// A running fetch, bound to its task and inherited by its child tasks.
final class FetchScope: Sendable {
    @TaskLocal private static var current: FetchScope?

    /// The place of the fetch in the graph of waits.
    let key: FetchedKey
    /// Counts the fetch in its store, or in several stores for the request of a batch.
    let work: WorkScope
    private let hasReturned = Atomic(false)

    /// Whether the fetch has ended. Its child tasks may continue, but no fetch waits for them.
    var hasEnded: Bool { hasReturned.load(ordering: .acquiring) }

    init(_ key: FetchedKey, _ running: Few<WatchedState<Int>>) {
        self.key = key
        work = WorkScope(running)
    }

    /// The running fetch of the current task; `nil` outside fetches and after the fetch has ended.
    static var active: FetchScope? {
        guard let current, !current.hasEnded else { return nil }
        return current
    }

    /// Runs the body of the fetch with this scope as the active one, and then marks the fetch as ended.
    func run<Result: Sendable>(_ body: () async -> Result) async -> Result {
        defer { hasReturned.store(true, ordering: .releasing) }
        return await Self.$current.withValue(self, operation: body)
    }
}

/// One wait of a fetch for a key.
final class FetchWait: Sendable {
    /// The waits of each key's fetches, by wait: the fetch, and the key that it waits for.
    private static let graph = Lock<[ObjectIdentifier: [ObjectIdentifier: (fetch: FetchScope, awaited: FetchedKey)]]>([:])

    private let fetch: FetchScope
    private var waiting: FetchedKey { fetch.key }

    init(_ fetch: FetchScope) {
        self.fetch = fetch
    }

    deinit { end() }

    /// Begins the wait.
    ///
    /// Cost: one visit of each wait that the key's fetch depends on, under a lock that only waiting fetches take.
    ///
    /// - Returns: `false` if the awaited key's fetch waits for this one, directly or through others.
    func begin(awaiting key: FetchedKey) -> Bool {
        let (isAllowed, earlier) = Self.graph.withLock { graph -> (Bool, FetchedKey?) in
            var seen: Set<ObjectIdentifier> = []
            var open = [ObjectIdentifier(key)]
            while let next = open.popLast() {
                if next == ObjectIdentifier(waiting) { return (false, nil) }
                guard seen.insert(next).inserted, let edges = graph[next] else { continue }
                // A task that outlives its fetch may wait for long, but its fetch does not wait for it.
                for edge in edges.values where !edge.fetch.hasEnded { open.append(ObjectIdentifier(edge.awaited)) }
            }
            return (true, graph[ObjectIdentifier(waiting), default: [:]].updateValue((fetch, key), forKey: ObjectIdentifier(self))?.awaited)
        }
        earlier?.update { $0 -= 1 }
        if isAllowed { key.update { $0 += 1 } }
        return isAllowed
    }

    /// Ends the wait, unless it has ended or was refused.
    func end() {
        let ended = Self.graph.withLock { graph in
            let place = ObjectIdentifier(waiting)
            let edge = graph[place]?.removeValue(forKey: ObjectIdentifier(self))
            if graph[place]?.isEmpty == true { graph[place] = nil }
            return edge?.awaited
        }
        ended?.update { $0 -= 1 }
    }
}

extension StoreEngine {
    /// The identity of a live key in the graph of waits; `nil` for an idle key.
    func identity(of param: BoxedKey) -> FetchedKey? {
        state.withLock { $0.live[$0.resolve(param)]?.value.identified() }
    }

    /// Makes a request on behalf of a fetch. Fails if waiting would close a cycle.
    // Never inlined, so that callers outside fetches do not pay for its frame.
    @inline(never)
    func request(
        _ param: BoxedKey, _ need: CallerNeed, id: CallerID, within scope: FetchScope, isolation: isolated (any Actor)? = #isolation
    ) async -> CallerResult<BoxedContent> {
        let wait = FetchWait(scope)
        defer { wait.end() }
        // Refuses before the machine begins a fetch, which would interrupt and restart the page request that waits here.
        if need == .origin || need == .refresh, let key = identity(of: param), !wait.begin(awaiting: key) {
            return .failure(reentrance(param))
        }
        let admission = admit(id, to: param) { _, _ in need }
        // A key that is no longer live has resumed the caller already.
        if case .waiting = admission, let key = identity(of: param), !wait.begin(awaiting: key) {
            release(id, of: param)
            return .failure(reentrance(param))
        }
        return await value(of: admission, id, param, need)
    }

    private func reentrance(_ param: BoxedKey) -> StoreError {
        StoreError(
            .reentrantFetch,
            "cannot wait for key \(param) inside its own fetch, or inside one that it waits for: neither would end; "
                + "let the fetcher get the data directly from the origin")
    }

    /// The earliest start of a fetch that a change of the content causes; `nil` for at once.
    ///
    /// A fetcher that changes its own key causes the next fetch, which changes the key again. The first such fetch begins at once, and each
    /// further one an interval later. A fetch that waits keeps its start when the content changes again: otherwise changes faster than the
    /// interval would postpone it forever.
    func earliestRestart(of key: inout Key) -> MonotonicInstant? {
        guard FetchScope.active != nil else { return nil }
        let now = time.now
        let start = key.lastRestart.map { $0 > now ? $0 : max(now, $0.advanced(by: rules.policy.boundedInterval)) } ?? now
        key.lastRestart = start
        return start > now ? start : nil
    }
}
