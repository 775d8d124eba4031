@testable import StoreCore

/// Explores every interleaving of a setting's events, breadth first, so that the first violation has the shortest history.
struct ModelSearch {
    let setting: ModelSetting
    let origins: [ModelWorld]

    private(set) var transitions = 0
    /// The length of the longest history needed to reach a new state.
    private(set) var depth = 0
    /// Whether every reachable state was reached.
    private(set) var isComplete = false
    private(set) var failure: String?

    /// A summary of the search in one line.
    var summary: String { "\(setting.name): \(states) states, \(transitions) transitions, \(depth) deep\(isComplete ? ", complete" : "")" }

    private var states: Int { steps.count }
    private var seen: Set<ModelFingerprint> = []
    private var steps: [Step] = []

    /// The step that reached a state.
    private struct Step {
        var before: Int
        var event: ModelEvent?
        var origin: Int
    }

    init(_ setting: ModelSetting, from origins: [ModelWorld]) {
        self.setting = setting
        self.origins = origins
    }

    /// Searches until every state is known or `maxStates` is reached. Yields often, so that other tests can run.
    ///
    /// - Parameters:
    /// - maxStates: The number of states to visit.
    /// - preludes: Histories with ends that are further starting points. Impossible events are skipped.
    mutating func run(maxStates: Int, preludes: [[ModelEvent]] = []) async {
        var frontier: [(world: ModelWorld, step: Int)] = []
        for place in origins.indices {
            for prelude in [[]] + preludes {
                if let start = begin(place, prelude) { frontier.append(start) }
                if failure != nil { return }
            }
        }
        while !frontier.isEmpty {
            var next: [(world: ModelWorld, step: Int)] = []
            for (world, step) in frontier {
                await Task.yield()
                for event in world.possibleEvents {
                    guard steps.count < maxStates else { return }
                    if let reached = take(event, world, step) { next.append((reached, steps.count - 1)) }
                    if failure != nil { return }
                }
            }
            frontier = next
            if !next.isEmpty { depth += 1 }
        }
        isComplete = true
    }

    private mutating func begin(_ origin: Int, _ prelude: [ModelEvent]) -> (world: ModelWorld, step: Int)? {
        var world = origins[origin]
        steps.append(Step(before: -1, event: nil, origin: origin))
        for event in prelude where world.possibleEvents.contains(event) {
            world.apply(event)
            if !world.violations.isEmpty { failure = history(of: steps.count - 1, then: [event]) }
            steps.append(Step(before: steps.count - 1, event: event, origin: origin))
        }
        return seen.insert(ModelFingerprint(world)).inserted ? (world, steps.count - 1) : nil
    }

    /// Applies an event to a state.
    ///
    /// - Returns: The new state; `nil` if it is known or violates a law.
    private mutating func take(_ event: ModelEvent, _ world: ModelWorld, _ step: Int) -> ModelWorld? {
        transitions += 1
        var reached = world
        reached.apply(event)
        guard reached.violations.isEmpty else {
            failure = history(of: step, then: [event])
            return nil
        }
        guard seen.insert(ModelFingerprint(reached)).inserted else { return nil }
        steps.append(Step(before: step, event: event, origin: 0))
        let ending = reached.settled()
        if !ending.world.violations.isEmpty { failure = history(of: step, then: [event] + ending.events) }
        return reached
    }

    /// The events up to the violation of a law, with the state after each.
    private func history(of step: Int, then last: [ModelEvent]) -> String {
        var events = last
        var place = step
        while let event = steps[place].event {
            events.insert(event, at: 0)
            place = steps[place].before
        }
        var world = origins[steps[place].origin]
        world.separate()
        return world.history(of: events)
    }
}

extension ModelWorld {
    /// Plays the events up to the violation of a law.
    ///
    /// - Returns: A description of them, with the state after each.
    mutating func history(of events: [ModelEvent]) -> String {
        var lines = ["\(setting.name): the cacher holds \((stored ?? front?.record).map { "\(ModelOracle.Accepted($0))" } ?? "nothing")"]
        for event in events {
            apply(event)
            let actions = moment.begun.isEmpty ? "" : ", a fetch begins"
            lines.append("  \(event) → \(ModelShown(machine.state).map(\.description) ?? "no state")\(actions)")
            lines += violations.map { "    ✗ \($0)" }
            if !violations.isEmpty { break }
        }
        return lines.joined(separator: "\n")
    }

    /// Ends all running work successfully: every caller must then have a result. Then lets all observers and callers leave: then the
    /// key must be idle.
    func settled() -> (world: ModelWorld, events: [ModelEvent]) {
        var world = self
        var events: [ModelEvent] = []
        world.runOut(&events)
        world.check(world.callers.allSatisfy(\.isAnswered), "C1", "a caller waits forever")
        while world.violations.isEmpty, let event = world.nextLeave { world.run(event, &events) }
        world.runOut(&events)
        world.check(!world.machine.origin.isKnown && world.machine.isForgettable && world.observers == 0, "C15", "the key is not idle")
        return (world, events)
    }

    private mutating func run(_ event: ModelEvent, _ events: inout [ModelEvent]) {
        events.append(event)
        apply(event)
        if events.count > 60 { violate("C15", "the key never becomes idle") }
    }

    private mutating func runOut(_ events: inout [ModelEvent]) { while violations.isEmpty, let event = nextEnd { run(event, &events) } }

    /// The timer if it is due, otherwise the next second.
    private var wakeOrTick: ModelEvent { if let wake = machine.nextWake, wake <= instant(oracle.now) { .timer } else { .tick } }

    private var nextEnd: ModelEvent? {
        if let call, !call.isDeferred { return call.kind == .read ? .read(succeeds: true) : .saved(succeeds: true) }
        if isEmptying { return .emptied }
        if isWaiting, isWanted { return wakeOrTick }
        return running.first.map { $0.isStream ? .pushed(.content) : .fetched($0.direction, .modified) }
    }

    private var nextLeave: ModelEvent? {
        if let place = oracle.patches.firstIndex(where: { !$0.isConfirmed }) {
            return oracle.patches[place].command == nil ? .settle(place, succeeds: false) : .refuse(place)
        }
        if let end = nextEnd { return end }
        if observers > 0 { return .leave }
        if !callers.isEmpty { return .depart(0) }
        if let stream = oracle.stream { return stream.isWaiting ? wakeOrTick : .streamEnds(fails: false) }
        // A failed save is retried by the next change of the accepted content.
        return oracle.hasSaveFailed && oracle.isKnown ? .clear : nil
    }
}
