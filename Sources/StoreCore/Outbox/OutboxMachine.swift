#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// The state of an outbox, and every decision about its deliveries: a value without lock, clock, or task.
///
/// Its inputs are the entries of the log (``apply(_:)``) and facts of this process. The entries are the whole durable state, so that
/// several processes with one log agree. Its outputs are ``Action``s, which the engine carries out.
///
/// Applying an entry twice has no effect, and entries that the state does not allow are ignored: of two processes that decide about one
/// command, the first one in the log is right.
struct OutboxMachine: Sendable {
    /// The limits that the machine enforces.
    struct Rules: Hashable, Sendable {
        /// The number of lanes that deliver side by side.
        var width = 4
        /// Whether a lane continues after a permanent failure.
        var continuesAfterFailure = true
    }

    /// An effect that the machine requests.
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
        case hide(UUID)
        /// Fold the patch of a delivered command into the content.
        case confirm(UUID)
    }

    /// One command.
    struct Item: Hashable, Sendable {
        enum Status: Hashable, Sendable { case pending, failed, delivered }

        let id: UUID
        /// The place in the order of all commands.
        var order: UInt64
        var lane: String
        var submission: OutboxEntry.Submission
        var status = Status.pending
        /// The number of failed attempts.
        var attempts = 0
        /// Whether a delivery was attempted, so that the origin may have performed the command.
        var isAttempted = false
        var deferral: OutboxEntry.Deferral?
        /// The earliest time of the next attempt.
        var notBefore: MonotonicInstant?
        var failure: OutboxEntry.Failure?
        /// The text of the identifier of the created entity.
        var replacement: String?
        /// Whether the payload cannot be decoded.
        var isUnreadable = false
    }

    /// The commands that must be delivered one after another.
    private struct Lane: Hashable, Sendable {
        /// The commands in their order, without those that are done.
        var ids: ArraySlice<UUID> = []
        /// The command that is being delivered.
        var active: UUID?
        /// Whether the lane is in the queue of ready lanes.
        var isQueued = false
        /// The time for which a timer is set.
        var timer: MonotonicInstant?
    }

    let rules: Rules
    private(set) var items: [UUID: Item] = [:]
    private var lanes: [String: Lane] = [:]
    /// The order of the commands; those whose place is another one, or that are gone, are skipped.
    private var timeline: [(order: UInt64, id: UUID)] = []
    private var lastOrder: UInt64 = 0
    /// The commands that create an entity under a temporary identifier, and the commands that refer to it.
    private(set) var creators: [String: UUID] = [:]
    private var referrers: [String: [UUID]] = [:]
    /// The replacements of temporary identifiers.
    private(set) var replacements: [String: String] = [:]
    private var replacementOrder: [String] = []
    /// The lanes with facts of a newer version.
    private var heldLanes: Set<String> = []

    private(set) var failedCount = 0
    private(set) var deliveredCount = 0
    private var pendingByName: [String: Int] = [:]
    /// The commands whose payload cannot be decoded.
    private var unreadable: Set<UUID> = []
    /// The commands that change one content.
    private var bySubject: [String: [UUID]] = [:]
    /// The sum of the sizes of all payloads.
    private(set) var byteCount = 0

    // MARK: This process

    /// The time of the current fact.
    private(set) var now = MonotonicInstant.distantPast
    private(set) var isStarted = false
    /// Whether this process holds the lease.
    private(set) var isDeliverer = false
    /// Whether a fatal failure has stopped all lanes.
    private(set) var isStopped = false
    /// The newest version of each registered command.
    private var registered: [String: Int] = [:]
    /// The commands that are being delivered, with their lanes.
    private(set) var running: [UUID: String] = [:]
    /// The running commands that have passed their deadline, and no longer count.
    private var overdue: Set<UUID> = []
    private var ready: ArraySlice<String> = []
    private var timers = TimerHeap()
    private var actions: [Action] = []

    init(rules: Rules = Rules()) {
        self.rules = rules
    }

    mutating func takeActions() -> [Action] {
        defer { actions = [] }
        return actions
    }

    // MARK: Derived properties

    /// The number of commands that are to be delivered.
    var pendingCount: Int { items.count - failedCount - deliveredCount }

    /// The number of pending commands that cannot be decoded here, because their type is not registered or their payload is not readable.
    var undecodableCount: Int {
        unreadable.count { items[$0]?.status == .pending } + pendingByName.reduce(0) { registered[$1.key] == nil ? $0 + $1.value : $0 }
    }

    /// Whether this process needs the lease now.
    var needsLease: Bool { !running.isEmpty || (isStarted && !isStopped && !ready.isEmpty) }

    /// The time at which `woke` is due.
    var nextWake: MonotonicInstant? { isStarted && !isStopped ? timers.first : nil }

    func isActive(_ id: UUID) -> Bool { running[id] != nil }

    /// Whether a delivery of the command may begin, decided under the lock of the log.
    func mayBegin(_ id: UUID) -> Bool {
        guard let item = items[id], item.status == .pending, isStarted, isDeliverer, !isStopped else { return false }
        return running[id] == item.lane
    }

    /// The command that a new command of the lane may supersede.
    func supersedable(in lane: String) -> Item? {
        guard let last = lanes[lane]?.ids.last, let item = items[last], item.status == .pending, !item.isAttempted else { return nil }
        return item
    }

    /// The commands in their order, after a place.
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

    /// The commands that change one content, in their order.
    func commands(changing subject: String) -> [Item] {
        (bySubject[subject] ?? []).compactMap { items[$0] }.sorted { $0.order < $1.order }
    }

    /// Whether an item of the lane waits for a type that is not registered, a newer version, or a repaired payload.
    func isUndecodable(_ item: Item) -> Bool { item.isUnreadable || registered[item.submission.name] == nil }
}

