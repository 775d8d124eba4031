import Testing

@testable import StoreCore

struct IdleIndexesTests {
    private final class Index {}

    private func details(_ key: String) throws -> RecordDetails { try #require(RecordDetails(.init(nextKey: key))) }

    @Test func `C13: the index of one list is never used for another list`() throws {
        var idle = IdleIndexes<Int>()
        var leftovers: [any Sendable] = []
        let (index, mine, others) = (Index(), try details("n"), try details("n"))
        idle.keep(index, of: 1, mine, &leftovers)
        #expect(idle.take(2, mine, &leftovers) == nil)
        #expect(idle.take(1, mine, &leftovers) === index)
        #expect(idle.take(1, mine, &leftovers) == nil, "an index is handed out only once")
        idle.keep(index, of: 1, mine, &leftovers)
        #expect(idle.take(1, others, &leftovers) == nil, "a list with equal contents is another list")
        #expect(idle.count == 0)
        idle.keep(index, of: 1, mine, &leftovers)
        idle.keep(nil, of: 1, mine, &leftovers)
        #expect(idle.take(1, mine, &leftovers) == nil, "a list that became idle without an index has none")
    }

    @Test func `C15: only the lists that became idle last keep an index`() throws {
        var idle = IdleIndexes<Int>()
        var leftovers: [any Sendable] = []
        let mine = try details("n")
        for param in 0..<100 { idle.keep(Index(), of: param, mine, &leftovers) }
        #expect(idle.count == 4)
        #expect((0..<96).allSatisfy { idle.take($0, mine, &leftovers) == nil })
        #expect((96..<100).allSatisfy { idle.take($0, mine, &leftovers) != nil })
    }
}
