import StoreCore

// Changes and mutations.

extension HistoryModel {
    mutating func accept(_ key: Int, _ record: Record) {
        self[key].accepted = record
        self[key].changes += 1
        self[key].refetches = rules.refetchesOnExpiry && isValid(key)
        self[key].heldOffUntil = nil
        for direction in PageDirection.allCases { self[key].sides[direction]?.hasFailed = false }
        acceptedContentChanged(key)
    }

    mutating func acceptedContentChanged(_ key: Int) {
        self[key].revision += 1
        if rules.hasFront { front[key] = self[key].accepted }
    }

    // MARK: Changes

    /// Continues the call of a caller after the accepted content is known.
    mutating func go(on id: Int, _ change: Change, _ key: Int) {
        switch change {
        case .append(let number):
            guard let content = self[key].accepted?.content else { return results[id] = "false" }
            let revision = update(key, content + [number])
            arrive(id, key, .saved(revision, result: "true"))
        case .patch(let number):
            performing[id] = key
            self[key].changes += 1
            self[key].patches.append(Patch(id: id, number: number, began: self[key].changes))
            restart(key, dropOlderFetches(key))
            endTransition(key)
        case .invalidate: arrive(id, key, .saved(self[key].revision, result: "done"))
        }
    }

    /// Replaces the content. Without new page keys the list keeps those of its record, even if it has not been read yet.
    ///
    /// - Returns: The revision of the new content.
    mutating func update(_ key: Int, _ content: [Int], keys: (next: String?, prev: String?)? = nil) -> Int {
        let wasExplicit = dropFlight(key) || self[key].isForced
        let (wasRead, hadPendingKeys) = (self[key].isRead, self[key].pendingKeys != nil)
        (self[key].isForced, self[key].isInvalidationPending) = (false, false)
        if keys == nil { interruptPages(key) } else { supersedePages(key) }
        // A key that becomes live knows the record in memory.
        let fronted = front[key]
        let old = wasRead ? self[key].accepted : fronted
        self[key].isRead = true
        let readsKeys = keys == nil && !wasRead
        if keys != nil { self[key].pendingKeys = nil } else if readsKeys { self[key].pendingKeys = .adopt }
        accept(
            key,
            Record(
                content: content, deadline: rules.lifetime.map { now + $0 }, nextKey: keys.map(\.next) ?? old?.nextKey,
                prevKey: keys.map(\.prev) ?? old?.prevKey, fetchedAt: now, pages: pages(of: keys == nil ? old : nil, or: old, content.count)
            ))
        let revision = self[key].revision
        answerReaders(key)
        let isExplicit = wasExplicit || self[key].callers.contains { $0.need == .refresh }
        if isExplicit, self[key].isWanted { startFlight(key, explicit: true) }
        if !wasRead || (hadPendingKeys && self[key].pendingKeys == nil) { readmit(key) }
        if readsKeys { beginReadingKeys(key, fronted) }
        endTransition(key)
        return revision
    }

    /// Reads the record with the page keys that an updated list keeps.
    private mutating func beginReadingKeys(_ key: Int, _ fronted: Record?) {
        guard self[key].call == nil else { return }
        if fronted == nil, rules.hasBacking {
            self[key].call = Call(isLoad: true, isDeferred: isClearWanted || isClearing)
        } else {
            adoptKeys(key, of: fronted)
        }
    }

    mutating func adoptKeys(_ key: Int, of record: Record?) {
        let adopts = self[key].pendingKeys == .adopt
        self[key].pendingKeys = nil
        if adopts, let record, self[key].accepted != nil {
            self[key].accepted?.nextKey = record.nextKey
            self[key].accepted?.prevKey = record.prevKey
            let pages = pages(of: record, or: nil, self[key].accepted?.content.count ?? 0)
            self[key].accepted?.pages = pages
            acceptedContentChanged(key)
        }
        readmit(key)
    }

    /// - Returns: The revision of the removal.
    @discardableResult
    mutating func clear(_ key: Int, all: Bool = false) -> Int {
        let wasExplicit = dropFlight(key) || self[key].isForced || self[key].callers.contains { $0.need == .refresh }
        answer(key) { $0 == .prefetch ? "done" : nil }
        let (wasRead, hadPendingKeys) = (self[key].isRead, self[key].pendingKeys != nil)
        (self[key].isForced, self[key].isInvalidationPending) = (false, false)
        self[key].pendingKeys = nil
        supersedePages(key)
        (self[key].isRead, self[key].isUnreadable) = (true, false)
        self[key].accepted = nil
        self[key].heldOffUntil = nil
        self[key].patches = []
        self[key].changes += 1
        self[key].owesFetch = false
        self[key].refetches = false
        for direction in PageDirection.allCases { self[key].sides[direction] = Side() }
        acceptedContentChanged(key)
        let revision = self[key].revision
        // A running save may reach the cacher after it was cleared, so the record is removed once more.
        if all, self[key].call?.isLoad ?? true { settle(key, revision, failed: false) }
        if self[key].isWanted { startFlight(key, explicit: wasExplicit) }
        if !wasRead || hadPendingKeys { readmit(key) }
        endTransition(key)
        return revision
    }

