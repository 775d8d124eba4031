import Testing
import Trials

@testable import StoreCore

/// Tests the counting semaphore that limits exchanges and transfers.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct PermitsTests {
    private func waiting(_ permits: Permits, count: Int = 1) async throws -> [Task<Permits.Permit, any Error>] {
        let others = permits.waiterCount
        var tasks: [Task<Permits.Permit, any Error>] = []
        for number in 1...count {
            tasks.append(Task { try await permits.take() })
            try await until("\(number) tasks wait") { permits.waiterCount == others + number }
        }
        return tasks
    }

    @Test func `a released permit goes to the first waiting task`() async throws {
        let permits = Permits(2)
        let (first, second) = (try await permits.take(), try await permits.take())
        #expect(permits.takeIfFree() == nil)
        let tasks = try await waiting(permits, count: 2)
        first.release()
        first.release()
        let third = try await tasks[0].value
        #expect(permits.waiterCount == 1, "a permit is released only once")
        second.release()
        let fourth = try await tasks[1].value
        third.release()
        fourth.release()
        #expect(permits.takeIfFree() != nil, "a permit released without waiting tasks stays free")
    }

    @Test func `a permit is released when it is deallocated`() async throws {
        let permits = Permits(1)
        var permit: Permits.Permit? = try await permits.take()
        var tasks = try await waiting(permits)
        #expect(permit != nil)
        permit = nil
        _ = try await tasks[0].value
        // The task retains its result.
        tasks = []
        try await until("the second permit is deallocated") { permits.takeIfFree() != nil }
    }

    @Test func `a canceled task stops waiting and takes no permit`() async throws {
        let permits = Permits(1)
        let permit = try await permits.take()
        let task = try await waiting(permits)[0]
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(permits.waiterCount == 0)
        permit.release()
        #expect(permits.takeIfFree() != nil)
    }

    @Test func `a cancellation that races with a release loses no permit`() async throws {
        let permits = Permits(1)
        for round in 0..<500 {
            let permit = try await permits.take()
            let task = Task { try await permits.take() }
            for _ in 0..<round % 4 { await Task.yield() }
            let cancellation = Task { task.cancel() }
            permit.release()
            await cancellation.value
            _ = await task.result
        }
        #expect(permits.takeIfFree() != nil)
    }

    @Test func `the end resumes all waiting tasks, and gives out no more permits`() async throws {
        let permits = Permits(1)
        let permit = try await permits.take()
        let tasks = try await waiting(permits, count: 5)
        permits.end()
        for task in tasks { await #expect(throws: CancellationError.self) { try await task.value } }
        permit.release()
        await #expect(throws: CancellationError.self) { try await permits.take() }
        #expect(permits.takeIfFree() == nil)
    }

    @Test(arguments: [0, -1, .min]) func `there is at least one permit`(_ count: Int) {
        let permits = Permits(count)
        let permit = permits.takeIfFree()
        #expect(permit != nil && permits.takeIfFree() == nil)
    }
}
