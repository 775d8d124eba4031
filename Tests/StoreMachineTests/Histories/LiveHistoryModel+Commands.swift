// The commands of observers and callers, and the passage of time.

extension LiveHistoryModel {
    // MARK: Observers and callers

    private mutating func read(_ key: Int) {
        guard !self[key].isRead else { return }
        self[key].isRead = true
        self[key].accepted = stored[key]
        self[key].refetches = rules.refetchesOnExpiry && isValid(key) && deadline(key) != nil
    }

    mutating func join(_ key: Int, forces: Bool) {
        self[key].observers += 1
        read(key)
        if forces {
            start(key, explicit: true)
        } else if !isValid(key) || self[key].failedUntil != nil || (self[key].stream == nil && self[key].accepted?.isComplete != true) {
            startUnlessHeldOff(key)
        }
        endTransition(key)
    }

    private mutating func startUnlessHeldOff(_ key: Int) {
        if self[key].stream?.isConnecting != true, isHeldOff(key) { return }
        start(key)
    }

    mutating func leave(_ key: Int) {
        self[key].observers -= 1
        endTransition(key)
    }

    mutating func require(_ id: Int, _ key: Int, _ need: Need) {
        read(key)
        defer { endTransition(key) }
        if let result = resultAtOnce(key, need) {
            results[id] = result
            return
        }
        self[key].callers.append(Caller(id: id, need: need))
        start(key, explicit: need == .refresh)
    }

    private mutating func resultAtOnce(_ key: Int, _ need: Need) -> String? {
        let content = self[key].content.map { "\($0)" }
        switch need {
        case .refresh: return nil
        case .origin: return self[key].isConnected ? content : nil
        case .freshness:
            if isValid(key), self[key].failedUntil == nil { return "done" }
            return self[key].stream == nil && isHeldOff(key) ? "done" : nil
        case .content:
            if isValid(key) { return content }
            if isUsable(key, within: rules.staleWhileRevalidate) {
                startUnlessHeldOff(key)
                if self[key].stream?.isConnecting == true { self[key].stream?.isPromised = true }
                return content
            }
            let isUsable = isUsable(key, within: rules.staleIfError)
            if self[key].stream?.isOpen == false { return isUsable ? content : nil }
            guard self[key].stream == nil, isHeldOff(key) else { return nil }
            return isUsable ? content : "Failed"
        }
    }

    mutating func readCache(_ id: Int, _ key: Int) {
        read(key)
        results[id] = isValid(key) ? self[key].content.map { "\($0)" } : "StoreError"
        endTransition(key)
    }

    mutating func cancel(_ id: Int, _ key: Int) {
        self[key].callers.removeAll { $0.id == id }
        results[id] = "CancellationError"
        endTransition(key)
    }

    // MARK: Writing

    mutating func update(_ key: Int, _ content: [Int]) {
        // A record that only the cacher has is not read for this.
        if rules.hasFront { read(key) }
        self[key].isRead = true
        self[key].accepted = Record(content: content, fetchedAt: now, isComplete: self[key].accepted?.isComplete ?? false)
        self[key].failedUntil = nil
        self[key].refetches = rules.refetchesOnExpiry && deadline(key) != nil && isValid(key)
        save(key)
        let visible = self[key].content.map { "\($0)" }
        answer(key) { need in
            switch need {
            case .content, .origin: visible
            case .freshness: "done"
            case .refresh: nil
            }
        }
        endTransition(key)
    }

    mutating func append(_ key: Int, _ number: Int) -> Bool {
        read(key)
        guard let accepted = self[key].accepted else {
            endTransition(key)
            return false
        }
        update(key, accepted.content + [number])
        return true
    }

    mutating func clear(_ key: Int) {
        end(key)
        self[key].isRead = true
        (self[key].accepted, self[key].failedUntil, self[key].patches) = (nil, nil, [])
        (self[key].owesFetch, self[key].refetches, self[key].isUnsaved) = (false, false, false)
        stored[key] = nil
        if self[key].isWanted { start(key) }
        endTransition(key)
    }

    mutating func clearAll() {
        for (key, one) in keys.sorted(by: { $0.key < $1.key }) where !one.isIdle { clear(key) }
        stored = [:]
    }

    mutating func invalidate(_ key: Int) {
        read(key)
        end(key)
        if self[key].accepted != nil {
            self[key].accepted?.isInvalidated = true
            self[key].refetches = false
            save(key)
        }
        if self[key].isWanted { start(key) }
        endTransition(key)
    }

