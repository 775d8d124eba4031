import Testing
import Trials
import StoreCoreTesting
import StoreTrials

@testable import StoreCore

/// Compares the merging of pages with the simplest implementation.
struct IdentityPlacesTests {
    private struct Element: Hashable, Sendable {
        var id: Clumsy
        var tag: Int
    }

    /// Each element replaces the first element with its identity; new elements are added at the side of the page, in order.
    private func merged(_ list: [Element], _ page: [Element], _ direction: PageDirection) -> [Element] {
        var (list, fresh) = (list, [Element]())
        for element in page {
            if let place = list.firstIndex(where: { $0.id == element.id }) {
                list[place] = element
            } else if let place = fresh.firstIndex(where: { $0.id == element.id }) {
                fresh[place] = element
            } else {
                fresh.append(element)
            }
        }
        return direction == .next ? list + fresh : fresh + list
    }

    @Test(arguments: Clumsy.spreads, [3, 40, 2_000])
    func `C13: a list is its pages in order, with each identity once, at its first position`(_ spread: Int, _ identities: Int) {
        let merge = ElementIdentity<Element>.by { $0.id }.merge
        var dice = SplitMix(seed: UInt64(spread * 7 + identities))
        for _ in 0..<rounds(30, quick: 6) {
            func page(_ limit: Int) -> [Element] {
                (0..<dice.below(limit)).map { _ in Element(id: Clumsy(dice.below(identities), spread: spread), tag: dice.below(1_000)) }
            }
            // The first page may contain an identity twice, because it is not deduplicated.
            var list = page(12)
            var index: AnyObject?
            for _ in 0..<25 {
                let (next, direction) = (page(9), dice.below(2) == 0 ? PageDirection.next : .prev)
                let expected = merged(list, next, direction)
                _ = merge(&list, next, direction, &index)
                #expect(list == expected)
                // Drops the index now and then, as the store does when the key is idle for long.
                if dice.below(6) == 0 { index = nil }
                if dice.below(10) == 0 {
                    list = page(12)
                    index = nil
                }
            }
        }
    }

    @Test(arguments: [false, true])
    func `C13: a store merges random pages in the order of the requests, with and without an observer`(_ isObserved: Bool) async throws {
        for seed in UInt64(1)...8 {
            let dice = WatchedState(SplitMix(seed: seed))
            let pages = WatchedState<[[Element]]>([])
            let fetcher = ScriptedPaginationFetcher<Int, Element> { _ in
                let page = dice.update { dice in
                    (0..<dice.below(7)).map { _ in Element(id: Clumsy(dice.below(30), spread: 5), tag: dice.below(1_000)) }
                }
                pages.update { $0.append(page) }
                return .page(page, nextKey: "n", prevKey: "p")
            }
            let lists = PaginationStore(cacher: MemoryCacher(), fetcher: fetcher, identity: .by { $0.id })
            var expected = try await lists[1].requireData()
            let observer = isObserved ? RecordingObserver(lists[1].publish()) : nil
            _ = try await observer?.states(count: 1)
            for round in 0..<30 {
                let direction = dice.update { $0.below(2) } == 0 ? PageDirection.next : .prev
                let outcome = await (direction == .next ? lists[1].requestNextData() : lists[1].requestPrevData())
                #expect(outcome == .loaded)
                expected = merged(expected, pages.current.last ?? [], direction)
                if round % 10 == 9 {
                    expected.reverse()
                    await lists[1].update { $0.reverse() }
                }
                #expect(try await lists[1].requireData() == expected)
            }
            if let observer { try await observer.next { $0.content == expected } }
        }
    }
}
