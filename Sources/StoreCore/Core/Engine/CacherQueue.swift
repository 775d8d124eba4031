#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Decides which cacher calls start, which wait, and which failed saves are tried again (C6).
///
/// A key has one call at a time. A write waits for the running call of its key and takes its content when it starts. Therefore the cacher
/// gets the newest content and skips intermediate content. `removeAll` is a barrier: it starts when no other call runs, and no other call
/// starts before it ends.
///
/// The queue is pure: its inputs are facts, and its outputs are ``calls``.
struct CacherQueue<Key: Hashable & Sendable>: Hashable {
    enum Call: Hashable, Sendable {
        case load(Key, Ticket)
        /// Saves or removes the record of a key, as its accepted content requires at this moment.
        case write(Key)
        case keys(CallerID)
        case removeAll

        /// The key of a load or write; `nil` for a call that concerns all keys.
        var key: Key? {
            switch self {
            case .load(let key, _), .write(let key): key
            case .keys, .removeAll: nil
            }
        }
    }

    /// The calls to start now. The engine takes them in the critical section of the fact that made them.
    private(set) var calls: [Call] = []
    /// The number of running calls except `removeAll`.
    private(set) var running = 0
    private var lanes: [Key: Lane] = [:]

    /// The calls that wait for the barrier, oldest first.
    private var blockedKeys: [Key] = []
    private var blockedListings: [CallerID] = []
    /// Whether a `removeAll` starts as soon as no call runs.
    private var isClearingDue = false
    /// Whether `removeAll` runs.
    private(set) var isClearing = false
    /// The start of the last `removeAll`, if that failed.
    private var failedClearing: Date?
    /// The keys that were saved or removed since that failure.
    private var savedKeys: Set<Key> = []

    /// The keys whose last save failed, for the choice of the next retry.
    private var failures: [Key: Failure] = [:]
    private var lastFailure: UInt64 = 0

    private struct Lane: Hashable {
        var isRunning = false
        var load: Ticket?
        var needsWrite = false
        var isBlocked = false
    }

    private struct Failure: Hashable {
        var order: UInt64
        var time: MonotonicInstant
    }

    /// Whether calls wait until the cacher is empty.
    var isBarred: Bool { isClearingDue || isClearing }
    var isIdle: Bool { running == 0 && !isBarred && calls.isEmpty }
    /// The number of keys for which there is storage, for tests.
    var capacity: Int { lanes.capacity }

    mutating func takeCalls() -> [Call] {
        defer { calls = [] }
        return calls
    }

    // MARK: Calls for one key

    /// Requests a load; the ticket identifies its result.
    mutating func load(_ key: Key, _ ticket: Ticket) {
        lanes[key, default: Lane()].load = ticket
        advance(key)
    }

    /// A key has content that the cacher lacks.
    mutating func write(_ key: Key) {
        lanes[key, default: Lane()].needsWrite = true
        advance(key)
    }

    mutating func callEnded(_ key: Key) {
        lanes[key]?.isRunning = false
        running -= 1
        advance(key)
        startClearing()
    }

    private mutating func advance(_ key: Key) {
        guard var lane = lanes[key], !lane.isRunning else { return }
        guard lane.load != nil || lane.needsWrite else {
            lanes[key] = nil
            // A dictionary keeps its capacity: keys that were read at once would cost memory forever.
            if lanes.isEmpty, lanes.capacity > 64 { lanes = [:] }
            return
        }
        guard !isBarred else {
            if !lane.isBlocked { blockedKeys.append(key) }
            lanes[key]?.isBlocked = true
            return
        }
        // A load was requested before the write, which may keep the page keys of the loaded record.
        if let ticket = lane.load {
            lane.load = nil
            calls.append(.load(key, ticket))
        } else {
            lane.needsWrite = false
            calls.append(.write(key))
        }
        (lane.isRunning, lane.isBlocked) = (true, false)
        lanes[key] = lane
        running += 1
    }

    // MARK: Calls for all keys

    mutating func list(_ id: CallerID) {
        if isBarred {
            blockedListings.append(id)
        } else {
            calls.append(.keys(id))
            running += 1
        }
    }

