#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif
internal import StoreCore
internal import StoreFiles

/// Drives the machine of an outbox, and carries out its actions on the log, in the stores, and at the origin.
///
/// Each decision is made under the lock of the log, after the entries of other processes were applied. A change is in the log before it is
/// visible.
///
/// The file calls run on the actor's thread. A queue of their own would cost two thread switches, which take longer than the append of a
/// submission.
actor OutboxCore {
    let log: OutboxLog
    let leases: SharedDirectory
    let policy: OutboxPolicy
    let time: any TimeSource
    let onEvent: (@Sendable (OutboxEvent) -> Void)?
    nonisolated let version = WatchedState<UInt64>(1)
    /// The tasks of the running attempts, so that `clear()` can cancel them.
    let attempts = WatchedState<[UUID: Task<PerformedCommand, any Error>]>([:])

    var machine: OutboxMachine
    var registrations: [String: OutboxRegistration] = [:]
    /// The command that was encoded last, by the identity of its deliveries: a new command, or the last draft, need not be decoded.
    var latest: (delivery: UUID, command: BoundCommand)?
    let encoder = JSONEncoder()
    var shown: [UUID: [BoundPatch]] = [:]
    /// The patches of delivered commands, until the stores have saved the content that contains them.
    var unsettled: [UUID: [BoundPatch]] = [:]
    var responses: [UUID: PerformedCommand] = [:]
    /// The temporary keys with entities that move to their real keys, and the changes that wait for the move of their entity.
    var moving: [PatchedContent: [HeldChange]] = [:]
    /// The records of newer versions, which a compaction keeps.
    var foreign: [Data]
    var recordCount: Int
    /// The size in bytes of the log after its last compaction, even if that failed or saved little.
    private var compacted = 0
    var events: UInt64 = 0
    var lease: DeliveryLease?
    var leasing: Task<Void, Never>?
    var wake: (instant: MonotonicInstant, task: Task<Void, Never>)?
    var triggers: [Task<Void, Never>] = []
    /// The waits of ended attempts until their results are logged again.
    var logWaits: [UUID: Task<Void, Never>] = [:]
    var phase = Phase.open
    /// The number of tasks that deliver or wait for the lease.
    nonisolated let running = WatchedState(0)

    /// An outbox that is shut down delivers nothing, a closed one also refuses requests, and an emptied one has dropped its commands, too.
    enum Phase: Comparable { case open, shutDown, closed, emptied }

    var isShutDown: Bool { phase >= .shutDown }
    var isClosed: Bool { phase >= .closed }

    init(
        log: OutboxLog, policy: OutboxPolicy, time: any TimeSource, onEvent: (@Sendable (OutboxEvent) -> Void)?
    ) throws {
        (self.log, leases, self.policy, self.time, self.onEvent) = (log, log.leases(), policy, time, onEvent)
        var machine = OutboxMachine(rules: policy.rules)
        machine.woke(time.now)
        let news = try log.read()
        let date = time.date
        (foreign, recordCount) = ([], news.entries.count)
        let found = OutboxCore.decode(news, keeping: &foreign) { machine.apply($0, date: date) }
        machine.forgetOldReplacements()
        // No type is registered yet, so there is nothing to show.
        _ = machine.takeActions()
        self.machine = machine
        for (kind, command) in found {
            events += 1
            onEvent?(OutboxEvent(number: events, command: command, kind: kind))
        }
    }

    nonisolated func follow() {
        log.follow { [weak self] _ in
            guard let self else { return }
            Task { await self.refresh() }
        }
    }

    func shutDown() {
        phase = max(phase, .shutDown)
        machine.stop()
        log.unfollow()
        for task in triggers { task.cancel() }
        wake?.task.cancel()
        leasing?.cancel()
        for task in attempts.current.values { task.cancel() }
        for task in logWaits.values { task.cancel() }
        // An attempt may never return. Until then, ``performing`` keeps the next outbox of this process from delivering its command.
        let left = attempts.current.keys.filter { !machine.overdue.contains($0) }
        Self.leftBehind.withLock { $0.formUnion(left) }
        lease = nil
    }

    // MARK: The log

    func refresh() {
        // The news belong to the next outbox on the directory.
        guard !isShutDown else { return }
        do {
            let news = try log.read()
            guard !news.isEmpty else { return }
            machine.woke(time.now)
            take(news)
        } catch {
            report(.logFault(error), nil)
        }
        carryOut()
    }

    func take(_ news: OutboxLog.News) {
        let date = time.date
        if news.wasReplaced { (foreign, recordCount) = ([], 0) }
        recordCount += news.entries.count
        var entries: [OutboxEntry] = []
        entries.reserveCapacity(news.entries.count)
        for (kind, command) in Self.decode(news, keeping: &foreign, { entries.append($0) }) { report(kind, command) }
        let (own, known) = (machine.actions, news.wasReplaced ? machine.items : [:])
        if news.wasReplaced { machine.replaceAll(entries, date: date) } else { for entry in entries { machine.apply(entry, date: date) } }
        // The next outbox on the directory shows these changes, in its own store.
        if isShutDown { return machine.actions = own }
        for id in Array(unsettled.keys) where machine.items[id] == nil { stopWaiting(id) }
        // Content that arrives during the delivery of another process may contain the change.
        for entry in entries where entry.fact == .attempted && known[entry.id]?.isAttempted != true {
            shown[entry.id]?.forEach { $0.attempt(entry.id, isElsewhere: true) }
        }
    }

    /// Decodes records, and keeps those that a newer version has written for compactions. Returns the events of damages and of these records.
    private static func decode(
        _ news: OutboxLog.News, keeping foreign: inout [Data], _ apply: (OutboxEntry) -> Void
    ) -> [(kind: OutboxEvent.Kind, command: UUID?)] {
        var events: [(kind: OutboxEvent.Kind, command: UUID?)] = []
        for damage in news.damages { events.append((.damaged(bytes: damage.length, reason: damage.reason), nil)) }
        for record in news.entries {
            let entry = OutboxEntry(record)
            if entry == nil || entry?.fact == .unknown { foreign.append(record) }
            guard let entry else { continue }
            apply(entry)
            guard entry.fact == .unknown else { continue }
            let error = StoreError(
                .unreadableRecord,
                "a newer version of this framework has written about a command of lane \(entry.lane.text); "
                    + "update the program to deliver the lane")
            events.append((.undecodable(name: "", error), entry.id))
        }
        return events
    }

    /// Changes the machine at the current time, and carries out its actions.
    func update(_ change: @Sendable (inout OutboxMachine) -> Void) {
        machine.woke(time.now)
        change(&machine)
        carryOut()
    }

    /// Decides on entries under the lock of the log, appends them, and applies them. The caller carries out the actions.
    ///
    /// - Parameters:
    ///   - evenIfClosed: Whether a closed outbox does not refuse: the end of an attempt is logged while the outbox is being closed, because
    ///     the origin has performed the command.
    ///   - decide: Returns the entries. The entries of other processes are applied before it is called.
    /// - Returns: Whether there were any entries.
    @discardableResult
    func transact(evenIfClosed: Bool = false, _ decide: () throws -> [OutboxEntry]) throws -> Bool {
        if !evenIfClosed { try checkOpen() }
        machine.woke(time.now)
        var entries: [OutboxEntry] = []
        try log.append(durability: policy.durability) { news in
            take(news)
            entries = try decide()
            return entries.map(\.record)
        }
        let date = time.date
        recordCount += entries.count
        for entry in entries { machine.apply(entry, date: date) }
        return !entries.isEmpty
    }

    func entry(_ item: OutboxMachine.Item, _ fact: OutboxEntry.Fact) -> OutboxEntry {
        OutboxEntry(id: item.id, lane: item.lane, fact: fact)
    }

    func compactIfNeeded() {
        let kept = machine.items.count + machine.replacements.count + foreign.count
        let size = log.byteCount
        // Few commands may be large.
        let isLarge = size > compacted + Self.compactedSize && size > 4 * keptSize
        guard !isClosed, isLarge || (recordCount > 1_024 && recordCount > 4 * kept) else { return }
        do {
            try compact()
            // The estimate contains neither lanes nor identifiers, which may be longer than the commands.
            compacted = log.byteCount
        } catch {
            report(.logFault(error), nil)
            // The next attempt follows when the log has grown by as much again.
            (recordCount, compacted) = (0, size)
        }
    }

    static let compactedSize = 1 << 20

    /// An estimate of the bytes of a compacted log.
    private var keptSize: Int {
        machine.byteCount + foreign.reduce(0) { $0 + $1.count } + 256 * (machine.items.count + machine.replacements.count)
    }

    func compact() throws {
        try log.compact { news in
            take(news)
            let records = machine.entries().map(\.record) + foreign
            recordCount = records.count
            return records
        }
    }

    func report(_ kind: OutboxEvent.Kind, _ command: UUID?) {
        events += 1
        onEvent?(OutboxEvent(number: events, command: command, kind: kind))
    }
}

extension OutboxCore: CacheScopeMember {
    /// Drops all commands. The next outbox on the directory of a closed one delivers them.
    func prepareToClear() async throws {
        if !isClosed { _ = try empty() }
    }

    func clear() async throws { await waitForAttempts() }

    func refuse() async { shut() }

    /// Returns at once, because a submitted command is on disk already.
    func waitUntilSaved() async throws {}
}
