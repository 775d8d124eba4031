/// The expected behavior of a store whose origin pushes, implemented as simply as possible: sequentially, without concurrency.
///
/// It follows the laws and shares no code with the store. Its cacher is as fast as memory. Times are in milliseconds.
struct LiveHistoryModel: Sendable {
    struct Record: Hashable, Sendable {
        var content: [Int]
        var tag: String?
        var fetchedAt: Int
        var isInvalidated = false
        /// Whether its stream has ended normally.
        var isComplete = false
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
        var accepted: Record?
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

        var content: [Int]? { accepted.map { $0.content + patches.map(\.number) } }
        var isWanted: Bool { observers > 0 || !callers.isEmpty }
        var isConnected: Bool { stream?.connectedAt != nil }
        var isIdle: Bool { observers == 0 && callers.isEmpty && stream == nil && patches.isEmpty }
    }

    let rules: HistoryRules
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

    var liveKeys: Set<Int> { Set(keys.filter { !$0.value.isIdle }.keys) }

    // MARK: Validity

    func deadline(_ key: Int) -> Int? {
        guard let accepted = self[key].accepted, !self[key].isConnected else { return nil }
        return rules.lifetime.map { accepted.fetchedAt + $0 }
    }

    func isValid(_ key: Int) -> Bool {
        guard let accepted = self[key].accepted, !accepted.isInvalidated else { return false }
        return deadline(key).map { now < $0 } ?? true
    }

    func isUsable(_ key: Int, within window: Int) -> Bool {
        guard let accepted = self[key].accepted, !accepted.isInvalidated, let deadline = deadline(key), window > 0 else { return false }
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

    mutating func start(_ key: Int, explicit: Bool = false) {
        if let stream = self[key].stream {
            if stream.isConnecting { return }
            guard explicit || (self[key].isTriggered && (due(key) ?? .max) <= now) else { return }
            end(key)
        }
        let tag = self[key].accepted?.tag
        var stream = Stream(sent: tag)
        if let tag, let accepted = self[key].accepted { stream.own = Own(content: accepted.content, tag: tag) }
        self[key].stream = stream
        connect(key, tag)
    }

    mutating func connect(_ key: Int, _ tag: String?) {
        let (now, rules) = (now, rules)
        self[key].isTriggered = false
        // Expired content causes one automatic fetch, even if that is a reconnection (C10).
        if !isValid(key) { self[key].refetches = false }
        self[key].stream?.silenceEnds = rules.idle.map { now + $0 }
        connections[key, default: []].append(tag)
    }

    /// The store ends the stream of a key.
    mutating func end(_ key: Int) {
        guard let stream = self[key].stream else { return }
        if stream.isOpen { close(key) }
        self[key].stream = nil
        flush(key)
    }

    private mutating func close(_ key: Int) {
        let (now, rules) = (now, rules)
        self[key].lastEnded = now
        let wasConnected = self[key].isConnected
        self[key].stream?.isOpen = false
        self[key].stream?.connectedAt = nil
        guard wasConnected, rules.lifetime != nil, self[key].accepted != nil else { return }
        self[key].accepted?.fetchedAt = now
        self[key].refetches = rules.refetchesOnExpiry && isValid(key)
        save(key)
    }

    /// The connection of a key has ended, or has failed: with an error of the origin, or of the store.
    mutating func connectionEnded(_ key: Int, fails: Bool, after pause: Int, error: String = "StoreError") {
        let (now, rules) = (now, rules)
        guard let stream = self[key].stream else { return }
        let isFailure = fails || stream.isConnecting
        let stood = stream.connectedAt.map { now - $0 >= 1_000 } ?? false
        close(key)
        guard isFailure else {
            self[key].stream = nil
            guard self[key].accepted != nil else { return }
            self[key].accepted?.isComplete = true
            return save(key)
        }
        self[key].failedUntil = now + rules.errorExpiry
        let attempt = stood ? 1 : stream.attempt
        guard self[key].isWanted, attempt < rules.attempts else {
            self[key].stream = nil
            flush(key)
            return failCallers(key, error)
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

    mutating func answer(_ key: Int, _ choose: (Need) -> String?) {
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
            }
        case .current:
            guard stream.isConnecting, stream.sent != nil, self[key].accepted != nil else { break }
            self[key].accepted?.fetchedAt = now
            self[key].accepted?.isInvalidated = false
            self[key].accepted?.isComplete = false
            valueAccepted(key)
        }
        endTransition(key)
    }

    private mutating func accept(_ key: Int, _ content: [Int], _ tag: String?) {
        self[key].patches.removeAll(where: \.isConfirmed)
        self[key].accepted = Record(content: content, tag: tag, fetchedAt: now)
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
    mutating func save(_ key: Int) {
        self[key].isUnsaved = false
        stored[key] = self[key].accepted
    }

    /// Saves the stream's last value at the pace of the policy.
    mutating func saveValue(_ key: Int) {
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

    mutating func flush(_ key: Int) { if self[key].isUnsaved { save(key) } }

    mutating func waitUntilSaved() { for key in keys.keys { flush(key) } }
}
