/// The expected behavior of a store whose origin pushes, implemented as simply as possible: sequentially, without concurrency.
///
/// It follows the laws and shares no code with the store. Its cacher is as fast as memory. Times are in milliseconds.
struct LiveHistoryModel: Sendable {
    struct Rules: Sendable {
        var hasBacking = false
        var lifetime: Int?
        var staleWhileRevalidate = 0
        var staleIfError = 0
        var errorExpiry = 0
        var refetchesOnExpiry = false
        var completesUnwanted = false
        var refetchesAfterMutation = true
        var attempts = 1
        var idle: Int?
        var saveInterval = 0
    }

    struct Record: Hashable, Sendable {
        var content: [Int]
        var tag: String?
        var fetchedAt: Int
        var isInvalidated = false
    }

    struct Own: Hashable, Sendable {
        var content: [Int]
        var tag: String?
    }

    struct Stream: Hashable, Sendable {
        /// Whether a connection is open; otherwise the stream waits.
        var isOpen = true
        var connectedAt: Int?
        var isPromised = false
        /// The validator that the connection sent.
        var sent: String?
        var attempt = 1
        var reconnectsAt: Int?
        var silenceEnds: Int?
        var own: Own?
        var lastSave: Int?
        var saveDue: Int?

        var isConnecting: Bool { isOpen && connectedAt == nil }
    }

    enum Need: Hashable, Sendable { case content, origin, freshness, refresh }
    struct Caller: Sendable { var id: Int, need: Need }
    struct Patch: Sendable { var id: Int, number: Int, isConfirmed = false }

    struct Key: Sendable {
        var isRead = false
        var truth: Record?
        /// Whether the newest content waits to be saved.
        var isUnsaved = false
        var stream: Stream?
        var failedUntil: Int?
        var patches: [Patch] = []
        var owesFetch = false
        var callers: [Caller] = []
        var observers = 0
        var graceEnds: Int?
        var refetches = false
        var isTriggered = false
        var lastEnded: Int?

        var content: [Int]? { truth.map { $0.content + patches.map(\.number) } }
        var isWanted: Bool { observers > 0 || !callers.isEmpty }
        var isConnected: Bool { stream?.connectedAt != nil }
        var isIdle: Bool { observers == 0 && callers.isEmpty && stream == nil && patches.isEmpty }
    }

    let rules: Rules
    var now = 0
    var keys: [Int: Key] = [:]
    /// What the cacher holds.
    var stored: [Int: Record] = [:]
    var results: [Int: String] = [:]
    /// Running mutations and their keys.
    var performing: [Int: Int] = [:]
    /// The validators that the connections of each key sent, in order.
    var connections: [Int: [String?]] = [:]

    subscript(key: Int) -> Key {
        get { keys[key] ?? Key() }
        set { keys[key] = newValue }
    }

    // MARK: Validity

    func deadline(_ key: Int) -> Int? {
        guard let truth = self[key].truth, !self[key].isConnected else { return nil }
        return rules.lifetime.map { truth.fetchedAt + $0 }
    }

    func isValid(_ key: Int) -> Bool {
        guard let truth = self[key].truth, !truth.isInvalidated else { return false }
        return deadline(key).map { now < $0 } ?? true
    }

    func isUsable(_ key: Int, within window: Int) -> Bool {
        guard let truth = self[key].truth, !truth.isInvalidated, let deadline = deadline(key), window > 0 else { return false }
        return now <= deadline + window
    }

    func isHeldOff(_ key: Int) -> Bool { self[key].failedUntil.map { now < $0 } ?? false }

    /// The last state that an observer of the key must have seen.
    func state(_ key: Int) -> String? {
        let one = self[key]
        let content = one.content.map { "\($0)" } ?? "nil"
        if one.stream?.isConnecting == true { return "loading(\(content))" }
        if one.failedUntil != nil { return "error(\(content))" }
        return one.content == nil ? nil : "completed(\(content))"
    }

    // MARK: Streams

