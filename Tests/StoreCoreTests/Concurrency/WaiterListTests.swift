import Testing
import Trials

@testable import StoreCore

struct WaiterListTests {
    private func tickets(_ list: WaiterList<Int>) -> [UInt64] { list.all.map(\.ticket) }

    @Test func `waiters are ordered by ticket, even if a ticket joins late`() {
        var list = WaiterList<Int>()
        for ticket in [3, 7, 5, 1, 9] as [UInt64] { list.join(0, as: ticket) }
        #expect(tickets(list) == [1, 3, 5, 7, 9])
        #expect(list.join(0) == 10)
        #expect(list.removeFirst()?.ticket == 1)
        #expect(list.remove(5)?.ticket == 5)
        #expect(list.remove(5) == nil)
        #expect(list.remove(4) == nil && list[11] == nil)
        #expect(tickets(list) == [3, 7, 9, 10] && list.count == 4)
    }

    @Test func `the list equals a sorted array under random changes, and its storage stays in proportion`() {
        var random = SplitMix(seed: 7)
        var list = WaiterList<Int>()
        var expected: [(ticket: UInt64, tag: Int)] = []
        for step in 0..<rounds(20_000, quick: 5_000) {
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<4: expected.append((list.join(step % 5), step % 5))
            case 4..<7:
                guard let position = expected.indices.randomElement(using: &random) else { continue }
                let (ticket, tag) = expected.remove(at: position)
                #expect(list.remove(ticket)?.tag == tag)
                #expect(list.remove(ticket) == nil)
            case 7:
                #expect(list.removeFirst()?.ticket == expected.first?.ticket)
                if !expected.isEmpty { expected.removeFirst() }
            case 8 where step % 7 == 0:
                let tag = step % 5
                #expect(list.removeAll { $0 == tag }.map(\.ticket) == expected.filter { $0.tag == tag }.map(\.ticket))
                expected.removeAll { $0.tag == tag }
            default:
                guard let position = expected.indices.randomElement(using: &random) else { continue }
                expected[position].tag = step % 3
                list.setTag(step % 3, of: expected[position].ticket)
            }
            #expect(list.count == expected.count)
            #expect(list.capacity <= 8 * list.count + 256)
        }
        #expect(tickets(list) == expected.map(\.ticket))
        #expect(list.removeAll().count == expected.count && list.isEmpty && list.capacity == 0)
    }

    @Test func `a task that leaves before it suspends is not suspended`() async {
        let list = Lock(WaiterList<Int>())
        let ticket = list.withLock { $0.join(0) }
        let isResumed = await Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await WaiterList<Int>.wait { suspension in
                list.withLock { $0.suspend(ticket, suspension) }
            } onCancel: {
                list.withLock { $0.remove(ticket) }
            }
        }.value
        #expect(!isResumed)
        #expect(list.withLock { $0.isEmpty })
    }

    @Test func `a task that is taken out before it suspends is not suspended`() async {
        let list = Lock(WaiterList<Int>())
        let ticket = list.withLock { $0.join(0) }
        list.withLock { $0.removeAll() }.forEach { $0.resume() }
        let isResumed = await WaiterList<Int>.wait { suspension in
            list.withLock { $0.suspend(ticket, suspension) }
        } onCancel: {
            list.withLock { $0.remove(ticket) }
        }
        #expect(isResumed)
    }
}
