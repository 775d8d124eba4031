/// The tasks that sleep on one clock; one alarm wakes all of them in turn.
///
/// `Task.sleep` holds about 600 bytes until its deadline, even if its task is canceled long before
/// (https://github.com/swiftlang/swift/issues/60441). It may also return at once from a delay of centuries
/// (https://github.com/swiftlang/swift/issues/59174). Deadlines of requests are rarely reached, so the held memory would grow with the
/// number of requests. The queue drops a canceled sleeper at once. The queue can go when the runtime releases that memory itself.
final class SleepQueue: Sendable {
    static let system = SleepQueue(now: { SystemTime().now }) { instant in
        let distance = SystemTime().now.duration(to: instant)
        // No task cancels an alarm. An alarm that ends early is set again.
        try? await Task.sleep(for: min(distance, Duration.seconds(86_400)), clock: .continuous)
    }

    private let now: @Sendable () -> MonotonicInstant
    private let wait: @Sendable (MonotonicInstant) async -> Void
    /// Guards the sleepers together with the alarms that are set for them.
    private let sleepers = Lock(Sleepers())

    /// Creates a queue on a clock; `wait` may return before its instant.
    init(now: @escaping @Sendable () -> MonotonicInstant, wait: @escaping @Sendable (MonotonicInstant) async -> Void) {
        self.now = now
        self.wait = wait
    }

    var count: Int { sleepers.withLock(\.waiting.count) }

    /// The number of entries in the queue, including those of canceled sleepers; for tests.
    var entryCount: Int { sleepers.withLock(\.entries.count) }

    /// Waits until the clock has reached an instant; throws `CancellationError` as soon as the task is canceled.
    func sleep(until deadline: MonotonicInstant, isolation: isolated (any Actor)? = #isolation) async throws {
        try Task.checkCancellation()
        let (ticket, alarm) = sleepers.withLock { sleepers in (sleepers.add(until: deadline), sleepers.nextAlarm()) }
        set(alarm)
        let isDue = await WaiterList<Void>.wait { suspension in
            sleepers.withLock { $0.waiting.suspend(ticket, suspension) }
        } onCancel: {
            sleepers.withLock { $0.remove(ticket) }
        }
        if !isDue { throw CancellationError() }
    }

    private func set(_ alarm: MonotonicInstant?) {
        guard let alarm else { return }
        // All sleepers depend on this task, so its priority does not derive from the task that sets it.
        Task.detached(priority: .high) { [self] in
            await wait(alarm)
            ring(alarm)
        }
    }

    private func ring(_ alarm: MonotonicInstant) {
        let now = now()
        let (due, next) = sleepers.withLock { sleepers in
            let due = sleepers.takeDue(alarm, at: now)
            return (due, sleepers.nextAlarm())
        }
        set(next)
        for sleeper in due { sleeper.resume() }
    }
}

/// The pure part of a sleep queue: the due sleepers, and the next alarm.
private struct Sleepers {
    struct Entry: Comparable {
        let deadline: MonotonicInstant
        let ticket: WaiterList<Void>.Ticket

        static func < (lhs: Entry, rhs: Entry) -> Bool { (lhs.deadline, lhs.ticket) < (rhs.deadline, rhs.ticket) }
    }

    var waiting = WaiterList<Void>()
    /// The earliest deadline is first. The entry of a canceled sleeper stays until it is first, or until most entries are such.
    private(set) var entries = Heap<Entry>()
    /// The instants of the alarms, the earliest last. An alarm cannot be canceled, so it remains for later sleepers.
    private var alarms: [MonotonicInstant] = []

    mutating func add(until deadline: MonotonicInstant) -> WaiterList<Void>.Ticket {
        let ticket = waiting.join(())
        entries.insert(Entry(deadline: deadline, ticket: ticket))
        return ticket
    }

    /// Removes a sleeper; returns `nil` if its sleep is over.
    mutating func remove(_ ticket: WaiterList<Void>.Ticket) -> WaiterList<Void>.Waiter? {
        let sleeper = waiting.remove(ticket)
        if entries.count > 2 * waiting.count + 64 { entries.removeAll { waiting[$0.ticket] == nil } }
        return sleeper
    }

    /// Removes the sleepers with a passed deadline, the earliest first, for an alarm that has fired.
    mutating func takeDue(_ alarm: MonotonicInstant, at now: MonotonicInstant) -> [WaiterList<Void>.Waiter] {
        alarms.removeAll { $0 == alarm }
        var due: [WaiterList<Void>.Waiter] = []
        while let first = entries.first, first.deadline <= now {
            entries.removeFirst()
            if let sleeper = waiting.remove(first.ticket) { due.append(sleeper) }
        }
        return due
    }

    /// Returns the instant of the next alarm to set; `nil` if an alarm is set early enough, or no task sleeps.
    mutating func nextAlarm() -> MonotonicInstant? {
        while let first = entries.first, waiting[first.ticket] == nil { entries.removeFirst() }
        guard let first = entries.first?.deadline else { return nil }
        if let earliest = alarms.last, earliest <= first { return nil }
        alarms.append(first)
        return first
    }
}
