public import StoreCore

/// The rules of an outbox: how failed deliveries are repeated, and how much may be pending.
///
/// <doc:ChangesThatSurvive> explains failures and stuck changes.
public struct OutboxPolicy: Sendable {
    /// The number of lanes that deliver concurrently; at least one.
    public var concurrentLanes = 4

    /// The bound of the first delay after a failed attempt. Each delay is drawn between half of its bound and its bound.
    public var backOff = Duration.seconds(1)

    /// The factor by which the bound grows with each attempt.
    public var backOffMultiplier = 2.0

    /// The largest bound of a delay.
    public var longestBackOff = Duration.seconds(300)

    /// The largest delay that an origin may ask for; after it, the next attempt begins all the same.
    ///
    /// It never shortens the outbox's own delay.
    public var adviceLimit = RetryPolicy.defaultAdviceLimit

    /// The number of attempts after which a command that still fails transiently is given up; `nil` never gives up.
    ///
    /// A command that is given up counts as failed, and its change is taken back. The origin may have performed it. A retry begins to count
    /// again.
    public var attemptLimit: Int?

    /// The age from which a command is given up when an attempt fails transiently; `nil` never gives up.
    ///
    /// The age counts from the submission, by the wall clock. A command that is retried after this age has one further attempt.
    public var ageLimit: Duration?

    /// The time after which a running attempt is canceled and counts as a transient failure.
    ///
    /// The next attempt waits until the canceled one has returned. If the canceled attempt succeeds after all, the command is delivered.
    public var attemptTimeout = Duration.seconds(120)

    /// The effect of a permanent failure on the other commands of the lane.
    public var afterFailure = AfterFailure.laneContinues

    /// The largest number of pending and failed commands.
    public var countLimit = 100_000

    /// The largest total size of all commands, in bytes of JSON.
    public var byteLimit = 64_000_000

    /// The events that a submitted command survives.
    public var durability = Durability.crash

    /// The longest time for which clearing the outbox waits for the attempts that it cancels.
    public var clearTimeout = Duration.seconds(5)

    /// The rules of an outbox that is created without a policy: each property has its default.
    public static let `default` = OutboxPolicy()

    /// Creates rules with the default of each property.
    public init() {}

    /// The effect of a permanent failure on the other commands of the lane.
    public enum AfterFailure: Hashable, Sendable {
        /// The next command of the lane is delivered.
        case laneContinues
        /// The lane waits until the failed command is retried, replaced or discarded.
        case laneStops
    }

    var rules: OutboxMachine.Rules {
        OutboxMachine.Rules(
            width: max(1, concurrentLanes), continuesAfterFailure: afterFailure == .laneContinues,
            longestDelay: max(.zero, longestBackOff, adviceLimit))
    }

    /// Whether a command is given up that has failed transiently; its age counts from the submission.
    func givesUp(after attempts: Int, age: Duration) -> Bool {
        if let attemptLimit, attempts >= attemptLimit { return true }
        if let ageLimit, age >= ageLimit { return true }
        return false
    }

    /// The delay before a log that has failed is used again; never zero, because a full disk fails at once.
    var faultDelay: Duration { max(delay(after: 1, unit: 1), .milliseconds(100)) }

    /// The delay after a failed attempt, counted from 1, by a random number in `0..<1`.
    func delay(after attempt: Int, unit: Double) -> Duration {
        let rule = RetryPolicy(attempts: 1, base: backOff, multiplier: max(1, backOffMultiplier), cap: max(.zero, longestBackOff))
        return rule.backOff(attempt: attempt, unit: 0.5 + unit / 2)
    }
}
