internal import StoreCore

/// The progress of a pass within its current stage.
public struct SyncProgress: Sendable, Hashable {
    /// A number that is exact, or a lower bound until the remote list has ended.
    public enum Total: Sendable, Hashable, CustomStringConvertible {
        /// A lower bound, because the list may have further items.
        case atLeast(Int)
        /// An exact number, because the list has ended.
        case exactly(Int)

        /// The number, whether exact or a lower bound.
        public var count: Int {
            switch self {
            case .atLeast(let count), .exactly(let count): count
            }
        }

        /// A textual description of the number.
        public var description: String {
            switch self {
            case .atLeast(let count): "at least \(count)"
            case .exactly(let count): "\(count)"
            }
        }
    }

    /// The stage that the numbers belong to; each stage counts from zero.
    public var stage: SyncStage
    /// The number of finished items of the stage: read, downloaded or removed.
    public var doneItems: Int
    /// The number of items of the stage.
    public var totalItems: Total
    /// The number of received bytes in the stage, including those of unfinished items.
    public var doneBytes: Int64
    /// The number of bytes that the stage receives; `nil` if it receives none, or if the size of an item is unknown.
    public var totalBytes: Int64?
    /// The time since the stage began.
    public var elapsed: Duration

    /// Creates a progress; each parameter sets the property of its name.
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

    /// The average number of bytes per second in this stage; zero at its beginning.
    public var bytesPerSecond: Double {
        let seconds = elapsed / .seconds(1)
        return seconds > 0 ? Double(doneBytes) / seconds : 0
    }

    /// The estimated time until the stage ends; `nil` if it cannot be estimated.
    ///
    /// The estimate uses bytes if all sizes are known, and items otherwise.
    public var remaining: Duration? {
        guard case .exactly(let total) = totalItems, elapsed > .zero else { return nil }
        if doneItems >= total { return .zero }
        if let totalBytes, totalBytes > 0 { return doneBytes > 0 ? remaining(Double(doneBytes) / Double(totalBytes)) : nil }
        return doneItems > 0 ? remaining(Double(doneItems) / Double(total)) : nil
    }

    private func remaining(_ share: Double) -> Duration {
        // An origin may send more bytes than it announced.
        guard share < 1 else { return .zero }
        return Duration(saturating: elapsed / .seconds(1) * ((1 - share) / share))
    }
}
