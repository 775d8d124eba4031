/// Runs fetches with their attempts and, for a list with several pages, their pages. One object serves all fetches of a store.
final class Fetches: Sendable {
    typealias Report = @Sendable (StoreEventKind) -> Void
    typealias Outcome = Result<Fetched<BoxedContent>, any Error>

    /// The largest number of empty pages that are requested one after another without a row that asks for them.
    static let emptyLimit = 20

    /// The number of tasks that fetch, canceled ones included.
    let running = WatchedState(0)
    private let respond: Respond
    /// A closure around each attempt, for tools.
    let interceptor = FetchInterceptor()
    private let retry: RetryPolicy
    /// The places of the attempts that run at once; `nil` for any number.
    private let places: Permits?
    private let timeLimit: Duration?
    private let list: ListRules<BoxedContent>?
    private let time: any TimeSource
    /// The result of the attempt with a time limit in which the current task runs.
    @TaskLocal static var limited: SharedResult<Outcome>?

    init(respond: @escaping Respond, policy: StorePolicy, list: ListRules<BoxedContent>?, time: any TimeSource) {
        self.respond = respond
        retry = policy.retry
        places = policy.fetchWidth.map { Permits($0) }
        timeLimit = policy.fetchTimeLimit
        self.list = list
        self.time = time
    }

    /// The number of attempts that wait for a place.
    var waitingCount: Int { places?.waiterCount ?? 0 }

    // A task has little initial stack, and larger frames are allocated. Fetches that report events or fail use functions of their own.

    /// Runs one fetch, not before `start`; `report` gets its events.
    func run(_ order: FetchOrder, _ param: BoxedKey, _ report: Report?, at start: MonotonicInstant?) async -> Outcome {
        if let start, let error = await failure(ofWaitingUntil: start) { return .failure(error) }
        guard let report else { return await outcome(of: order, param, nil) }
        return await runReported(order, param, report)
    }

    @inline(never)
    private func failure(ofWaitingUntil start: MonotonicInstant) async -> (any Error)? {
        do { try await time.sleep(until: start) } catch { return error }
        return nil
    }

    @inline(never)
    private func runReported(_ order: FetchOrder, _ param: BoxedKey, _ report: @escaping Report) async -> Outcome {
        report(.fetchBegan(order.target))
        let began = time.now
        let outcome = await outcome(of: order, param, report)
        report(.fetchEnded(order.target, duration: began.duration(to: time.now), eventOutcome(outcome)))
        return outcome
    }

    private func eventOutcome(_ outcome: Outcome) -> StoreEventKind.FetchOutcome {
        // Only the store cancels this task, so its flag tells a canceled fetch from a fetcher's own cancellation error.
        if Task.isCancelled { return .cancelled }
        switch outcome {
        case .success(let fetched): return fetched.content == nil ? .notModified : .modified
        case .failure(let error): return StoreEventKind.FetchOutcome(error)
        }
    }

    private func outcome(of order: FetchOrder, _ param: BoxedKey, _ report: Report?) async -> Outcome {
        do {
            let first = try await attempt(order.request(for: param), report)
            guard case .content(_, let pages) = order, pages != PageCounts() else { return .success(first) }
            return .success(try await extend(first, by: pages, param, report))
        } catch {
            return .failure(error)
        }
    }

    /// Fetches the pages beside the first one in order, each with the key of the page before.
    @inline(never)
    private func extend(
        _ first: Fetched<BoxedContent>, by wanted: PageCounts, _ param: BoxedKey, _ report: Report?
    ) async throws -> Fetched<BoxedContent> {
        guard let list, var content = first.content else { return first }
        let arrival = time.now
        var details = first.details
        if let start = wanted.start { details = RecordDetails(details, of: start, count: list.count(content)) }
        var index: AnyObject?
        for (direction, count) in [(PageDirection.next, wanted.next), (.prev, wanted.prev)] {
            var (missing, empty) = (count, 0)
            while true {
                // In a window, an empty page is merged with the next one that has elements (C18).
                let isMerged = list.window != nil && details?.fields.pages?.all.emptyEnd(direction) != nil
                guard missing > 0 || isMerged, empty < Self.emptyLimit,
                    let key = direction == .next ? details?.fields.nextKey : details?.fields.prevKey
                else { break }
                if isMerged { empty += 1 } else { missing -= 1 }
                // Stops an origin that ignores cancellation from loading the pages of a list that will be dropped.
                try Task.checkCancellation()
                let page = try await attempt(.page(direction, key: key, param), report)
                guard let elements = page.content else {
                    throw StoreError(.nothingToConfirm, "fetching a page: the origin confirmed it without being asked; return the page")
                }
                let before = list.count(content)
                let replaced = list.merge(&content, elements, direction, &index)
                details = RecordDetails(
                    details, extendedBy: page.details, direction, key: key, sizes: (before, list.count(content)),
                    keepsValidator: replaced == nil, mergesEmpty: list.window != nil, arrival: arrival)
            }
        }
        return Fetched(content: content, details: details)
    }

