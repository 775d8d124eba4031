import Testing
import Trials

@testable import StoreCore

@Suite(.timeLimit(.minutes(hangMinutes)))
struct MachinePagesTests {
    private static let list: [ModelEvent] = [.join, .read]
    private static let pageUnlessFailed = ModelEvent.arrive(.page(.next, continueWhenError: false))

    @Test(arguments: [
        Play("a valid list", events: list + [.nextPage], shows: "completed(old, loading, more)", begins: 1),
        Play("both directions", events: list + [.nextPage, .prevPage], shows: "completed(old, loading, loading)", begins: 1),
        Play("the same page twice", events: list + [.nextPage, .nextPage], shows: "completed(old, loading, more)"),
        Play("a valid list without an observer", events: [.nextPage, .read], shows: "completed(old, loading, more)", begins: 1),
        Play("an expired list without an observer", holds: .expired, events: [.nextPage, .read], shows: "loading(old)", begins: 1),
        Play("no list", holds: .nothing, events: [.nextPage, .read], shows: "loading(nothing)", begins: 1),
        Play("a loading list", events: [.force, .read, .nextPage], shows: "loading(old)"),
        Play("a failed list", events: [.force, .read, .failed, .nextPage], shows: "loading(old)", begins: 1),
        Play(
            "a failed list, not continuing after errors", events: [.force, .read, .failed, pageUnlessFailed], shows: "error(old)",
            answers: ["page failed"]),
        Play("a failed page", events: list + [.nextPage, .nextFailed, .nextPage], shows: "completed(old, loading, more)", begins: 1),
        Play(
            "a failed page, not continuing after errors", events: list + [.nextPage, .nextFailed, pageUnlessFailed],
            shows: "completed(old, error, more)", answers: ["page failed"]),
        Play("beyond the end", events: list + [.updateWithKeys, .prevPage], shows: "completed(mine, more, end)", answers: ["noPage"]),
        Play("with a forced fetch, before the list is read", events: [.force, .nextPage, .read], shows: "loading(old)", begins: 1),
        Play("with a refresh, before the list is read", events: [.nextPage, .arrive(.refresh), .read], shows: "loading(old)", begins: 1),
    ])
    func `C13: a page request fetches once beside a valid list and otherwise waits for the list`(play: Play) {
        play.run(.table(isList: true))
    }

    @Test(arguments: [
        Play(
            "next", events: list + [.nextPage, .nextPage, .nextLoaded], shows: "completed(old+page, more, more)",
            answers: ["joined", "loaded"]),
        Play(
            "prev", events: list + [.prevPage, .prevPage, .prevLoaded], shows: "completed(page+old, more, more)",
            answers: ["joined", "loaded"]),
        Play(
            "failed", events: list + [.nextPage, .nextPage, .nextFailed], shows: "completed(old, error, more)",
            answers: ["page failed", "page failed"]),
        Play(
            "not modified", events: list + [.nextPage, .fetched(.next, .notModified)], shows: "completed(old, error, more)",
            answers: ["page failed"]),
        Play(
            "the last one", events: list + [.nextPage, .nextLoaded, .nextPage, .nextLoaded], shows: "completed(old+page+page, end, more)",
            answers: ["loaded"]),
        Play(
            "beside a page in the other direction", events: list + [.nextPage, .prevPage, .nextLoaded, .prevLoaded],
            shows: "completed(page+old+page, more, more)", answers: ["loaded"]),
        Play(
            "during a mutation", events: list + [.patch, .nextPage, .nextLoaded], shows: "completed(old+page+patch, more, more)",
            answers: ["loaded"]),
        Play(
            "after a mutation was folded into the list",
            events: [.nextPage, .read, .nextLoaded, .patch, .settle(0, succeeds: true), .nextPage, .nextLoaded],
            shows: "completed(old+page+patch+page, end, more)", answers: ["loaded"]),
        Play(
            "the list is fetched instead", holds: .nothing, events: [.nextPage, .read, .fetched], shows: "completed(new, more, more)",
            answers: ["notLoadedYet"]),
    ])
    func `C13: a page is added at its end of the list, and a failed page keeps its key`(play: Play) {
        play.run(.table(isList: true))
    }

