/// A request that a fetcher sends on behalf of several fetches, such as the request of a batch.
///
/// A fetcher that serves several fetches with one request runs the request in a task of its own. Create a `JointRequest` for each such
/// request, let each fetch join it, and start the request through it:
///
/// ```swift
/// // In the fetch of each key.
/// let member = try request.join()
/// defer { member.leave() }
///
/// // In the fetch that completes the batch.
/// let task = request.start { await send(keys) }
/// ```
///
/// A store then knows that its fetches wait for the request:
///
/// - If the request needs a key whose fetch waits for the request, the later of the two waits fails with
///   ``StoreError/Code/reentrantFetch``. Otherwise neither wait would end.
/// - The `close()` of a store waits for the request, even if the store's fetches have left it.
public final class JointRequest: Sendable {
    /// The request in the graph of waits.
    private let key = FetchedKey(0)
    /// The fetches of stores that wait for the start, by member; `nil` after the start.
    private let fetches = Lock<[ObjectIdentifier: FetchScope]?>([:])

    /// Creates a request without members.
    public init() {}

    /// Adds the fetch that runs in the current task.
    ///
    /// A fetch that no store has begun may join too.
    ///
    /// - Returns: The membership, which ends when it is released.
    /// - Throws: A ``StoreError`` with the code ``StoreError/Code/reentrantFetch`` if the request waits for this fetch, directly or through
    ///   other fetches. Only a started request can wait.
    public func join() throws(StoreError) -> Member {
        guard let fetch = FetchScope.active else { return Member(self, nil) }
        let wait = FetchWait(fetch)
        guard wait.begin(awaiting: key) else {
            throw StoreError(
                .reentrantFetch,
                "cannot join a request that waits for this fetch: neither would end; let the request get its data directly from the origin")
        }
        let member = Member(self, wait)
        fetches.withLock { $0?[ObjectIdentifier(member)] = fetch }
        return member
    }

    /// Starts the request in a task of its own, which inherits no task-local values; call this method once.
    ///
    /// The request counts as a running fetch of each store with a member. A store whose fetches join later waits only for those fetches.
    ///
    /// - Parameter request: Sends the request, and passes its result on to the fetches.
    /// - Returns: The task. Cancel it when all fetches have left.
    @discardableResult
    public func start(_ request: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
        // In one step with the end of the membership, so that there is no moment at which a store counts neither.
        let scope = fetches.withLock { fetches in
            var counters: [ObjectIdentifier: WatchedState<Int>] = [:]
            for fetch in (fetches.take() ?? [:]).values { fetch.work.running.forEach { counters[ObjectIdentifier($0)] = $0 } }
            return FetchScope(key, .many(Array(counters.values)))
        }
        return Task.detached(priority: Task.currentPriority) {
            defer { scope.work.end() }
            await scope.run(request)
        }
    }

    /// The membership of one fetch in a joint request.
    public final class Member: Sendable {
        private let request: JointRequest
        /// The wait of the fetch; `nil` if no store has begun it.
        private let wait: FetchWait?

        fileprivate init(_ request: JointRequest, _ wait: FetchWait?) {
            self.request = request
            self.wait = wait
        }

        deinit { leave() }

        /// Ends the membership, because the fetch has its result or was canceled; further calls do nothing.
        public func leave() {
            guard let wait else { return }
            wait.end()
            request.fetches.withLock { $0?[ObjectIdentifier(self)] = nil }
        }
    }
}
