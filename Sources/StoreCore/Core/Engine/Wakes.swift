/// The work of a key that waits for a time or for another fact.
struct Wakes {
    /// The time at which an unwanted fetch is canceled.
    var graceEnds: MonotonicInstant?
    /// Whether the record is fetched again at its deadline. False for a record without a deadline, and for one that arrived expired (C10).
    var refetchesAtDeadline = false
    /// Whether a trigger came too early and waits for its time.
    var triggerPending = false
    /// Whether an observed key is fetched when the last mutation is settled.
    var refetchesAfterMutations = false
}
