import Testing

@testable import StoreCore

/// Optimistic mutations: their order, what they do to fetches, and what becomes of them.
@Suite(.timeLimit(.minutes(10)))
struct MachinePatchTests {
    private static let observed: [ModelEvent] = [.join, .read]
    private static let held: [ModelEvent] = [.arrive(.truth), .read]

    @Test(arguments: [
        MachinePlay(name: "begun", events: observed + [.patch], shows: "completed(old+patch)"),
        MachinePlay(name: "failed", events: held + [.patch, .settle(0, succeeds: false)], shows: "completed(old)"),
        MachinePlay(name: "succeeded", events: held + [.patch, .settle(0, succeeds: true)], shows: "completed(old+patch)"),
        MachinePlay(name: "over an update", events: held + [.patch, .update], shows: "completed(mine+patch)"),
        MachinePlay(name: "forgotten by clear", events: held + [.patch, .clear], shows: "no state"),
        MachinePlay(
            name: "forgotten by clear and settled after an update",
            events: held + [.patch, .clear, .update, .settleForgotten(succeeds: true)],
            shows: "completed(mine)"),
        MachinePlay(name: "of nothing", holds: .nothing, events: held + [.patch], shows: "no state"),
        MachinePlay(
            name: "of nothing, then something", holds: .nothing, events: held + [.patch, .update], shows: "completed(mine+patch)"),
    ])
    func `C14: a change is seen at once and taken back when it fails`(play: MachinePlay) {
        play.run(.table())
    }

    @Test(arguments: [[true, true], [true, false], [false, true], [false, false]], [[0, 1], [1, 0]])
    func `C14: mutations are settled in any order, and the truth takes them in the order in which they began`(
        succeeds: [Bool], order: [Int]
    ) {
        var world = ModelWorld.origins(.table())[1]
        for event in Self.held + [.patch, .patch] { world.apply(event) }
        let marks = world.oracle.patches.map(\.mark)
        // The second one to settle stands at the beginning, unless the first one waits for it.
        world.apply(.settle(order[0], succeeds: succeeds[order[0]]))
        let isWaiting = order[0] == 1 && succeeds[1]
        #expect(world.machine.held?.record.content == (isWaiting || !succeeds[order[0]] ? [1] : [1, marks[0]]))
        world.apply(.settle(0, succeeds: succeeds[order[1]]))
        #expect(world.machine.held?.record.content == [1] + zip(marks, succeeds).filter(\.1).map(\.0))
        #expect(world.violations == [])
    }

    @Test(arguments: [
        MachinePlay(
            name: "begins, observed", holds: .expired, events: observed + [.patch], shows: "completed(old+patch)", cancels: 1),
        MachinePlay(
            name: "begins, a caller waits", holds: .expired, events: [.arrive(.content), .read, .patch], shows: "loading(old+patch)",
            begins: 1, cancels: 1),
        MachinePlay(
            name: "begins, a forced fetch", events: [.force, .read, .patch], shows: "loading(old+patch)", begins: 1, cancels: 1),
        MachinePlay(
            name: "begins, an observer without content", holds: .nothing, events: observed + [.patch], shows: "loading(nothing)",
            begins: 1, cancels: 1),
        MachinePlay(
            name: "begins, nobody left", events: [.force, .read, .leave, .arrive(.truth), .patch], shows: "completed(old+patch)",
            cancels: 1),
        MachinePlay(
            name: "succeeds, a refresh", events: observed + [.patch, .arrive(.refresh), .settle(0, succeeds: true)],
            shows: "loading(old+patch)", begins: 1, cancels: 1),
        MachinePlay(
            name: "fails, a refresh", events: observed + [.patch, .arrive(.refresh), .settle(0, succeeds: false)], shows: "loading(old)"),
    ])
    func `C5: the start and the success of a mutation make older fetches worthless, its failure does not`(play: MachinePlay) {
        play.run(.table())
    }

    @Test(arguments: [
        MachinePlay(
            name: "the last succeeds", events: observed + [.patch, .settle(0, succeeds: true)], shows: "loading(old+patch)", begins: 1),
        MachinePlay(name: "the last fails", events: observed + [.patch, .settle(0, succeeds: false)], shows: "loading(old)", begins: 1),
        MachinePlay(
            name: "not the last", events: observed + [.patch, .patch, .settle(0, succeeds: true)], shows: "completed(old+patch+patch)"),
        MachinePlay(name: "nobody observes", events: held + [.patch, .settle(0, succeeds: true)], shows: "completed(old+patch)"),
    ])
    func `C14: when the last mutation of an observed key is settled it is fetched once`(play: MachinePlay) {
        play.run(.table())
    }

    @Test func `C6, C14: a patch is not saved before it is confirmed`() {
        var world = ModelWorld.origins(.table())[1]
        for event in Self.held + [.patch, .update, .saved] { world.apply(event) }
        #expect(world.stored?.content.count == 1)
        world.apply(.settle(0, succeeds: true))
        world.apply(.saved)
        #expect(world.stored?.content == world.machine.held?.record.content)
        #expect(world.stored?.content.count == 2)
        #expect(world.violations == [])
    }
}
