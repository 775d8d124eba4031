/// Which flush of the disk is whose: one runs at a time, and whoever comes before it begins shares it.
///
/// A flush brings to the disk what was written before it began, so that one which runs already is of no use to those who come later. A
/// flush that has failed fails whoever comes after it too: what the system could not write it may have forgotten, and a second flush
/// would then say that all is well.
struct FlushSharing: Hashable, Sendable {
    /// The number of the flush that began last; they are counted from 1.
    private(set) var lastBegun = 0
    /// The number of the flush that ended last, well or not.
    private(set) var lastEnded = 0
    private(set) var hasFailed = false
    /// Whether somebody was told to begin the next flush, and has not begun it yet.
    private(set) var isDue = false
    /// How many wait for the next flush.
    private(set) var waitingForNext = 0

    var isRunning: Bool { lastBegun > lastEnded }

    /// Somebody has written what must be on the disk.
    ///
    /// - Returns: The number of the flush to wait for, and whether whoever asks is to see to it that it begins.
    mutating func arrived() -> (number: Int, isToBegin: Bool) {
        waitingForNext += 1
        defer { isDue = isDue || !(isRunning || hasFailed) }
        return (lastBegun + 1, !(isDue || isRunning || hasFailed))
    }

    /// Somebody who waited for the flush of this number does not want it any more.
    mutating func left(_ number: Int) {
        // Who leaves while the flush runs or after it has ended changes nothing.
        if number == lastBegun + 1, waitingForNext > 0 { waitingForNext -= 1 }
    }

    /// The flush that is due begins now.
    ///
    /// - Returns: Whether there is one, and anybody still wants it.
    mutating func begins() -> Bool {
        guard isDue else { return false }
        isDue = false
        guard waitingForNext > 0 else { return false }
        waitingForNext = 0
        lastBegun += 1
        return true
    }

    /// The flush that ran has ended.
    ///
    /// - Returns: Whether another one is to begin.
    mutating func ended(well: Bool) -> Bool {
        precondition(isRunning, "A flush has ended that never began.")
        lastEnded = lastBegun
        hasFailed = !well
        isDue = well && waitingForNext > 0
        return isDue
    }

    /// How the flush of a number went; `nil` as long as it has not ended.
    func isWell(_ number: Int) -> Bool? {
        if lastEnded >= number { return number < lastEnded || !hasFailed }
        return hasFailed ? false : nil
    }
}
