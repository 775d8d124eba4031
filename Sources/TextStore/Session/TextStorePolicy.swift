public import StoreCore

/// The rules for refreshing and switching the texts of a store.
///
/// ```swift
/// var policy = TextStorePolicy()
/// policy.activation = .atNextLaunch
/// policy.checkInterval = .seconds(3600)
/// ```
///
/// <doc:OfflineAndFallback> explains checks, and <doc:ConsistentSets> the activation of texts.
public struct TextStorePolicy: Sendable {
    /// The time at which a fetched set becomes active.
    public var activation: Activation
    /// The minimum interval between a successful check of the manifest and the next one; 15 minutes by default. It survives a restart.
    public var checkInterval: Duration
    /// The time after which an unversioned text is fetched again; one day by default.
    public var textExpiry: Duration
    /// The growing pauses after failures; the policy's number of attempts is ignored.
    ///
    /// A delay that the origin names (`Retry-After`) can lengthen a pause up to its `adviceLimit`, and never shortens it.
    public var backOff: RetryPolicy
    /// The events that saved files survive.
    public var durability: Durability
    /// The highest epoch that the store accepts without verification; a store that verifies manifests accepts every epoch it verifies.
    ///
    /// The manifest of the app's bundle needs no verification, so its epoch is accepted in any case.
    public var acceptedEpoch: UInt64
    /// The largest increase of a manifest's revision without a `revisionJumped` event; 100 million by default.
    public var revisionJump: UInt64

    /// The languages that an acceptance covers.
    public var acceptedLanguages: Acceptance.Languages
    /// The evidence of acceptances that is kept.
    public var evidence: Evidence

    /// The evidence of acceptances that a store keeps beside the acceptances themselves.
    public enum Evidence: Hashable, Sendable {
        /// None: of equal acceptances, the last one is kept.
        case none
        /// Every acceptance and every withdrawal, each with the accepted wording, in a log that only grows.
        case allAcceptances
    }

    /// The time at which a fetched set becomes active.
    public enum Activation: Hashable, Sendable {
        /// As soon as the whole set has been saved.
        case immediately
        /// At the next start of the app.
        case atNextLaunch
        /// Only when the app calls `activate()`.
        case manually
    }

    /// Makes a policy.
    ///
    /// - Parameters:
    ///   - activation: The time at which a fetched set becomes active.
    ///   - checkInterval: The minimum interval between two checks of the manifest.
    ///   - textExpiry: The time after which an unversioned text is fetched again.
    ///   - backOff: The growing pauses after failures.
    ///   - durability: The events that saved files survive.
    ///   - acceptedEpoch: The highest epoch that the store accepts without verification.
    ///   - revisionJump: The largest increase of a manifest's revision that causes no event.
    ///   - acceptedLanguages: The languages that an acceptance covers.
    ///   - evidence: The evidence of acceptances that is kept.
    public init(
        activation: Activation = .immediately, checkInterval: Duration = .seconds(15 * 60), textExpiry: Duration = .seconds(24 * 3600),
        backOff: RetryPolicy = .exponential(base: .seconds(5), cap: .seconds(3600)), durability: Durability = .crash,
        acceptedEpoch: UInt64 = 0, revisionJump: UInt64 = 100_000_000, acceptedLanguages: Acceptance.Languages = .each,
        evidence: Evidence = .none
    ) {
        (self.acceptedLanguages, self.evidence) = (acceptedLanguages, evidence)
        (self.acceptedEpoch, self.revisionJump) = (acceptedEpoch, revisionJump)
        (self.activation, self.checkInterval, self.textExpiry) = (activation, checkInterval, textExpiry)
        (self.backOff, self.durability) = (backOff, durability)
    }

    /// The longest pause after a failure, whatever delay the origin names (C24).
    var longestDelay: Duration { max(.zero, backOff.cap, backOff.adviceLimit) }

    /// Returns the pause after a failure.
    func delay(after error: TextStoreError, failures: Int) -> Duration {
        var endless = backOff
        endless.attempts = .max
        endless.shouldRetry = { _ in true }
        return endless.delay(after: error, attempt: max(1, failures), unit: 1) ?? backOff.cap
    }
}

/// The time that a caller waits for a text.
public enum TextAwaiting: Hashable, Sendable {
    /// Returns the best text on the device without waiting.
    case nothing
    /// Waits for the newest text until the timeout, which covers manifest and text.
    ///
    /// The store sends no request before the next check is due, except for an expired manifest. A check that is not older than the timeout
    /// counts as a response.
    case remote(timeout: Duration)
}