// MARK: - The log

extension OutboxMachine {
    /// Applies an entry of the log.
    ///
    /// - Parameters:
    ///   - entry: The entry.
    ///   - date: The current wall-clock time, for delays that an earlier process began.
    mutating func apply(_ entry: OutboxEntry, date: Date) {
        let id = entry.id
        switch entry.fact {
        case .submitted(let submission):
            submitted(id, entry.lane, submission)
        case .attempted:
            items[id]?.isAttempted = true
        case .deferred(let deferral):
            deferred(id, deferral, date)
        case .failed(let failure):
            failed(id, failure)
        case .delivered(let replacement):
            delivered(id, replacement)
        case .retired:
            if items[id]?.status == .delivered { remove(id) }
        case .canceled:
            guard let item = items[id], item.status == .pending, !item.isAttempted else { break }
            takeBack(id)
        case .discarded:
            guard let item = items[id], item.status == .failed || (item.status == .pending && running[id] == nil) else { break }
            takeBack(id)
        case .retried:
            retried(id)
        case .replaced(let submission):
            replaced(id, entry.lane, submission)
        case .mapped(let temporary, let replacement):
            map(temporary, to: replacement)
        case .unknown:
            heldLanes.insert(entry.lane)
        }
        fill()
    }

    private mutating func submitted(_ id: UUID, _ lane: String, _ submission: OutboxEntry.Submission) {
        guard items[id] == nil else { return }
        var superseded: UUID?
        if let earlier = submission.supersedes, supersedable(in: lane)?.id == earlier {
            superseded = earlier
            remove(earlier)
        }
        lastOrder += 1
        items[id] = Item(id: id, order: lastOrder, lane: lane, submission: submission)
        timeline.append((lastOrder, id))
        pendingByName[submission.name, default: 0] += 1
        byteCount += submission.payload.count
        if let temporary = submission.creates, creators[temporary] == nil, replacements[temporary] == nil { creators[temporary] = id }
        for reference in submission.references { referrers[reference, default: []].append(id) }
        bySubject[submission.subject, default: []].append(id)
        lanes[lane, default: Lane()].ids.append(id)
        markReadable(id)
        actions.append(.show(id, insteadOf: superseded))
        settleReferences(of: id)
        review(lane)
    }

    /// Fails a command whose creator has failed or is gone, or requests that its identifiers are replaced.
    private mutating func settleReferences(of id: UUID) {
        guard let item = items[id], item.status == .pending else { return }
        for reference in item.submission.references {
            if replacements[reference] != nil {
                actions.append(.rewrite(id))
            } else if let creator = creators[reference] {
                if let failure = items[creator]?.failure, items[creator]?.status == .failed { failWithCreator(id, creator, failure.date) }
            } else {
                failWithCreator(id, OutboxEntry.noCommand, item.submission.date)
            }
        }
    }

