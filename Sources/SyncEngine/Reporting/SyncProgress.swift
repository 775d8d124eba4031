internal import StoreCore

/// How far a pass has come.
public struct SyncProgress: Sendable, Hashable {
    /// A number that is exact, or only a lower bound until the remote list has ended.
    public enum Total: Sendable, Hashable, CustomStringConvertible {
        /// At least so many.
        case atLeast(Int)
        /// So many.
        case exactly(Int)

        /// The number, exact or not.
        public var count: Int {
            switch self {
            case .atLeast(let count), .exactly(let count): count
            }
        }

        /// The number in words.
        public var description: String {
            switch self {
            case .atLeast(let count): "at least \(count)"
            case .exactly(let count): "\(count)"
            }
        }
    }

    /// The stage that runs.
    public var stage: SyncStage
    /// How many items of the stage are done: read, downloaded, removed.
    public var doneItems: Int
    /// How many items the stage has.
    public var totalItems: Total
    /// How many bytes of the stage are there, those of unfinished items too.
    public var doneBytes: Int64
    /// How many bytes the stage has; `nil` where an item's size is not known.
    public var totalBytes: Int64?
    /// How long the stage has been running.
    public var elapsed: Duration

    /// Makes a progress.
    ///
    /// - Parameters:
    ///   - stage: The stage that runs.
    ///   - doneItems: How many items are done.
    ///   - totalItems: How many items there are.
    ///   - doneBytes: How many bytes are there.
    ///   - totalBytes: How many bytes there are in all.
    ///   - elapsed: How long the stage has been running.
    public init(
        stage: SyncStage, doneItems: Int = 0, totalItems: Total = .atLeast(0), doneBytes: Int64 = 0, totalBytes: Int64? = nil,
        elapsed: Duration = .zero
    ) {
        self.stage = stage
        self.doneItems = doneItems
        self.totalItems = totalItems
        self.doneBytes = doneBytes
        self.totalBytes = totalBytes
        self.elapsed = elapsed
    }

    /// Bytes for each second of the stage so far; zero before anything has come.
    public var bytesPerSecond: Double {
        let seconds = elapsed / .seconds(1)
        return seconds > 0 ? Double(doneBytes) / seconds : 0
    }

    /// How long the stage will still take if it goes on as so far; `nil` where that cannot be told.
    ///
    /// By bytes where all sizes are known, otherwise by items.
    public var remaining: Duration? {
        guard case .exactly(let total) = totalItems, elapsed > .zero else { return nil }
        if doneItems >= total { return .zero }
        if let totalBytes, totalBytes > 0 { return doneBytes > 0 ? remaining(Double(doneBytes) / Double(totalBytes)) : nil }
        return doneItems > 0 ? remaining(Double(doneItems) / Double(total)) : nil
    }

    private func remaining(_ share: Double) -> Duration {
        // More than all can be there: an origin may send more than it announced.
        guard share < 1 else { return .zero }
        return Duration(saturating: elapsed / .seconds(1) * ((1 - share) / share))
    }
}
