internal import Foundation
import Testing

@testable import StoreCore

/// The machine against every interleaving of its events up to a depth, with the laws checked in each state and turn.
///
/// `STOREHOUSE_SEEDS=N` goes deeper: N times as many states.
@Suite(.timeLimit(.minutes(30)))
struct ModelCheckTests {
    @Test(arguments: ModelSetting.wholes)
    func `C1 to C15: every interleaving of all events keeps the laws`(setting: ModelSetting) {
        check(setting, states: 2_500, preludes: ModelSetting.preludes)
    }

    @Test(arguments: ModelSetting.themes)
    func `C1 to C15: every state of a few events keeps the laws`(setting: ModelSetting) {
        check(setting, states: 2_500)
    }

    private func check(_ setting: ModelSetting, states: Int, preludes: [[ModelEvent]] = []) {
        let seeds = max(1, ProcessInfo.processInfo.environment["STOREHOUSE_SEEDS"].flatMap { Int($0) } ?? 1)
        var search = ModelSearch(setting, from: ModelWorld.origins(setting))
        let began = ContinuousClock.now
        search.run(maxStates: states * seeds, preludes: preludes)
        let seconds = (ContinuousClock.now - began).timeInterval
        print(
            "model: \(setting.name): \(search.states) states, \(search.transitions) transitions, depth \(search.depth)"
                + "\(search.isComplete ? ", complete" : ""), \(search.idlePublishes) idle publishes, \(seconds) s")
        if let failure = search.failure { Issue.record("\(failure)") }
    }
}

extension ModelWorld {
    /// The states that a search begins with: what the cacher may hold of a key that nobody has asked for.
    static func origins(_ setting: ModelSetting) -> [ModelWorld] {
        let tag = setting.world.contains(.validators) ? Validator(entityTag: "1") : nil
        let key = { (name: String) -> String? in setting.isList ? name : nil }
        func record(age: Double) -> CacheRecord<[Int]> {
            CacheRecord(
                content: [1], fetchedAt: Date(timeIntervalSince1970: 100 - age), validator: tag, nextKey: key("n"), prevKey: key("p"))
        }
        var worlds = [ModelWorld(setting), ModelWorld(setting, stored: record(age: 0))]
        if setting.expiry != nil { worlds.append(ModelWorld(setting, stored: record(age: 50))) }
        if setting.world.contains(.writes) {
            var invalidated = record(age: 0)
            invalidated.isInvalidated = true
            worlds.append(ModelWorld(setting, stored: invalidated))
        }
        return worlds
    }
}
