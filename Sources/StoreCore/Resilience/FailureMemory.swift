public import StoreCore

extension Origin {
    /// Returns a fetcher that refuses to fetch a key for some time after its fetch has failed.
    ///
    /// A store forgets the failure of a key that has no observers or callers. This memory protects the origin even then, and also against
    /// `refresh()` and against other stores that share the fetcher. A refused fetch throws a ``FetchError`` of code
    /// ``FetchError/Code/failedRecently``. It carries the original error, and the time until the next fetch as its `retryAfter`. If the
    /// origin asked for a longer delay, `retryAfter` is that delay, at most one hour, but the memory does not enforce it.
    ///
    /// ```swift
    /// let users = Store(
    ///     cacher: MemoryCacher(),
    ///     fetcher: UserFetcher(api: api).rememberingFailures(for: .seconds(1)))
    /// ```
    ///
    /// The failures of the pages of a list are remembered separately. Cancellations are not remembered, and a success forgets the failure.
    ///
    /// - Parameters:
    ///   - duration: The time after a failure during which the key is not fetched.
    ///   - limit: The number of remembered failures; beyond it, the least recently used failure is forgotten.
    ///   - time: The source of time; tests pass a ``ManualTime``.
    /// - Returns: The fetcher with a memory, which its copies share.
    public func rememberingFailures(
        for duration: Duration, limit: Int = 10_000, time: some TimeSource = .system
    ) -> DecoratedOrigin<Self> {
        let memory = FailureMemory<Param>(duration: duration, limit: limit, time: time)
        return DecoratedOrigin(self) { try memory.admit($0) }
    }
}

/// The failures of the last fetches, by request (C19).
private final class FailureMemory<Param: Hashable & Sendable>: Sendable {
    private let duration: Duration
    private let time: any TimeSource
    private let failures: VisibleMutex<FailureTable<OriginRequest<Param>>>

    init(duration: Duration, limit: Int, time: some TimeSource) {
        self.duration = duration
        self.time = time
        failures = VisibleMutex(FailureTable(limit: max(0, limit)))
    }

    func admit(_ request: OriginRequest<Param>) throws -> (FetchOutcome) -> Void {
        let now = time.now
        guard let failure = failures.withLock({ $0.use(request.subject, at: now) }) else {
            return { self.fetchEnded(request.subject, $0) }
        }
        let age = failure.instant.duration(to: now)
        // Like the delay of a retry: at least the own one, and the origin's advice within its limit (C24).
        let advised = (failure.error as? any FailureAdvising)?.retryAfter ?? .zero
        let delay = max(duration, min(advised, RetryPolicy.defaultAdviceLimit))
        let remaining = max(.zero, delay - age)
        throw FetchError(
            .failedRecently, "cannot fetch \(request.words): its last fetch failed \(age.inWords) ago; retry in \(remaining.inWords)",
            underlyingError: failure.error, retryAfter: remaining)
    }

    private func fetchEnded(_ subject: OriginRequest<Param>, _ outcome: FetchOutcome) {
        // The failures that leave the table are released outside the lock, because the errors are the user's.
        switch outcome {
        case .responded: _ = failures.withLock { $0.remove(subject) }
        case .failed(let error):
            let now = time.now
            let failure = Failure(error: error, instant: now, deadline: now.advanced(by: duration))
            _ = failures.withLock { $0.insert(failure, for: subject) }
        case .unknown: break
        }
    }
}

private struct Failure: Sendable {
    let error: any Error
    let instant: MonotonicInstant
    let deadline: MonotonicInstant
    /// The number of its last use.
    var use = 0
}

/// A bounded number of failures, of which the least recently used is forgotten first.
private struct FailureTable<Subject: Hashable & Sendable>: Sendable {
    private let limit: Int
    private var entries: [Subject: Failure] = [:]
    /// The uses in their order, oldest first. A use that is not the last one of its entry is skipped.
    private var uses: ArraySlice<(subject: Subject, number: Int)> = []
    private var lastUse = 0

    init(limit: Int) { self.limit = limit }

    /// Returns the failure of a request before its deadline, which counts as a use.
    mutating func use(_ subject: Subject, at now: MonotonicInstant) -> Failure? {
        guard let failure = entries[subject], now < failure.deadline else { return nil }
        let number = recordUse(of: subject)
        entries[subject]?.use = number
        return failure
    }

    /// Adds a failure, and returns the replaced failure and the forgotten one.
    mutating func insert(_ failure: Failure, for subject: Subject) -> [Failure] {
        var failure = failure
        failure.use = recordUse(of: subject)
        var dropped = entries.updateValue(failure, forKey: subject).map { [$0] } ?? []
        while entries.count > limit, let oldest = uses.popFirst() {
            guard entries[oldest.subject]?.use == oldest.number else { continue }
            if let old = entries.removeValue(forKey: oldest.subject) { dropped.append(old) }
        }
        return dropped
    }

    /// Forgets the failure of a request, and returns it.
    mutating func remove(_ subject: Subject) -> Failure? {
        let removed = entries.removeValue(forKey: subject)
        if entries.isEmpty { uses = [] }
        return removed
    }

    private mutating func recordUse(of subject: Subject) -> Int {
        // Bounds the list at a multiple of the number of failures.
        if uses.count > 2 * entries.count + 64 { uses = uses.filter { entries[$0.subject]?.use == $0.number }[...] }
        lastUse += 1
        uses.append((subject, lastUse))
        return lastUse
    }
}

extension OriginRequest {
    /// The request without its validator, so that all requests for one content are equal.
    fileprivate var subject: OriginRequest {
        if case .content(let param, _) = self { .content(param, revalidating: nil) } else { self }
    }

    /// The subject in words, for an error.
    fileprivate var words: String {
        switch self {
        case .content(let param, revalidating: _): "\(param)"
        case .page(let direction, let key, let param): "the \(direction) page \(key) of \(param)"
        }
    }
}
