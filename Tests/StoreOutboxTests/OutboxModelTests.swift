import Testing
import Trials

@testable import StoreOutbox
@testable import StoreCore

/// Explores the interleavings of the events of an outbox, breadth first, so that the first violation has the shortest history.
///
/// `STOREHOUSE_SEEDS=N` visits N times as many states, and plays N times as many random histories.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct OutboxModelTests {
    struct Setting: CustomTestStringConvertible, Sendable {
        var name: String
        var rules = OutboxMachine.Rules()
        var lanes = 1
        var commands = 3
        var testDescription: String { name }
    }

    static let settings: [Setting] = [
        Setting(name: "one lane"),
        Setting(name: "one lane that stops after a failure", rules: .init(width: 4, continuesAfterFailure: false)),
        Setting(name: "two lanes, one at a time", rules: .init(width: 1), lanes: 2),
        Setting(name: "two lanes side by side", lanes: 2),
    ]

    @Test(arguments: settings)
    func `O1-O14: every order of events keeps the laws`(_ setting: Setting) async {
        let limit = states(5_000, quick: 150)
        var seen: Set<String> = []
        var frontier: [(world: OutboxWorld, steps: [OutboxStep])] = [(OutboxWorld(setting.rules), [])]
        var depth = 0
        search: while !frontier.isEmpty {
            var next: [(world: OutboxWorld, steps: [OutboxStep])] = []
            for (world, steps) in frontier {
                await Task.yield()
                for step in world.possibleSteps(maxCommands: setting.commands, lanes: setting.lanes) {
                    guard seen.count < limit else { break search }
                    var reached = world
                    reached.apply(step)
                    if reached.violations.isEmpty, !seen.insert(reached.fingerprint).inserted { continue }
                    let end = reached.violations.isEmpty ? reached.settled() : reached
                    guard end.violations.isEmpty else {
                        Issue.record("\(setting.name): \(steps + [step]): \(end.violations)")
                        return
                    }
                    next.append((reached, steps + [step]))
                }
            }
            frontier = next
            depth += 1
        }
        #expect(seen.count > 100)
    }

    @Test(arguments: settings)
    func `O1-O14: long random histories keep the laws`(_ setting: Setting) async {
        for seed in seeds(100 as UInt64, quick: 4) {
            var random = SplitMix(seed: seed)
            var world = OutboxWorld(setting.rules)
            var steps: [OutboxStep] = []
            for _ in 0..<40 {
                guard let step = world.possibleSteps(maxCommands: 12, lanes: setting.lanes).randomElement(using: &random) else { break }
                steps.append(step)
                world.apply(step)
                if !world.violations.isEmpty { break }
            }
            let end = world.violations.isEmpty ? world.settled() : world
            guard end.violations.isEmpty else {
                Issue.record("seed \(seed), \(setting.name): \(steps): \(end.violations)")
                return
            }
            await Task.yield()
        }
    }
}
