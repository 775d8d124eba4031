import Testing
import Trials

@testable import StoreCore

@Suite(.timeLimit(.minutes(hangMinutes)))
struct MachinePagesTests {
    private static let list: [ModelEvent] = [.join, .read]
    private static let pageUnlessFailed = ModelEvent.arrive(.page(.next, continueWhenError: false))

    @Test(arguments: [
        MachinePlay("a valid list", events: list + [.nextPage], shows: "completed(old, loading, more)", begins: 1),
        MachinePlay("both directions", events: list + [.nextPage, .prevPage], shows: "completed(old, loading, loading)", begins: 1),
        MachinePlay("the same page twice", events: list + [.nextPage, .nextPage], shows: "completed(old, loading, more)"),
        MachinePlay("a valid list without an observer", events: [.nextPage, .read], shows: "completed(old, loading, more)", begins: 1),
        MachinePlay("an expired list without an observer", holds: .expired, events: [.nextPage, .read], shows: "loading(old)", begins: 1),
        MachinePlay("no list", holds: .nothing, events: [.nextPage, .read], shows: "loading(nothing)", begins: 1),
        MachinePlay("a loading list", events: [.force, .read, .nextPage], shows: "loading(old)"),
        MachinePlay("a failed list", events: [.force, .read, .failed, .nextPage], shows: "loading(old)", begins: 1),
        MachinePlay(
            "a failed list, not continuing after errors", events: [.force, .read, .failed, pageUnlessFailed], shows: "error(old)",
            answers: ["page failed"]),
        MachinePlay(
            "a failed page", events: list + [.nextPage, .fetched(.next, .failure), .nextPage], shows: "completed(old, loading, more)",
            begins: 1),
        MachinePlay(
            "a failed page, not continuing after errors", events: list + [.nextPage, .fetched(.next, .failure), pageUnlessFailed],
            shows: "completed(old, error, more)", answers: ["page failed"]),
        MachinePlay(
            "beyond the end", events: list + [.updateWithKeys, .prevPage], shows: "completed(mine, more, end)", answers: ["noPage"]),
        MachinePlay("with a forced fetch, before the list is read", events: [.force, .nextPage, .read], shows: "loading(old)", begins: 1),
        MachinePlay(
            "with a refresh, before the list is read", events: [.nextPage, .arrive(.refresh), .read], shows: "loading(old)", begins: 1),
    ])
    func `C13: a page request fetches once beside a valid list and otherwise waits for the list`(play: MachinePlay) {
        play.run(.table(isList: true))
    }

    @Test(arguments: [
        MachinePlay(
            "next", events: list + [.nextPage, .nextPage, .fetched(.next, .modified)], shows: "completed(old+page, more, more)",
            answers: ["joined", "loaded"]),
        MachinePlay(
            "prev", events: list + [.prevPage, .prevPage, .fetched(.prev, .modified)], shows: "completed(page+old, more, more)",
            answers: ["joined", "loaded"]),
        MachinePlay(
            "failed", events: list + [.nextPage, .nextPage, .fetched(.next, .failure)], shows: "completed(old, error, more)",
            answers: ["page failed", "page failed"]),
        MachinePlay(
            "not modified", events: list + [.nextPage, .fetched(.next, .notModified)], shows: "completed(old, error, more)",
            answers: ["page failed"]),
        MachinePlay(
            "the last one", events: list + [.nextPage, .fetched(.next, .modified), .nextPage, .fetched(.next, .modified)],
            shows: "completed(old+page+page, end, more)", answers: ["loaded"]),
        MachinePlay(
            "beside a page in the other direction",
            events: list + [.nextPage, .prevPage, .fetched(.next, .modified), .fetched(.prev, .modified)],
            shows: "completed(page+old+page, more, more)", answers: ["loaded"]),
        MachinePlay(
            "during a mutation", events: list + [.patch, .nextPage, .fetched(.next, .modified)],
            shows: "completed(old+page+patch, more, more)", answers: ["loaded"]),
        MachinePlay(
            "after a mutation was folded into the list",
            events: [
                .nextPage, .read, .fetched(.next, .modified), .patch, .settle(0, succeeds: true), .nextPage, .fetched(.next, .modified),
            ],
            shows: "completed(old+page+patch+page, end, more)", answers: ["loaded"]),
        MachinePlay(
            "the list is fetched instead", holds: .nothing, events: [.nextPage, .read, .fetched], shows: "completed(new, more, more)",
            answers: ["notLoadedYet"]),
    ])
    func `C13: a page is added at its end of the list, and a failed page keeps its key`(play: MachinePlay) {
        play.run(.table(isList: true))
    }

    @Test(arguments: [
        MachinePlay(
            "a refresh", events: list + [.nextPage, .arrive(.refresh)], shows: "loading(old)", answers: ["superseded"], begins: 1,
            cancels: 1),
        MachinePlay(
            "a forced fetch", events: list + [.nextPage, .prevPage, .force], shows: "loading(old)", answers: ["superseded", "superseded"],
            begins: 1, cancels: 2),
        MachinePlay(
            "an update with keys", events: list + [.nextPage, .updateWithKeys], shows: "completed(mine, more, end)",
            answers: ["superseded"], cancels: 1),
        MachinePlay(
            "clear", events: list + [.nextPage, .clear], shows: "loading(nothing)", answers: ["superseded"], begins: 1, cancels: 1),
        MachinePlay(
            "an update with keys after a fetch of the list interrupted the page",
            events: list + [.nextPage, .arrive(.origin), .updateWithKeys], shows: "completed(mine, more, end)",
            answers: ["mine", "superseded"], cancels: 1),
        MachinePlay(
            "invalidate after the last observer and caller left", events: list + [.nextPage, .leave, .depart(0), .invalidate],
            shows: "completed(old, more, more)", cancels: 1),
    ])
    func `C13: a refresh and new page keys supersede a page request`(play: MachinePlay) {
        runWithLateResult(play)
    }

