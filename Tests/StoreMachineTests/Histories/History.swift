import Testing
import Trials
import StoreCoreTesting
import StoreTrials

@testable import StoreCore

/// A random history, applied step by step to a store and to a model of it.
struct History: RandomHistory {
    var dice: SplitMix
    var model: HistoryModel
    let world: HistoryWorld
    var steps: [String] = []
    var callers: [Int: Task<Void, Never>] = [:]
    var observers: [Int: (key: Int, task: Task<Void, Never>)] = [:]
    var ids = Numbers()
    var contents = Numbers()
    private var silent: Set<Int> = []
    private let isCacherFast: Bool

    static let keyCount = 2

    init(seed: UInt64, _ backing: Backing) {
        dice = SplitMix(seed: seed)
        var rules = HistoryRules(backing, &dice)
        var policy = rules.policy
        // The model has no queue, so every key given to `prefetch` must start at once.
        policy.prefetchWidth = .max
        isCacherFast = dice.below(2) == 0
        if dice.below(2) == 0 { rules.window = 1 + dice.below(3) }
        model = HistoryModel(rules: rules, keys: Self.keyCount)
        world = HistoryWorld(backing, expiry: rules.expiry, policy: policy, window: rules.window)
        steps.append("\(rules), \(isCacherFast ? "fast" : "slow") cacher")
    }

    func giveUp() async {
        world.open()
        for observer in observers.values { observer.task.cancel() }
        for caller in callers.values { caller.cancel() }
        try? await until("all observers and callers have left", patience: .seconds(5)) { world.isEmpty }
    }

    mutating func play() async throws {
        for _ in 0..<40 + dice.below(40) {
            try await step()
            if isCacherFast { try await serveCacher() }
        }
        try await windUp()
    }

    /// Waits until the store can only change by a command, then compares.
    mutating func settle(_ step: String) async throws {
        steps.append(step)
        model.finishStep()
        try await quiet({ world.lists.lists.engineSummary }) {
            world.unrest(begun: model.begun, cancelled: model.cancelled, observers: observers.count)
        }
        try compare()
    }

    /// Does the same after a step without a result.
    mutating func settleSilently(_ id: Int, _ step: String) async throws {
        silent.insert(id)
        try await settle("\(id): \(step)")
    }

    private func compare() throws {
        let clients = world.clients.state.current
        try same("live keys", world.liveKeys, model.liveKeys)
        for (id, task) in observers {
            guard let state = model.state(task.key) else { continue }
            try same("observer \(id) of \(task.key)", clients.seen[id], state.summary)
        }
        for id in 1...max(1, ids.last) where !silent.contains(id) { try same("caller \(id)", clients.results[id], model.results[id]) }
        try same("requests", Set(world.origin.counts.wanted), model.requests)
        try same("cacher calls", heldCalls(), model.cacherCalls)
        for key in 0..<Self.keyCount where model.rules.hasBacking {
            let (stored, expected) = (world.cacher.record(of: key), model.stored[key])
            try same("stored \(key)", stored?.content, expected?.content)
            try same("stored \(key) is invalidated", stored?.isInvalidated, expected?.isInvalidated)
            let pages = stored?.pages.map {
                HistoryModel.Page(direction: $0.direction, key: $0.key, returnKey: $0.returnKey, count: $0.count)
            }
            try same("stored pages of \(key)", pages, expected.map { $0.pages.map(\.direction) == [nil] ? [] : $0.pages })
            try same("stored validator of \(key)", stored?.validator?.entityTag, expected?.validator)
        }
        if clients.sawPoison { throw Difference(description: "an observer saw the result of a canceled fetch") }
        if !world.cacher.breaches.isEmpty { throw Difference(description: "\(world.cacher.breaches)") }
    }

    private func heldCalls() -> Set<String> {
        let calls = world.cacher.calls
        return Set(
            world.cacher.heldNumbers.map { number in
                let call = calls[number - 1]
                return "\(call.operation) \(call.param.map { "\($0)" } ?? "") \(call.content.map { "\($0)" } ?? "")"
            })
    }
}

extension HistoryModel {
    /// The requests that the origin must hold.
    var requests: Set<HistoryOrigin.Asked> {
        var all: Set<HistoryOrigin.Asked> = []
        for (key, one) in keys {
            if let flight = one.flight {
                all.insert(.init(key: key, direction: flight.asking, pageKey: flight.askedKey, validator: flight.validator))
            }
            for (direction, side) in one.sides where side.isLoading {
                all.insert(.init(key: key, direction: direction, pageKey: pageKey(direction, one)))
            }
        }
        return all
    }

    /// The calls that the cacher must hold.
    var cacherCalls: Set<String> {
        var all: Set<String> = isClearing ? ["removeAll  "] : []
        for (key, one) in keys {
            guard let call = one.call, !call.isDeferred else { continue }
            if call.isLoad {
                all.insert("load \(key) ")
            } else if let record = call.record {
                all.insert("save \(key) \(record.content)")
            } else {
                all.insert("remove \(key) ")
            }
        }
        return all
    }
}