    private mutating func start(_ key: Int, explicit: Bool = false) {
        if let stream = self[key].stream {
            if stream.isConnecting { return }
            guard explicit || (self[key].isTriggered && (due(key) ?? .max) <= now) else {
                self[key].refetches = false
                return
            }
            end(key)
        }
        let tag = self[key].truth?.tag
        var stream = Stream(sent: tag)
        if let tag, let truth = self[key].truth { stream.own = Own(content: truth.content, tag: tag) }
        if !isValid(key) { self[key].refetches = false }
        self[key].stream = stream
        connect(key, tag)
    }

    private mutating func connect(_ key: Int, _ tag: String?) {
        let (now, rules) = (now, rules)
        self[key].isTriggered = false
        self[key].stream?.silenceEnds = rules.idle.map { now + $0 }
        connections[key, default: []].append(tag)
    }

    /// The store ends the stream of a key.
    private mutating func end(_ key: Int) {
        guard let stream = self[key].stream else { return }
        if stream.isOpen {
            close(key)
        }
        self[key].stream = nil
        flush(key)
    }

    private mutating func close(_ key: Int) {
        let (now, rules) = (now, rules)
        self[key].lastEnded = now
        let wasConnected = self[key].isConnected
        self[key].stream?.isOpen = false
        self[key].stream?.connectedAt = nil
        guard wasConnected, rules.lifetime != nil, self[key].truth != nil else { return }
        self[key].truth?.fetchedAt = now
        self[key].refetches = rules.refetchesOnExpiry && isValid(key)
        save(key)
    }

    /// The connection of a key has ended, or has failed.
    mutating func connectionEnded(_ key: Int, fails: Bool, after pause: Int) {
        let (now, rules) = (now, rules)
        guard let stream = self[key].stream else { return }
        let isFailure = fails || stream.isConnecting
        let stood = stream.connectedAt.map { now - $0 >= 1_000 } ?? false
        close(key)
        guard isFailure else {
            self[key].stream = nil
            return flush(key)
        }
        self[key].failedUntil = now + rules.errorExpiry
        let attempt = stood ? 1 : stream.attempt
        guard self[key].isWanted, attempt < rules.attempts else {
            self[key].stream = nil
            flush(key)
            return failCallers(key, fails ? "Lost" : "StoreError")
        }
        self[key].stream?.attempt = attempt + 1
        self[key].stream?.reconnectsAt = now + pause
        self[key].stream?.silenceEnds = nil
        self[key].stream?.lastSave = nil
        self[key].stream?.saveDue = nil
        if self[key].isUnsaved { saveValue(key) }
        if isUsable(key, within: rules.staleIfError) {
            let content = self[key].content.map { "\($0)" }
            answer(key) { $0 == .content ? content : nil }
        }
    }

    private mutating func failCallers(_ key: Int, _ error: String) {
        let isServed = isValid(key) || isUsable(key, within: rules.staleIfError)
        let content = self[key].content.map { "\($0)" }
        answer(key) { need in
            switch need {
            case .content: isServed ? content : error
            case .origin: error
            case .freshness, .refresh: "done"
            }
        }
    }

    private mutating func answer(_ key: Int, _ choose: (Need) -> String?) {
        for caller in self[key].callers {
            guard let result = choose(caller.need) else { continue }
            results[caller.id] = result
            self[key].callers.removeAll { $0.id == caller.id }
        }
    }

    // MARK: Values

    enum Push: CaseIterable { case content, change, current }

    mutating func push(_ key: Int, _ value: Push, _ number: Int, _ tag: String?) {
        let (now, rules) = (now, rules)
        guard let stream = self[key].stream, stream.isOpen else { return }
        self[key].stream?.silenceEnds = rules.idle.map { now + $0 }
        switch value {
        case .content: accept(key, [number], tag)
        case .change:
            if let own = stream.own {
                accept(key, own.content + [number], tag)
            } else {
                connectionEnded(key, fails: true, after: 100)
                // Not the error of the origin.
                for (id, result) in results where result == "Lost" && !settledResults.contains(id) { results[id] = "StoreError" }
            }
        case .current:
            guard stream.isConnecting, stream.sent != nil, self[key].truth != nil else { break }
            self[key].truth?.fetchedAt = now
            self[key].truth?.isInvalidated = false
            valueAccepted(key)
        }
        endTransition(key)
    }

