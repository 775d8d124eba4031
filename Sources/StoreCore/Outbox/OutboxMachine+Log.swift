#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif
internal import StoreCore

// The durable state, which every process derives from the entries of the log in the same way.

extension OutboxMachine {
    /// Applies an entry of the log. The delays that an earlier process began count by the current wall-clock time.
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
        case .delivered(let replacement, let hasContent):
            delivered(id, replacement, hasContent: hasContent)
        case .retired:
            if items[id]?.status == .delivered { remove(id) }
        case .canceled:
            guard let item = items[id], item.status == .pending, !item.isAttempted else { break }
            takeBack(id)
        case .discarded:
            // Another process may have discarded a command that is being delivered here. The result of the delivery is dropped.
            guard let item = items[id], item.status != .delivered else { break }
            takeBack(id)
        case .retried:
            retried(id)
        case .replaced(let submission):
            replaced(id, entry.lane, submission)
        case .mapped(let temporary, let replacement):
            map(temporary, to: replacement)
        case .unknown:
            heldLanes.insert(entry.lane.replaced(replacements))
            // The lane is renamed with the keys of its store, even if no other command of that store is known.
            if !entry.lane.key.isEmpty { storeNames.insert(entry.lane.name) }
        }
        fill()
    }

    mutating func submitted(_ id: UUID, _ lane: OutboxLane, _ submission: OutboxEntry.Submission) {
        guard items[id] == nil else { return }
        let (lane, submission) = renamed(lane, submission)
        var superseded: UUID?
        if let earlier = submission.supersedes, supersedable(in: lane)?.id == earlier {
            superseded = earlier
            // The entity of the earlier command will never exist under another key.
            if let temporary = items[earlier]?.submission.creates, temporary != submission.creates {
                failReferrers(to: temporary, of: earlier, submission.date)
            }
            remove(earlier)
        }
        lastOrder += 1
        var item = Item(id: id, order: lastOrder, lane: lane, submission: submission)
        item.submission.supersedes = nil
        items[id] = item
        timeline.append((lastOrder, id))
        countPending(submission.name, 1)
        byteCount += submission.payload.count
        if let temporary = submission.creates, creators[temporary] == nil, replacements[temporary] == nil { creators[temporary] = id }
        for reference in submission.references { referrers[reference, default: []].append(id) }
        bySubject[submission.subject, default: []].append(id)
        lanes[lane, default: Lane()].ids.append(id)
        markReadable(id)
        actions.append(.show(id, insteadOf: superseded))
        if !submission.references.isEmpty { settleReferences(of: id) }
        review(lane)
    }

    /// Fails a command if the creator of its entity has failed or is gone; requests a rewrite if its identifiers have replacements.
    mutating func settleReferences(of id: UUID) {
        guard let item = items[id], item.status == .pending else { return }
        for reference in item.submission.references {
            if replacements[reference] != nil {
                actions.append(.rewrite(id))
            } else if let creator = creators[reference] {
                if let failure = items[creator]?.failure, items[creator]?.status == .failed { failWithCreator(id, creator, failure.date) }
            } else {
                failWithCreator(id, nil, item.submission.date)
            }
        }
    }

    mutating func failWithCreator(_ id: UUID, _ creator: UUID?, _ date: Date) { failed(id, failureWithCreator(id, creator, date)) }

    private func failureWithCreator(_ id: UUID, _ creator: UUID?, _ date: Date) -> OutboxEntry.Failure {
        let message = "the command that creates the entity has failed or was removed; retry that command, or discard this one"
        return OutboxEntry.Failure(attempts: items[id]?.attempts ?? 0, date: date, error: message, cause: creator)
    }

    mutating func deferred(_ id: UUID, _ deferral: OutboxEntry.Deferral, _ date: Date) {
        guard let item = items[id], item.status == .pending else { return }
        // A clock that was set back must not prolong the delay, and the delay of an earlier process continues. The entry may be of a process
        // with other limits.
        let elapsed = max(.zero, Duration(saturating: date.timeIntervalSince(deferral.date)))
        func end(of delay: Duration) -> MonotonicInstant {
            now.advanced(by: max(.zero, min(max(.zero, delay), rules.longestDelay) - elapsed))
        }
        items[id]?.isAttempted = true
        items[id]?.deferral = deferral
        items[id]?.notBefore = end(of: deferral.delay)
        items[id]?.requestedUntil = deferral.requested > .zero ? end(of: deferral.requested) : nil
        review(item.lane)
    }

    mutating func failed(_ id: UUID, _ failure: OutboxEntry.Failure) {
        // A list instead of recursion: a chain of creations may be as long as the log.
        var failing = [(id: id, failure: failure)]
        var next = 0
        while next < failing.count {
            let (id, failure) = failing[next]
            next += 1
            guard let item = items[id], item.status == .pending else {
                // The cause is known only from this entry if the creator comes later in the log.
                if items[id]?.status == .failed { items[id]?.failure = failure }
                continue
            }
            setStatus(.failed, of: id)
            items[id]?.failure = failure
            items[id]?.endDelay()
            actions.append(.drop(id))
            if rules.continuesAfterFailure { leaveLane(id) }
            for referrer in pendingReferrers(to: item.submission.creates, of: id) {
                failing.append((referrer, failureWithCreator(referrer, id, failure.date)))
            }
            review(item.lane)
        }
    }

    func pendingReferrers(to temporary: String?, of creator: UUID) -> [UUID] {
        guard let temporary, creators[temporary] == creator else { return [] }
        return (referrers[temporary] ?? []).filter { items[$0]?.status == .pending }
    }

    mutating func failReferrers(to temporary: String?, of creator: UUID, _ date: Date) {
        for id in pendingReferrers(to: temporary, of: creator) { failWithCreator(id, creator, date) }
    }

    mutating func delivered(_ id: UUID, _ replacement: String?, hasContent: Bool) {
        guard let item = items[id], item.status != .delivered else { return }
        if item.status == .failed { actions.append(.show(id, insteadOf: nil)) }
        setStatus(.delivered, of: id)
        items[id]?.replacement = replacement
        items[id]?.hasContent = hasContent
        items[id]?.isAttempted = true
        leaveLane(id)
        // First, so that the entity moves before the commands that refer to it.
        if let item = items[id] { actions.append(.settle(item)) }
        if let temporary = item.submission.creates, creators[temporary] == id {
            if let replacement {
                creators[temporary] = nil
                map(temporary, to: replacement)
            } else {
                failReferrers(to: temporary, of: id, item.submission.date)
                creators[temporary] = nil
                abandoned.replace(temporary, with: true)
            }
        }
        review(item.lane)
    }

    mutating func map(_ temporary: String, to replacement: String) {
        if replacements.updateValue(replacement, forKey: temporary) == nil { replacementOrder.append(temporary) }
        rename(temporary, to: replacement)
        for id in referrers.removeValue(forKey: temporary) ?? [] where items[id]?.submission.references.contains(temporary) == true {
            if items[id]?.status == .pending { actions.append(.rewrite(id)) }
        }
    }

    /// Makes a failed command pending again, and the commands that failed because of it.
    mutating func retried(_ id: UUID) {
        // A stack instead of recursion: a chain of creations may be as long as the log.
        var retrying = [id]
        while let id = retrying.popLast() {
            guard let item = items[id], item.status == .failed else { continue }
            makePending(id)
            let others = (referrers[item.submission.creates ?? ""] ?? []).compactMap { items[$0] }.filter { $0.failure?.cause == id }
            retrying += others.sorted { $0.order > $1.order }.map(\.id)
        }
    }

    mutating func makePending(_ id: UUID) {
        guard let item = items[id] else { return }
        leaveLane(id)
        setStatus(.pending, of: id)
        lastOrder += 1
        items[id]?.order = lastOrder
        items[id]?.failure = nil
        timeline.append((lastOrder, id))
        lanes[item.lane, default: Lane()].ids.append(id)
        actions.append(.show(id, insteadOf: nil))
        settleReferences(of: id)
        review(item.lane)
    }

    mutating func replaced(_ id: UUID, _ lane: OutboxLane, _ submission: OutboxEntry.Submission) {
        guard let item = items[id], item.status != .delivered else { return }
        let (lane, submission) = renamed(lane, submission)
        if item.status == .pending {
            countPending(item.submission.name, -1)
            countPending(submission.name, 1)
        }
        byteCount += submission.payload.count - item.submission.payload.count
        items[id]?.submission = submission
        replaceIdentifiers(of: item, submission)
        if unreadable.remove(id) != nil { items[id]?.isUnreadable = false }
        markReadable(id)
        if submission.subject != item.submission.subject {
            bySubject.remove(id, at: item.submission.subject)
            bySubject[submission.subject, default: []].append(id)
        }
        if item.lane != lane {
            leaveLane(id)
            items[id]?.lane = lane
            if item.status == .pending { insert(id, item.order, into: lane) }
            review(item.lane)
        }
        // Under its new identity, no delivery was attempted.
        if submission.delivery != item.submission.delivery {
            items[id]?.isAttempted = false
            items[id]?.endDelay()
        }
        if item.status == .failed {
            if submission.creates == item.submission.creates { retried(id) } else { makePending(id) }
        } else {
            actions.append(.show(id, insteadOf: id))
            settleReferences(of: id)
        }
        review(lane)
    }

    mutating func replaceIdentifiers(of item: Item, _ submission: OutboxEntry.Submission) {
        if let temporary = item.submission.creates, temporary != submission.creates, creators[temporary] == item.id {
            // The entity will never exist under the old key.
            failReferrers(to: temporary, of: item.id, submission.date)
            creators[temporary] = nil
            abandoned.replace(temporary, with: true)
        }
        if let temporary = submission.creates, creators[temporary] == nil, replacements[temporary] == nil { creators[temporary] = item.id }
        for reference in item.submission.references { referrers.remove(item.id, at: reference) }
        for reference in submission.references { referrers[reference, default: []].append(item.id) }
    }

    /// Adds a command that comes from another lane, in the order of submission.
    mutating func insert(_ id: UUID, _ order: UInt64, into key: OutboxLane) {
        let position = lanes[key].map { lane in
            lane.ids.lastIndex { items[$0]?.order ?? 0 <= order }.map { $0 + 1 } ?? lane.ids.startIndex
        }
        lanes[key, default: Lane()].ids.insert(id, at: position ?? 0)
    }

    /// Removes a command with its patch; the commands that refer to its entity fail.
    mutating func takeBack(_ id: UUID) {
        guard let item = items[id] else { return }
        if item.status == .pending { actions.append(.drop(id)) }
        failReferrers(to: item.submission.creates, of: id, item.submission.date)
        remove(id)
        review(item.lane)
    }

    mutating func remove(_ id: UUID) {
        guard let item = items[id] else { return }
        leaveLane(id)
        setStatus(.delivered, of: id)
        items[id] = nil
        byteCount -= item.submission.payload.count
        if let temporary = item.submission.creates, creators[temporary] == id {
            creators[temporary] = nil
            abandoned.replace(temporary, with: true)
        }
        unreadable.remove(id)
        bySubject.remove(id, at: item.submission.subject)
        for reference in item.submission.references { referrers.remove(id, at: reference) }
        if timeline.count > 2 * items.count + 64 { timeline.removeAll { items[$0.id]?.order != $0.order } }
    }

    mutating func clear() {
        for item in commands() where item.status != .failed { actions.append(.drop(item.id)) }
        for temporary in creators.keys { abandoned.replace(temporary, with: true) }
        forgetCommands()
        held = []
        // The running deliveries belong to no lane any longer, and their results do not count.
        overdue = Set(running.keys)
    }

    mutating func forgetCommands() {
        (items, timeline, creators, referrers, replacements, replacementOrder, heldLanes) = ([:], [], [:], [:], [:], [], [])
        (failedCount, pendingByName, unreadable, byteCount, bySubject) = (0, [:], [], 0, [:])
        lanes = [:]
        (ready, timers) = ([], Heap())
    }

    mutating func setStatus(_ status: Item.Status, of id: UUID) {
        guard let item = items[id], item.status != status else { return }
        if item.status == .pending { countPending(item.submission.name, -1) }
        if status == .pending { countPending(item.submission.name, 1) }
        failedCount += (status == .failed ? 1 : 0) - (item.status == .failed ? 1 : 0)
        items[id]?.status = status
    }

    mutating func countPending(_ name: String, _ change: Int) {
        let count = pendingByName[name, default: 0] + change
        pendingByName[name] = count == 0 ? nil : count
    }

    mutating func leaveLane(_ id: UUID) {
        guard let key = items[id]?.lane, var lane = lanes[key] else { return }
        // Released first, so that the list is changed in place.
        lanes[key] = nil
        if lane.ids.first == id {
            lane.ids.removeFirst()
        } else if let position = lane.ids.lastIndex(of: id) {
            lane.ids.remove(at: position)
        }
        // A delivery that has passed its deadline may never return, so the lane continues without it.
        if lane.active == id, overdue.contains(id) { lane.active = nil }
        if !lane.isUnused { lanes[key] = lane }
    }

    /// The entries from which a new process gets the same state.
    func entries() -> [OutboxEntry] {
        var entries: [OutboxEntry] = []
        entries.reserveCapacity(items.count * 2)
        for temporary in replacementOrder {
            guard let replacement = replacements[temporary] else { continue }
            let fact = OutboxEntry.Fact.mapped(temporary: temporary, replacement: replacement)
            entries.append(OutboxEntry(id: OutboxEntry.noCommand, lane: .none, fact: fact))
        }
        var late: [OutboxEntry] = []
        for item in commands() {
            func add(_ fact: OutboxEntry.Fact) { entries.append(OutboxEntry(id: item.id, lane: item.lane, fact: fact)) }
            var submission = item.submission
            // A replaced command may refer to an entity that a later command creates.
            let isEarly = submission.references.contains { (creators[$0].flatMap { items[$0]?.order } ?? 0) > item.order }
            if isEarly, item.status == .pending {
                submission.references = []
                late.append(OutboxEntry(id: item.id, lane: item.lane, fact: .replaced(item.submission)))
            }
            add(.submitted(submission))
            if item.isAttempted { add(.attempted) }
            if let deferral = item.deferral { add(.deferred(deferral)) }
            if let failure = item.failure { add(.failed(failure)) }
            if item.status == .delivered { add(.delivered(replacement: item.replacement, hasContent: item.hasContent)) }
        }
        return entries + late
    }
}

