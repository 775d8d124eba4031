/// A fetcher that collects fetches for a few milliseconds and sends one request for all of their keys.
///
/// ```swift
/// let users = Store(
///     cacher: MemoryCacher(),
///     fetcher: BatchFetcher<User.ID, User>(limit: 100) { ids in
///         try await api.users(ids)
///     })
/// ```
///
/// - A batch begins with its first fetch. Its request is sent after ``delay``, or at once when the batch is full.
/// - If the response lacks a key, the fetch of that key fails with a ``FetchError`` of code ``FetchError/Code/missingKey``. Content for
///   keys that were not requested is ignored.
/// - If the request fails, the fetches of all its keys fail with the same error.
/// - A canceled fetch leaves its batch at once. The request is canceled when all of its fetches have left.
///
/// For a ``CircuitBreaker`` in front of this fetcher, a failed request counts as one failure for each of its keys.
public final class BatchFetcher<Param: Hashable & Sendable, Content: Sendable>: Fetcher {
    /// The largest number of keys in a request.
    public let limit: Int

    /// The time for which a batch collects keys.
    public let delay: Duration

    private let time: any TimeSource
    private let request: @Sendable ([Param]) async throws -> [Param: Content]
    private let batches = WatchedState(Batches<Param, Content>()) { $0.changes.take() }

    /// Creates a fetcher.
    ///
    /// - Parameters:
    ///   - limit: The largest number of keys in a request; at least one.
    ///   - delay: The time for which a batch collects keys.
    ///   - time: The source of time; tests pass a ``ManualTime``.
    ///   - fetch: Fetches the content of keys, which are distinct and in the order of their fetches. It runs in a task of its own, which is
    ///     canceled when no fetch waits for it. It must not wait for a key of its batch.
    public init(
        limit: Int = 100, delay: Duration = .milliseconds(5), time: some TimeSource = .system,
        fetch: @escaping @Sendable (_ params: [Param]) async throws -> [Param: Content]
    ) {
        self.limit = max(1, limit)
        self.delay = delay
        self.time = time
        request = fetch
    }

    /// Fetches the content of a key, in one request with other keys.
    ///
    /// - Parameter param: The key.
    /// - Returns: The content that the response has for the key.
    /// - Throws: The error of the request, unchanged; a ``FetchError`` if the response lacks the key; `CancellationError` as soon as the
    ///   task is canceled, without effect on other fetches.
    public func fetch(param: Param) async throws -> Content {
        try Task.checkCancellation()
        let active = FetchScope.active
        let (number, subject, isFirst, full) = batches.update { $0.join(param, for: active, limit: limit) }
        defer { leave(number, param, active) }
        if let full { send(full, number) } else if isFirst { startTimer(number) }
        // A request that needs a key whose fetch waits for the request would never end.
        let wait = active.map { FetchWait($0) }
        defer { wait?.end() }
        if wait?.begin(awaiting: subject) == false {
            throw StoreError(
                .reentrantFetch,
                "cannot fetch key \(param) in a batch that waits for the key itself; let its request take the data from the origin")
        }
        return try await batches.wait(for: number) { $0.result(of: param, in: number) }.get()
    }

    /// The number of fetches that wait, for tests.
    var waitingCount: Int { batches.read { $0.waitingCount } }

    private func startTimer(_ number: Int) {
        let deadline = time.now.advanced(by: delay)
        let timer = Task.detached(priority: Task.currentPriority) { [self] in
            // A canceled sleep means that the batch was sent or abandoned.
            guard (try? await time.sleep(until: deadline)) != nil else { return }
            if let collected = batches.update({ $0.send(number) }) { send(collected, number) }
        }
        let isNeeded = batches.update { $0.timerStarted(number, timer) }
        if !isNeeded { timer.cancel() }
    }

    private func send(_ collected: Batches<Param, Content>.Collected, _ number: Int) {
        collected.timer?.cancel()
        // Detached: a batch belongs to many fetches, so it inherits no task-local values from any of them.
        let task = Task.detached(priority: Task.currentPriority) { [self] in
            defer { collected.scope.end() }
            let result: Result<[Param: Content], any Error> = await collected.scope.run {
                do { return .success(try await request(collected.params)) } catch { return .failure(error) }
            }
            let unused = batches.update { $0.requestEnded(number, result) }
            // Released outside the lock, because the content is the user's.
            withExtendedLifetime(unused) {}
        }
        let isNeeded = batches.update { $0.requestStarted(number, task) }
        if !isNeeded { task.cancel() }
    }

    private func leave(_ number: Int, _ param: Param, _ fetch: FetchScope?) {
        let abandoned = batches.update { $0.leave(number, param, fetch) }
        abandoned?.task?.cancel()
    }
}

/// The batches of a fetcher that still have members (C21).
private struct Batches<Param: Hashable & Sendable, Content: Sendable>: Sendable {
    struct Batch: Sendable {
        enum Phase: Sendable {
            case collecting
            case sent
            case ended(Result<[Param: Content], any Error>)
        }

