internal import Foundation
import Testing
import Trials

@testable import StoreCore

/// Tests updates, clearing and invalidation while fetches run and callers wait, and the calls of the cacher.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct MachineWritingTests {
    @Test(arguments: [
        Play("update, no fetch running", events: [.join, .read, .update], shows: "completed(mine)"),
        Play("update, during an implicit fetch", holds: .expired, events: [.join, .read, .update], shows: "completed(mine)", cancels: 1),
        Play("update, during an explicit fetch", events: [.force, .read, .update], shows: "loading(mine)", begins: 1, cancels: 1),
        Play(
            "update, during the explicit fetch of an observer that left", events: [.force, .read, .leave, .update],
            shows: "completed(mine)", cancels: 1),
        Play(
            "update, with waiting callers", holds: .expired,
            events: [.arrive(.content), .arrive(.origin), .arrive(.freshness), .read, .update], shows: "completed(mine)",
            answers: ["done", "mine", "mine"], cancels: 1),
        Play("update, during a refresh", events: [.arrive(.refresh), .read, .update], shows: "loading(mine)", begins: 1, cancels: 1),
        Play("clear, without an observer", events: [.arrive(.acceptedContent), .read, .clear], shows: "no state"),
        Play("clear, with an observer", events: [.join, .read, .clear], shows: "loading(nothing)", begins: 1),
        Play("clear, during a fetch", events: [.force, .read, .clear], shows: "loading(nothing)", begins: 1, cancels: 1),
        Play("clear, during an unwanted fetch", events: [.force, .read, .leave, .clear], shows: "no state", cancels: 1),
        Play(
            "clear, with a waiting caller", holds: .expired, events: [.arrive(.content), .read, .clear], shows: "loading(nothing)",
            begins: 1, cancels: 1),
        Play("invalidate, with an observer", events: [.join, .read, .invalidate], shows: "loading(old)", begins: 1),
        Play("invalidate, without an observer", events: [.arrive(.acceptedContent), .read, .invalidate], shows: "completed(old)"),
        Play("invalidate, during a fetch", events: [.force, .read, .invalidate], shows: "loading(old)", begins: 1, cancels: 1),
        Play("invalidate before the cache is read", events: [.join, .invalidate, .read], shows: "loading(old)", begins: 1),
    ])
    func `C2, C5: a write cancels older fetches and starts one if the key is still wanted`(play: Play) {
        play.run(.table())
    }

    @Test(arguments: [ModelEvent.update, .clear, .invalidate, .patch])
    func `C5: the late result of an older fetch is ignored`(write: ModelEvent) {
        var world = ModelWorld(.table())
        for event in [.force, .read, .fetched, .saved, .arrive(.refresh), write, .late] { world.apply(event) }
        #expect(world.violations == [])
        #expect(world.moment.published == 0)
    }

    @Test(arguments: [
        Play("not modified keeps the record", events: [.force, .read, .fetched(nil, .notModified)], shows: "completed(old)"),
        Play(
            "not modified after an update is a failure", events: [.force, .read, .update, .fetched(nil, .notModified)], shows: "error(mine)"
        ),
        Play(
            "not modified after a mutation is a failure",
            events: [.force, .read, .patch, .settle(0, succeeds: true), .fetched(nil, .notModified)], shows: "error(old+patch)"),
        Play(
            "folding a patch cancels a fetch that revalidates the older record",
            events: [.join, .read, .patch, .patch, .settle(1, succeeds: true), .arrive(.refresh), .settle(0, succeeds: false)],
            shows: "loading(old+patch)", begins: 1, cancels: 1),
    ])
    func `C5: a not-modified response keeps only the record with the validator sent`(play: Play) {
        play.run(.table(validators: true))
    }

    @Test func `C6: while a save runs only the newest record waits, and its save completes all earlier ones`() {
        var world = ModelWorld(.table())
        world.log.names = [:]
        for event in [ModelEvent.arrive(.acceptedContent), .read, .update, .update, .update] { world.apply(event) }
        #expect(world.call?.record?.content == [12])
        world.apply(.saved)
        #expect(world.moment.answers == ["done"])
        #expect(world.call?.record == world.machine.book.held?.record)
        world.apply(.saved)
        #expect(world.moment.answers == ["done", "done"])
        #expect(world.call == nil && world.violations == [])
    }

    @Test(arguments: [true, false])
    func `C6: a record that could not be saved stays in the engine and is returned to readers`(succeeds: Bool) {
        var world = ModelWorld(.table())
        world.log.names = [:]
        for event in [ModelEvent.update, .saved(succeeds: succeeds), .arrive(.cached)] { world.apply(event) }
        #expect(world.machine.origin.isKnown == !succeeds)
        if succeeds { world.apply(.read) }
        #expect(world.moment.answers == ["mine"])
        #expect(world.violations == [])
    }

    @Test(arguments: [true, false])
    func `C6: clearing the cacher leaves no record, even if a save waits for the clearing`(isDeferred: Bool) {
        var world = ModelWorld(.table())
        world.apply(.update)
        if isDeferred {
            for event in [ModelEvent.saved, .clearAll, .update] { world.apply(event) }
            #expect(world.call == nil && world.saveWaits)
        }
        world.apply(.clearAll)
        while let event = [ModelEvent.emptied, .saved].first(where: world.possibleEvents.contains) { world.apply(event) }
        #expect(world.stored == nil && world.machine.isForgettable)
        #expect(world.violations == [])
    }

    @Test(arguments: [[], [ModelEvent.saved(succeeds: true)], [.saved(succeeds: false)]])
    func `O8: content that stands in for that of the origin is not saved, whatever becomes of an earlier removal`(
        endings: [ModelEvent]
    ) throws {
        let setting = ModelSetting.table(policy: StorePolicy(minimumInterval: .zero))
        let record = CacheRecord(content: [1], fetchedAt: ModelWorld(setting).date)
        var world = ModelWorld(setting, stored: record)
        for event in [ModelEvent.arrive(.acceptedContent), .read, .clear] + endings { world.apply(event) }
        var transition = ModelWorld.Transition(time: StandingTime(now: instant(100), date: world.date), tickets: world.tickets)
        _ = world.machine.commandCreated(UUID(number: 1), .unknown, shown: [2], isObserved: false, [], &transition)
        #expect(world.machine.content == [2])
        // From memory, it would return as content of the origin.
        #expect(world.machine.mirrored == nil)
        // Any later call of the cacher is the removal, or another attempt of it.
        world.machine.saveFinished(nil, removing: true, &transition)
        world.machine.otherKeyWasSaved(&transition)
        #expect(world.machine.saveBegan().record == nil)
    }

    @Test(arguments: [
        Play("unstorable content is published", events: [.force, .read, .fetched(nil, .unstorable)], shows: "completed(new)"),
        Play(
            "unstorable content is dropped when the key is idle",
            events: [.force, .read, .fetched(nil, .unstorable), .saved, .leave, .arrive(.cached), .read], shows: "no state",
            answers: ["noValidCache"]),
    ])
    func `C6: unstorable content is removed from the cacher and never saved`(play: Play) {
        play.run(.table())
    }

    @Test(arguments: [
        (true, [ModelEvent.join, .update]), (false, [.join, .patch]), (false, [.join, .invalidate]), (false, [.join, .clear]),
        (true, [.join, .patch, .settle(0, succeeds: false)]), (true, [.join, .patch, .settle(0, succeeds: true)]),
        (false, [.force, .fetched(nil, .unstorable)]), (true, [.force, .fetched]),
    ])
    func `C6: the memory table returns a record exactly while the engine would return the same`(answers: Bool, events: [ModelEvent]) {
        let record = CacheRecord(content: [1], fetchedAt: ModelWorld(.table()).date)
        var world = ModelWorld(.table(front: true, backing: false), stored: record)
        for event in events { world.apply(event) }
        #expect((world.front.map { $0.deadline > instant(world.oracle.now) } ?? false) == answers)
        #expect(world.violations == [])
    }
}
