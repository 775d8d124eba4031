public import StoreCore

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
///
/// <doc:OnAServer> shows where a server uses batches.
public final class BatchFetcher<Param: Hashable & Sendable, Content: Sendable>: Fetcher {
    /// The largest number of keys in a request.
    public let limit: Int

    /// The time for which a batch collects keys.
    public let delay: Duration

    private let time: any TimeSource
    private let request: @Sendable ([Param]) async throws -> [Param: Content]
    private let batches = VisibleMutex(Batches<Param, Content>())

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
        let (results, waiter) = AsyncStream<Result<Content, any Error>>.makeStream()
        let place = try join(param, waiter)
        defer { leave(place) }
        var iterator = results.makeAsyncIterator()
        // Only the cancellation of the task ends the stream without a result.
        guard !Task.isCancelled, let result = await iterator.next(isolation: #isolation) else { throw CancellationError() }
        return try result.get()
    }

    /// The number of fetches that wait, for tests.
    var waitingCount: Int { batches.withLock { $0.waitingCount } }

    private func join(_ param: Param, _ waiter: Batches<Param, Content>.Waiter) throws -> Batches<Param, Content>.Place {
        // Read outside the lock, because the time source is the user's.
        let deadline = time.now.advanced(by: delay)
        let (place, timer) = try batches.withLock { batches in
            let (place, isFull) = try batches.join(param, waiter, limit: limit) { startTimer($0, deadline) }
            return (place, isFull ? send(place.batch, &batches) : nil)
        }
        timer?.cancel()
        return place
    }

    private func startTimer(_ number: Int, _ deadline: MonotonicInstant) -> Task<Void, Never> {
        Task.detached(priority: Task.currentPriority) { [self] in
            // A canceled sleep means that the batch was sent or abandoned.
            guard (try? await time.sleep(until: deadline)) != nil else { return }
            _ = batches.withLock { send(number, &$0) }
        }
    }

    /// Sends the request of a batch unless it was sent or abandoned before. Returns the timer of the batch; the caller cancels it outside
    /// the lock.
    ///
    /// Called under the lock, so that no fetch leaves between the choice of the keys and the start.
    private func send(_ number: Int, _ batches: inout Batches<Param, Content>) -> Task<Void, Never>? {
        batches.send(number) { [self] params, joint in
            joint.start { await self.run(params, number) }
        }
    }

    private func run(_ params: [Param], _ number: Int) async {
        let result: Result<[Param: Content], any Error>
        do { result = .success(try await request(params)) } catch { result = .failure(error) }
        // Outside the lock, because the content is the user's. The batch is gone if all its fetches have left.
        batches.withLock { $0.all.removeValue(forKey: number) }?.end(with: result)
    }

    private func leave(_ place: Batches<Param, Content>.Place) {
        let abandoned = batches.withLock { $0.leave(place) }
        place.member.leave()
        abandoned?.task?.cancel()
    }
}

/// The batches of a fetcher whose requests have not ended (C21).
private struct Batches<Param: Hashable & Sendable, Content: Sendable>: Sendable {
    typealias Waiter = AsyncStream<Result<Content, any Error>>.Continuation

    struct Place: Sendable {
        let batch: Int
        let param: Param
        let number: Int
        let member: JointRequest.Member
    }

    var all: [Int: Batch<Param, Content>] = [:]
    private var lastBatch = 0
    private var lastFetch = 0

    var waitingCount: Int { all.values.flatMap(\.members.values).reduce(0) { $0 + $1.count } }

    /// Adds a fetch to the batch that collects keys, or to a new batch with a timer. Returns its place, and whether the batch is full.
    mutating func join(
        _ param: Param, _ waiter: Waiter, limit: Int, timer: (Int) -> Task<Void, Never>
    ) throws -> (place: Place, isFull: Bool) {
        let collecting = all[lastBatch].flatMap { $0.isCollecting ? $0.request : nil }
        let request = collecting ?? JointRequest()
        let member = try request.join()
        if collecting == nil {
            lastBatch += 1
            all[lastBatch] = Batch(request: request)
        }
        lastFetch += 1
        all[lastBatch]?.add(param, lastFetch, waiter)
        let isFull = all[lastBatch].map { $0.members.count >= limit } ?? false
        if collecting == nil, !isFull { all[lastBatch]?.task = timer(lastBatch) }
        return (Place(batch: lastBatch, param: param, number: lastFetch, member: member), isFull)
    }

    /// Ends the collection of keys, starts the request, and returns the timer; does nothing if the collection has ended before.
    mutating func send(_ number: Int, _ start: ([Param], JointRequest) -> Task<Void, Never>) -> Task<Void, Never>? {
        guard let batch = all[number], batch.isCollecting else { return nil }
        let params = batch.params
        all[number]?.requestedCount = params.count
        all[number]?.task = start(params, batch.request)
        return batch.task
    }

    /// Removes a fetch, and the batch with its last fetch. The caller cancels the task of the removed batch outside the lock.
    mutating func leave(_ place: Place) -> Batch<Param, Content>? {
        all[place.batch]?.remove(place.param, place.number)
        return all[place.batch]?.members.isEmpty == true ? all.removeValue(forKey: place.batch) : nil
    }
}

/// The fetches that wait for one request.
private struct Batch<Param: Hashable & Sendable, Content: Sendable>: Sendable {
    typealias Waiter = AsyncStream<Result<Content, any Error>>.Continuation

    let request: JointRequest
    /// The number of keys in the request; `nil` while the batch collects keys.
    var requestedCount: Int?
    /// The fetches that wait, by key and number.
    private(set) var members: [Param: [Int: Waiter]] = [:]
    /// The timer while the batch collects keys, and then the request.
    var task: Task<Void, Never>?

    var isCollecting: Bool { requestedCount == nil }

    /// The distinct keys in the order of their first fetches that wait.
    var params: [Param] {
        members.map { ($0.key, $0.value.keys.min() ?? 0) }.sorted { $0.1 < $1.1 }.map(\.0)
    }

    mutating func add(_ param: Param, _ number: Int, _ waiter: Waiter) { members[param, default: [:]][number] = waiter }

    mutating func remove(_ param: Param, _ number: Int) {
        members[param]?[number] = nil
        // Until the request is sent, a key that no fetch waits for leaves the batch.
        if members[param]?.isEmpty == true { members[param] = nil }
    }

    /// Passes the result of the request on to the fetches.
    func end(with result: Result<[Param: Content], any Error>) {
        for (param, waiters) in members {
            let content = result.flatMap { contents -> Result<Content, any Error> in
                if let content = contents[param] { .success(content) } else { .failure(missing(param)) }
            }
            for waiter in waiters.values { waiter.yield(content) }
        }
    }

    private func missing(_ param: Param) -> FetchError {
        FetchError(
            .missingKey,
            "cannot fetch \(param): the response to a batch of \(requestedCount ?? 0) has no content for it; check that the key exists")
    }
}