    private mutating func failWithCreator(_ id: UUID, _ creator: UUID, _ date: Date) {
        let message = "the command that creates the entity has failed or was removed; retry that command, or discard this one"
        failed(id, OutboxEntry.Failure(attempts: items[id]?.attempts ?? 0, date: date, error: message, cause: creator))
    }

    private mutating func deferred(_ id: UUID, _ deferral: OutboxEntry.Deferral, _ date: Date) {
        guard let item = items[id], item.status == .pending else { return }
        // A clock that was set back must not prolong the delay, and the delay of an earlier process continues.
        let elapsed = Duration(saturating: date.timeIntervalSince(deferral.date))
        let remaining = min(deferral.delay, deferral.delay - max(.zero, elapsed))
        items[id]?.attempts = deferral.attempts
        items[id]?.isAttempted = true
        items[id]?.deferral = deferral
        items[id]?.notBefore = now.advanced(by: max(.zero, remaining))
        review(item.lane)
    }

    private mutating func failed(_ id: UUID, _ failure: OutboxEntry.Failure) {
        guard let item = items[id], item.status == .pending else {
            // The cause is known only from this entry if the creator comes later in the log.
            if items[id]?.status == .failed { items[id]?.failure = failure }
            return
        }
        setStatus(.failed, of: id)
        items[id]?.failure = failure
        items[id]?.attempts = failure.attempts
        items[id]?.notBefore = nil
        items[id]?.deferral = nil
        actions.append(.hide(id))
        if rules.continuesAfterFailure { leaveLane(id) }
        failReferrers(to: item.submission.creates, of: id, failure.date)
        review(item.lane)
    }

    private mutating func failReferrers(to temporary: String?, of creator: UUID, _ date: Date) {
        guard let temporary, creators[temporary] == creator else { return }
        for id in referrers[temporary] ?? [] where items[id]?.status == .pending { failWithCreator(id, creator, date) }
    }

    private mutating func delivered(_ id: UUID, _ replacement: String?) {
        guard let item = items[id], item.status != .delivered else { return }
        if item.status == .failed { actions.append(.show(id, insteadOf: nil)) }
        setStatus(.delivered, of: id)
        items[id]?.replacement = replacement
        items[id]?.isAttempted = true
        leaveLane(id)
        if let temporary = item.submission.creates, creators[temporary] == id {
            if let replacement {
                creators[temporary] = nil
                map(temporary, to: replacement)
            } else {
                failReferrers(to: temporary, of: id, item.submission.date)
                creators[temporary] = nil
            }
        }
        actions.append(.confirm(id))
        review(item.lane)
    }

    private mutating func map(_ temporary: String, to replacement: String) {
        if replacements.updateValue(replacement, forKey: temporary) == nil { replacementOrder.append(temporary) }
        // Bounded: a screen that still shows the temporary identifier after so many others were created reads it from its store.
        if replacementOrder.count > 1_000 { replacements[replacementOrder.removeFirst()] = nil }
        for id in referrers.removeValue(forKey: temporary) ?? [] where items[id]?.submission.references.contains(temporary) == true {
            if items[id]?.status == .pending { actions.append(.rewrite(id)) }
        }
    }

    private mutating func retried(_ id: UUID) {
        guard let item = items[id], item.status == .failed else { return }
        makePending(id)
        // The commands that failed with their creator follow it.
        for other in referrers[item.submission.creates ?? ""] ?? [] where items[other]?.failure?.cause == id { retried(other) }
    }

    /// Returns a failed command to the end of its lane.
    private mutating func makePending(_ id: UUID) {
        guard let item = items[id] else { return }
        leaveLane(id)
        setStatus(.pending, of: id)
        lastOrder += 1
        items[id]?.order = lastOrder
        items[id]?.failure = nil
        items[id]?.attempts = 0
        timeline.append((lastOrder, id))
        lanes[item.lane, default: Lane()].ids.append(id)
        actions.append(.show(id, insteadOf: nil))
        settleReferences(of: id)
        review(item.lane)
    }

