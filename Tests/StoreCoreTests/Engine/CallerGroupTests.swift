import Testing
import Trials
import StoreCoreTesting
import StoreTrials

@testable import StoreCore

/// Tests callers that wait for one key's content as a group, of which the machine sees a single caller.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct CallerGroupTests {
    private func wait(_ callerGroup: SharedResult<Int>, _ ticket: SharedResult<Int>.Ticket) -> Task<Int?, Never> {
        Task {
            await suspend {
                callerGroup.wait(ticket, $0)
            } onCancel: {
                callerGroup.leave(ticket)
            }
            return callerGroup.result
        }
    }

    // MARK: One member

    @Test func `C9: callers of a replaced key leave the fetch of the key that has replaced it`() async throws {
        let bench = Bench()
        bench.fetcher.hold()
        let callers = [1, 2].map { key in Task { [handle = bench.store[key]] in try await handle.requireData() } }
        for key in [1, 2] { try await bench.callers(1, of: key) }
        bench.store.engine.replaceKey(BoxedKey(1), with: BoxedKey(2), unlessShown: false)
        #expect(bench.registered(2) == 2)
        callers[0].cancel()
        try await until("the caller has left") { bench.registered(2) == 1 }
        bench.fetcher.release()
        _ = try await callers[1].value
    }

    enum Moment: CaseIterable, Sendable { case beforeWaiting, whileWaiting, endedBeforeWaiting, endedWhileWaiting }

    @Test(arguments: Moment.allCases)
    func `C9: a caller of a group gets one result, whenever it is canceled`(_ moment: Moment) async throws {
        let callerGroup = SharedResult<Int>()
        let (ticket, other) = (callerGroup.join(), callerGroup.join())
        let stays = wait(callerGroup, other)
        try await until("the other waits") { callerGroup.suspendedCount == 1 }
        switch moment {
        case .beforeWaiting:
            callerGroup.leave(ticket)
            #expect(await wait(callerGroup, ticket).value == nil)
            callerGroup.put(7)
        case .whileWaiting:
            let member = wait(callerGroup, ticket)
            try await until("both wait") { callerGroup.suspendedCount == 2 }
            member.cancel()
            #expect(await member.value == nil)
            #expect(callerGroup.count == 1)
            callerGroup.put(7)
        case .endedBeforeWaiting:
            callerGroup.put(7)
            callerGroup.leave(ticket)
            #expect(await wait(callerGroup, ticket).value == 7)
        case .endedWhileWaiting:
            let member = wait(callerGroup, ticket)
            try await until("both wait") { callerGroup.suspendedCount == 2 }
            callerGroup.put(7)
            member.cancel()
            #expect(await member.value == 7)
        }
        #expect(await stays.value == 7)
    }

    @Test func `C9: a group reports that it is empty only after its last caller has left`() {
        let emptied = Lock(0)
        let callerGroup = SharedResult<Int> { _ in emptied.withLock { $0 += 1 } }
        let tickets = (0..<4).map { _ in callerGroup.join() }
        for ticket in tickets.dropLast() { callerGroup.leave(ticket) }
        // A caller leaves only once.
        callerGroup.leave(tickets[0])
        #expect(callerGroup.count == 1)
        #expect(emptied.withLock { $0 } == 0)
        callerGroup.leave(tickets[3])
        #expect(callerGroup.count == 0)
        #expect(emptied.withLock { $0 } == 1)
        // A caller that leaves after the result does not report an empty group.
        let ended = SharedResult<Int> { _ in emptied.withLock { $0 += 1 } }
        let ticket = ended.join()
        ended.put(7)
        ended.leave(ticket)
        #expect(emptied.withLock { $0 } == 1)
    }

    @Test func `C15: callers that come and go leave nothing behind`() async throws {
        let bench = Bench()
        let stays = try await bench.heldCaller()
        var last: Task<Int, any Error>?
        for _ in 0..<Cycles.count / 50 {
            // Each caller arrives before the previous one leaves.
            let next = Task { [handle = bench.store[1]] in try await handle.requireData() }
            try await bench.callers(last == nil ? 2 : 3)
            last?.cancel()
            _ = await last?.result
            last = next
        }
        #expect(try #require(bench.store.callerGroup(1)).capacity <= 160)
        last?.cancel()
        _ = await last?.result
        bench.fetcher.release()
        #expect(try await stays.value == 1)
        #expect(bench.fetcher.startedCount == 1)
        try await bench.idle()
    }

    // MARK: In the store

    @Test(arguments: Backing.allCases, [StorePolicy.UnwantedFetch.cancel(after: .zero), .cancel(after: .seconds(1)), .complete])
    func `C9: a caller that arrives while the last one of a group leaves gets its content`(
        _ backing: Backing, _ unwanted: StorePolicy.UnwantedFetch
    ) async throws {
        let bench = Bench(backing, policy: StorePolicy(unwantedFetch: unwanted))
        for round in 1...100 {
            bench.fetcher.hold()
            if backing != .memory { bench.cacher.hold(.load) }
            let leaves = Task { [handle = bench.store[1]] in try await handle.requireData() }
            if round % 4 != 0 { try await bench.callers(1) }
            let comes = Task { [handle = bench.store[1]] in try await handle.requireData() }
            for _ in 0..<round % 3 { await Task.yield() }
            leaves.cancel()
            for _ in 0..<round % 5 { await Task.yield() }
            bench.cacher.release()
            bench.fetcher.release()
            let content = try await comes.value
            #expect(["\(content)", "CancellationError"].contains(await leaves.outcome))
            try await bench.store.clear()
        }
        try await bench.idle()
        try await until("no fetch runs") { bench.fetcher.runningCount == 0 }
    }

    @Test(arguments: Backing.allCases)
    func `C1, C9: a group that leaves at once leaves no key live, and the next caller starts a new fetch`(_ backing: Backing)
        async throws
    {
        let bench = Bench(backing, policy: StorePolicy(unwantedFetch: .cancel(after: .zero)))
        for round in 1...10 {
            bench.fetcher.hold()
            let callerGroup = (0..<50).map { _ in Task { [handle = bench.store[1]] in try await handle.requireData() } }
            try await bench.callers(50)
            try await bench.fetcher.started(count: 2 * round - 1)
            for member in callerGroup { member.cancel() }
            for member in callerGroup { #expect(await member.outcome == "CancellationError") }
            try await bench.idle()
            let next = Task { [handle = bench.store[1]] in try await handle.requireData() }
            try await bench.fetcher.started(count: 2 * round)
            bench.fetcher.release()
            #expect(try await next.value == 2 * round)
            await bench.store[1].clear()
        }
        try await bench.fetcher.cancelled(count: 10)
        #expect(bench.fetcher.cancelledCount == 10)
    }

    @Test func `C9: a group that a caller joins after its last one left stays`() async throws {
        let bench = Bench()
        let leaves = try await bench.heldCaller()
        let callerGroup = try #require(bench.store.callerGroup(1))
        let id = bench.store.engine.state.withLock { $0.live[BoxedKey(1)]?.value.callerGroup?.id } ?? 0
        // The last caller has left. A new one arrives before the engine is notified.
        #expect(callerGroup.remove(1))
        #expect(await leaves.outcome == "CancellationError")
        let comes = try await bench.waitingCaller()
        bench.store.engine.removeEmptyGroup(callerGroup, id, of: BoxedKey(1))
        #expect(bench.store.callerGroup(1) === callerGroup)
        try await bench.fetcher.started(count: 1)
        bench.time.advance(by: .seconds(10))
        bench.fetcher.release()
        #expect(try await comes.value == 1)
        #expect(bench.fetcher.cancelledCount == 0)
        // A late notification about a finished group does not affect the next one.
        await bench.store[1].clear()
        let next = try await bench.heldCaller()
        bench.store.engine.removeEmptyGroup(callerGroup, id, of: BoxedKey(1))
        try await bench.fetcher.started(count: 2)
        bench.fetcher.release()
        #expect(try await next.value == 2)
    }

    @Test(arguments: Backing.allCases)
    func `C5: a caller that arrives after a group finished does not get its result`(_ backing: Backing) async throws {
        let bench = Bench(backing)
        let handle = bench.store[1]
        // Before the observer: its fetch may begin at once.
        bench.fetcher.hold()
        let observer = RecordingObserver(handle.publish())
        for epoch in 1...5 {
            bench.fetcher.hold()
            // The observer keeps the key live and wants each fetch.
            if epoch > 1 { await handle.invalidate() }
            try await bench.fetcher.started(count: epoch)
            let callerGroup = (0..<3).map { _ in Task { try await handle.requireData() } }
            try await bench.callers(3)
            bench.fetcher.release()
            for member in callerGroup { #expect(try await member.value == epoch) }
            #expect(bench.store.callerGroup(1) == nil)
        }
        try await observer.next { $0.content == 5 }
    }

    enum Event: CaseIterable, Sendable {
        case clear, clearAll, invalidate, update, setToNothing, refresh, origin, cached, failure, mutation, failedMutation
    }

    /// Events during the wait must have the same effect on a group as on callers that the machine knows individually.
    @Test(arguments: Backing.allCases, Event.allCases)
    func `C1, C5: a caller in a group gets the result that it would get alone`(_ backing: Backing, _ event: Event) async throws {
        let together = try await story(backing, event, reports: false)
        let alone = try await story(backing, event, reports: true)
        #expect(together == alone)
    }

    private struct Story: Equatable {
        var outcomes: [String]
        var fetches: Int
    }

    private func story(_ backing: Backing, _ event: Event, reports: Bool) async throws -> Story {
        let bench = Bench(backing, expiry: .after(.seconds(10)), reports: reports)
        let handle = bench.store[1]
        // The content has expired, but a mutation needs some to change.
        await handle.update(100)
        try await bench.idle()
        bench.time.advance(by: .seconds(11))
        bench.cacher.hold(.load)
        bench.fetcher.hold()
        func join() -> Task<Int, any Error> { Task { try await handle.requireData() } }
        var callerGroup = (0..<3).map { _ in join() }
        try await bench.callers(3)
        callerGroup[0].cancel()
        _ = await callerGroup[0].result
        bench.cacher.release()
        // The group formed before the cache was read, and now waits for the fetch.
        try await bench.fetcher.started(count: 1)
        callerGroup.append(join())
        try await bench.callers(3)
        var beside: Task<Void, any Error>?
        var endsCallerGroup = false
        var begins = 1
        switch event {
        case .clear: (beside, begins) = (Task { await handle.clear() }, 2)
        case .clearAll: (beside, begins) = (Task { [store = bench.store] in try await store.clear() }, 2)
        case .invalidate: (beside, begins) = (Task { await handle.invalidate() }, 2)
        case .setToNothing: (beside, begins) = (Task { await handle.update(nil) }, 2)
        case .update: (beside, endsCallerGroup) = (Task { await handle.update(50) }, true)
        case .refresh, .origin:
            beside = Task { if event == .refresh { await handle.refresh() } else { _ = await handle.getData(from: .origin) } }
            try await bench.callers(4)
        case .cached: beside = Task { _ = await handle.getData(from: .cache) }
        case .failure:
            try await bench.fetcher.answer(1, with: .failure(Offline()))
            endsCallerGroup = true
        case .mutation, .failedMutation:
            beside = Task {
                try await handle.mutate {
                    $0 += 1_000
                } perform: {
                    try await bench.fetcher.started(count: 2)
                    if event == .failedMutation { throw Offline() }
                }
            }
            // The patch takes an epoch, and so does its confirmation.
            begins = event == .mutation ? 3 : 2
        }
        try await bench.fetcher.started(count: begins)
        if endsCallerGroup {
            for member in callerGroup { _ = await member.result }
        } else {
            let waitsForFetch = event == .refresh || event == .origin
            if !waitsForFetch { _ = await beside?.result }
            callerGroup.append(join())
            try await bench.callers(waitsForFetch ? 5 : 4)
        }
        bench.fetcher.release()
        var story = Story(outcomes: [], fetches: 0)
        for member in callerGroup { story.outcomes.append(await member.outcome) }
        _ = await beside?.result
        try await bench.idle()
        story.fetches = bench.fetcher.startedCount
        return story
    }

    @Test func `C9: a group is resumed in the order of arrival`() async throws {
        let bench = Bench()
        let line = QueueExecutor()
        let order = WatchedState<[Int]>([])
        bench.fetcher.hold()
        var callerGroup: [Task<Void, any Error>] = []
        for number in 0..<100 {
            callerGroup.append(
                Task(executorPreference: line) { [handle = bench.store[1]] in
                    _ = try await handle.requireData()
                    order.update { $0.append(number) }
                })
            try await until("\(number + 1) callers wait") { bench.store.callerGroup(1)?.suspendedCount == number + 1 }
        }
        bench.fetcher.release()
        for member in callerGroup { try await member.value }
        #expect(order.current == Array(0..<100))
    }
}
