import Foundation
import StoreCore
import Testing
@testable import SyncEngine

/// Lists that never end.
struct ListLimitTests {
    private func synchronizer(
        _ list: some SourceList<Thing>, limit: Int = 1000
    ) -> OneWaySynchronizer<some SyncProcessor> {
        OneWaySynchronizer(
            processor: Endless(list: list), options: SyncOptions(listLimit: limit, retry: .never))
    }

    private struct Endless<List: SourceList<Thing>>: SyncProcessor {
        let list: List
        func sourceList() async throws -> List { list }
        func localInventory() async throws -> LocalInventory<Thing> {
            LocalInventory([LocalEntry(-1, version: 1)], order: list.order)
        }
        func downloadContent(of thing: Thing) async throws {}
        func remove(_ keys: Set<Int>) async throws { Issue.record("an endless list removed something") }
    }

    @Test(arguments: [0, 1, 7, 5000], [SourceOrder.unsorted, .sortedByKey])
    func `S17: a list that never ends is refused at its limit`(itemsInOnePage: Int, order: SourceOrder) async throws {
        let list = PagedSource<Thing, Int>(order: order) { cursor in
            let number = cursor ?? 0
            let items = (0..<itemsInOnePage).map { Thing(number * itemsInOnePage + $0) }
            return PagedSource.Step(items, then: .page(number + 1))
        }
        let error = await syncError { try await synchronizer(list).sync() }
        #expect(error?.code == .listLimit)
        #expect(error?.stage == .sourceList)
        #expect(error?.message.contains("1000") == true)
    }

    @Test func `S17: a list of exactly the limit is read`() async throws {
        let list = ListedSource((0..<1000).map { Thing($0) })
        #expect(try await synchronizer(list).plan().additions.count == 1000)
        #expect(await syncError { try await synchronizer(list, limit: 999).plan() }?.code == .listLimit)
        #expect(SyncOptions().listLimit == 1_000_000)
    }
}
