#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif
internal import StoreCore

// The facts of this process, which decide on the next deliveries.

extension OutboxMachine {
    /// Deliveries may begin. Ends the delays that the origin has not asked for: a new launch is a sign of success like a trigger.
    mutating func start() {
        isStarted = true
        triggered()
    }

    mutating func stop() { isStarted = false }

    /// Time has passed: resumes the lanes after their delay.
    mutating func woke(_ instant: MonotonicInstant) {
        now = max(now, instant)
        guard let first = timers.first, first.instant <= now else { return }
        while let timer = timers.first, timer.instant <= now {
            timers.removeFirst()
            if lanes[timer.lane]?.timer == timer.instant { lanes[timer.lane]?.timer = nil }
            review(timer.lane)
        }
        fill()
    }

    /// A type of command was registered; its commands can be decoded up to this version.
    mutating func register(_ name: String, version: Int) {
        registered[name] = version
        for item in items.values where item.submission.name == name { markReadable(item.id) }
        reviewAll()
    }

    mutating func markReadable(_ id: UUID) {
        guard let item = items[id], let version = registered[item.submission.name] else { return }
        if item.submission.version > version { markUnreadable(id) }
    }

    mutating func markUnreadable(_ id: UUID) {
        guard let item = items[id], !item.isUnreadable else { return }
        items[id]?.isUnreadable = true
        unreadable.insert(id)
        review(item.lane)
    }

    mutating func setDeliverer(_ isDeliverer: Bool) {
        self.isDeliverer = isDeliverer
        fill()
    }

    mutating func began(_ id: UUID) {
        guard let item = items[id], running[id] != nil else { return }
        actions.append(.perform(id, attempt: item.attempts + 1))
    }

    /// A delivery has passed its deadline: others may begin, but not in its lane while its command is there.
    mutating func passedDeadline(_ id: UUID) {
        if let lane = running[id] {
            overdue.insert(id)
            // Another process may have ended or moved the command, so nothing else would free its lane.
            let isLeft = items[id]?.status != .pending || items[id]?.lane != lane
            if isLeft, lanes[lane]?.active == id {
                lanes[lane]?.active = nil
                review(lane)
            }
        }
        fill()
    }

    /// A delivery has ended, and its result is applied; or it could not begin. If the end could not be logged, the next attempt is delayed.
    mutating func ended(_ id: UUID, retryAfter delay: Duration? = nil) {
        overdue.remove(id)
        guard let key = running.removeValue(forKey: id) else { return }
        if lanes[key]?.active == id { lanes[key]?.active = nil }
        if let delay { items[id]?.notBefore = now.advanced(by: delay) }
        if lanes[key]?.isUnused == true { lanes[key] = nil }
        review(key)
        // Replacing its identifiers may have moved the command to another lane.
        if let lane = items[id]?.lane, lane != key { review(lane) }
        fill()
    }

    mutating func hold(_ id: UUID) { held.insert(id) }

    mutating func release(_ id: UUID) {
        guard held.remove(id) != nil, let item = items[id] else { return }
        review(item.lane)
        fill()
    }

    mutating func halt() { isStopped = true }

    mutating func resume() {
        isStopped = false
        reviewAll()
    }

    /// An external event makes success more likely: ends the delays that the origin has not asked for.
    mutating func triggered() {
        for (id, item) in items where item.notBefore != nil { items[id]?.notBefore = item.requestedUntil }
        reviewAll()
    }

    mutating func reviewAll() {
        for key in lanes.keys.sorted(by: { firstOrder($0) < firstOrder($1) }) { review(key) }
        fill()
    }

    func firstOrder(_ key: OutboxLane) -> UInt64 { lanes[key]?.ids.first.flatMap { items[$0]?.order } ?? 0 }

    /// Adds a lane to the ready ones if its first command can be delivered, or sets a timer.
    mutating func review(_ key: OutboxLane) {
        guard let lane = lanes[key], lane.active == nil, !lane.isQueued, let item = deliverable(lane, key) else { return }
        if let notBefore = item.notBefore, notBefore > now {
            guard lane.timer ?? .distantFuture > notBefore else { return }
            lanes[key]?.timer = notBefore
            timers.insert(LaneTimer(instant: notBefore, lane: key))
        } else {
            lanes[key]?.isQueued = true
            ready.append(key)
        }
    }