    mutating func mutate(_ id: Int, _ key: Int, _ number: Int) {
        read(key)
        performing[id] = key
        self[key].patches.append(Patch(id: id, number: number))
        endTransition(key)
    }

    mutating func endMutation(_ id: Int, succeeds: Bool) {
        guard let key = performing.removeValue(forKey: id) else { return }
        results[id] = succeeds ? "done" : "Offline"
        if let place = self[key].patches.firstIndex(where: { $0.id == id }) {
            if succeeds { self[key].patches[place].isConfirmed = true } else { self[key].patches.remove(at: place) }
        } else if !succeeds || !self[key].isRead {
            return endTransition(key)
        }
        if rules.refetchesAfterMutation, self[key].stream == nil { self[key].owesFetch = true }
        let confirmed = self[key].patches.prefix { $0.isConfirmed }
        self[key].patches.removeFirst(confirmed.count)
        if !confirmed.isEmpty, self[key].accepted != nil {
            self[key].accepted?.content += confirmed.map(\.number)
            self[key].accepted?.tag = nil
            save(key)
        }
        if self[key].patches.isEmpty, self[key].owesFetch {
            self[key].owesFetch = false
            if self[key].observers > 0 {
                if self[key].stream?.isConnecting != true, isHeldOff(key) { self[key].isTriggered = true } else { start(key) }
            }
        }
        // The caller waits for the cacher.
        if succeeds { flush(key) }
        endTransition(key)
    }

    // MARK: Time

    mutating func trigger() {
        for key in keys.keys.sorted() where self[key].observers > 0 {
            guard self[key].stream?.isConnecting != true, !self[key].isConnected else { continue }
            self[key].isTriggered = true
            if let due = due(key), due <= now { start(key) }
            endTransition(key)
        }
    }

    mutating func advance(by time: Int) {
        now += time
        while let key = keys.keys.sorted().first(where: { isDue($0) }) { fire(key) }
    }

    func due(_ key: Int) -> Int? {
        let one = self[key]
        guard one.observers > 0, one.stream?.isConnecting != true, one.isRead else { return nil }
        let allowed = max(one.lastEnded.map { $0 + 1_000 } ?? .min, one.failedUntil ?? .min)
        if one.isTriggered { return allowed }
        // A stream that waits connects again anyway.
        guard one.refetches, one.stream == nil, let deadline = deadline(key) else { return nil }
        return max(deadline, allowed)
    }

    private func isDue(_ key: Int) -> Bool {
        let (one, stream) = (self[key], self[key].stream)
        let times = [one.graceEnds, one.isWanted ? stream?.reconnectsAt : nil, stream?.silenceEnds, stream?.saveDue, due(key)]
        return times.contains { $0.map { $0 <= now } ?? false }
    }

    private mutating func fire(_ key: Int) {
        if let ends = self[key].graceEnds, ends <= now {
            self[key].graceEnds = nil
            end(key)
        }
        if let stream = self[key].stream {
            if let due = stream.saveDue, due <= now { self[key].stream?.saveDue = nil }
            if let ends = stream.silenceEnds, ends <= now {
                connectionEnded(key, fails: true, after: 100)
            }
            if let start = stream.reconnectsAt, start <= now, self[key].isWanted {
                let own = self[key].stream?.own
                if own?.tag == nil { self[key].stream?.own = nil }
                self[key].stream?.isOpen = true
                self[key].stream?.reconnectsAt = nil
                self[key].stream?.sent = own?.tag
                self[key].stream?.isPromised = false
                connect(key, own?.tag)
            }
        }
        if let due = due(key), due <= now { start(key) }
        if self[key].isUnsaved { saveValue(key) }
        endTransition(key)
    }

    mutating func endTransition(_ key: Int) {
        if self[key].observers == 0 { self[key].isTriggered = false }
        if self[key].isWanted || self[key].stream == nil || (self[key].stream?.isConnecting == true && self[key].stream?.isPromised == true)
        {
            self[key].graceEnds = nil
        } else if self[key].graceEnds == nil {
            if !rules.completesUnwanted {
                self[key].graceEnds = now + 1_000
            } else if self[key].stream?.isConnecting == false {
                end(key)
            }
        }
        if self[key].isIdle { keys[key] = nil }
    }
}