    mutating func listingEnded() {
        running -= 1
        startClearing()
    }

    /// A caller requests an empty cacher.
    ///
    /// Writes that wait are dropped, because the cacher must not get their content any longer.
    mutating func removeAll() {
        for (key, lane) in lanes where lane.needsWrite { lanes[key]?.needsWrite = false }
        // For callers that arrive while the cacher is being emptied, the cacher is emptied again.
        isClearingDue = true
        startClearing()
    }

    /// The cacher has been emptied, or failed. `began` is the start of the call.
    mutating func clearingEnded(began: Date, fails: Bool) {
        (failedClearing, savedKeys) = (fails ? began : nil, [])
        isClearing = false
        startClearing()
        guard !isBarred else { return }
        let (keys, listings) = (blockedKeys, blockedListings)
        (blockedKeys, blockedListings) = ([], [])
        for key in keys { advance(key) }
        for id in listings { list(id) }
    }

    private mutating func startClearing() {
        guard isClearingDue, !isClearing, running == 0 else { return }
        (isClearing, isClearingDue) = (true, false)
        calls.append(.removeAll)
    }

    /// The cacher has saved or removed the record of a key. Beyond a number of keys, later ones count as cleared, which costs a fetch.
    mutating func saved(_ key: Key) {
        if failedClearing != nil, savedKeys.count < 10_000 { savedKeys.insert(key) }
    }

    /// Whether a loaded record should have been removed by a `removeAll` that failed.
    ///
    /// The date of a record does not tell, because the clock may have been set since. Only the records of other users of a shared cacher
    /// are compared by their dates. Dropping one record too many costs a fetch, keeping one too many is a leak.
    ///
    /// - Parameter fetchedAt: The date of the record in a shared cacher; `nil` in any other cacher.
    func isCleared(_ key: Key, _ fetchedAt: Date?) -> Bool {
        guard let failedClearing, !savedKeys.contains(key) else { return false }
        return fetchedAt.map { !($0 > failedClearing) } ?? true
    }

    // MARK: Failed saves

    /// The maximum number of idle keys with a failed save; a broken disk must not fill the memory.
    static var failureLimit: Int { 1_000 }

    /// The cacher failed to take the newest content of a key.
    ///
    /// The key moves behind all others, so that a key that always fails does not block the others.
    mutating func saveFailed(_ key: Key, at time: MonotonicInstant) {
        lastFailure += 1
        failures[key] = Failure(order: lastFailure, time: time)
    }

    /// The cacher has the newest content of a key.
    mutating func saveRecovered(_ key: Key) { failures[key] = nil }

    /// Returns the key to save again after the cacher saved or removed another record: the oldest failure that may be retried, if it is
    /// older than `interval`.
    ///
    /// Each success retries one key, so that a disk that is writable again is not flooded with saves.
    ///
    /// - Parameters:
    ///   - interval: The minimum time between two attempts of one key.
    ///   - mayRetry: Returns whether a key can be saved again now. A key that cannot be saved does not block the keys behind it.
    func nextRetry(
        after interval: Duration, now: @autoclosure () -> MonotonicInstant, where mayRetry: (Key) -> Bool
    ) -> Key? {
        let candidates = failures.filter { mayRetry($0.key) }
        guard let (key, failure) = candidates.min(by: { $0.value.order < $1.value.order }) else { return nil }
        return failure.time.advanced(by: max(.zero, interval)) <= now() ? key : nil
    }

    /// Drops the oldest failed save of an idle key if there are too many of them.
    ///
    /// - Parameter isIdle: Whether a key is kept only because its save failed.
    /// - Returns: The dropped key.
    mutating func dropExcessFailure(where isIdle: (Key) -> Bool) -> Key? {
        guard failures.count > Self.failureLimit else { return nil }
        let idle = failures.filter { isIdle($0.key) }
        guard idle.count > Self.failureLimit, let oldest = idle.min(by: { $0.value.order < $1.value.order })?.key else { return nil }
        failures[oldest] = nil
        return oldest
    }
}
