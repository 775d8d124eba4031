public import StoreCore

/// A limit on the bytes per second of all transfers that share it; it can be changed while they run.
///
/// ```swift
/// let rate = try TransferRate(bytesPerSecond: 500_000)
/// for try await piece in response.body {
///     try await rate.take(piece.count)
///     try part.append(piece)
/// }
/// ```
///
/// Each transfer waits until all bytes taken before it are paid for. After a pause, a tenth of a second is available at once.
///
/// <doc:LimitsBackupsAndChecks> shows a transfer with a rate.
public final class TransferRate: Sendable {
    private let bucket: Lock<TokenBucket>
    private let time: any TimeSource

    /// Creates a limit.
    ///
    /// - Parameters:
    ///   - bytesPerSecond: The number of bytes per second, at least 1.
    ///   - time: The source of time; use a `ManualTime` in tests.
    /// - Throws: ``SyncError/Code/invalidRate`` for a rate that is not positive.
    public init(bytesPerSecond: Int64, time: some TimeSource = .system) throws(SyncError) {
        try Self.check(bytesPerSecond)
        self.time = time
        bucket = Lock(TokenBucket(rate: bytesPerSecond, now: time.now))
    }

    /// The current limit in bytes per second.
    public var bytesPerSecond: Int64 { bucket.withLock { $0.rate } }

    /// Changes the limit, even for transfers that wait.
    ///
    /// - Parameter bytesPerSecond: The number of bytes per second, at least 1.
    /// - Throws: ``SyncError/Code/invalidRate`` for a rate that is not positive; the old rate then still applies.
    public func change(to bytesPerSecond: Int64) throws(SyncError) {
        try Self.check(bytesPerSecond)
        let now = time.now
        bucket.withLock { $0.change(to: bytesPerSecond, now: now) }
    }

    /// The longest wait until a changed rate is noticed.
    private static var patience: Duration { .milliseconds(200) }

    /// Waits until a number of bytes may be transferred.
    ///
    /// - Parameter bytes: The number of bytes.
    /// - Throws: `CancellationError` as soon as the task is canceled; the bytes count as taken.
    public func take(_ bytes: Int) async throws {
        let place = bucket.withLock { [now = time.now] in $0.take(bytes, now: now) }
        while true {
            let now = time.now
            let delay = bucket.withLock { $0.delay(of: place, now: now) }
            guard delay > .zero else { return }
            try await time.sleep(until: now.advanced(by: min(delay, Self.patience)))
        }
    }

    private static func check(_ rate: Int64) throws(SyncError) {
        guard rate > 0 else {
            throw SyncError(
                .invalidRate, "cannot limit transfers to \(rate) bytes per second: nothing would arrive; use a rate of 1 or more")
        }
    }
}

/// A token bucket: the number of bytes that were taken, and the number that the time has paid for.
///
/// A pure value; the time is an argument.
struct TokenBucket: Sendable {
    private(set) var rate: Int64
    /// The number of bytes paid for at `moment`.
    private var paid = 0.0
    private var moment: MonotonicInstant
    private var taken = 0.0

    init(rate: Int64, now: MonotonicInstant) {
        self.rate = rate
        moment = now
    }

    /// Takes bytes; returns the place of the first of them in the order of all bytes, for `delay(of:now:)`.
    mutating func take(_ bytes: Int, now: MonotonicInstant) -> Double {
        pass(to: now)
        defer { taken += Double(max(0, bytes)) }
        return taken
    }

    /// Returns the time until a place is paid for, at the current rate; zero if it is.
    mutating func delay(of place: Double, now: MonotonicInstant) -> Duration {
        pass(to: now)
        return place <= paid ? .zero : max(.nanoseconds(1), Duration(saturating: (place - paid) / Double(rate)))
    }

    /// Changes the rate; what was paid before stays paid.
    mutating func change(to rate: Int64, now: MonotonicInstant) {
        pass(to: now)
        self.rate = rate
    }

    private mutating func pass(to now: MonotonicInstant) {
        guard now > moment else { return }
        // An idle time pays for a tenth of a second at most.
        paid = min(paid + moment.duration(to: now) / .seconds(1) * Double(rate), taken + Double(rate) / 10)
        moment = now
    }
}
