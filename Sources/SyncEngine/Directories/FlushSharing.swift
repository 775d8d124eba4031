/// The assignment of waiters to flushes of the disk: one flush runs at a time, and all waiters that arrived before it began share it.
///
/// A flush covers the writes made before it began, so later waiters cannot share a running flush. A failed flush fails all later waiters
/// too. The system may have discarded the data that it failed to write, and a second flush would then report success.
struct FlushSharing: Hashable, Sendable {
    /// The number of the flush that began last, counted from 1.
    private(set) var lastBegun = 0
    /// The number of the flush that ended last, successfully or not.
    private(set) var lastEnded = 0
    private(set) var hasFailed = false
    /// Whether a waiter must begin the next flush and has not begun it yet.
    private(set) var isDue = false
    private(set) var waitingForNext = 0

    var isRunning: Bool { lastBegun > lastEnded }

    /// Adds a waiter; returns the number of the flush to wait for, and whether this waiter has to begin it.
    mutating func arrived() -> (number: Int, isToBegin: Bool) {
        waitingForNext += 1
        defer { isDue = isDue || !(isRunning || hasFailed) }
        return (lastBegun + 1, !(isDue || isRunning || hasFailed))
    }

    mutating func left(_ number: Int) {
        // A waiter that leaves during or after its flush changes nothing.
        if number == lastBegun + 1, waitingForNext > 0 { waitingForNext -= 1 }
    }

    /// Begins the flush that is due; returns `false` if none is due, or if it has no waiters any more.
    mutating func begins() -> Bool {
        guard exchange(&isDue, with: false), exchange(&waitingForNext, with: 0) > 0 else { return false }
        lastBegun += 1
        return true
    }

    /// Ends the running flush; returns whether another one has to begin.
    mutating func ended(well: Bool) -> Bool {
        precondition(isRunning, "a flush ended that never began")
        lastEnded = lastBegun
        hasFailed = !well
        isDue = well && waitingForNext > 0
        return isDue
    }

    /// Returns whether the flush of a number succeeded; `nil` until it has ended.
    func isWell(_ number: Int) -> Bool? {
        if lastEnded >= number { return number < lastEnded || !hasFailed }
        return hasFailed ? false : nil
    }
}
