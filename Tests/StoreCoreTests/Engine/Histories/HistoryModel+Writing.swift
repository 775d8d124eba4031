import StoreCore

// Changes, mutations and the cacher.

extension HistoryModel {
    mutating func accept(_ key: Int, _ record: Record, confirms: Bool = false) {
        self[key].truth = record
        self[key].refetches = rules.refetchesOnExpiry && isValid(key)
        self[key].heldOffUntil = nil
        if !confirms { for direction in PageDirection.allCases { self[key].sides[direction]?.hasFailed = false } }
        truthChanged(key)
    }

    mutating func truthChanged(_ key: Int) {
        self[key].revision += 1
        if rules.hasFront { front[key] = self[key].truth }
    }

    // MARK: Changes

    /// A caller knows the truth and does what he came for.
    mutating func go(on id: Int, _ change: Change, _ key: Int) {
        switch change {
        case .set(let content):
            update(key, content)
            arrive(id, key, .saved(self[key].revision, result: "done"))
        case .append(let number):
            guard let content = self[key].truth?.content else { return results[id] = "false" }
            update(key, content + [number])
            arrive(id, key, .saved(self[key].revision, result: "true"))
        case .patch(let number):
            performing[id] = key
            self[key].patches.append(Patch(id: id, number: number))
            startEpoch(key)
            endTurn(key)
        case .invalidate:
            arrive(id, key, .saved(self[key].revision, result: "done"))
        }
    }

    mutating func update(_ key: Int, _ content: [Int], keys: (next: String?, prev: String?)? = nil) {
        let wasExplicit = dropFlight(key) || self[key].isForced
        let wasRead = self[key].isRead
        (self[key].isForced, self[key].isInvalidationPending) = (false, false)
        supersedePages(key)
        let old = self[key].truth
        self[key].isRead = true
        accept(
            key,
            Record(
                content: content, deadline: rules.lifetime.map { now + $0 }, nextKey: keys.map(\.next) ?? old?.nextKey,
                prevKey: keys.map(\.prev) ?? old?.prevKey))
        let told = told(key)
        answer(key) { need in
            switch need {
            case .content, .origin, .cached: told
            case .freshness: "done"
            case .pageAfterFetch: "notLoadedYet"
            default: nil
            }
        }
        if wasExplicit || self[key].callers.contains(where: { $0.need == .refresh }) { startFlight(key, explicit: true) }
        if !wasRead { readmit(key) }
        endTurn(key)
    }

    mutating func clear(_ key: Int, all: Bool = false) {
        let wasExplicit = dropFlight(key) || self[key].isForced || self[key].callers.contains { $0.need == .refresh }
        let wasRead = self[key].isRead
        (self[key].isForced, self[key].isInvalidationPending) = (false, false)
        supersedePages(key)
        self[key].isRead = true
        self[key].truth = nil
        self[key].heldOffUntil = nil
        self[key].patches = []
        self[key].refetches = false
        for direction in PageDirection.allCases { self[key].sides[direction] = Side() }
        truthChanged(key)
        if all { settle(key, self[key].revision, failed: false) }
        if self[key].isWanted { startFlight(key, explicit: wasExplicit) }
        if !wasRead { readmit(key) }
        endTurn(key)
    }

    mutating func invalidate(_ id: Int, _ key: Int) {
        if self[key].isRead {
            applyInvalidation(key)
            endTurn(key)
            arrive(id, key, .truth(.invalidate))
        } else {
            self[key].isInvalidationPending = true
            arrive(id, key, .truth(.invalidate))
        }
    }

    mutating func applyInvalidation(_ key: Int) {
        let wasExplicit = dropFlight(key)
        supersedePages(key)
        if self[key].truth != nil {
            self[key].truth?.isInvalidated = true
            self[key].refetches = false
            truthChanged(key)
        }
        if self[key].isWanted { startFlight(key, explicit: wasExplicit) }
    }

    // MARK: Mutations

