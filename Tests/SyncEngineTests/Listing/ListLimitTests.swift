import Foundation
import StoreCore
import Testing
@testable import SyncEngine

/// Lists that never end.
struct ListLimitTests {
    @Test(arguments: [0, 1, 7, 5000], [SourceOrder.unsorted, .sortedByKey])
    func `S17: a list that never ends is refused at its limit`(itemsInOnePage: Int, order: SourceOrder) async throws {
        let list = PagedSource<Thing, Int>(order: order) { cursor in
            let number = cursor ?? 0
            let items = (0..<itemsInOnePage).map { Thing(number * itemsInOnePage + $0) }
            return PagedSource.Step(items, then: .page(number + 1))
        }
        let items = LocalItems(list, versions: [-1: 1])
        let options = SyncOptions(listLimit: 1000, retry: .never)
        let error = await syncError { try await OneWaySynchronizer(processor: items, options: options).sync() }
        #expect((error?.code, error?.stage) == (.listLimit, .sourceList))
        #expect(error?.message.contains("1000") == true)
        #expect(items.versions.current == [-1: 1])
    }

    /// The same bytes again and again, far beyond the limit: a reader without a limit fails instead of reading forever.
    private struct Pieces: AsyncSequence, AsyncIteratorProtocol, Sendable {
        var piece: Data
        var rest = 100
        func makeAsyncIterator() -> Pieces { self }
        mutating func next() async -> Data? {
            guard rest > 0 else { return nil }
            rest -= 1
            return piece
        }
    }

    @Test(arguments: ["items", "blanks"])
    func `S17: a list in bytes that never ends is refused at its size`(what: String) async throws {
        let items = String(repeating: #"{"path":"\#(String(repeating: "a", count: 990))","version":"1"}"# + "\n", count: 100)
        let pieces = Pieces(piece: what == "items" ? Data(items.utf8) : Data(repeating: 0x20, count: 100_000))
        var list = StreamedSource<ListedFile> { ListBytes(pieces, length: nil) }
        #expect(list.byteLimit == 1 << 30)
        list.byteLimit = 1_000_000
        var reader = list.makeReader()
        let error = await syncError { while try await reader.next() != nil {} }
        #expect(error?.code == .listLimit)
        #expect(error?.message.contains("1000000 bytes") == true)
    }

    @Test func `S17: a list of exactly the limit is read`() async throws {
        let items = LocalItems(ListedSource((0..<1000).map { Thing($0) }))
        func plan(_ limit: Int) async throws -> SyncPlan<Thing> {
            try await OneWaySynchronizer(processor: items, options: SyncOptions(listLimit: limit, retry: .never)).plan()
        }
        #expect(try await plan(1000).additions.count == 1000)
        #expect(await syncError { try await plan(999) }?.code == .listLimit)
    }
}