    mutating func invalidate(_ id: Int, _ key: Int) {
        if self[key].isRead {
            applyInvalidation(key)
            endTransition(key)
            arrive(id, key, .acceptedContent(.invalidate))
        } else {
            self[key].isInvalidationPending = true
            arrive(id, key, .acceptedContent(.invalidate))
        }
    }

    mutating func applyInvalidation(_ key: Int) {
        let wasExplicit = dropFlight(key)
        self[key].changes += 1
        interruptPages(key)
        if self[key].accepted != nil {
            self[key].accepted?.isInvalidated = true
            self[key].refetches = false
            acceptedContentChanged(key)
        }
        if self[key].isWanted { startFlight(key, explicit: wasExplicit) }
    }

    // MARK: Mutations

    private mutating func dropOlderFetches(_ key: Int) -> Flight? {
        interruptPages(key)
        let flight = self[key].flight
        dropFlight(key)
        return flight
    }

    private mutating func restart(_ key: Int, _ dropped: Flight?, isFresh: Bool = false) {
        guard let dropped, self[key].isWanted else { return }
        let isAwaited = self[key].callers.contains { caller in
            switch caller.need {
            case .page, .joined: false
            default: caller.need.wantsFetch
            }
        }
        if dropped.isExplicit || isAwaited || (self[key].observers > 0 && self[key].accepted == nil) {
            startFlight(key, explicit: dropped.isExplicit)
        } else if self[key].observers > 0, !isFresh {
            self[key].owesFetch = true
        }
    }

    mutating func patchSucceeded(_ id: Int) {
        guard let key = performing.removeValue(forKey: id) else { return }
        if let place = self[key].patches.firstIndex(where: { $0.id == id }) {
            let patch = self[key].patches[place]
            let isOverlapped = self[key].patches.contains { !$0.isConfirmed && $0.id != id }
            let isAccepted = responses[id] != nil && patch.began == self[key].changes && !patch.isBeforePage && !isOverlapped
            self[key].changes += 1
            let dropped = dropOlderFetches(key)
            if isAccepted, let response = responses[id] {
                takeIn(response, key, place)
            } else {
                self[key].patches[place].isConfirmed = true
                if rules.refetchesAfterMutation { self[key].owesFetch = true }
            }
            fold(key)
            restart(key, dropped, isFresh: isAccepted)
            fetchAfterLastPatch(key)
            endTransition(key)
        } else if self[key].isRead {
            self[key].changes += 1
            restart(key, dropOlderFetches(key))
            if rules.refetchesAfterMutation { self[key].owesFetch = true }
            fetchAfterLastPatch(key)
            endTransition(key)
        }
        if self[key].settled >= self[key].revision {
            results[id] = "done"
        } else {
            self[key].callers.append(Caller(id: id, need: .saved(self[key].revision, result: "done")))
        }
    }

    /// Replaces a patch with the response to its mutation.
    private mutating func takeIn(_ response: Int, _ key: Int, _ place: Int) {
        self[key].patches.remove(at: place)
        self[key].patches.removeAll(where: \.isConfirmed)
        let old = self[key].accepted
        accept(
            key,
            Record(
                content: [response], deadline: rules.lifetime.map { now + $0 }, nextKey: old?.nextKey, prevKey: old?.prevKey,
                fetchedAt: now, pages: pages(of: old, or: nil, 1)))
        self[key].owesFetch = false
        answerReaders(key)
    }

    mutating func patchFailed(_ id: Int, _ key: Int) {
        performing[id] = nil
        guard let place = self[key].patches.firstIndex(where: { $0.id == id }) else { return }
        self[key].patches.remove(at: place)
        // A revalidating fetch must not confirm a record changed by folding a patch.
        let isOutdated = self[key].patches.first?.isConfirmed == true && self[key].flight?.validator != nil
        let dropped = isOutdated ? dropOlderFetches(key) : nil
        if rules.refetchesAfterMutation { self[key].owesFetch = true }
        fold(key)
        restart(key, dropped)
        fetchAfterLastPatch(key)
        endTransition(key)
    }

    private mutating func fetchAfterLastPatch(_ key: Int) {
        guard self[key].patches.isEmpty, self[key].owesFetch else { return }
        self[key].owesFetch = false
        guard self[key].observers > 0 else { return }
        if self[key].flight == nil, isHeldOff(key) { self[key].isTriggered = true } else { startFlight(key, explicit: false) }
    }

    private mutating func fold(_ key: Int) {
        let confirmed = self[key].patches.prefix { $0.isConfirmed }
        self[key].patches.removeFirst(confirmed.count)
        if !confirmed.isEmpty, self[key].accepted != nil {
            self[key].accepted?.content += confirmed.map(\.number)
            let pages = pages(of: self[key].accepted, or: nil, self[key].accepted?.content.count ?? 0)
            self[key].accepted?.pages = pages
            self[key].accepted?.validator = nil
            acceptedContentChanged(key)
        }
        // The record may be read later, and lacks these changes.
        if !confirmed.isEmpty, self[key].accepted == nil, self[key].isUnreadable {
            self[key].debt = Debt(isInvalidation: true, since: now)
        }
    }
}
