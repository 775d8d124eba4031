@testable import StoreCore

/// Goes through every interleaving of a setting's events, breadth first, so that the first violation has the shortest history.
struct ModelSearch {
    let setting: ModelSetting
    let origins: [ModelWorld]

    private(set) var states = 0
    private(set) var transitions = 0
    /// How many events the longest history has that was needed to reach a state.
    private(set) var depth = 0
    /// Whether every state that can be reached was.
    private(set) var isComplete = false
    private(set) var failure: String?

    /// What was searched, in one line.
    var summary: String {
        "\(setting.name): \(states) states, \(transitions) transitions, \(depth) deep\(isComplete ? ", all there are" : "")"
    }

    private var seen: Set<ModelFingerprint> = []
    private var steps: [Step] = []

    /// How a state was reached.
    private struct Step {
        var before: Int
        var event: ModelEvent?
        var origin: Int
    }

    init(_ setting: ModelSetting, from origins: [ModelWorld]) {
        self.setting = setting
        self.origins = origins
    }

    /// Searches until every state is known, or until there are `maxStates`; gives way to other tests again and again.
    ///
    /// - Parameters:
    ///   - maxStates: How many states to look at.
    ///   - preludes: Histories whose ends the search begins with too; events that are not possible are left out of them.
    mutating func run(maxStates: Int, preludes: [[ModelEvent]] = []) async {
        var frontier: [(world: ModelWorld, step: Int)] = []
        for place in origins.indices {
            for prelude in [[]] + preludes {
                if let start = begin(place, prelude) { frontier.append(start) }
                if failure != nil { return finish() }
            }
        }
        while !frontier.isEmpty {
            var next: [(world: ModelWorld, step: Int)] = []
            for (world, step) in frontier {
                await Task.yield()
                for event in world.possibleEvents {
                    guard steps.count < maxStates else { return finish() }
                    if let reached = take(event, world, step) { next.append((reached, steps.count - 1)) }
                    if failure != nil { return finish() }
                }
            }
            frontier = next
            if !next.isEmpty { depth += 1 }
        }
        isComplete = frontier.isEmpty
        finish()
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

    private mutating func finish() { states = steps.count }

    /// Lets an event happen in a state.
    ///
    /// - Returns: The new state; `nil` where it is known already or breaks a law.
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

    /// What happened until a law was broken, and what was seen at each event.
    private func history(of step: Int, then last: [ModelEvent]) -> String {
        var events = last
        var place = step
        while let event = steps[place].event {
            events.insert(event, at: 0)
            place = steps[place].before
        }
        var world = origins[steps[place].origin]
        world.log.violations = []
        var lines = [
            "\(setting.name): the cacher holds \((world.stored ?? world.front?.record).map { "\(ModelOracle.Truth($0))" } ?? "nothing")"
        ]
        for event in events {
            world.apply(event)
            let actions = world.moment.begun.isEmpty ? "" : ", a fetch begins"
            lines.append("  \(event) → \(ModelShown(world.machine.state).map(\.description) ?? "no state")\(actions)")
            lines += world.violations.map { "    ✗ \($0)" }
            if !world.violations.isEmpty { break }
        }
        return lines.joined(separator: "\n")
    }
}

extension ModelWorld {
    /// Lets everything that runs end well: then everybody must be answered; and lets everybody leave: then nothing must be left.
    func settled() -> (world: ModelWorld, events: [ModelEvent]) {
        var world = self
        var events: [ModelEvent] = []
        world.runOut(&events)
        world.check(world.callers.allSatisfy(\.isAnswered), "C1", "a caller waits for ever")
        while world.violations.isEmpty, let event = world.nextLeave { world.run(event, &events) }
        world.runOut(&events)
        world.check(!world.machine.isRead && world.machine.isIdle && world.observers == 0, "C15", "something is left behind")
        return (world, events)
    }

    private mutating func run(_ event: ModelEvent, _ events: inout [ModelEvent]) {
        events.append(event)
        apply(event)
        if events.count > 60 { violate("C15", "it never comes to rest") }
    }

    private mutating func runOut(_ events: inout [ModelEvent]) {
        while violations.isEmpty, let event = nextEnd { run(event, &events) }
    }

    private var nextEnd: ModelEvent? {
        if let call, !call.isDeferred { return call.kind == .read ? .read(succeeds: true) : .saved(succeeds: true) }
        if isEmptying { return .emptied }
        return running.first.map { .fetched($0.direction, .modified) }
    }

    private var nextLeave: ModelEvent? {
        if let place = oracle.patches.firstIndex(where: { !$0.isConfirmed }) { return .settle(place, succeeds: false) }
        if let end = nextEnd { return end }
        if observers > 0 { return .leave }
        if !callers.isEmpty { return .depart(0) }
        // A cacher that once failed is tried again by the next truth.
        return oracle.hasSaveFailed && oracle.isKnown ? .clear : nil
    }
}
