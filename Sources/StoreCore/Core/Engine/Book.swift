#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The accepted content of a key, and the optimistic changes over it.
struct Book<Content: Sendable> {
    /// The newest accepted record; `nil` if the key has no content.
    var held: HeldRecord<Content>?
    /// The number of the last change of the accepted content, or of the last retry of its save.
    var revision = Ticket(number: 0)
    /// The number of changes of the content that readers see.
    var contentNumber: UInt64 = 0
    /// The start of the current epoch: results of older fetches and responses to older mutations are outdated (C5).
    var epoch = Ticket(number: 0)
    /// The patches, oldest first.
    var patches: [Patch<Content>] = []
    /// The accepted content with the pending changes of its entities and all patches applied; `nil` if there are none.
    var overlay: Content?
    /// The delivered commands that the content contains and that their outbox still knows.
    var foldedCommands: [UUID] = []

    /// The part of linked stores; `nil` for content that neither shows entities nor is shown elsewhere.
    var linked: OutOfLine<LinkedBook<Content>>?

    /// The content that observers and callers get: the accepted content with the patches applied.
    var content: Content? { overlay ?? held?.record.content }
}

/// The accepted record of a key, with its age on the monotonic clock.
struct HeldRecord<Content: Sendable> {
    var record: CacheRecord<Content>
    /// The end of the content's validity; `.distantFuture` is never, `.distantPast` is beyond every stale window.
    var deadline: MonotonicInstant
    /// Whether the record only stands in for that of the origin, so that it is not saved.
    var isStandIn = false
    /// Whether an observed key is fetched again at the deadline. False without a deadline, and for a record that arrived expired (C10).
    var refetchesAtDeadline = false

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
        (deadline, refetchesAtDeadline) = (.distantPast, false)
    }

    mutating func neverExpire() { (deadline, refetchesAtDeadline) = (.distantFuture, false) }
}
