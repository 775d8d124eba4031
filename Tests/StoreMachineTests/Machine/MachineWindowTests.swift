import Testing
import Trials

@testable import StoreCore

@Suite(.timeLimit(.minutes(hangMinutes)))
struct MachineWindowTests {
    private static let list: [ModelEvent] = [.join, .read]
    /// A list of two pages, the initial one and the next one.
    private static let full: [ModelEvent] = list + [.nextPage, .nextLoaded]

    @Test(arguments: [
        Play(
            "the first page that makes the list full", events: list + [.nextPage, .nextLoaded], shows: "completed(old+page, more, more)",
            answers: ["loaded"]),
        Play(
            "a previous page drops the last page", events: full + [.prevPage, .prevLoaded], shows: "completed(page+old, more, more)",
            answers: ["loaded"]),
        Play(
            "the dropped page is requested again", events: full + [.prevPage, .prevLoaded, .nextPage],
            shows: "completed(page+old, loading, more)", begins: 1),
        Play(
            "beyond the last page", events: full + [.prevPage, .prevLoaded, .prevPage, .prevLoaded],
            shows: "completed(page+page, more, end)", answers: ["loaded"]),
        Play(
            "a page in the other direction waits behind the dropped one", events: full + [.nextPage, .prevPage, .prevLoaded],
            shows: "completed(page+old, loading, more)", answers: ["loaded"], begins: 1, cancels: 1),
        Play(
            "a failure behind the dropped page is forgotten", events: full + [.nextPage, .nextFailed, .prevPage, .prevLoaded],
            shows: "completed(page+old, more, more)", answers: ["loaded"]),
        Play(
            "a page that fails drops nothing", events: full + [.prevPage, .fetched(.prev, .failure)],
            shows: "completed(old+page, more, error)", answers: ["page failed"]),
    ])
    func `C18: a page added at one end of a full list drops the page at the other end`(play: Play) {
        play.run(.table(isList: true, window: 2))
    }

    @Test(arguments: [
        Play("next", events: list + [.nextPage, .nextLoaded], shows: "completed(page, more, more)", answers: ["loaded"]),
        Play(
            "and back", events: list + [.nextPage, .nextLoaded, .prevPage, .prevLoaded], shows: "completed(page, more, more)",
            answers: ["loaded"]),
    ])
    func `C18: a window of one page holds the newest page`(play: Play) {
        play.run(.table(isList: true, window: 1))
    }

    @Test(arguments: [StorePolicy.RefreshScope.firstPage, .loadedPages], [ModelEvent.invalidate, .trigger, .arrive(.refresh)])
    func `C13, C18: a refetch begins with the first page of the window, and a refresh by scope with the initial page`(
        scope: StorePolicy.RefreshScope, cause: ModelEvent
    ) {
        let setting = ModelSetting.table(isList: true, window: 1, policy: StorePolicy(minimumInterval: .zero, refreshScope: scope))
        var world = ModelWorld.origins(setting)[1]
        for event in [.join, .read, .nextPage, .nextLoaded, cause] { world.apply(event) }
        let resets = cause == .arrive(.refresh) && scope == .firstPage
        #expect(world.flight?.pages == (resets ? PageCounts() : PageCounts(start: .page(.next, key: "n"))))
        #expect(world.violations == [])
    }
}
