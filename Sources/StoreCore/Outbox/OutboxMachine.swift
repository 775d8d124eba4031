#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif
internal import StoreCore

/// The state of an outbox, and every decision about its deliveries: a value without lock, clock, or task.
///
/// Its inputs are the entries of the log (``apply(_:)``) and facts of this process. The entries are the whole durable state, so that
/// several processes with one log agree. Its outputs are ``Action``s, which the engine carries out.
///
/// Applying an entry twice has no effect, and entries that the state does not allow are ignored: if two processes decide about one command,
/// the first decision in the log counts.
struct OutboxMachine: Sendable {
    struct Rules: Hashable, Sendable {
        var width = 4
        var continuesAfterFailure = true
        /// The longest delay that an entry of the log may cause.
        var longestDelay = RetryPolicy.defaultAdviceLimit
    }

    enum Action: Hashable, Sendable {
        /// Log the first attempt, then report `began`; report `ended` if the command is gone.
        case begin(UUID)
        /// Perform the command, log the result, and report `ended`.
        case perform(UUID, attempt: Int)
        /// Replace temporary identifiers in the payload, and log the result.
        case rewrite(UUID)
        /// Show the patch of a command, in place of that of another command or of an older payload.
        case show(UUID, insteadOf: UUID?)
        /// Take back the patch of a command.
        case drop(UUID)
        /// Fold the patch of a delivered command into the content.
        ///
        /// Another process may have retired the command already, so the action carries it.
        case settle(Item)
        /// Replace a temporary key in the stores: another process has done so, and has forgotten the command that created the entity.
        case replaceKey(String, with: String)
    }

    /// A command as the log describes it, with its place in the order.
    struct Item: Hashable, Sendable {
        enum Status: Hashable, Sendable { case pending, failed, delivered }

        let id: UUID
        var order: UInt64
        var lane: OutboxLane
        var submission: OutboxEntry.Submission
        var status = Status.pending
        /// Whether a delivery was attempted, so that the origin may have performed the command.
        var isAttempted = false
        var deferral: OutboxEntry.Deferral?
        /// The earliest time of the next attempt.
        var notBefore: MonotonicInstant?
        /// The end of the delay that the origin has asked for.
        var requestedUntil: MonotonicInstant?
        var failure: OutboxEntry.Failure?
        /// The text of the identifier of the created entity.
        var replacement: String?
        var hasContent = false
        var isUnreadable = false

        /// The number of failed attempts; a replaced command begins to count again.
        var attempts: Int { failure?.attempts ?? deferral?.attempts ?? 0 }

        mutating func endDelay() { (deferral, notBefore, requestedUntil) = (nil, nil, nil) }
    }

    /// The commands that must be delivered one after another.
    struct Lane: Hashable, Sendable {
        /// The commands in their order, without those that have left the lane.
        var ids: ArraySlice<UUID> = []
        /// The command that is being delivered.
        var active: UUID?
        var isQueued = false
        var timer: MonotonicInstant?

        /// Whether the lane need not be remembered.
        var isUnused: Bool { ids.isEmpty && active == nil && !isQueued }
    }

    let rules: Rules
    var items: [UUID: Item] = [:]
    var lanes: [OutboxLane: Lane] = [:]
    /// The commands in their order. An element is skipped if its command was removed or has another place now.
    var timeline: [(order: UInt64, id: UUID)] = []
    var lastOrder: UInt64 = 0
    /// The commands that create an entity under a temporary identifier, and the commands that refer to it.
    var creators: [String: UUID] = [:]
    var referrers: [String: [UUID]] = [:]
    /// The replacements of temporary identifiers, as long as this process runs: a screen may still have the temporary identifier.
    var replacements: [String: String] = [:]
    var replacementOrder: [String] = []
    /// The temporary identifiers of creations that were taken back. A later command may create some of them again.
    var abandoned = TemporaryKeys<String, Bool>()
    /// The lanes that wait because the log has facts of a newer version about them.
    var heldLanes: Set<OutboxLane> = []
    /// The names of the stores with contents that commands change.
    var storeNames: Set<String> = []

    var failedCount = 0
    var pendingByName: [String: Int] = [:]
    var unreadable: Set<UUID> = []
    var bySubject: [OutboxLane: [UUID]] = [:]
    var byteCount = 0

