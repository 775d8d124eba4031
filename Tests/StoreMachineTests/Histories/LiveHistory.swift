import StoreTrials
import Testing
import Trials

@testable import StoreCore
@testable import StoreCoreTesting

/// A random history of a store whose origin pushes, applied step by step to the store and to a model of it.
struct LiveHistory: RandomHistory {
    private var dice: SplitMix
    private var model: LiveHistoryModel
    private let clients = HistoryClients()
    private let time = ManualTime()
    private let feed: ScriptedLiveFetcher<Int, [Int]>
    private let cacher: GatedCacher<Int, [Int]>
    private let store: Store<Int, [Int]>
    private let bell = Bell()
    private var observers: [Int: (key: Int, task: Task<Void, Never>)] = [:]
    private var callers: [Int: (key: Int, task: Task<Void, Never>)] = [:]
    private var ids = Numbers()
    private var numbers = Numbers()
    private(set) var steps: [String] = []

    private static let keyCount = 2

    init(seed: UInt64, _ backing: Backing) {
        dice = SplitMix(seed: seed)
        var rules = HistoryRules(backing, &dice)
        if dice.below(3) == 0 { rules.idle = 4_300 }
        rules.attempts = [1, 2, .max][dice.below(3)]
        if backing != .memory { rules.saveInterval = [0, 1_100, 5_200][dice.below(3)] }
        var policy = rules.policy
        policy.idleTimeout = rules.idle.map { .milliseconds($0) }
        policy.saveInterval = .milliseconds(rules.saveInterval)
        // The delays are those that the errors ask for, or zero.
        policy.retry = RetryPolicy(attempts: rules.attempts, base: .zero)
        model = LiveHistoryModel(rules: rules)
        let feed = ScriptedLiveFetcher<Int, [Int]>(cancellation: dice.below(2) == 0 ? .honored : .ignored)
        let cacher = GatedCacher<Int, [Int]>(expiry: rules.expiry)
        (self.feed, self.cacher) = (feed, cacher)
        store = Store(backing, over: cacher, fetcher: feed, policy: policy, time: time)
        store.revalidate(on: bell)
        steps.append("\(rules)")
    }

    mutating func play() async throws {
        for _ in 0..<40 + dice.below(40) { try await step() }
        try await windUp()
    }

    func giveUp() async {
        for observer in observers.values { observer.task.cancel() }
        for caller in callers.values { caller.task.cancel() }
        for id in clients.state.current.performing { clients.end(id, succeeds: false) }
        bell.end()
        // Also the connections that ignore their cancellation.
        while let number = feed.state.read({ $0.lines.keys.min() }) {
            guard (try? await feed.end(on: number, timeout: .seconds(5))) != nil else { break }
        }
    }

    private mutating func windUp() async throws {
        while let id = observers.keys.min() { try await leave(id) }
        while let id = model.performing.keys.min() { try await endMutation(id) }
        for key in 0..<Self.keyCount { while let id = model[key].callers.first?.id { try await cancel(id) } }
        while let (key, one) = model.keys.first(where: { $0.value.stream != nil }) {
            if one.stream?.isOpen == true { try await endConnection(key, fails: false) } else { try await advance(1) }
        }
        if !model.liveKeys.isEmpty { throw Difference(description: "the model is not idle") }
    }

    // MARK: Steps

