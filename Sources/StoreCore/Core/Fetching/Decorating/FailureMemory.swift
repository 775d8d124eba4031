#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

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
        DecoratedOrigin(self, rule: FailureMemory<Param>(duration: duration, limit: limit, time: time))
    }
}

/// The failures of the last fetches, by request (C19).
private struct FailureMemory<Param: Hashable & Sendable>: FetchRule {
    private struct Failure: Sendable {
        let error: any Error
        let instant: MonotonicInstant
    }

    private let duration: Duration
    private let time: any TimeSource
    private let clock: HitClock
    /// A table of records already has the bound, the order of use and the deadlines that the memory needs.
    private let failures: MemoryTable<OriginRequest<Param>, Failure>

    init(duration: Duration, limit: Int, time: some TimeSource) {
        self.duration = duration
        self.time = time
        clock = HitClock(time)
        failures = MemoryTable(countLimit: limit, costLimit: .max, cost: nil)
    }

    func admit(_ request: OriginRequest<Param>) throws -> (FetchOutcome) -> Void {
        guard let failure = failures.validContent(of: request.subject, by: clock) else { return { fetchEnded(request.subject, $0) } }
        let age = failure.instant.duration(to: time.now)
        let advised = (failure.error as? any FailureAdvising)?.retryAfter
        let delay = RetryPolicy.delay(own: duration, advised: advised, limit: RetryPolicy.defaultAdviceLimit)
        let remaining = max(.zero, delay - age)
        throw FetchError(
            .failedRecently, "cannot fetch \(request.words): its last fetch failed \(age.inWords) ago; retry in \(remaining.inWords)",
            underlyingError: failure.error, retryAfter: remaining)
    }

    private func fetchEnded(_ subject: OriginRequest<Param>, _ outcome: FetchOutcome) {
        switch outcome {
        case .responded:
            _ = failures.remove(subject)
        case .failed(let error):
            let now = time.now
            let record = CacheRecord(content: Failure(error: error, instant: now), fetchedAt: time.date)
            _ = failures.put(subject, record, deadline: now.advanced(by: duration).nanoseconds)
        case .unknown:
            break
        }
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
