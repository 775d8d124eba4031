public import StoreCore

/// How a store of texts refreshes and switches.
///
/// ```swift
/// var policy = TextStorePolicy()
/// policy.activation = .atNextLaunch
/// policy.checkInterval = .seconds(3600)
/// ```
public struct TextStorePolicy: Sendable {
    /// When a fetched set of texts becomes the active one.
    public var activation: Activation
    /// How long after a check, good or bad, the manifest is not asked for again by itself; it survives a restart.
    public var checkInterval: Duration
    /// How long a text without version is used before it is asked for again.
    public var textExpiry: Duration
    /// How long is waited after failures, growing from one to the next; the number of attempts plays no part.
    public var backOff: RetryPolicy
    /// What the files of the session survive.
    public var durability: Durability
    /// The highest epoch of a manifest that counts without verification; a store that verifies manifests accepts every epoch it verifies.
    public var acceptedEpoch: UInt64
    /// The most by which a manifest's revision exceeds the last one without a `revisionJumped` event.
    public var revisionJump: UInt64

    /// When a fetched set of texts becomes the active one.
    public enum Activation: Hashable, Sendable {
        /// As soon as all of it is here.
        case immediately
        /// When the app is started again.
        case atNextLaunch
        /// When `activate()` is called.
        case manually
    }

    /// Makes a policy.
    ///
    /// - Parameters:
    ///   - activation: When a fetched set becomes the active one.
    ///   - checkInterval: How long after a check the manifest is not asked for again by itself.
    ///   - textExpiry: How long a text without version is used before it is asked for again.
    ///   - backOff: How long is waited after failures.
    ///   - durability: What the files of the session survive.
    ///   - acceptedEpoch: The highest epoch of a manifest that counts without verification.
    ///   - revisionJump: By how much a manifest's revision may exceed the last one before an event reports it.
    public init(
        activation: Activation = .immediately, checkInterval: Duration = .seconds(15 * 60), textExpiry: Duration = .seconds(24 * 3600),
        backOff: RetryPolicy = .exponential(base: .seconds(5), cap: .seconds(3600)), durability: Durability = .crash,
        acceptedEpoch: UInt64 = 0, revisionJump: UInt64 = 100_000_000
    ) {
        self.acceptedEpoch = acceptedEpoch
        self.revisionJump = revisionJump
        self.activation = activation
        self.checkInterval = checkInterval
        self.textExpiry = textExpiry
        self.backOff = backOff
        self.durability = durability
    }

    /// How long to wait after a failure.
    func delay(after error: TextStoreError, failures: Int) -> Duration {
        var endless = backOff
        endless.attempts = .max
        endless.shouldRetry = { _ in true }
        return endless.delay(after: error, attempt: max(1, failures), unit: 1) ?? backOff.cap
    }
}

/// How long a caller waits for a text.
public enum TextAwaiting: Hashable, Sendable {
    /// Not at all: what is here.
    case nothing
    /// Until the newest text is here, or so long; manifest and text together.
    ///
    /// Sends no request before the next check is due. A check that is not older than the timeout counts as a response.
    case remote(timeout: Duration)
}
