internal import Foundation
import Testing
import Trials

@testable import StoreCore

/// Checks the laws in each state and transition of the machine, over every interleaving of its events up to a depth.
///
/// `STOREHOUSE_SEEDS=N` searches N times as many states, and walks N random histories in each setting; `STOREHOUSE_SEED=7` a single one.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct ModelCheckTests {
    private static let wholes = ModelSetting.wholes + ModelSetting.commands + ModelSetting.streams
    private static let themes = ModelSetting.themes + ModelSetting.confirmedLists + ModelSetting.streamThemes

    @Test(arguments: wholes)
    func `C1 to C25, L1 to L7, O2, O7: every interleaving of all events keeps the laws`(setting: ModelSetting) async {
        let usual = setting.world.contains(.commands) ? ModelSetting.commandPreludes : ModelSetting.preludes
        await check(setting, preludes: setting.rules.isLive ? ModelSetting.streamPreludes : usual)
    }

    @Test(arguments: themes)
    func `C1 to C25, L1 to L7: every reachable state of a few events keeps the laws`(setting: ModelSetting) async {
        await check(setting)
    }

    @Test(arguments: wholes + themes)
    func `C1 to C25, L1 to L7, O2, O7: random histories of 60 events keep the laws`(setting: ModelSetting) async {
        let walk = ModelWalk(setting)
        for seed in seeds(100 as UInt64, quick: 1) {
            await Task.yield()
            guard let failure = walk.failure(seed: seed) else { continue }
            Issue.record("seed \(seed), \(failure.law), \(walk.description(of: failure))")
            return
        }
    }

    private func check(_ setting: ModelSetting, preludes: [[ModelEvent]] = []) async {
        var search = ModelSearch(setting, from: ModelWorld.origins(setting))
        let began = ContinuousClock.now
        // The states of the preludes count too.
        await search.run(maxStates: states(2_000, quick: preludes.isEmpty ? 60 : 200), preludes: preludes)
        if isLongRun { print("\(search.summary), \(ContinuousClock.now - began)") }
        if let failure = search.failure { Issue.record("\(failure)") }
    }
}

extension ModelWorld {
    /// The initial states of a search: the records that the cacher may hold for an idle key.
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