    @Test(arguments: [
        MachinePlay("an update", events: list + [.nextPage, .update], shows: "completed(mine, loading, more)", begins: 1, cancels: 1),
        MachinePlay("invalidate", events: list + [.nextPage, .invalidate], shows: "loading(old)", begins: 1, cancels: 1),
        MachinePlay(
            "a caller for the origin's content", events: list + [.nextPage, .arrive(.origin)], shows: "loading(old)", begins: 1,
            cancels: 1),
        MachinePlay("a trigger", events: list + [.nextPage, .trigger], shows: "loading(old)", begins: 1, cancels: 1),
        MachinePlay(
            "the start of a mutation", events: list + [.nextPage, .patch], shows: "completed(old+patch, loading, more)", begins: 1,
            cancels: 1),
        MachinePlay(
            "the success of a mutation", events: [.arrive(.acceptedContent), .read, .patch, .nextPage, .settle(0, succeeds: true)],
            shows: "completed(old+patch, loading, more)", begins: 1, cancels: 1),
        MachinePlay(
            "the success of a mutation behind a pending one", events: list + [.patch, .patch, .nextPage, .settle(1, succeeds: true)],
            shows: "completed(old+patch+patch, loading, more)", begins: 1, cancels: 1),
    ])
    func `C5, C13: an interrupted page request never appends the page of its older fetch`(play: MachinePlay) {
        runWithLateResult(play)
    }

    @Test(arguments: [
        MachinePlay(
            "after the fetch of the list", events: list + [.nextPage, .arrive(.origin), .fetched], shows: "completed(new, loading, more)",
            answers: ["new"], begins: 1),
        MachinePlay(
            "in both directions", events: list + [.nextPage, .prevPage, .invalidate, .fetched], shows: "completed(new, loading, loading)",
            begins: 2),
        MachinePlay(
            "after an update canceled that fetch", events: list + [.nextPage, .invalidate, .update],
            shows: "completed(mine, loading, more)", begins: 1, cancels: 1),
        MachinePlay(
            "after a mutation canceled that fetch", events: list + [.nextPage, .invalidate, .patch],
            shows: "completed(old+patch, loading, more)", begins: 1, cancels: 1),
        MachinePlay(
            "unless that fetch fails", events: list + [.nextPage, .invalidate, .failed], shows: "error(old)", answers: ["page failed"]),
        MachinePlay(
            "until the page is loaded", events: list + [.nextPage, .invalidate, .fetched, .fetched(.next, .modified)],
            shows: "completed(new+page, more, more)", answers: ["loaded"]),
    ])
    func `C13: an interrupted page request continues with the current list`(play: MachinePlay) {
        play.run(.table(isList: true, policy: StorePolicy(minimumInterval: .zero)))
    }

    private func runWithLateResult(_ play: MachinePlay) {
        play.run(.table(isList: true, policy: StorePolicy(minimumInterval: .zero)))
        var late = play
        late.events.append(.late)
        (late.answers, late.begins, late.cancels) = ([], 0, 0)
        late.run(.table(isList: true, policy: StorePolicy(minimumInterval: .zero)))
    }

    @Test(arguments: [(StorePolicy.RefreshScope.firstPage, PageCounts()), (.loadedPages, PageCounts(next: 1, prev: 1))])
    func `C13: a refresh fetches the pages that its scope selects`(scope: StorePolicy.RefreshScope, pages: PageCounts) {
        let setting = ModelSetting.table(isList: true, policy: StorePolicy(refreshScope: scope))
        var world = ModelWorld.origins(setting)[1]
        let loaded: [ModelEvent] = [.nextPage, .prevPage, .fetched(.next, .modified), .fetched(.prev, .modified)]
        for event in [.join, .read] + loaded + [.arrive(.refresh)] { world.apply(event) }
        #expect(world.flight?.pages == pages)
        #expect(world.violations == [])
    }

    @Test(arguments: [StorePolicy.RefreshScope.firstPage, .loadedPages], [ModelEvent.invalidate, .trigger, .arrive(.origin)])
    func `C13: an implicit fetch loads all loaded pages again, under every refresh scope`(
        scope: StorePolicy.RefreshScope, cause: ModelEvent
    ) {
        let setting = ModelSetting.table(isList: true, policy: StorePolicy(minimumInterval: .zero, refreshScope: scope))
        var world = ModelWorld.origins(setting)[1]
        let loaded: [ModelEvent] = [.nextPage, .prevPage, .fetched(.next, .modified), .fetched(.prev, .modified)]
        for event in [.join, .read] + loaded + [cause] { world.apply(event) }
        #expect(world.flight?.pages == PageCounts(next: 1, prev: 1))
        #expect(world.violations == [])
    }
}
