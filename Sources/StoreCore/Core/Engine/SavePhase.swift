/// The way of a key's content to the cacher (C6): what the cacher lacks, the call that saves it, and the last failure.
///
/// A machine requests a call, and the queue of the store begins it. A call takes the content of the moment at which it begins. So a change
/// during a call requests one more, and any number of changes before a call need no other.
struct SavePhase: Hashable {
    /// A running call: the revision of the content that it saves, and its change if the cacher is shared.
    struct Save: Hashable {
        var revision: Ticket
        var change: OutgoingChange?
    }

    /// A change that the cacher failed to take; the key stays live until it has taken it.
    enum Failure: Hashable {
        case content
        /// The record could not be read, and is to be invalidated.
        case invalidation
    }

    private(set) var running: Save?
    /// Whether a call is requested: the first one, or the next one after a change during the running call.
    var isRequested = false
    /// The last revision that the cacher took or failed to take.
    var tried = Ticket(number: 0)
    var failure: Failure?
    /// The change that the next call saves in a shared cacher; `nil` if there is none, and in any other cacher.
    var next: OutgoingChange?
    /// The changes that others make of this key; unused if the cacher is not shared.
    var elsewhere = SharedKey()

    @inline(__always)
    var isRunning: Bool { running != nil }

    /// Whether no call that is requested or runs saves this revision.
    func lacksRequest(for revision: Ticket) -> Bool { !isRequested && running?.revision != revision }

    /// The requested call begins. Later changes belong to the next one.
    mutating func begin(_ revision: Ticket) {
        running = Save(revision: revision, change: next)
        (isRequested, next) = (false, nil)
    }

    /// The running call ends. Returns the call; `nil` if none runs.
    mutating func end() -> Save? { running.take() }

    // MARK: Changes in a shared cacher

    /// A call has failed: its change is saved again as it was, with the changes that were derived from its content meanwhile.
    mutating func keep(_ failed: OutgoingChange?) {
        guard var failed else { return }
        if let next {
            // Content that was set or fetched meanwhile replaces the content that could not be saved.
            guard next.isDerived else {
                if failed.invalidates { self.next?.invalidates = true }
                return
            }
            failed.invalidates = failed.invalidates || next.invalidates
            failed.isUnattended = failed.isUnattended || next.isUnattended
        }
        next = failed
    }

    /// The caller that has made this revision no longer waits for its save.
    mutating func leaveUnattended(_ revision: Ticket) {
        if let running, revision <= running.revision { self.running?.change?.isUnattended = true } else { next?.isUnattended = true }
    }
}

/// The pace at which changes that come by themselves are saved: values of a stream (L6), and linked changes (E8).
struct SavePace {
    /// The revision of the last such change.
    var revision = Ticket(number: 0)
    private var lastSave: MonotonicInstant?
    /// The time at which the change is saved that waits; `nil` if none does.
    private(set) var due: MonotonicInstant?

    /// Returns whether the save of the last change waits, because another one was saved a short while ago.
    mutating func defers(by interval: Duration, at now: @autoclosure () -> MonotonicInstant) -> Bool {
        if due != nil { return true }
        let now = now()
        if let next = lastSave?.advanced(by: interval), now < next {
            due = next
        } else {
            lastSave = now
        }
        return due != nil
    }

    /// The time of the next save may have come.
    mutating func timerFired(at now: MonotonicInstant) { if let due, due <= now { self.due = nil } }

    /// The last change is saved at once, if it waits.
    mutating func startOver() { (lastSave, due) = (nil, nil) }
}