    /// The first command of a lane, if nothing but time keeps it from being delivered.
    func deliverable(_ lane: Lane, _ key: OutboxLane) -> Item? {
        guard let id = lane.ids.first, let item = items[id], item.status == .pending, !isUndecodable(item), !heldLanes.contains(key),
            running[id] == nil, !held.contains(id)
        else { return nil }
        return item.submission.references.isEmpty ? item : nil
    }

    /// Begins deliveries in ready lanes, up to the limit.
    mutating func fill() {
        while let key = ready.first {
            guard let lane = lanes[key] else {
                ready.removeFirst()
                continue
            }
            guard lane.active == nil, let item = deliverable(lane, key), item.notBefore ?? .distantPast <= now else {
                // Another process has delivered the command, or it was taken back.
                ready.removeFirst()
                lanes[key]?.isQueued = false
                if lanes[key]?.isUnused == true { lanes[key] = nil } else { review(key) }
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

    /// Replaces the durable state with that of a log that another process has compacted.
    mutating func replaceAll(_ entries: [OutboxEntry], date: Date) {
        let old = self
        forgetCommands()
        isStarted = false
        // A screen of this process may have a temporary identifier that the new log no longer names.
        for temporary in old.replacementOrder where !entries.isEmpty {
            if let replacement = old.replacements[temporary] { map(temporary, to: replacement) }
        }
        for entry in entries { apply(entry, date: date) }
        keepPlaces(of: old)
        for temporary in old.creators.keys where creators[temporary] == nil { abandoned.replace(temporary, with: true) }
        (actions, isStarted) = (old.actions, old.isStarted)
        for (id, item) in old.items {
            guard let new = items[id] else { continue }
            if item.isUnreadable, new.submission == item.submission { markUnreadable(id) }
            // A trigger may have ended a delay since it was logged. The duration that was read may differ by a nanosecond.
            guard new.status == .pending, new.attempts == item.attempts, new.deferral?.date == item.deferral?.date else { continue }
            items[id]?.notBefore = item.notBefore
            items[id]?.requestedUntil = item.requestedUntil
        }
        for id in running.keys {
            guard let item = items[id], item.status == .pending else {
                overdue.insert(id)
                continue
            }
            running[id] = item.lane
            if lanes[item.lane]?.active == nil { lanes[item.lane]?.active = id }
        }
        for var item in old.commands() where items[item.id] == nil && item.status == .pending {
            if let temporary = item.submission.creates, let replacement = replacements[temporary], old.replacements[temporary] == nil {
                // Another process has delivered the command and saved its content, so the log has only the key.
                (item.status, item.replacement, item.hasContent) = (.delivered, replacement, true)
                actions.append(.settle(item))
            } else {
                actions.append(.drop(item.id))
            }
        }
        for temporary in replacementOrder where old.replacements[temporary] == nil {
            // An entity that is shown here moves to its key instead.
            if let creator = old.creators[temporary], old.items[creator]?.status == .pending { continue }
            if let replacement = replacements[temporary] { actions.append(.replaceKey(temporary, with: replacement)) }
        }
        for item in commands() {
            let before = old.items[item.id]
            switch item.status {
            case .pending:
                if before?.status != .pending || before?.submission != item.submission {
                    actions.append(.show(item.id, insteadOf: before == nil ? nil : item.id))
                }
                if item.submission.references.contains(where: { replacements[$0] != nil }) { actions.append(.rewrite(item.id)) }
            case .failed:
                if before?.status == .pending { actions.append(.drop(item.id)) }
            case .delivered:
                guard before?.status != .delivered else { break }
                // Its change must be known, under the present keys, to become part of the content.
                if before?.submission != item.submission { actions.append(.show(item.id, insteadOf: before == nil ? nil : item.id)) }
                actions.append(.settle(item))
            }
        }
        reviewAll()
    }

    /// Gives the commands the places that they had: the stores have applied their changes at these places.
    private mutating func keepPlaces(of old: OutboxMachine) {
        let ordered = commands()
        timeline = []
        var last: UInt64 = 0
        for item in ordered {
            let known = old.items[item.id]?.order ?? 0
            if known <= last { lastOrder += 1 }
            last = known > last ? known : lastOrder
            items[item.id]?.order = last
            timeline.append((last, item.id))
        }
    }
}

struct LaneTimer: Comparable, Sendable {
    let instant: MonotonicInstant
    let lane: OutboxLane

    static func < (lhs: LaneTimer, rhs: LaneTimer) -> Bool { lhs.instant < rhs.instant }
}
