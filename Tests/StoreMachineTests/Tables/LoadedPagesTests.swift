import Foundation
import Testing
import Trials
import StoreCoreTesting

@testable import StoreCore

@Suite(.timeLimit(.minutes(hangMinutes)))
struct LoadedPagesTests {
    private static let identified = ElementIdentity<Int>.by { $0 }

    @Test(arguments: [
        ([1, 2, 3, 4, 5, 6], [2, 2, 2]), ([1, 2, 4, 5, 6], [2, 1, 2]), ([2, 4, 6], [1, 1, 1]), ([5, 6], [0, 0, 2]), ([], [0, 0, 0]),
        ([0, 1, 2, 3, 4, 5, 6], [3, 2, 2]), ([1, 2, 3, 4, 5, 6, 7], [2, 2, 3]), ([1, 2, 7, 3, 8, 4, 5, 6], [2, 4, 2]), ([9], [1, 0, 0]),
        ([5, 2, 3, 9, 5, 6], [2, 2, 2]),
    ])
    func `C13: the page sizes of a changed list follow the identity of its elements`(new: [Int], sizes: [Int]) {
        #expect(Self.identified.resize([2, 2, 2], [1, 2, 3, 4, 5, 6], new) == sizes)
    }

    @Test(arguments: part(of: 0..<200, each: 8))
    func `C13: elements that keep their order keep their page`(_ seed: Int) {
        var dice = SplitMix(seed: UInt64(seed))
        let sizes = (0..<1 + dice.below(6)).map { _ in dice.below(5) }
        let old = Array(0..<sizes.reduce(0, +))
        var page: [Int: Int] = [:]
        var element = 0
        for (number, size) in sizes.enumerated() { for _ in 0..<size { (page[element], element) = (number, element + 1) } }
        var new: [Int] = []
        for element in old {
            if dice.below(4) == 0 { new.append(1_000 + element) }
            if dice.below(4) > 0 { new.append(element) }
        }
        let found = Self.identified.resize(sizes, old, new)
        #expect(found.count == sizes.count && found.reduce(0, +) == new.count && found.allSatisfy { $0 >= 0 })
        var place = 0
        for (number, size) in found.enumerated() {
            for element in new[place..<place + size] { if let owner = page[element] { #expect(owner == number) } }
            place += size
        }
    }

    @Test func `C13: without an identity the last page takes the difference`() {
        let resize = ElementIdentity<Int>.none.resize
        #expect(resize([2, 2, 2], [1, 2, 3, 4, 5, 6], [1, 2, 3]) == [2, 1, 0])
        #expect(resize([2, 2, 2], [1, 2, 3, 4, 5, 6], Array(1...8)) == [2, 2, 4])
    }

    @Test func `C13: a record has the pages that were set, and no details without pages`() {
        let plain = CacheRecord(content: [1, 2], fetchedAt: Date(timeIntervalSince1970: 100))
        var record = plain
        let pages = [LoadedPage(count: 1), LoadedPage(direction: .next, key: "n", count: 1)]
        record.pages = pages
        #expect(record.pages == pages && record != plain)
        record.pages = []
        #expect(record.pages.isEmpty && record == plain)
    }

    @Test func `records are equal only if their contents, dates and details are equal`() {
        let date = Date(timeIntervalSince1970: 100)
        let record = CacheRecord(content: [1], fetchedAt: date, nextKey: "n")
        #expect(record == CacheRecord(content: [1], fetchedAt: date, nextKey: "n"))
        #expect(record != CacheRecord(content: [2], fetchedAt: date, nextKey: "n"))
        #expect(record != CacheRecord(content: [1], fetchedAt: date + 1, nextKey: "n"))
        #expect(record != CacheRecord(content: [1], fetchedAt: date, nextKey: "m"))
    }

    @Test func `C13: pages keep their order on both sides, however many are added`() throws {
        var (pages, plain) = (LoadedPages([LoadedPage(count: 1)]), [LoadedPage(count: 1)])
        var dice = SplitMix(seed: 1)
        for number in 0..<300 {
            let direction = dice.below(2) == 0 ? PageDirection.next : .prev
            let page = LoadedPage(direction: direction, key: "\(number)", count: number)
            pages.add(page, at: direction)
            plain.insert(page, at: direction == .next ? plain.count : 0)
        }
        #expect(pages.all == plain)
        #expect(pages.counts.next + pages.counts.prev == 300 && pages == LoadedPages(plain))
        #expect(try JSONDecoder().decode(LoadedPages.self, from: JSONEncoder().encode(pages)) == pages)
    }

    @Test(arguments: [PageDirection.next, .prev])
    func `C13: pages added to a copy leave other copies unchanged`(direction: PageDirection) {
        let page = { (key: String) in LoadedPage(direction: direction, key: key, count: 1) }
        let lists = { (keys: [String]) in
            let added = keys.map(page)
            return LoadedPages(direction == .next ? [LoadedPage(count: 1)] + added : added.reversed() + [LoadedPage(count: 1)])
        }
        var first = LoadedPages([LoadedPage(count: 1)])
        first.add(page("a"), at: direction)
        var (second, third) = (first, first)
        second.add(page("b"), at: direction)
        third.add(page("c"), at: direction)
        second.add(page("d"), at: direction)
        #expect(first == lists(["a"]))
        #expect(second == lists(["a", "b", "d"]))
        #expect(third == lists(["a", "c"]))
    }

    @Test func `C13: a record keeps the keys and sizes of its pages, in both directions, after a change`() async throws {
        let fetcher = ScriptedPaginationFetcher<Int, Int>(
            .page([5, 6], nextKey: "n1", prevKey: "p1"), .page([6, 7, 8], nextKey: "n2", prevKey: "back"),
            .page([3, 4], nextKey: "forth", prevKey: "p2"))
        let cacher = GatedCacher<Int, [Int]>()
        let list = PaginationStore(cacher: cacher, fetcher: fetcher, identity: .by { $0 })[1]
        _ = try await list.requireData()
        await list.requestNextData()
        await list.requestPrevData()
        try await list.waitUntilSaved()
        let pages = [
            LoadedPage(direction: .prev, key: "p1", returnKey: "forth", count: 2), LoadedPage(count: 2),
            LoadedPage(direction: .next, key: "n1", returnKey: "back", count: 2),
        ]
        #expect(cacher.record(of: 1)?.content == [3, 4, 5, 6, 7, 8] && cacher.record(of: 1)?.pages == pages)
        await list.update { $0.removeAll { $0 == 5 } }
        #expect(cacher.record(of: 1)?.pages.map(\.count) == [2, 1, 2])
        try await list.mutate(optimistically: { $0.append(9) }) {}
        #expect(cacher.record(of: 1)?.pages.map(\.count) == [2, 1, 3])
        #expect(cacher.record(of: 1)?.pages.map(\.key) == ["p1", nil, "n1"])
    }

    @Test(arguments: [[-1, 3], [5, 5], [.max, .max], [], [0]])
    func `C13: a record with page sizes that do not fit its list loads, and changing the list does not trap`(_ sizes: [Int]) async throws {
        let cacher = MemoryCacher<Int, [Int]>()
        var record = CacheRecord(content: [1, 2], fetchedAt: Date(), nextKey: "n")
        record.pages = sizes.enumerated().map { LoadedPage(direction: $0.offset == 0 ? nil : .next, key: "k", count: $0.element) }
        await cacher.save(record, param: 1)
        let fetcher = ScriptedPaginationFetcher<Int, Int>(.page([3]))
        let list = PaginationStore(cacher: cacher, fetcher: fetcher, identity: .by { $0 })[1]
        #expect(await list.update { $0.append(9) })
        await list.update([7])
        #expect(await list.requestNextData() == .loaded)
        #expect(try await list.requireData() == [7, 3])
    }

    @Test func `C13: a record without pages, from an older format, is read as one page`() throws {
        let details =
            #"{"freshness":{"mustRevalidate":false,"storage":"allowed"},"nextKey":"n","isInvalidated":false,"loadedPages":{"next":3,"prev":0}}"#
        let text = #"{"content":[1,2],"fetchedAt":0,"details":"# + details + "}"
        let record = try JSONDecoder().decode(CacheRecord<[Int]>.self, from: Data(text.utf8))
        #expect(record.content == [1, 2] && record.nextKey == "n" && record.fields.pages == nil)
    }
}