    private func attempt(_ request: OriginRequest<BoxedKey>, _ report: Report?) async throws -> Fetched<BoxedContent> {
        var attempt = 1
        while true {
            do {
                // Most stores have no limits, and a frame of its own would lengthen each of their fetches.
                if places != nil || timeLimit != nil || interceptor.isSet { return try await respondWithinLimits(request) }
                return try await respond(request)
            } catch {
                try await pause(after: error, attempt, request.target, report)
                attempt += 1
            }
        }
    }

    @inline(never)
    private func respondWithinLimits(_ request: OriginRequest<BoxedKey>) async throws -> Fetched<BoxedContent> {
        // Held for the attempt alone: a pause before the next one, or the next page, gives the place to another fetch.
        var place: Permits.Permit?
        if let places { place = try await FetchTurn.take(places, within: nil) }
        defer { place?.release() }
        guard let timeLimit else { return try await respondIntercepted(request) }
        let result = SharedResult<Outcome>()
        // Not a child task, because an attempt that ignores its cancellation is left behind.
        let attempt = Task { [self] in
            await Self.$limited.withValue(result) {
                do { result.put(.success(try await respondIntercepted(request))) } catch { result.put(.failure(error)) }
            }
        }
        let timer = Task.detached { [time] in
            // A canceled sleep means that the attempt has ended.
            guard (try? await time.sleep(until: time.now.advanced(by: timeLimit))) != nil else { return }
            result.put(
                .failure(
                    StoreError(
                        .fetchTimedOut,
                        "fetching: the fetcher returned nothing within \(timeLimit); let it fail earlier, or raise StorePolicy.fetchTimeLimit"
                    )))
            attempt.cancel()
        }
        defer { timer.cancel() }
        return try await result.value { attempt.cancel() }.get()
    }

    /// The error of the attempt in which the current task runs, if its time is over.
    fileprivate static var timeout: StoreError? {
        guard case .failure(let error as StoreError)? = limited?.result, error.code == .fetchTimedOut else { return nil }
        return error
    }

    private func respondIntercepted(_ request: OriginRequest<BoxedKey>) async throws -> Fetched<BoxedContent> {
        guard interceptor.isSet else { return try await respond(request) }
        return try await interceptor.run(request.key, request.target) {
            $0.content == nil ? .notModified : .modified
        } _: {
            try await respond(request)
        }
    }

    /// Waits before the next attempt; throws the error if there is none.
    @inline(never)
    private func pause(after error: any Error, _ attempt: Int, _ target: StoreEventKind.Target, _ report: Report?) async throws {
        guard !Task.isCancelled, let delay = retry.delay(after: error, attempt: attempt, unit: .random(in: 0..<1)) else { throw error }
        report?(.retried(target, attempt: attempt, delay: delay, error))
        try await time.sleep(until: time.now.advanced(by: delay))
    }
}

extension StoreError {
    /// The error of the running attempt of a fetch if it has exceeded the time limit of its store; `nil` otherwise.
    ///
    /// The store cancels an attempt after ``StorePolicy/fetchTimeLimit``. With this property, a decorator of a fetcher distinguishes an
    /// origin that hangs from a fetch that is no longer wanted.
    public static var ofTimeLimit: StoreError? { Fetches.timeout }
}

extension FetchOrder {
    fileprivate func request(for param: BoxedKey) -> OriginRequest<BoxedKey> {
        switch self {
        case .content(let validator, let pages):
            if case .page(let direction, let key) = pages.start {
                .page(direction, key: key, param)
            } else {
                .content(param, revalidating: validator)
            }
        case .page(let direction, let key): .page(direction, key: key, param)
        case .values(let last): .content(param, revalidating: last)
        }
    }
}

extension OriginRequest {
    fileprivate var key: Param {
        switch self {
        case .content(let key, revalidating: _), .page(_, key: _, let key): key
        }
    }

    fileprivate var target: StoreEventKind.Target {
        switch self {
        case .content: .content
        case .page(let direction, key: _, _): .page(direction)
        }
    }
}