    private mutating func step() async throws {
        let key = dice.below(Self.keyCount)
        switch dice.below(32) {
        case 0, 1, 2: try await observe(key, forces: dice.below(4) == 0)
        case 3: if let id = observers.keys.sorted().dropFirst(dice.below(max(1, observers.count))).first { try await leave(id) }
        case 4, 5: try await require(key, .content, "requireData") { "\(try await $0.requireData())" }
        case 6: try await require(key, .origin, "requireData from the origin") { "\(try await $0.requireData(from: .origin))" }
        case 7:
            try await require(key, .refresh, "refresh") {
                await $0.refresh(); return "done"
            }
        case 8:
            try await require(key, .freshness, "validate") {
                await $0.validate(); return "done"
            }
        case 9:
            let id = ids.next()
            model.readCache(id, key)
            call(id, key) { "\(try await $0.requireData(from: .cache))" }
            try await settle("\(id): cache of \(key)")
        case 10: if let id = callers.keys.sorted().first(where: { id in isWaiting(id) }) { try await cancel(id) }
        case 11:
            let content = [numbers.next()]
            model.update(key, content)
            await store[key].update(content)
            try await settle("update \(key) to \(content)")
        case 12:
            let number = numbers.next()
            let expected = model.append(key, number)
            let isChanged = await store[key].update { $0.append(number) }
            if isChanged != expected { throw Difference(description: "update of \(key) returned \(isChanged)") }
            try await settle("append \(number) to \(key)")
        case 13, 14: try await mutate(key)
        case 15: if let id = model.performing.keys.min() { try await endMutation(id) }
        case 16:
            model.clear(key)
            await store[key].clear()
            try await settle("clear \(key)")
        case 17:
            model.invalidate(key)
            await store[key].invalidate()
            try await settle("invalidate \(key)")
        case 18:
            if dice.below(3) == 0 {
                model.clearAll()
                try await store.clear()
                try await settle("clear all")
            }
        case 19, 20: try await advance(1 + dice.below(3))
        case 21:
            model.trigger()
            try await bell.ring()
            try await settle("trigger")
        case 22:
            model.waitUntilSaved()
            try await store.waitUntilSaved()
            try await settle("wait until saved")
        case 23: try await sendLate()
        case 24, 25: try await endConnection(key, fails: dice.below(4) > 0)
        default: try await push(key)
        }
    }

    private func isWaiting(_ id: Int) -> Bool { model.keys.values.contains { $0.callers.contains { $0.id == id } } }

    private mutating func observe(_ key: Int, forces: Bool) async throws {
        guard observers.count < 4 else { return }
        let id = ids.next()
        model.join(key, forces: forces)
        observers[id] = (key, clients.observe(id, store[key].publish(forceRefresh: forces)) { $0.shortSummary })
        try await settle("observer \(id) joins \(key)\(forces ? ", forcing" : "")")
    }

    private mutating func leave(_ id: Int) async throws {
        guard let (key, task) = observers.removeValue(forKey: id) else { return }
        model.leave(key)
        await task.cancelAndWait()
        try await settle("observer \(id) leaves \(key)")
    }

    private mutating func require(
        _ key: Int, _ need: LiveHistoryModel.Need, _ name: String,
        _ body: @escaping @Sendable (StoreFlowable<Int, [Int]>) async throws -> String
    ) async throws {
        let id = ids.next()
        model.require(id, key, need)
        call(id, key, body)
        try await settle("\(id): \(name) of \(key)")
    }

    private mutating func call(_ id: Int, _ key: Int, _ body: @escaping @Sendable (StoreFlowable<Int, [Int]>) async throws -> String) {
        callers[id] = (key, clients.call(id) { [handle = store[key]] in try await body(handle) })
    }

    private mutating func cancel(_ id: Int) async throws {
        guard let (key, task) = callers.removeValue(forKey: id) else { return }
        let isVoid = model[key].callers.contains { $0.id == id && ($0.need == .freshness || $0.need == .refresh) }
        model.cancel(id, key)
        if isVoid { model.results[id] = "done" }
        await task.cancelAndWait()
        try await settle("caller \(id) is canceled")
    }

    private mutating func mutate(_ key: Int) async throws {
        guard model.performing.count < 3 else { return }
        let (id, number) = (ids.next(), numbers.next())
        model.mutate(id, key, number)
        call(id, key) { [clients] handle in
            try await handle.mutate(optimistically: { $0.append(number) }) { try await clients.perform(id) }
            return "done"
        }
        try await clients.state.wait { $0.performing.contains(id) ? () : nil }
        try await settle("\(id): mutation of \(key) appends \(number)")
    }

    private mutating func endMutation(_ id: Int) async throws {
        let succeeds = dice.below(3) > 0
        model.endMutation(id, succeeds: succeeds)
        clients.end(id, succeeds: succeeds)
        try await settle("mutation \(id) \(succeeds ? "succeeds" : "fails")")
    }

    private mutating func advance(_ seconds: Int) async throws {
        model.advance(by: seconds * 1_000)
        time.advance(by: .seconds(seconds))
        try await settle("\(seconds) s pass")
    }

    // MARK: The origin

    /// The open connection of a key that the store has not canceled.
    private func connection(_ key: Int) -> Int? {
        feed.state.read { state in state.connections.last { $0.param == key && state.lines[$0.number]?.isCancelled == false }?.number }
    }