    @Test(arguments: [
        Play(
            "a refresh", events: list + [.nextPage, .arrive(.refresh)], shows: "loading(old)", answers: ["superseded"], begins: 1,
            cancels: 1),
        Play(
            "a forced fetch", events: list + [.nextPage, .prevPage, .force], shows: "loading(old)", answers: ["superseded", "superseded"],
            begins: 1, cancels: 2),
        Play(
            "an update with keys", events: list + [.nextPage, .updateWithKeys], shows: "completed(mine, more, end)",
            answers: ["superseded"], cancels: 1),
        Play("clear", events: list + [.nextPage, .clear], shows: "loading(nothing)", answers: ["superseded"], begins: 1, cancels: 1),
        Play("clearAll", events: list + [.nextPage, .clearAll], shows: "loading(nothing)", answers: ["superseded"], begins: 1, cancels: 1),
        Play(
            "an update with keys after a fetch of the list interrupted the page",
            events: list + [.nextPage, .arrive(.origin), .updateWithKeys], shows: "completed(mine, more, end)",
            answers: ["mine", "superseded"], cancels: 1),
        Play(
            "invalidate after the last observer and caller left", events: list + [.nextPage, .leave, .depart(0), .invalidate],
            shows: "completed(old, more, more)", cancels: 1),
    ])
    func `C13: a refresh and new page keys supersede a page request`(play: Play) {
        runWithLateResult(play)
    }

    @Test(arguments: [
        Play("an update", events: list + [.nextPage, .update], shows: "completed(mine, loading, more)", begins: 1, cancels: 1),
        Play("invalidate", events: list + [.nextPage, .invalidate], shows: "loading(old)", begins: 1, cancels: 1),
        Play(
            "a caller for the origin's content", events: list + [.nextPage, .arrive(.origin)], shows: "loading(old)", begins: 1, cancels: 1),
        Play("a trigger", events: list + [.nextPage, .trigger], shows: "loading(old)", begins: 1, cancels: 1),
        Play(
            "the start of a mutation", events: list + [.nextPage, .patch], shows: "completed(old+patch, loading, more)", begins: 1,
            cancels: 1),
        Play(
            "the success of a mutation", events: [.arrive(.acceptedContent), .read, .patch, .nextPage, .settle(0, succeeds: true)],
            shows: "completed(old+patch, loading, more)", begins: 1, cancels: 1),
        Play(
            "the success of a mutation behind a pending one", events: list + [.patch, .patch, .nextPage, .settle(1, succeeds: true)],
            shows: "completed(old+patch+patch, loading, more)", begins: 1, cancels: 1),
    ])
    func `C5, C13: an interrupted page request never appends the page of its older fetch`(play: Play) {
        runWithLateResult(play)
    }

    @Test(arguments: [
        Play(
            "after the fetch of the list", events: list + [.nextPage, .arrive(.origin), .fetched], shows: "completed(new, loading, more)",
            answers: ["new"], begins: 1),
        Play(
            "in both directions", events: list + [.nextPage, .prevPage, .invalidate, .fetched], shows: "completed(new, loading, loading)",
            begins: 2),
        Play(
            "after an update canceled that fetch", events: list + [.nextPage, .invalidate, .update],
            shows: "completed(mine, loading, more)", begins: 1, cancels: 1),
        Play(
            "after a mutation canceled that fetch", events: list + [.nextPage, .invalidate, .patch],
            shows: "completed(old+patch, loading, more)", begins: 1, cancels: 1),
        Play("unless that fetch fails", events: list + [.nextPage, .invalidate, .failed], shows: "error(old)", answers: ["page failed"]),
        Play(
            "until the page is loaded", events: list + [.nextPage, .invalidate, .fetched, .nextLoaded],
            shows: "completed(new+page, more, more)", answers: ["loaded"]),
    ])
    func `C13: an interrupted page request continues with the current list`(play: Play) {
        play.run(.table(isList: true, policy: StorePolicy(minimumInterval: .zero)))
    }

    private func runWithLateResult(_ play: Play) {
        play.run(.table(isList: true, policy: StorePolicy(minimumInterval: .zero)))
        var late = play
        late.events.append(.late)
        (late.answers, late.begins, late.cancels) = ([], 0, 0)
        late.run(.table(isList: true, policy: StorePolicy(minimumInterval: .zero)))
    }

    @Test(
        arguments: [StorePolicy.RefreshScope.firstPage, .loadedPages],
        [ModelEvent.invalidate, .trigger, .arrive(.origin), .arrive(.refresh), .force])
    func `C13: a refresh and a forcing observer fetch the pages that the scope selects, and an implicit fetch all loaded pages`(
        scope: StorePolicy.RefreshScope, cause: ModelEvent
    ) {
        let setting = ModelSetting.table(isList: true, policy: StorePolicy(minimumInterval: .zero, refreshScope: scope))
        var world = ModelWorld.origins(setting)[1]
        for event in [.join, .read, .nextPage, .prevPage, .nextLoaded, .prevLoaded, cause] { world.apply(event) }
        let resets = [.arrive(.refresh), .force].contains(cause) && scope == .firstPage
        #expect(world.flight?.pages == (resets ? PageCounts() : PageCounts(next: 1, prev: 1)))
        #expect(world.violations == [])
    }
}
