import Testing
@testable import SyncEngine

/// The lifecycle under every order of events, compared with a model of each caller's expectations.
struct LifecycleModelTests {
    private enum Event: Hashable {
        case arrive, leave(Int), observe, unobserve, cancel, end
    }

    /// The state that the laws require, in the simplest form.
    private struct World: Hashable {
        var machine = SyncLifecycle()
        /// The smallest number of a pass that may serve each waiting caller.
        var owed: [Int: Int] = [:]
        var arrived = 0
        var observers = 0
        var startedPasses = 0
        var isRunning = false
        var isCancelled = false

        mutating func apply(_ event: Event) -> [String] {
            let wasRunning = isRunning
            let running = startedPasses
            var cancelledExpected: Set<Int> = []
            let actions: SyncLifecycle.Actions
            switch event {
            case .arrive:
                arrived += 1
                owed[arrived] = startedPasses + 1
                actions = machine.callerArrived(arrived, overrides: arrived == 2 ? .emptySource : [])
            case .leave(let caller):
                owed[caller] = nil
                actions = machine.callerLeft(caller)
            case .observe:
                observers += 1
                machine.observerJoined()
                actions = SyncLifecycle.Actions()
            case .unobserve:
                observers -= 1
                actions = machine.observerLeft()
            case .cancel:
                cancelledExpected = Set(owed.keys)
                owed = [:]
                actions = machine.cancelRequested()
            case .end:
                isRunning = false
                isCancelled = false
                actions = machine.passEnded()
            }
            var faults: [String] = []
            if actions.cancelled != cancelledExpected { faults.append("S7: cancelled \(actions.cancelled), owed \(cancelledExpected)") }
            let due = Set(owed.filter { $0.value <= running }.keys)
            if event == .end {
                if actions.answered != due { faults.append("S6: answered \(actions.answered), due \(due)") }
                for caller in actions.answered { owed[caller] = nil }
            } else if !actions.answered.isEmpty {
                faults.append("S6: answered \(actions.answered) without the end of a pass")
            }
            let isWanted = !owed.isEmpty || observers > 0
            let mustCancel = wasRunning && isRunning && !isCancelled && (event == .cancel || (!isWanted && leaves(event)))
            if actions.cancelsWork != mustCancel { faults.append("S7: cancelsWork \(actions.cancelsWork), must \(mustCancel)") }
            if actions.cancelsWork { isCancelled = true }
            if let pass = actions.starts {
                if isRunning { faults.append("two passes at once") }
                startedPasses += 1
                isRunning = true
                let owing = Set(owed.keys)
                if pass.callers != owing { faults.append("S6: pass begins for \(pass.callers), owed \(owing)") }
                if pass.callers.contains(2) != pass.overrides.contains(.emptySource) {
                    faults.append("S3: overrides \(pass.overrides.rawValue) for \(pass.callers)")
                }
            }
            if !isRunning, !owed.isEmpty { faults.append("S6: \(owed.keys) wait, but no pass runs") }
            if (machine.phase == .idle) == isRunning { faults.append("phase \(machine.phase), running \(isRunning)") }
            if (machine.phase == .cancelling) != isCancelled { faults.append("S7: phase \(machine.phase), cancelled \(isCancelled)") }
            return faults
        }

        private func leaves(_ event: Event) -> Bool {
            switch event {
            case .leave, .unobserve: true
            default: false
            }
        }

        var events: [Event] {
            var events: [Event] = [.cancel]
            if arrived < 6 { events.append(.arrive) }
            events += owed.keys.sorted().map { .leave($0) }
            if observers < 2 { events.append(.observe) }
            if observers > 0 { events.append(.unobserve) }
            if isRunning { events.append(.end) }
            return events
        }
    }

    @Test func `S6, S7: every order of events with six callers and two observers satisfies the laws`() async {
        var frontier: Set<World> = [World()]
        var seen: Set<World> = frontier
        // With six callers the states are finite, so the search visits all of them.
        while !frontier.isEmpty {
            var next: Set<World> = []
            for world in frontier {
                for event in world.events {
                    var after = world
                    let faults = after.apply(event)
                    #expect(faults.isEmpty, "\(event): \(faults)")
                    guard faults.isEmpty else { return }
                    if seen.insert(after).inserted { next.insert(after) }
                }
            }
            frontier = next
            await Task.yield()
        }
        #expect(seen.count > 3000, "\(seen.count) states")
    }
}