    private mutating func replaced(_ id: UUID, _ lane: String, _ submission: OutboxEntry.Submission) {
        guard let item = items[id], item.status != .delivered else { return }
        pendingByName[item.submission.name, default: 0] -= item.status == .pending ? 1 : 0
        pendingByName[submission.name, default: 0] += item.status == .pending ? 1 : 0
        byteCount += submission.payload.count - item.submission.payload.count
        items[id]?.submission = submission
        if unreadable.remove(id) != nil { items[id]?.isUnreadable = false }
        markReadable(id)
        if submission.subject != item.submission.subject {
            forgetSubject(of: item)
            bySubject[submission.subject, default: []].append(id)
        }
        for reference in submission.references { referrers[reference, default: []].append(id) }
        if item.lane != lane {
            leaveLane(id)
            items[id]?.lane = lane
            if item.status == .pending { insert(id, item.order, into: lane) }
            review(item.lane)
        }
        if item.status == .failed {
            items[id]?.isAttempted = false
            makePending(id)
        } else {
            actions.append(.show(id, insteadOf: id))
        }
        review(lane)
    }

    /// Adds a command that comes from another lane, in the order of submission.
    private mutating func insert(_ id: UUID, _ order: UInt64, into key: String) {
        var lane = lanes[key] ?? Lane()
        let position = lane.ids.firstIndex { items[$0]?.order ?? 0 > order } ?? lane.ids.endIndex
        lane.ids.insert(id, at: position)
        lanes[key] = lane
    }

    /// Removes a command with its patch; the commands that refer to its entity fail.
    private mutating func takeBack(_ id: UUID) {
        guard let item = items[id] else { return }
        if item.status == .pending { actions.append(.hide(id)) }
        failReferrers(to: item.submission.creates, of: id, item.submission.date)
        remove(id)
        review(item.lane)
    }

    private mutating func remove(_ id: UUID) {
        guard let item = items[id] else { return }
        leaveLane(id)
        setStatus(.delivered, of: id)
        deliveredCount -= 1
        items[id] = nil
        byteCount -= item.submission.payload.count
        if let temporary = item.submission.creates, creators[temporary] == id { creators[temporary] = nil }
        unreadable.remove(id)
        forgetSubject(of: item)
        for reference in item.submission.references {
            referrers[reference]?.removeAll { $0 == id }
            if referrers[reference]?.isEmpty == true { referrers[reference] = nil }
        }
        if timeline.count > 2 * items.count + 64 { timeline.removeAll { items[$0.id]?.order != $0.order } }
    }

    private mutating func forgetSubject(of item: Item) {
        let subject = item.submission.subject
        bySubject[subject]?.removeAll { $0 == item.id }
        if bySubject[subject]?.isEmpty == true { bySubject[subject] = nil }
    }

    /// All commands were dropped; the log is empty.
    mutating func clear() {
        for item in commands() where item.status != .failed { actions.append(.hide(item.id)) }
        (items, timeline, creators, referrers, replacements, replacementOrder, heldLanes) = ([:], [], [:], [:], [:], [], [])
        (failedCount, deliveredCount, pendingByName, unreadable, byteCount, bySubject) = (0, 0, [:], [], 0, [:])
        // What is on the wire belongs to no lane any more.
        lanes = [:]
        (ready, timers) = ([], TimerHeap())
    }

    private mutating func setStatus(_ status: Item.Status, of id: UUID) {
        guard let item = items[id], item.status != status else { return }
        switch item.status {
        case .pending: pendingByName[item.submission.name, default: 0] -= 1
        case .failed: failedCount -= 1
        case .delivered: deliveredCount -= 1
        }
        if pendingByName[item.submission.name] == 0 { pendingByName[item.submission.name] = nil }
        switch status {
        case .pending: pendingByName[item.submission.name, default: 0] += 1
        case .failed: failedCount += 1
        case .delivered: deliveredCount += 1
        }
        items[id]?.status = status
    }

    private mutating func leaveLane(_ id: UUID) {
        guard let key = items[id]?.lane, var lane = lanes[key] else { return }
        // Released first, so that the list is changed in place.
        lanes[key] = nil
        if lane.ids.first == id {
            lane.ids.removeFirst()
        } else if let position = lane.ids.lastIndex(of: id) {
            lane.ids.remove(at: position)
        }
        if !lane.ids.isEmpty || lane.active != nil || lane.isQueued { lanes[key] = lane }
    }

