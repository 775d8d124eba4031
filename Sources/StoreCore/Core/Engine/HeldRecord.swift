/// The accepted record of a key, with its age on the monotonic clock.
struct HeldRecord<Content: Sendable> {
    var record: CacheRecord<Content>
    /// The end of the content's validity; `.distantFuture` is never, `.distantPast` is beyond every stale window.
    var deadline: MonotonicInstant
    /// Whether the record only stands in for that of the origin, so that it is not saved.
    var isStandIn = false

    /// Creates a record from the origin or from an update, dated now. Reads the clock only if the record expires.
    init(
        _ record: consuming CacheRecord<Content>, expiry: Expiry, jitter: Double = 0, now: @autoclosure () -> MonotonicInstant
    ) {
        let lifetime = record.lifetime(expiry: expiry, jitter: jitter)
        self.record = record
        deadline = lifetime.map { now().advanced(by: max(.zero, $0)) } ?? .distantFuture
    }

    /// Creates a record from a cacher, with its remaining lifetime (C11).
    init(_ record: CacheRecord<Content>, remaining: Duration, needsRefresh: Bool, now: MonotonicInstant) {
        self.record = record
        if record.isInvalidated {
            deadline = .distantPast
        } else if needsRefresh {
            // A cacher may request a refresh before the lifetime ends.
            deadline = now.advanced(by: min(.zero, remaining))
        } else {
            deadline = remaining > .zero && remaining < .forever ? now.advanced(by: remaining) : .distantFuture
        }
    }

    init(_ record: CacheRecord<Content>, deadline: MonotonicInstant) {
        self.record = record
        self.deadline = deadline
    }

    func isValid(at now: @autoclosure () -> MonotonicInstant) -> Bool { deadline == .distantFuture || now() < deadline }

    /// Whether the record is valid now and has a deadline.
    func expires(after now: @autoclosure () -> MonotonicInstant) -> Bool { deadline != .distantFuture && now() < deadline }

    /// Whether the expired content may still be served within `window` after its deadline.
    func isUsable(within window: Duration, at now: MonotonicInstant) -> Bool {
        guard !record.freshness.mustRevalidate, deadline != .distantPast else { return false }
        return now <= deadline.advanced(by: max(.zero, window)) && window > .zero
    }

    /// Swaps two records. For a record behind an optional, where a plain assignment would copy both.
    mutating func exchange(with other: inout HeldRecord) { swap(&self, &other) }

    mutating func invalidate() {
        record.isInvalidated = true
        deadline = .distantPast
    }
}