    // MARK: This process

    var now = MonotonicInstant.distantPast
    var isStarted = false
    var isDeliverer = false
    /// Whether a fatal failure has stopped all lanes.
    var isStopped = false
    /// The newest version of each registered command.
    var registered: [String: Int] = [:]
    /// The commands that are being delivered, with their lanes.
    var running: [UUID: OutboxLane] = [:]
    /// The running commands that have passed their deadline, and no longer count toward the limit of lanes.
    var overdue: Set<UUID> = []
    /// The commands that this process must not deliver now, so that their lanes wait.
    var held: Set<UUID> = []
    var ready: ArraySlice<OutboxLane> = []
    var timers = Heap<LaneTimer>()
    var actions: [Action] = []

    init(rules: Rules = Rules()) {
        self.rules = rules
    }

    mutating func takeActions() -> [Action] {
        defer { actions = [] }
        return actions
    }

    // MARK: Derived properties

    var pendingCount: Int { pendingByName.values.reduce(0, +) }

    /// The number of pending commands that cannot be decoded here, because their type is not registered or their payload is not readable.
    var undecodableCount: Int {
        unreadable.count { items[$0]?.status == .pending } + pendingByName.reduce(0) { registered[$1.key] == nil ? $0 + $1.value : $0 }
    }

    var needsLease: Bool { !running.isEmpty || (isStarted && !isStopped && !ready.isEmpty) }

    /// The time at which `woke` is due.
    var nextWake: MonotonicInstant? { isStarted && !isStopped ? timers.first?.instant : nil }

    /// Whether the entity of a temporary identifier will never exist.
    func isAbandoned(_ identifier: String) -> Bool {
        abandoned[identifier] == true && creators[identifier] == nil && replacements[identifier] == nil
    }

    /// Whether a command waits for itself: through entities that it refers to, and the commands before it in its lane.
    func waitsForItself(_ id: UUID) -> Bool {
        func awaited(by id: UUID) -> [UUID] {
            guard let item = items[id] else { return [] }
            let earlier = lanes[item.lane]?.ids.prefix { $0 != id }.last
            return item.submission.references.compactMap { creators[$0] } + (earlier.map { [$0] } ?? [])
        }
        var seen: Set<UUID> = []
        var open = awaited(by: id)
        while let next = open.popLast() {
            if next == id { return true }
            if seen.insert(next).inserted { open += awaited(by: next) }
        }
        return false
    }

    func isActive(_ id: UUID) -> Bool { running[id] != nil }

    /// Whether a delivery of the command may begin, decided under the lock of the log.
    func mayBegin(_ id: UUID) -> Bool {
        guard let item = items[id], item.status == .pending, !isUndecodable(item), !held.contains(id) else { return false }
        return isStarted && isDeliverer && !isStopped && running[id] == item.lane
    }

    /// The command that a new command of the lane may supersede.
    func supersedable(in lane: OutboxLane) -> Item? {
        guard let last = lanes[lane]?.ids.last, let item = items[last], item.status == .pending, !item.isAttempted else { return nil }
        return item
    }

    func commands(after order: UInt64 = 0, limit: Int = .max, where fits: (Item) -> Bool = { _ in true }) -> [Item] {
        var found: [Item] = []
        var position = timeline.partition { $0.order > order }
        while position < timeline.endIndex, found.count < limit {
            let (order, id) = timeline[position]
            if let item = items[id], item.order == order, fits(item) { found.append(item) }
            position += 1
        }
        return found
    }

    func commands(changing subject: OutboxLane) -> [Item] {
        (bySubject[subject] ?? []).compactMap { items[$0] }.sorted { $0.order < $1.order }
    }

    /// Whether a command cannot be decoded: its type is not registered, or its payload is damaged or of a newer version.
    func isUndecodable(_ item: Item) -> Bool { item.isUnreadable || registered[item.submission.name] == nil }
}

extension Array {
    /// Returns the position of the first element that fits; all elements after it must fit too.
    fileprivate func partition(where fits: (Element) -> Bool) -> Int {
        var (low, high) = (startIndex, endIndex)
        while low < high {
            let middle = (low + high) / 2
            if fits(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
