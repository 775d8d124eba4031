import Testing

@testable import StoreCore

/// Updates, clearing and invalidation against what runs and who waits; and the cacher's lane.
@Suite(.timeLimit(.minutes(10)))
struct MachineWritingTests {
    @Test(arguments: [
        MachinePlay(name: "update, nothing running", events: [.join, .read, .update], shows: "completed(mine)"),
        MachinePlay(
            name: "update, a fetch that was not asked for", holds: .expired, events: [.join, .read, .update], shows: "completed(mine)",
            cancels: 1),
        MachinePlay(
            name: "update, a fetch that was asked for", events: [.force, .read, .update], shows: "loading(mine)", begins: 1, cancels: 1),
        MachinePlay(
            name: "update, a fetch that was asked for by one who has left", events: [.force, .read, .leave, .update],
            shows: "completed(mine)", cancels: 1),
        MachinePlay(
            name: "update, callers", holds: .expired, events: [.arrive(.content), .arrive(.origin), .arrive(.freshness), .read, .update],
            shows: "completed(mine)", answers: ["done", "mine", "mine"], cancels: 1),
        MachinePlay(
            name: "update, a refresh", events: [.arrive(.refresh), .read, .update], shows: "loading(mine)", begins: 1, cancels: 1),
        MachinePlay(name: "clear, nobody", events: [.arrive(.truth), .read, .clear], shows: "no state"),
        MachinePlay(name: "clear, an observer", events: [.join, .read, .clear], shows: "loading(nothing)", begins: 1),
        MachinePlay(name: "clear, a fetch", events: [.force, .read, .clear], shows: "loading(nothing)", begins: 1, cancels: 1),
        MachinePlay(
            name: "clear, an unwanted fetch", events: [.force, .read, .leave, .clear], shows: "no state", cancels: 1),
        MachinePlay(
            name: "clear, a caller", holds: .expired, events: [.arrive(.content), .read, .clear], shows: "loading(nothing)", begins: 1,
            cancels: 1),
        MachinePlay(name: "invalidate, an observer", events: [.join, .read, .invalidate], shows: "loading(old)", begins: 1),
        MachinePlay(name: "invalidate, nobody", events: [.arrive(.truth), .read, .invalidate], shows: "completed(old)"),
        MachinePlay(name: "invalidate, a fetch", events: [.force, .read, .invalidate], shows: "loading(old)", begins: 1, cancels: 1),
        MachinePlay(name: "invalidate before the cache is read", events: [.join, .invalidate, .read], shows: "loading(old)", begins: 1),
    ])
    func `C2, C5: a write makes older fetches worthless and starts what is still wanted`(play: MachinePlay) {
        play.run(.table())
    }

    @Test(arguments: [ModelEvent.update, .clear, .invalidate, .patch])
    func `C5: what an older fetch still reports goes nowhere`(write: ModelEvent) {
        var world = ModelWorld(.table())
        for event in [.force, .read, .fetched, .saved, .arrive(.refresh), write, .late] { world.apply(event) }
        #expect(world.violations == [])
        #expect(world.moment.published == 0)
    }

    @Test(arguments: [
        MachinePlay(
            name: "a confirmation keeps the record", events: [.force, .read, .fetched(nil, .notModified)], shows: "completed(old)"),
        MachinePlay(
            name: "a confirmation after an update is a failure", events: [.force, .read, .update, .fetched(nil, .notModified)],
            shows: "error(mine)"),
        MachinePlay(
            name: "a confirmation after a mutation is a failure",
            events: [.force, .read, .patch, .settle(0, succeeds: true), .fetched(nil, .notModified)], shows: "error(old+patch)"),
        MachinePlay(
            name: "a fold drops a fetch that may confirm the record before it",
            events: [.join, .read, .patch, .patch, .settle(1, succeeds: true), .arrive(.refresh), .settle(0, succeeds: false)],
            shows: "loading(old+patch)", begins: 1, cancels: 1),
    ])
    func `C5: a revalidating fetch confirms the record whose validator it sent and no other`(play: MachinePlay) {
        play.run(.table(validators: true))
    }

    @Test func `C6: while a save runs only the newest record waits, and it answers all before it`() {
        var world = ModelWorld(.table())
        world.log.names = [:]
        for event in [ModelEvent.arrive(.truth), .read, .update, .update, .update] { world.apply(event) }
        #expect(world.call?.record?.content == [12])
        world.apply(.saved)
        #expect(world.moment.answers == ["done"])
        #expect(world.call?.record == world.machine.held?.record)
        world.apply(.saved)
        #expect(world.moment.answers == ["done", "done"])
        #expect(world.call == nil && world.violations == [])
    }

    @Test(arguments: [true, false])
    func `C6: a record that could not be saved stays and is what reads get`(succeeds: Bool) {
        var world = ModelWorld(.table())
        world.log.names = [:]
        for event in [ModelEvent.update, .saved(succeeds: succeeds), .arrive(.cached)] { world.apply(event) }
        #expect(world.machine.isRead == !succeeds)
        if succeeds { world.apply(.read) }
        #expect(world.moment.answers == ["mine"])
        #expect(world.violations == [])
    }

    @Test(arguments: [true, false])
    func `C6: emptying the cacher leaves nothing, also of a save that waits for the emptying`(isDeferred: Bool) {
        var world = ModelWorld(.table())
        world.apply(.update)
        if isDeferred {
            for event in [ModelEvent.saved, .clearAll, .update] { world.apply(event) }
            #expect(world.call?.isDeferred == true)
        }
        world.apply(.clearAll)
        while let event = [ModelEvent.emptied, .saved].first(where: world.possibleEvents.contains) { world.apply(event) }
        #expect(world.stored == nil && world.machine.isIdle)
        #expect(world.violations == [])
    }

    @Test(arguments: [
        MachinePlay(name: "unstorable content is shown", events: [.force, .read, .fetched(nil, .unstorable)], shows: "completed(new)"),
        MachinePlay(
            name: "and lives as long as it is wanted",
            events: [.force, .read, .fetched(nil, .unstorable), .saved, .leave, .arrive(.cached), .read], shows: "no state",
            answers: ["noValidCache"]),
    ])
    func `C6: what must not be stored is removed and never saved`(play: MachinePlay) {
        play.run(.table())
    }

    @Test(arguments: [
        (true, [ModelEvent.join, .update]), (false, [.join, .patch]), (false, [.join, .invalidate]), (false, [.join, .clear]),
        (true, [.join, .patch, .settle(0, succeeds: false)]), (true, [.join, .patch, .settle(0, succeeds: true)]),
        (false, [.force, .fetched(nil, .unstorable)]), (true, [.force, .fetched]),
    ])
    func `C6: memory in front answers exactly while the engine would answer the same`(answers: Bool, events: [ModelEvent]) {
        let record = CacheRecord(content: [1], fetchedAt: ModelWorld(.table()).date)
        var world = ModelWorld(.table(front: true, backing: false), stored: record)
        for event in events { world.apply(event) }
        #expect((world.front.map { $0.deadline > instant(world.oracle.now) } ?? false) == answers)
        #expect(world.violations == [])
    }
}
