import Testing
import Trials
import StoreCoreTesting

@testable import StoreCore

@Suite(.timeLimit(.minutes(hangMinutes)))
struct JointRequestTests {
    private let running = WatchedState(0)
    private let request = JointRequest()

    private func scope() -> FetchScope { FetchScope(FetchedKey(0), .one(running)) }

    @Test func `C1, C21: a fetch cannot join a request that waits for it, nor wait for a member of it`() async throws {
        let (first, second) = (scope(), scope())
        let (hasJoined, isWaiting) = (WatchedState<Bool?>(nil), WatchedState<Bool?>(nil))
        let (mayLeave, mayEnd) = (WatchedState(false), WatchedState(false))
        let fetch = Task {
            await first.run {
                let member = try? request.join()
                hasJoined.update { $0 = member != nil }
                try? await mayLeave.wait { $0 ? () : nil }
                member?.leave()
            }
        }
        #expect(try await hasJoined.wait { $0 })
        let task = request.start {
            let wait = FetchScope.active.map { FetchWait($0) }
            isWaiting.update { $0 = wait?.begin(awaiting: second.key) }
            try? await mayEnd.wait { $0 ? () : nil }
            wait?.end()
        }
        #expect(try await isWaiting.wait { $0 })
        let refusal = await second.run { Result { _ = try request.join() } }
        #expect(throws: StoreError.self) { try refusal.get() }
        // The first fetch waits for the second one through the request.
        let wait = FetchWait(second)
        #expect(!wait.begin(awaiting: first.key))
        mayLeave.update { $0 = true }
        await fetch.value
        #expect(wait.begin(awaiting: first.key))
        mayEnd.update { $0 = true }
        await task.value
        let late = await scope().run { Result { _ = try request.join() } }
        #expect(throws: Never.self) { try late.get() }
    }

    @Test func `C23: a request counts once for each store with a member, until it has ended`() async throws {
        let other = WatchedState(0)
        let scopes = [scope(), scope(), FetchScope(FetchedKey(0), .one(other))]
        let mayEnd = WatchedState(false)
        var members: [JointRequest.Member] = []
        for scope in scopes { members.append(try await scope.run { Result { try request.join() } }.get()) }
        // A fetch that has left before the start does not count.
        members.removeLast()
        let task = request.start { try? await mayEnd.wait { $0 ? () : nil } }
        #expect(running.current == 3 && other.current == 1)
        for member in members { member.leave() }
        for scope in scopes { scope.work.end() }
        #expect(running.current == 1 && other.current == 0)
        mayEnd.update { $0 = true }
        await task.value
        try await until("the request has ended") { running.current == 0 }
    }

    @Test func `C21: a fetch without a store may join, and an unused request leaves nothing behind`() async throws {
        let member = try request.join()
        await request.start {}.value
        member.leave()
        weak var unused: JointRequest?
        do {
            let request = JointRequest()
            unused = request
            _ = try await scope().run { Result { try request.join() } }.get()
        }
        #expect(unused == nil)
    }
}