    private mutating func startEpoch(_ key: Int) {
        supersedePages(key)
        guard self[key].flight != nil else { return }
        let wasExplicit = dropFlight(key)
        let isMissed = self[key].callers.contains { $0.need.wantsFetch } || (self[key].observers > 0 && self[key].truth == nil)
        if wasExplicit || isMissed { startFlight(key, explicit: wasExplicit) }
    }

    mutating func patchSucceeded(_ id: Int) {
        guard let key = performing.removeValue(forKey: id) else { return }
        let place = self[key].patches.firstIndex { $0.id == id }
        if let place { self[key].patches[place].isConfirmed = true }
        startEpoch(key)
        if place != nil {
            fold(key)
        } else if self[key].patches.isEmpty, self[key].isRead, self[key].observers > 0 {
            startFlight(key, explicit: false)
        }
        endTurn(key)
        if self[key].settled >= self[key].revision {
            results[id] = "done"
        } else {
            self[key].callers.append(Caller(id: id, need: .saved(self[key].revision, result: "done")))
        }
    }

    mutating func patchFailed(_ id: Int, _ key: Int) {
        performing[id] = nil
        guard let place = self[key].patches.firstIndex(where: { $0.id == id }) else { return }
        self[key].patches.remove(at: place)
        fold(key)
        endTurn(key)
    }

    private mutating func fold(_ key: Int) {
        let confirmed = self[key].patches.prefix { $0.isConfirmed }
        self[key].patches.removeFirst(confirmed.count)
        if !confirmed.isEmpty, self[key].truth != nil {
            self[key].truth?.content += confirmed.map(\.number)
            self[key].truth?.validator = nil
            truthChanged(key)
        }
        if self[key].patches.isEmpty, self[key].observers > 0 { startFlight(key, explicit: false) }
    }

    // MARK: The cacher

    mutating func advanceLane(_ key: Int) {
        let one = self[key]
        guard one.isRead, one.settled < one.revision else { return }
        guard rules.hasBacking else { return settle(key, one.revision, failed: false) }
        guard one.call == nil else { return }
        self[key].call = Call(record: one.truth, revision: one.revision, isDeferred: isClearWanted || isClearing)
    }

    private mutating func settle(_ key: Int, _ revision: Int, failed: Bool) {
        if revision >= self[key].settled { (self[key].settled, self[key].isUnsaved) = (revision, failed) }
        answer(key) { if case .saved(let awaited, let result) = $0, awaited <= revision { result } else { nil } }
    }

    /// A call of the cacher has ended.
    mutating func callEnded(_ key: Int, fails: Bool) {
        guard let call = self[key].call else { return }
        self[key].call = nil
        if call.isLoad {
            if !self[key].isRead {
                if fails {
                    answer(key) { $0 == .cached ? "Broken" : nil }
                } else {
                    self[key].truth = stored[key]
                }
                becomeRead(key)
            }
        } else {
            if !fails { stored[key] = call.record }
            settle(key, call.revision, failed: fails)
        }
        endTurn(key)
        beginClearingIfWanted()
    }

    mutating func clearAll(_ id: Int) {
        if rules.hasBacking { isClearWanted = true }
        for key in keys.keys where self[key].call?.isDeferred == true { self[key].call?.record = nil }
        front = [:]
        for key in keys.keys.sorted() where !self[key].isAtRest || self[key].isUnsaved { clear(key, all: true) }
        guard rules.hasBacking else { return results[id] = "done" }
        clearers.append(id)
        beginClearingIfWanted()
    }

    private mutating func beginClearingIfWanted() {
        let isBusy = keys.values.contains { $0.call.map { !$0.isDeferred } ?? false }
        guard isClearWanted, !isClearing, !isBusy else { return }
        (isClearWanted, isClearing) = (false, true)
        (clearingFor, clearers) = (clearers, [])
    }

    mutating func clearingEnded(fails: Bool) {
        isClearing = false
        if !fails { stored = [:] }
        for id in clearingFor { results[id] = fails ? "StoreError" : "done" }
        clearingFor = []
        beginClearingIfWanted()
        guard !isClearWanted, !isClearing else { return }
        for key in keys.keys { self[key].call?.isDeferred = false }
    }
}
