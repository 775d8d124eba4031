import StoreCore

// The cacher and its waiting callers.

extension HistoryModel {
    mutating func advanceLane(_ key: Int) {
        let one = self[key]
        guard one.isRead, one.settled < one.revision else { return }
        guard rules.hasBacking else { return settle(key, one.revision, failed: false) }
        guard one.call == nil else { return }
        self[key].call = Call(record: one.accepted, revision: one.revision, isDeferred: isClearWanted || isClearing)
    }

    mutating func settle(_ key: Int, _ revision: Int, failed: Bool) {
        (self[key].settled, self[key].debt) = (revision, failed ? Debt(since: now) : nil)
        answer(key) { if case .saved(let awaited, let result) = $0, awaited <= revision { result } else { nil } }
        endSaving(key, fails: failed) { if case .kept(let awaited) = $0 { awaited <= revision } else { false } }
    }

    /// Adds a call that waits until the given keys are saved.
    mutating func waitUntilSaved(_ id: Int, _ waited: [Int]) {
        // Counts one for each key, one for clear(), and one for the call itself.
        savers[id] = (waited.count + 2, false)
        for key in waited {
            retrySave(key)
            admitSaver(id, key)
            endTransition(key)
        }
        if isClearWanted { clearers.append(id) } else if isClearing { clearingFor.append(id) } else { savingEnded(id, fails: false) }
        savingEnded(id, fails: false)
    }

    mutating func admitSaver(_ id: Int, _ key: Int) {
        if self[key].isInvalidationPending {
            self[key].callers.append(Caller(id: id, need: .allSaved))
        } else if self[key].settled < self[key].revision {
            self[key].callers.append(Caller(id: id, need: .kept(self[key].revision)))
        } else {
            savingEnded(id, fails: self[key].debt != nil)
        }
    }

    private mutating func endSaving(_ key: Int, fails: Bool, where hasEnded: (Need) -> Bool) {
        let ended = self[key].callers.filter { hasEnded($0.need) }
        self[key].callers.removeAll { hasEnded($0.need) }
        for caller in ended { savingEnded(caller.id, fails: fails) }
    }

    mutating func savingEnded(_ id: Int, fails: Bool) {
        guard var saver = savers[id] else { return }
        saver = (saver.open - 1, saver.hasFailed || fails)
        savers[id] = saver.open > 0 ? saver : nil
        if saver.open == 0 { results[id] = saver.hasFailed ? "StoreError" : "done" }
    }

    /// Ends a call of the cacher.
    mutating func callEnded(_ key: Int, fails: Bool) {
        guard let call = self[key].call else { return }
        self[key].call = nil
        if call.isLoad {
            if !self[key].isRead {
                self[key].isUnreadable = fails
                if fails {
                    answer(key) { $0 == .cached ? "Broken" : nil }
                    endSaving(key, fails: true) { $0 == .allSaved }
                    if self[key].isInvalidationPending { self[key].debt = Debt(isInvalidation: true, since: now) }
                } else {
                    self[key].accepted = found(key)
                }
                becomeRead(key)
            } else if self[key].pendingKeys != nil {
                adoptKeys(key, of: fails ? nil : found(key))
            }
        } else {
            if !fails {
                stored[key] = call.record
                savedSince?.insert(key)
            }
            settle(key, call.revision, failed: fails)
        }
        endTransition(key)
        if !call.isLoad, !fails { for other in keys.keys where other != key { recover(other) } }
        beginClearingIfWanted()
    }

    /// Returns the stored record of a key, unless a failed clear() should have removed it.
    private func found(_ key: Int) -> Record? { savedSince?.contains(key) == false ? nil : stored[key] }

    /// Retries the failed save of another key after a successful one.
    private mutating func recover(_ key: Int) {
        guard let debt = self[key].debt, debt.since + 1_000 <= now else { return }
        retrySave(key)
        endTransition(key)
    }

    /// Retries a failed save, unless a newer one is in progress.
    private mutating func retrySave(_ key: Int) {
        guard let debt = self[key].debt else { return }
        guard debt.isInvalidation ? self[key].isIdle : self[key].call == nil && self[key].settled == self[key].revision else { return }
        if debt.isInvalidation {
            self[key].debt = nil
            self[key].isRead = false
            self[key].heldOffUntil = nil
            self[key].isInvalidationPending = true
            beginReading(key)
        } else {
            self[key].revision += 1
        }
    }

    mutating func clearAll(_ id: Int) {
        if rules.hasBacking { isClearWanted = true }
        // Saves that wait for an earlier clear() are dropped.
        for key in keys.keys { if let call = self[key].call, call.isDeferred, !call.isLoad { self[key].call = nil } }
        front = [:]
        for key in keys.keys.sorted() where !self[key].isIdle || self[key].debt != nil { clear(key, all: true) }
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
        savedSince = fails ? [] : nil
        for id in clearingFor {
            if savers[id] == nil { results[id] = fails ? "StoreError" : "done" } else { savingEnded(id, fails: fails) }
        }
        clearingFor = []
        beginClearingIfWanted()
        guard !isClearWanted, !isClearing else { return }
        for key in keys.keys {
            guard var call = self[key].call, call.isDeferred else { continue }
            call.isDeferred = false
            // A save takes the newest content when it starts.
            if !call.isLoad { (call.record, call.revision) = (self[key].accepted, self[key].revision) }
            self[key].call = call
        }
    }
}