    private mutating func push(_ key: Int) async throws {
        guard let number = connection(key) else { return }
        let kind = LiveHistoryModel.Push.allCases[dice.below(3)]
        let (value, tag) = (numbers.next(), dice.below(2) == 0 ? "t\(numbers.last)" : nil)
        let validator = tag.map { Validator(entityTag: $0) }
        model.push(key, kind, value, tag)
        switch kind {
        case .content: try await feed.send(.content([value], validator), on: number)
        case .change: try await feed.send(.change({ $0.append(value) }, validator), on: number)
        case .current: try await feed.send(.current, on: number)
        }
        try await settle("the origin pushes \(kind) \(value), \(tag ?? "no validator"), to \(key)")
    }

    private mutating func endConnection(_ key: Int, fails: Bool) async throws {
        guard let number = connection(key) else { return }
        model.connectionEnded(key, fails: fails, after: fails ? 1_250 : 100, error: fails ? "Lost" : "StoreError")
        model.endTransition(key)
        try await feed.end(throwing: fails ? Lost(retryAfter: .milliseconds(1_250)) : nil, on: number)
        try await settle("the connection of \(key) \(fails ? "fails" : "ends")")
    }

    /// Delivers a value on a canceled connection that no observer may ever see.
    private mutating func sendLate() async throws {
        let late = feed.state.read { state in state.lines.first { $0.value.isCancelled && $0.value.suspension != nil }?.key }
        guard let late else { return }
        try await feed.send(.content([HistoryClients.poison]), on: late)
        try await settle("connection \(late) delivers late")
    }

    // MARK: Comparing

    /// Waits until the store can only change by a command, then compares.
    private mutating func settle(_ step: String) async throws {
        steps.append(step)
        // A change may make an earlier trigger due.
        model.advance(by: 0)
        try await quiet({ store.engineSummary }) { unrest() }
        try compare()
    }

    /// Returns why the store is not quiet; `nil` if it can only change by a command.
    private func unrest() -> String? {
        let expected = (model.connections.values.reduce(0) { $0 + $1.count }, model.keys.values.count { $0.stream?.isOpen == true })
        return store.engine.state.withLock { state in
            let lines = feed.state.read { state in
                (
                    state.connections.count, state.lines.values.count { !$0.isCancelled },
                    state.lines.values.allSatisfy { $0.suspension != nil }
                )
            }
            if lines.0 != expected.0 { return "connections: \(lines.0) begun, expected \(expected.0)" }
            if lines.1 != expected.1 { return "connections: \(lines.1) open, expected \(expected.1)" }
            if !lines.2 { return "connections: one is busy" }
            let keys = state.live.values.map(\.value)
            let fetches = keys.reduce(0) { $0 + $1.fetches.count }
            if fetches != lines.1 { return "connections: \(fetches) running, \(lines.1) open" }
            if state.queue.running > 0 || state.queue.isBarred { return "cacher: \(state.queue.running) calls run" }
            return clients.unrest(of: keys, observers: observers.count, now: time.now)
        }
    }

    private func compare() throws {
        let clients = clients.state.current
        let live = store.engine.state.withLock { Set($0.live.values.map { $0.value.param.value(as: Int.self) }) }
        try same("live keys", live, model.liveKeys)
        for (id, observer) in observers { try same("observer \(id) of \(observer.key)", clients.seen[id], model.state(observer.key)) }
        for id in 1...max(1, ids.last) {
            // A failure that holds off fetches reaches callers as it was.
            if model.results[id] == "Failed" {
                try same("caller \(id) has failed", ["Lost", "StoreError"].contains(clients.results[id]), true)
            } else {
                try same("caller \(id)", clients.results[id], model.results[id])
            }
        }
        for key in 0..<Self.keyCount {
            let sent = feed.connections.filter { $0.param == key }.map { $0.last?.entityTag }
            try same("connections of \(key)", sent, model.connections[key] ?? [])
            guard model.rules.hasBacking else { continue }
            let (stored, expected) = (cacher.record(of: key), model.stored[key])
            try same("stored \(key)", stored?.content, expected?.content)
            try same("stored \(key) is invalidated", stored?.isInvalidated, expected?.isInvalidated)
            try same("stored validator of \(key)", stored?.validator?.entityTag, expected?.tag)
        }
        if clients.sawPoison { throw Difference(description: "an observer saw a value of a canceled connection") }
        if !cacher.breaches.isEmpty { throw Difference(description: "\(cacher.breaches)") }
    }
}

extension LoadingState {
    /// The state without the text of its error.
    fileprivate var shortSummary: String {
        guard case .error(_, let content) = self else { return summary }
        return "error(\(content.map { "\($0)" } ?? "nil"))"
    }
}