        var phase = Phase.collecting
        /// The request in the graph of waits.
        let subject = FetchedKey()
        /// The distinct keys in the order of their first fetches, and the number of fetches that wait for each.
        var params: [Param] = []
        var members: [Param: Int] = [:]
        /// The fetches of stores that wait for the request to be sent. A fetch that waits for two keys is in it twice.
        var fetches: [FetchScope] = []
        /// The timer while the batch collects keys, and then the request.
        var task: Task<Void, Never>?

        var isCollecting: Bool { if case .collecting = phase { true } else { false } }
    }

    private var batches: [Int: Batch] = [:]
    private var lastNumber = 0
    /// The batches that have ended since the waiters were last checked.
    var changes = ChangedParts.nothing

    var waitingCount: Int { batches.values.reduce(0) { $0 + $1.members.values.reduce(0, +) } }

    /// The keys of a batch that is sent, its request, and its timer.
    struct Collected: Sendable {
        let params: [Param]
        let scope: FetchScope
        let timer: Task<Void, Never>?
    }

    /// Adds a fetch to the batch that collects keys, or to a new batch.
    ///
    /// - Returns: The number of the batch, its place in the graph of waits, whether it is new, and its keys if it is full now; then no
    ///   other fetch joins it.
    mutating func join(
        _ param: Param, for fetch: FetchScope?, limit: Int
    ) -> (number: Int, subject: FetchedKey, isFirst: Bool, full: Collected?) {
        let isFirst = batches[lastNumber]?.isCollecting != true
        if isFirst { lastNumber += 1 }
        var batch = batches.removeValue(forKey: lastNumber) ?? Batch()
        if batch.members[param] == nil { batch.params.append(param) }
        batch.members[param, default: 0] += 1
        if let fetch { batch.fetches.append(fetch) }
        batches[lastNumber] = batch
        return (lastNumber, batch.subject, isFirst, batch.params.count < limit ? nil : send(lastNumber))
    }

    /// Ends the collection of keys; returns `nil` if it has ended before.
    mutating func send(_ number: Int) -> Collected? {
        guard let batch = batches[number], batch.isCollecting else { return nil }
        batches[number]?.phase = .sent
        batches[number]?.task = nil
        batches[number]?.fetches = []
        // A call that closes one of the stores waits for the request, even if the store's fetches have left (C23).
        var counters: [ObjectIdentifier: WatchedState<Int>] = [:]
        for fetch in batch.fetches { fetch.running.forEach { counters[ObjectIdentifier($0)] = $0 } }
        let scope = FetchScope(batch.subject, .many(Array(counters.values)))
        return Collected(params: batch.params, scope: scope, timer: batch.task)
    }

    /// Registers a timer; returns `false` if its batch no longer collects keys.
    mutating func timerStarted(_ number: Int, _ timer: Task<Void, Never>) -> Bool {
        guard batches[number]?.isCollecting == true else { return false }
        batches[number]?.task = timer
        return true
    }

    /// Registers a request; returns `false` if no fetch waits for it.
    mutating func requestStarted(_ number: Int, _ task: Task<Void, Never>) -> Bool {
        guard batches[number] != nil else { return false }
        batches[number]?.task = task
        return true
    }

    /// Keeps the result of a request for the members of its batch; returns the result if there are none.
    mutating func requestEnded(
        _ number: Int, _ result: Result<[Param: Content], any Error>
    ) -> Result<[Param: Content], any Error>? {
        guard batches[number] != nil else { return result }
        batches[number]?.phase = .ended(result)
        changes.insert(number)
        return nil
    }

    /// The result of a key; `nil` before the request has ended.
    func result(of param: Param, in number: Int) -> Result<Content, any Error>? {
        guard let batch = batches[number], case .ended(let result) = batch.phase else { return nil }
        return result.flatMap { contents in
            if let content = contents[param] { return .success(content) }
            let count = batch.params.count
            return .failure(
                FetchError(
                    .missingKey,
                    "cannot fetch \(param): the response to a batch of \(count) has no content for it; check that the key exists"))
        }
    }

    /// Removes a fetch; removes the batch with its last fetch.
    ///
    /// - Returns: The removed batch. The caller cancels its task and releases it outside the lock.
    mutating func leave(_ number: Int, _ param: Param, _ fetch: FetchScope?) -> Batch? {
        guard var batch = batches.removeValue(forKey: number) else { return nil }
        if let place = batch.fetches.firstIndex(where: { $0 === fetch }) { batch.fetches.remove(at: place) }
        batch.members[param, default: 1] -= 1
        if batch.members[param] == 0 {
            batch.members[param] = nil
            // Until the request is sent, a key that no fetch waits for leaves the batch.
            if batch.isCollecting { batch.params.removeAll { $0 == param } }
        }
        guard !batch.members.isEmpty else { return batch }
        batches[number] = batch
        return nil
    }
}
