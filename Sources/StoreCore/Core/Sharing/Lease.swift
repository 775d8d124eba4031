#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The outcome of a wait for a lease.
public enum LeaseOutcome: Sendable {
    /// The caller holds the lease and fetches.
    case granted(Lease)
    /// The fetch of another holder has failed; the waiters fail with this error.
    case failed(FetchFailedElsewhere)
    /// The result of another holder cannot be stored, or the cacher grants no leases. Every waiter fetches for itself.
    case notNeeded
}

/// The right to fetch a key while all other users of a shared cacher wait.
///
/// The holder ends the lease once the result is saved. A lease that is released without ending counts as abandoned.
public final class Lease: Sendable {
    /// The position of the cacher when the lease was granted.
    ///
    /// A result that is fetched under the lease is saved over this position.
    public let position: Revision

    /// The action that ends the lease; `nil` once it has run.
    private let onEnd: Lock<(@Sendable (Ending) -> Void)?>

    /// Creates a lease, for authors of shared cachers.
    ///
    /// - Parameters:
    ///   - position: The position at the time of the grant, after all earlier changes were delivered.
    ///   - onEnd: Ends the lease; called once, and must return quickly.
    public init(position: Revision, onEnd: @escaping @Sendable (_ ending: Ending) -> Void) {
        self.position = position
        self.onEnd = Lock(onEnd)
    }

    deinit { end(.abandoned) }

    /// Ends the lease; later calls have no effect.
    ///
    /// - Parameter ending: The outcome for the waiters.
    public func end(_ ending: Ending) {
        onEnd.withLock({ $0.take() })?(ending)
    }

    /// The outcome of a lease, which decides what its waiters do next.
    public enum Ending: Hashable, Sendable {
        /// The result is saved; the waiters load it.
        case saved
        /// The result cannot be saved; each waiter fetches for itself.
        case notStored
        /// The fetch failed; the waiters fail too.
        case failed(FetchFailedElsewhere)
        /// The fetch was canceled or refused; the next waiter takes over.
        case abandoned
    }
}

/// The error of a fetch by another user of a shared cacher, as far as it can be passed between processes.
///
/// Callers that wait for the fetch of another process receive this error when that fetch fails. The next call fetches again.
public struct FetchFailedElsewhere: LocalizedError, FailureAdvising, Hashable, Sendable, CustomStringConvertible {
    /// The kind of the original failure; transient if the error gave no advice.
    public var failureKind: FailureKind
    /// The delay that the origin asked for; `nil` if it asked for none.
    public var retryAfter: Duration?
    /// Whether stale content may be served in place of the failure.
    public var allowsStale: Bool
    /// The description of the original error.
    public var message: String
    /// The message of the original error, and the remedy: call again.
    public var description: String {
        "FetchFailedElsewhere: another process fetched the key and failed: \(message); call again to fetch it here".escapedForDisplay()
    }
    /// The same text as `description`, for `localizedDescription`.
    public var errorDescription: String? { description }
    /// Two, which keeps the waiters from retrying: the holder of the lease has already tried.
    public var attempts: Int { 2 }

    /// Describes a failed fetch.
    ///
    /// - Parameter error: The error of the fetch; ``FailureAdvising`` supplies the advice.
    public init(_ error: any Error) {
        let advice = error as? any FailureAdvising
        failureKind = advice?.failureKind ?? .transient
        retryAfter = advice?.retryAfter
        allowsStale = advice?.allowsStale ?? true
        // Bounded, because an error may carry a whole response.
        message = String("\(error)".prefix(500))
    }

    /// Creates the description of a failed fetch, for authors of shared cachers.
    ///
    /// - Parameters:
    ///   - failureKind: The kind of failure.
    ///   - retryAfter: The delay that the origin asked for.
    ///   - allowsStale: Whether stale content may be served in place of the failure.
    ///   - message: The description of the original error.
    public init(failureKind: FailureKind, retryAfter: Duration?, allowsStale: Bool, message: String) {
        self.failureKind = failureKind
        self.retryAfter = retryAfter
        self.allowsStale = allowsStale
        self.message = message
    }
}

extension FetchFailedElsewhere: Codable {
    private enum CodingKeys: String, CodingKey { case failureKind = "kind", retryAfter, allowsStale, message }

    /// Decodes a failure. An unknown kind counts as transient, and the delay is at most one hour.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        let kind = FailureKind(rawValue: try values.decode(String.self, forKey: .failureKind))
        // Another program may have stated any number, and the failure may be older than the delay.
        let delay = try values.decodeIfPresent(Double.self, forKey: .retryAfter).map {
            RetryPolicy.delay(own: .zero, advised: Duration(saturating: $0), limit: RetryPolicy.defaultAdviceLimit)
        }
        self.init(
            failureKind: kind ?? .transient, retryAfter: delay, allowsStale: try values.decode(Bool.self, forKey: .allowsStale),
            message: try values.decode(String.self, forKey: .message))
    }

    /// Encodes the failure for other processes, with the delay in seconds.
    public func encode(to encoder: any Encoder) throws {
        let seconds: Double? = retryAfter.map { $0 / .seconds(1) }
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(failureKind.rawValue, forKey: .failureKind)
        try values.encodeIfPresent(seconds, forKey: .retryAfter)
        try values.encode(allowsStale, forKey: .allowsStale)
        try values.encode(message, forKey: .message)
    }
}
