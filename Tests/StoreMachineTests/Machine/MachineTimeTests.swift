import Testing
import Trials

@testable import StoreCore

@Suite(.timeLimit(.minutes(hangMinutes)))
struct MachineTimeTests {
    @Test(arguments: [
        Play("the last observer leaves", events: [.force, .read, .leave, .tick, .timer], shows: "no state", cancels: 1),
        Play(
            "a caller that does not need the fetch stays", events: [.force, .read, .arrive(.acceptedContent), .leave, .tick, .timer],
            shows: "completed(old)", cancels: 1),
        Play(
            "the previous state was an error",
            events: [.force, .read, .failed, .arrive(.acceptedContent), .join, .leave, .leave, .tick, .timer], shows: "error(old)",
            cancels: 1),
        Play("another observer stays", events: [.force, .join, .read, .leave, .tick], shows: "loading(old)"),
        Play("a caller stays", events: [.force, .arrive(.origin), .read, .leave, .tick], shows: "loading(old)"),
        Play("an observer joins in time", events: [.force, .read, .leave, .join, .tick], shows: "loading(old)"),
        Play(
            "the last caller leaves", holds: .expired, events: [.arrive(.content), .read, .depart(0), .tick, .timer], shows: "no state",
            cancels: 1),
    ])
    func `C9: an unwanted fetch is canceled after its grace period, which restores the previous state`(play: Play) {
        play.run(.table())
    }

    @Test(arguments: [
        Play("at its deadline", events: [.join, .read, .tick, .tick, .timer], shows: "loading(old)", begins: 1),
        Play("once, even if it fails", events: [.join, .read, .tick, .tick, .timer, .failed, .tick, .tick], shows: "error(old)"),
        Play(
            "once, even if an observer's fetch fails", events: [.join, .read, .tick, .tick, .join, .failed, .tick, .tick],
            shows: "error(old)"),
        Play(
            "again after each success", events: [.join, .read, .tick, .tick, .timer, .fetched, .tick, .tick, .timer], shows: "loading(new)",
            begins: 1),
        Play("after an earlier failed refresh", events: [.force, .read, .failed, .tick, .tick, .timer], shows: "loading(old)", begins: 1),
        Play("not if the record arrived expired", holds: .expired, events: [.join, .read, .failed, .tick, .tick], shows: "error(old)"),
    ])
    func `C10: observed content is fetched again once when it expires`(play: Play) {
        play.run(.table(policy: StorePolicy(revalidatesOnExpiry: true)))
    }

    @Test func `C10: no fetch is due for a record that arrived expired, or after the fetch at its deadline failed`() {
        let setting = ModelSetting.table(policy: StorePolicy(revalidatesOnExpiry: true))
        var world = ModelWorld.origins(setting)[1]
        for event in [ModelEvent.join, .read, .tick, .tick, .timer, .failed] { world.apply(event) }
        #expect(world.machine.nextWake == nil)
        world = ModelWorld.origins(setting)[2]
        for event in [ModelEvent.join, .read, .failed] { world.apply(event) }
        #expect(world.machine.nextWake == nil)
    }

    @Test(arguments: [false, true])
    func `C10: content that expires after a stream is over is fetched, even if a caller has joined the waiting stream`(joins: Bool) throws {
        let setting = try #require(ModelSetting.streamThemes.first { $0.name == "streaming over time" })
        var world = ModelWorld(setting)
        for event in [ModelEvent.join, .read, .pushed(.content), .streamEnds(fails: true)] { world.apply(event) }
        if joins { world.apply(.arrive(.freshness)) }
        for event in [ModelEvent.tick, .timer, .streamEnds(fails: true), .tick, .timer] { world.apply(event) }
        #expect(world.moment.begun.count == 1)
        #expect(world.violations == [])
    }

    @Test(arguments: [
        Play("valid content", events: [.join, .read, .trigger], shows: "loading(old)", begins: 1),
        Play("while a fetch runs", events: [.force, .read, .trigger], shows: "loading(old)"),
        Play("too early", events: [.force, .read, .fetched, .trigger], shows: "completed(new)"),
        Play(
            "too early, then at the earliest time", events: [.force, .read, .fetched, .trigger, .trigger, .tick, .timer],
            shows: "loading(new)", begins: 1),
        Play("before the cache is read", events: [.join, .trigger, .read, .timer], shows: "loading(old)", begins: 1),
    ])
    func `C16: a trigger fetches observed content after the minimum interval, and bursts coalesce`(play: Play) {
        play.run(.table())
    }

    @Test(arguments: [
        (lifetime: 10, age: 9, isValid: true, isUsable: true), (10, 10, false, true), (10, 15, false, true), (10, 16, false, false),
        (0, 0, false, true),
    ])
    func `C3, C11: a record is valid until its deadline and usable within a window after it`(
        lifetime: Int, age: Int, isValid: Bool, isUsable: Bool
    ) {
        var record = CacheRecord(content: 1, fetchedAt: ModelWorld(.table()).date)
        record.freshness = .fresh(for: .seconds(lifetime))
        var held = HeldRecord(record, expiry: .never, now: instant(100))
        #expect(held.isValid(at: instant(100 + age)) == isValid)
        #expect(held.isUsable(within: .seconds(5), at: instant(100 + age)) == isUsable)
        #expect(!held.isUsable(within: .zero, at: instant(100 + age)))
        held.record.freshness.mustRevalidate = true
        #expect(!held.isUsable(within: .seconds(5), at: instant(100 + age)))
        held.record.freshness.mustRevalidate = false
        held.invalidate()
        #expect(!held.isValid(at: instant(100)) && !held.isUsable(within: .seconds(5), at: instant(100)))
    }
}