    /// The results of earlier steps.
    var settledResults: Set<Int> = []

    private mutating func accept(_ key: Int, _ content: [Int], _ tag: String?) {
        self[key].patches.removeAll(where: \.isConfirmed)
        self[key].truth = Record(content: content, tag: tag, fetchedAt: now)
        self[key].stream?.own = Own(content: content, tag: tag)
        valueAccepted(key)
    }

    private mutating func valueAccepted(_ key: Int) {
        let (now, rules) = (now, rules)
        if !self[key].isConnected {
            self[key].stream?.connectedAt = now
            self[key].lastEnded = now
        }
        self[key].refetches = false
        self[key].failedUntil = nil
        self[key].owesFetch = false
        let isAwaited = self[key].callers.contains { $0.need == .refresh }
        let content = self[key].content.map { "\($0)" }
        answer(key) { $0 == .content || $0 == .origin ? content : "done" }
        if isAwaited || rules.saveInterval == 0 { save(key) } else { saveValue(key) }
    }

    // MARK: Saves

    /// Saves the newest content now.
    private mutating func save(_ key: Int) {
        self[key].isUnsaved = false
        stored[key] = self[key].truth
    }

    /// Saves the stream's last value at the pace of the policy.
    private mutating func saveValue(_ key: Int) {
        let (now, rules) = (now, rules)
        self[key].isUnsaved = true
        guard let stream = self[key].stream, stream.saveDue == nil else { return }
        if let last = stream.lastSave, now < last + rules.saveInterval {
            self[key].stream?.saveDue = last + rules.saveInterval
        } else {
            self[key].stream?.lastSave = now
            save(key)
        }
    }

    private mutating func flush(_ key: Int) {
        if self[key].isUnsaved { save(key) }
    }

    mutating func waitUntilSaved() {
        for key in keys.keys { flush(key) }
    }

    // MARK: Observers and callers

    private mutating func read(_ key: Int) {
        guard !self[key].isRead else { return }
        self[key].isRead = true
        self[key].truth = stored[key]
        self[key].refetches = rules.refetchesOnExpiry && isValid(key) && deadline(key) != nil
    }

    mutating func join(_ key: Int, forces: Bool) {
        self[key].observers += 1
        read(key)
        if forces {
            start(key, explicit: true)
        } else if !isValid(key) || self[key].failedUntil != nil {
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
        self[key].isRead = true
        self[key].truth = Record(content: content, fetchedAt: now)
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
        guard let truth = self[key].truth else {
            endTransition(key)
            return false
        }
        update(key, truth.content + [number])
        return true
    }

    mutating func clear(_ key: Int) {
        end(key)
        self[key].isRead = true
        (self[key].truth, self[key].failedUntil, self[key].patches) = (nil, nil, [])
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
        if self[key].truth != nil {
            self[key].truth?.isInvalidated = true
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
        if !confirmed.isEmpty, self[key].truth != nil {
            self[key].truth?.content += confirmed.map(\.number)
            self[key].truth?.tag = nil
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

    private func due(_ key: Int) -> Int? {
        let one = self[key]
        guard one.observers > 0, one.stream?.isConnecting != true, one.isRead else { return nil }
        let allowed = max(one.lastEnded.map { $0 + 1_000 } ?? .min, one.failedUntil ?? .min)
        if one.isTriggered { return allowed }
        guard one.refetches, let deadline = deadline(key) else { return nil }
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
                for (id, result) in results where result == "Lost" && !settledResults.contains(id) { results[id] = "StoreError" }
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

    var liveKeys: Set<Int> { Set(keys.filter { !$0.value.isIdle }.keys) }
}
