internal import Synchronization

// A fetcher that waits for a key whose fetch waits for that fetcher would wait for ever. Each wait of a fetch for a key is an edge of one
// graph, across all stores, and a wait that would close a cycle is refused.

/// A live key as fetches see it that wait for it. An object of its own, so that no user's key is compared here, and none is kept.
final class FetchedKey: Sendable {}

/// The fetch whose task this is; its child tasks have it too.
final class FetchScope: Sendable {
    @TaskLocal private static var current: FetchScope?

    /// The key that is fetched.
    let key: FetchedKey
    private let end = Atomic(false)

    /// Whether the fetch has ended. Tasks that it began may go on, but no fetch waits for them.
    var hasEnded: Bool { end.load(ordering: .acquiring) }

    init(_ key: FetchedKey) {
        self.key = key
    }

    /// The running fetch on whose behalf the present task does something; `nil` for tasks that outlived theirs.
    static var active: FetchScope? {
        guard let current, !current.hasEnded else { return nil }
        return current
    }

    /// Runs a fetch.
    func run<Result: Sendable>(_ body: () async -> Result) async -> Result {
        defer { end.store(true, ordering: .releasing) }
        return await Self.$current.withValue(self, operation: body)
    }
}

/// One wait of a fetch for a key.
final class FetchWait: Sendable {
    /// A fetch, and the key that it waits for.
    private struct Edge {
        let fetch: FetchScope
        let awaited: FetchedKey
    }

    /// The waits of each key's fetches, by wait.
    private static let graph = Lock<[ObjectIdentifier: [ObjectIdentifier: Edge]]>([:])

    private let fetch: FetchScope
    private var waiting: FetchedKey { fetch.key }

    init(_ fetch: FetchScope) {
        self.fetch = fetch
    }

    deinit { end() }

    /// Begins to wait.
    ///
    /// Cost: one look at each fetch that is waited for, under a lock that only fetches take which wait.
    ///
    /// - Returns: `false` where the awaited key's fetch waits for this one, directly or through others.
    func begin(awaiting key: FetchedKey) -> Bool {
        Self.graph.withLock { graph in
            var seen: Set<ObjectIdentifier> = []
            var open = [ObjectIdentifier(key)]
            while let next = open.popLast() {
                if next == ObjectIdentifier(waiting) { return false }
                guard seen.insert(next).inserted, let edges = graph[next] else { continue }
                // A task that outlives its fetch may wait for long, but its fetch does not wait through it.
                for edge in edges.values where !edge.fetch.hasEnded { open.append(ObjectIdentifier(edge.awaited)) }
            }
            graph[ObjectIdentifier(waiting), default: [:]][ObjectIdentifier(self)] = Edge(fetch: fetch, awaited: key)
            return true
        }
    }

    /// Ends the wait; does nothing where it has ended or was refused.
    func end() {
        Self.graph.withLock { graph in
            let place = ObjectIdentifier(waiting)
            guard graph[place]?.removeValue(forKey: ObjectIdentifier(self)) != nil else { return }
            if graph[place]?.isEmpty == true { graph[place] = nil }
        }
    }
}

extension CallerNeed {
    /// Whether the caller waits for a fetch whatever content the key has.
    fileprivate var alwaysWaits: Bool { self == .origin || self == .refresh }
}

extension StoreEngine {
    /// What a live key is to fetches that wait for it.
    func identity(of param: Param) -> FetchedKey? {
        state.withLock { $0.live[param]?.value.identified() }
    }

    /// Asks a key's machine on behalf of a fetch, and waits for the answer unless that would never come.
    // Never inlined: its frame would be part of that of each caller, who does not need it.
    @inline(never)
    func ask(
        _ param: Param, _ need: CallerNeed, id: CallerID, within scope: FetchScope, isolation: isolated (any Actor)? = #isolation
    ) async -> CallerAnswer<Content> {
        let wait = FetchWait(scope)
        defer { wait.end() }
        // Refuses before the machine begins a fetch: that fetch would interrupt the page request that waits here, which would begin again.
        if need.alwaysWaits, let key = identity(of: param), !wait.begin(awaiting: key) { return .failure(reentrance(param)) }
        switch pose(param, id, { machine, id, turn in machine.callerArrived(id, needing: need, &turn) }) {
        case .answered(let answer):
            return answer
        case .waiting(let reply):
            // Not live: it was answered meanwhile.
            if let key = identity(of: param), !wait.begin(awaiting: key) {
                release(id, of: param)
                return .failure(reentrance(param))
            }
            return await reply.value { release(id, of: param) }
        }
    }

    private func reentrance(_ param: Param) -> StoreError {
        StoreError(
            .reentrantFetch,
            "cannot wait for key \(param) inside its own fetch, or inside one that it waits for: neither would end; "
                + "let the fetcher take the data from where the store takes it")
    }

    /// When a fetch may begin that a change of the content causes; `nil` for at once.
    ///
    /// A fetcher that changes what is being fetched causes its own fetch again, which changes it again. So the first one begins at once,
    /// and each further one an interval after the one before. A fetch that still waits for its time keeps that time when the content changes
    /// again; otherwise changes that come faster than the interval would put it off for ever.
    func earliestRestart(of key: inout Key) -> MonotonicInstant? {
        guard FetchScope.active != nil else { return nil }
        let now = time.now
        let start = key.lastRestart.map { $0 > now ? $0 : max(now, $0.advanced(by: rules.policy.boundedInterval)) } ?? now
        key.lastRestart = start
        return start > now ? start : nil
    }
}