    /// The entries from which a new process gets the same state.
    func entries() -> [OutboxEntry] {
        var entries: [OutboxEntry] = []
        entries.reserveCapacity(items.count * 2)
        for temporary in replacementOrder {
            guard let replacement = replacements[temporary] else { continue }
            entries.append(OutboxEntry(id: OutboxEntry.noCommand, lane: "", fact: .mapped(temporary: temporary, replacement: replacement)))
        }
        for item in commands() {
            func add(_ fact: OutboxEntry.Fact) { entries.append(OutboxEntry(id: item.id, lane: item.lane, fact: fact)) }
            var submission = item.submission
            submission.supersedes = nil
            add(.submitted(submission))
            if item.isAttempted { add(.attempted) }
            if let deferral = item.deferral { add(.deferred(deferral)) }
            if let failure = item.failure { add(.failed(failure)) }
            if item.status == .delivered { add(.delivered(replacement: item.replacement)) }
        }
        return entries
    }
}

// MARK: - Facts of this process

extension OutboxMachine {
    /// Deliveries may begin.
    mutating func start() {
        isStarted = true
        reviewAll()
    }

    mutating func stop() { isStarted = false }

    /// Time has passed: resumes the lanes whose delay has ended.
    mutating func woke(_ instant: MonotonicInstant) {
        now = max(now, instant)
        while let (due, lane) = timers.takeDue(now) {
            if lanes[lane]?.timer == due { lanes[lane]?.timer = nil }
            review(lane)
        }
        fill()
    }

    /// A type of command was registered; its commands can be decoded up to this version.
    mutating func register(_ name: String, version: Int) {
        registered[name] = version
        for item in items.values where item.submission.name == name { markReadable(item.id) }
        reviewAll()
    }

    private mutating func markReadable(_ id: UUID) {
        guard let item = items[id], let version = registered[item.submission.name] else { return }
        if item.submission.version > version { markUnreadable(id) }
    }

    /// A payload could not be decoded.
    mutating func markUnreadable(_ id: UUID) {
        guard let item = items[id], !item.isUnreadable else { return }
        items[id]?.isUnreadable = true
        unreadable.insert(id)
        review(item.lane)
    }

    /// The lease was granted or has ended.
    mutating func setDeliverer(_ isDeliverer: Bool) {
        self.isDeliverer = isDeliverer
        fill()
    }

    /// A delivery begins; the first attempt is logged.
    mutating func began(_ id: UUID) {
        guard let item = items[id], running[id] != nil else { return }
        actions.append(.perform(id, attempt: item.attempts + 1))
    }

    /// A delivery has passed its deadline: others may begin, but not in its lane.
    mutating func passedDeadline(_ id: UUID) {
        if running[id] != nil { overdue.insert(id) }
        fill()
    }

    /// A delivery has ended, and its result is applied; or it could not begin.
    ///
    /// - Parameter delay: The delay before the next attempt, if the end could not be logged.
    mutating func ended(_ id: UUID, retryAfter delay: Duration? = nil) {
        overdue.remove(id)
        guard let key = running.removeValue(forKey: id) else { return }
        if lanes[key]?.active == id { lanes[key]?.active = nil }
        if let delay { items[id]?.notBefore = now.advanced(by: delay) }
        if let lane = lanes[key], lane.ids.isEmpty, !lane.isQueued { lanes[key] = nil }
        review(key)
        // Its lane may be another one since its identifiers were replaced.
        if let lane = items[id]?.lane, lane != key { review(lane) }
        fill()
    }

    /// A fatal failure stops all lanes until ``resume()``.
    mutating func halt() { isStopped = true }

    mutating func resume() {
        isStopped = false
        reviewAll()
    }

    /// An external event makes success more likely: ends the delays that the origin has not asked for.
    mutating func triggered() {
        for (id, item) in items where item.notBefore != nil && item.deferral?.isRequested != true { items[id]?.notBefore = nil }
        reviewAll()
    }

    private mutating func reviewAll() {
        for key in lanes.keys.sorted(by: { firstOrder($0) < firstOrder($1) }) { review(key) }
        fill()
    }

