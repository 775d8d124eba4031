import StoreCore
import Testing

@testable import TextStore

/// T15: requests to one host wait in order.
struct FetchQueueTests {
    private let queue = FetchQueue(width: 2)

    @Test func `T15: requests beyond the width wait in order, separately for each host`() async throws {
        try await queue.enter("a")
        try await queue.enter("a")
        // Another host has its own permits.
        try await queue.enter("b")
        let entered = WatchedState<[Int]>([])
        var waiting: [Task<Void, any Error>] = []
        for number in 1...3 {
            waiting.append(
                Task { [queue] in
                    try await queue.enter("a")
                    entered.update { $0.append(number) }
                })
            try await queue.state.wait { $0.waiting["a"]?.count == number ? () : nil }
        }
        for number in 1...3 {
            #expect(entered.current == Array(1..<number))
            queue.leave("a")
            try await entered.wait { $0.count == number ? () : nil }
        }
        #expect(entered.current == [1, 2, 3])
        for task in waiting { try await task.value }
    }

    @Test func `T15: a canceled waiter takes no permit, and all permits are returned`() async throws {
        for _ in 0..<2 { try await queue.enter("a") }
        let canceled = Task { [queue] in try await queue.enter("a") }
        try await queue.state.wait { $0.waiting["a"]?.count == 1 ? () : nil }
        canceled.cancel()
        await #expect(throws: CancellationError.self) { try await canceled.value }
        #expect(queue.state.read { $0.waiting["a"]?.isEmpty } == true)
        // The cancellation races with the release of the permit; neither order loses one.
        for _ in 0..<200 {
            let waiter = Task { [queue] in
                try await queue.enter("a")
                queue.leave("a")
            }
            try await queue.state.wait { ($0.waiting["a"]?.isEmpty ?? true) ? nil : () }
            async let freed: Void = queue.leave("a")
            waiter.cancel()
            await freed
            _ = await waiter.result
            try await queue.enter("a")
        }
        for _ in 0..<2 { queue.leave("a") }
        #expect(queue.state.read { $0.running.isEmpty && $0.admitted.isEmpty && $0.waiting.isEmpty })
    }
}
