/// Which flush of the disk is whose: one runs at a time, and whoever comes while it runs shares the next one.
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
    /// How many wait for the flush after the one that runs.
    private(set) var waitingForNext = 0

    var isRunning: Bool { lastBegun > lastEnded }

    enum Arrival: Hashable, Sendable {
        /// Waits for the flush of this number, which is to begin now.
        case begin(Int)
        /// Waits for the flush of this number, which begins when the one that runs has ended, or never where one has failed.
        case wait(Int)
    }

    /// Somebody has written what must be on the disk.
    mutating func arrived() -> Arrival {
        if isRunning || hasFailed {
            waitingForNext += 1
            return .wait(lastBegun + 1)
        }
        lastBegun += 1
        return .begin(lastBegun)
    }

    /// Somebody who waited for the flush of this number does not want it any more.
    mutating func left(_ number: Int) {
        // Who leaves while the flush runs or after it has ended changes nothing.
        if number == lastBegun + 1, waitingForNext > 0 { waitingForNext -= 1 }
    }

    enum EndAction: Hashable, Sendable {
        /// The flush of this number is to begin now.
        case begin(Int)
        case rest
    }

    /// The flush that ran has ended.
    mutating func ended(well: Bool) -> EndAction {
        precondition(isRunning, "A flush has ended that never began.")
        lastEnded = lastBegun
        hasFailed = !well
        defer { waitingForNext = 0 }
        guard well, waitingForNext > 0 else { return .rest }
        lastBegun += 1
        return .begin(lastBegun)
    }

    /// How the flush of a number went; `nil` as long as it has not ended.
    func isWell(_ number: Int) -> Bool? {
        if lastEnded >= number { return number < lastEnded || !hasFailed }
        return hasFailed ? false : nil
    }
}
