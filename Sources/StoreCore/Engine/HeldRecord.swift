/// The record that a key holds as its truth, with its age on the monotonic clock.
struct HeldRecord<Content: Sendable> {
    var record: CacheRecord<Content>
    /// From when on the content is no longer valid; `.distantFuture` is never, `.distantPast` is beyond every stale window.
    var deadline: MonotonicInstant

    /// A record from the origin or an update, dated now. The time is asked for only where the record ever expires.
    init(_ record: consuming CacheRecord<Content>, expiry: Expiry, now: @autoclosure () -> MonotonicInstant) {
        let lifetime = record.freshness.lifetime ?? expiry.lifetime
        self.record = record
        deadline = lifetime.map { now().advanced(by: max(.zero, $0)) } ?? .distantFuture
    }

    /// A record from a cacher, whose wall-clock age has become `remaining` (C11).
    init(_ record: CacheRecord<Content>, remaining: Duration, needsRefresh: Bool, now: MonotonicInstant) {
        self.record = record
        if record.isInvalidated {
            deadline = .distantPast
        } else if needsRefresh {
            // Its cacher may find it out of date before its time is over.
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

    /// Whether it is valid and will not always be.
    func expires(after now: @autoclosure () -> MonotonicInstant) -> Bool { deadline != .distantFuture && now() < deadline }

    /// Whether the expired content may still be served within `window` after its deadline.
    func isUsable(within window: Duration, at now: MonotonicInstant) -> Bool {
        guard !record.freshness.mustRevalidate, deadline != .distantPast else { return false }
        return now <= deadline.advanced(by: max(.zero, window)) && window > .zero
    }

    /// Takes another one's place, and gives it its own; for one that can only be reached as an optional.
    mutating func exchange(with other: inout HeldRecord) { swap(&self, &other) }

    mutating func invalidate() {
        record.isInvalidated = true
        deadline = .distantPast
    }
}

/// What a machine has to know of its store's settings; one object for all keys.
final class KeyRules<Content: Sendable>: Sendable {
    let expiry: Expiry
    let policy: StorePolicy
    /// Whether there is a memory in front that mirrors each accepted record.
    let hasFront: Bool
    /// Whether there is a cacher that has to be called.
    let hasBacking: Bool
    /// Whether somebody listens to events.
    let reports: Bool
    /// What to know of a list; `nil` for content that is not one.
    let list: ListRules<Content>?
    /// Whether the content is a list, so that there may be pages beside it.
    let isList: Bool
    /// Whether there may be pages before the first one.
    let isTwoWay: Bool
    /// The position of a shared cacher; `nil` if the cacher is not shared.
    let position: (@Sendable () -> Revision)?
    let isShared: Bool

    init(
        expiry: Expiry = .never, policy: StorePolicy = .default, hasFront: Bool = false, hasBacking: Bool = true,
        reports: Bool = true, list: ListRules<Content>? = nil, position: (@Sendable () -> Revision)? = nil
    ) {
        self.expiry = expiry
        self.policy = policy
        self.hasFront = hasFront
        self.hasBacking = hasBacking
        self.reports = reports
        self.list = list
        isList = list != nil
        isTwoWay = list?.isTwoWay == true
        self.position = position
        isShared = position != nil
    }

    /// Whether content may have pages at this side.
    @inline(__always)
    func hasSide(_ direction: PageDirection) -> Bool { direction == .next ? isList : isTwoWay }
}