// The lanes of entities that get their real key. A lane gets its new name with the entry that replaces the temporary key, before the payloads
// of its commands are rewritten and without their types. Therefore no later command overtakes them (O3).

extension OutboxMachine {
    /// The number of replaced identifiers that a new process remembers beside those that commands refer to.
    static let longestMemory = 10_000

    mutating func renamed(
        _ lane: OutboxLane, _ submission: OutboxEntry.Submission
    ) -> (lane: OutboxLane, submission: OutboxEntry.Submission) {
        var submission = submission
        submission.subject = submission.subject.replaced(replacements)
        if !submission.subject.key.isEmpty { storeNames.insert(submission.subject.name) }
        return (lane.replaced(replacements), submission)
    }

    /// A temporary identifier was replaced: its contents and their lanes get the new key.
    mutating func rename(_ temporary: String, to replacement: String) {
        // The origin may have kept the key.
        guard temporary != replacement else { return }
        for name in storeNames {
            let (old, new) = (OutboxLane(name: name, key: temporary), OutboxLane(name: name, key: replacement))
            if heldLanes.remove(old) != nil { heldLanes.insert(new) }
            guard let ids = bySubject.removeValue(forKey: old) else { continue }
            bySubject[new, default: []] += ids
            let waiting = lanes[old]?.ids ?? []
            lanes[old]?.ids = []
            for id in ids {
                items[id]?.submission.subject = new
                if items[id]?.lane == old { items[id]?.lane = new }
            }
            for id in waiting { move(id, from: old, to: new) }
            if lanes[old]?.isUnused == true { lanes[old] = nil }
            review(new)
        }
    }

    private mutating func move(_ id: UUID, from old: OutboxLane, to new: OutboxLane) {
        guard let item = items[id] else { return }
        insert(id, item.order, into: new)
        guard running[id] == old else { return }
        // The command does not refer to the identifier, although its key is the temporary one.
        running[id] = new
        if lanes[old]?.active == id { lanes[old]?.active = nil }
        if lanes[new]?.active == nil { lanes[new]?.active = id }
    }

    /// Forgets the oldest replaced identifiers of earlier processes, except those that commands refer to.
    mutating func forgetOldReplacements(keeping limit: Int = longestMemory) {
        let excess = replacementOrder.count - limit
        guard excess > 0 else { return }
        let named = Set(items.values.flatMap(\.submission.references))
        let forgotten = Set(replacementOrder.prefix(excess)).subtracting(named)
        replacementOrder.removeAll { forgotten.contains($0) }
        for temporary in forgotten { replacements[temporary] = nil }
    }
}

extension Dictionary where Value == [UUID] {
    fileprivate mutating func remove(_ id: UUID, at key: Key) {
        self[key]?.removeAll { $0 == id }
        if self[key]?.isEmpty == true { self[key] = nil }
    }
}