    private func firstOrder(_ key: String) -> UInt64 { lanes[key]?.ids.first.flatMap { items[$0]?.order } ?? 0 }

    /// Adds a lane to the ready ones if its first command can be delivered, or sets a timer.
    private mutating func review(_ key: String) {
        guard let lane = lanes[key], lane.active == nil, !lane.isQueued, let item = deliverable(lane, key) else { return }
        if let notBefore = item.notBefore, notBefore > now {
            guard lane.timer ?? .distantFuture > notBefore else { return }
            lanes[key]?.timer = notBefore
            timers.add(notBefore, key)
        } else {
            lanes[key]?.isQueued = true
            ready.append(key)
        }
    }

    /// The first command of a lane, if nothing but time keeps it from being delivered.
    private func deliverable(_ lane: Lane, _ key: String) -> Item? {
        guard let id = lane.ids.first, let item = items[id], item.status == .pending, !isUndecodable(item), !heldLanes.contains(key),
            running[id] == nil
        else { return nil }
        return item.submission.references.isEmpty ? item : nil
    }

    /// Begins deliveries in ready lanes, up to the limit.
    private mutating func fill() {
        while let key = ready.first {
            guard let lane = lanes[key] else {
                ready.removeFirst()
                continue
            }
            guard lane.active == nil, let item = deliverable(lane, key), item.notBefore ?? .distantPast <= now else {
                // Another process has delivered the command, or it was taken back.
                ready.removeFirst()
                lanes[key]?.isQueued = false
                if lane.ids.isEmpty, lane.active == nil { lanes[key] = nil } else { review(key) }
                continue
            }
            guard isStarted, isDeliverer, !isStopped, running.count - overdue.count < rules.width else { return }
            ready.removeFirst()
            lanes[key]?.isQueued = false
            lanes[key]?.active = item.id
            running[item.id] = key
            actions.append(.begin(item.id))
        }
    }

    /// Replaces the durable state by that of a log which another process has compacted.
    mutating func replaceAll(_ entries: [OutboxEntry], date: Date) {
        let (old, wasStarted) = (self, isStarted)
        let oldActions = actions
        clear()
        isStarted = false
        for entry in entries { apply(entry, date: date) }
        actions = oldActions
        isStarted = wasStarted
        for (id, lane) in running where items[id]?.lane == lane { lanes[lane]?.active = id }
        for item in old.commands() where items[item.id] == nil && item.status == .pending { actions.append(.hide(item.id)) }
        for item in commands() {
            let before = old.items[item.id]
            switch item.status {
            case .pending:
                if before?.status != .pending || before?.submission != item.submission {
                    actions.append(.show(item.id, insteadOf: before == nil ? nil : item.id))
                }
                if item.submission.references.contains(where: { replacements[$0] != nil }) { actions.append(.rewrite(item.id)) }
            case .failed:
                if before?.status == .pending { actions.append(.hide(item.id)) }
            case .delivered:
                if before?.status != .delivered { actions.append(.confirm(item.id)) }
            }
        }
        reviewAll()
    }
}

/// The lanes that wait for a time, earliest first.
private struct TimerHeap: Sendable {
    private var nodes: [(instant: MonotonicInstant, lane: String)] = []

    var first: MonotonicInstant? { nodes.first?.instant }

    mutating func add(_ instant: MonotonicInstant, _ lane: String) {
        nodes.append((instant, lane))
        var child = nodes.count - 1
        while child > 0, nodes[child].instant < nodes[(child - 1) / 2].instant {
            nodes.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    mutating func takeDue(_ now: MonotonicInstant) -> (MonotonicInstant, String)? {
        guard let first = nodes.first, first.instant <= now else { return nil }
        nodes.swapAt(0, nodes.count - 1)
        nodes.removeLast()
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < nodes.count && nodes[child].instant < nodes[least].instant {
                least = child
            }
            guard least != parent else { return first }
            nodes.swapAt(parent, least)
            parent = least
        }
    }
}

extension Array {
    /// The position of the first element that fits; all elements after it fit, too.
    fileprivate func partition(where fits: (Element) -> Bool) -> Int {
        var (low, high) = (startIndex, endIndex)
        while low < high {
            let middle = (low + high) / 2
            if fits(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
