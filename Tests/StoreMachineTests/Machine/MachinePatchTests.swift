import Testing
import Trials

@testable import StoreCore

/// Tests optimistic mutations: their order, their effect on fetches, and their outcome.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct MachinePatchTests {
    private static let observed: [ModelEvent] = [.join, .read]
    private static let held: [ModelEvent] = [.arrive(.acceptedContent), .read]

    @Test(arguments: [
        Play("begun", events: observed + [.patch], shows: "completed(old+patch)"),
        Play("failed", events: held + [.patch, .settle(0, succeeds: false)], shows: "completed(old)"),
        Play("succeeded", events: held + [.patch, .settle(0, succeeds: true)], shows: "completed(old+patch)"),
        Play("over an update", events: held + [.patch, .update], shows: "completed(mine+patch)"),
        Play("dropped by clear", events: held + [.patch, .clear], shows: "no state"),
        Play(
            "dropped by clear and settled after an update", events: held + [.patch, .clear, .update, .settleForgotten(succeeds: true)],
            shows: "completed(mine)"),
        Play("without content", holds: .nothing, events: held + [.patch], shows: "no state"),
        Play("without content, then an update", holds: .nothing, events: held + [.patch, .update], shows: "completed(mine+patch)"),
    ])
    func `C14: a mutation is visible at once and undone when it fails`(play: Play) {
        play.run(.table())
    }

    @Test(arguments: [[true, true], [true, false], [false, true], [false, false]], [[0, 1], [1, 0]])
    func `C14: mutations settle in any order and are folded into the accepted content in the order of their start`(
        succeeds: [Bool], order: [Int]
    ) {
        var world = ModelWorld.origins(.table())[1]
        for event in Self.held + [.patch, .patch] { world.apply(event) }
        let marks = world.oracle.patches.map(\.mark)
        // The patch that settles second is first in the list, unless the other one still waits for it.
        world.apply(.settle(order[0], succeeds: succeeds[order[0]]))
        let isWaiting = order[0] == 1 && succeeds[1]
        #expect(world.machine.book.held?.record.content == (isWaiting || !succeeds[order[0]] ? [1] : [1, marks[0]]))
        world.apply(.settle(0, succeeds: succeeds[order[1]]))
        #expect(world.machine.book.held?.record.content == [1] + zip(marks, succeeds).filter(\.1).map(\.0))
        #expect(world.violations == [])
    }

    @Test(arguments: [
        Play("begins, with an observer", holds: .expired, events: observed + [.patch], shows: "completed(old+patch)", cancels: 1),
        Play(
            "begins, with a waiting caller", holds: .expired, events: [.arrive(.content), .read, .patch], shows: "loading(old+patch)",
            begins: 1, cancels: 1),
        Play("begins, during a forced fetch", events: [.force, .read, .patch], shows: "loading(old+patch)", begins: 1, cancels: 1),
        Play(
            "begins, with an observer but no content", holds: .nothing, events: observed + [.patch], shows: "loading(nothing)", begins: 1,
            cancels: 1),
        Play(
            "begins, after the last observer left", events: [.force, .read, .leave, .arrive(.acceptedContent), .patch],
            shows: "completed(old+patch)", cancels: 1),
        Play(
            "succeeds, during a refresh", events: observed + [.patch, .arrive(.refresh), .settle(0, succeeds: true)],
            shows: "loading(old+patch)", begins: 1, cancels: 1),
        Play(
            "fails, during a refresh", events: observed + [.patch, .arrive(.refresh), .settle(0, succeeds: false)], shows: "loading(old)"),
    ])
    func `C5: the start and the success of a mutation cancel older fetches, its failure does not`(play: Play) {
        play.run(.table())
    }

    @Test(arguments: [
        Play("the last succeeds", events: observed + [.patch, .settle(0, succeeds: true)], shows: "loading(old+patch)", begins: 1),
        Play("the last fails", events: observed + [.patch, .settle(0, succeeds: false)], shows: "loading(old)", begins: 1),
        Play(
            "another mutation is pending", events: observed + [.patch, .patch, .settle(0, succeeds: true)],
            shows: "completed(old+patch+patch)"),
        Play("no observer", events: held + [.patch, .settle(0, succeeds: true)], shows: "completed(old+patch)"),
    ])
    func `C14: an observed key is fetched once when its last mutation settles`(play: Play) {
        play.run(.table())
    }

    @Test func `C6, C14: a patch is not saved before it is confirmed`() {
        var world = ModelWorld.origins(.table())[1]
        for event in Self.held + [.patch, .update, .saved] { world.apply(event) }
        #expect(world.stored?.content.count == 1)
        world.apply(.settle(0, succeeds: true))
        world.apply(.saved)
        #expect(world.stored?.content == world.machine.book.held?.record.content)
        #expect(world.stored?.content.count == 2)
        #expect(world.violations == [])
    }
}
