import StoreCore
import StoreCoreTesting
import Testing
import Trials

/// Tests the failures of waits with conditions that are never met.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct TimeoutTests {
    let feed = ManualStates<Int>(.loading(content: nil))
    let fetcher = ScriptedFetcher<Int, Int>(.success(1))
    let time = ManualTime()
    let events = EventRecorder<Int>()

    /// Runs a wait with a short timeout and returns its error.
    private func failure(_ wait: (Duration) async throws -> Void) async throws -> StoreError {
        let error = try #require(await #expect(throws: StoreError.self) { try await wait(.milliseconds(1)) })
        #expect(error.code == .waitTimedOut)
        return error
    }

    @Test func `the timeout of a recorder's wait names its line and lists the states in order`() async throws {
        let recorder = RecordingObserver(feed.sequence)
        try await feed.taken(by: 1)
        feed.send(.completed(content: 1, next: .loading, prev: .none))
        try await feed.taken(by: 1)
        let line = #line + 1
        let error = try await failure { try await recorder.next(timeout: $0) { $0.error != nil } }
        #expect(
            error.message == """
                waiting for a matching state behind state 0 at StoreCoreTestingTests/TimeoutTests.swift:\(line): \
                nothing matched within 1 ms; so far:
                  1. loading(nil)
                  2. completed(1,next:loading)
                """)
    }

    @Test func `the description of a time-out has one line for each state, and no line break of a state`() async throws {
        let texts = ManualStates<String>(.completed("two\nlines"))
        let recorder = RecordingObserver(texts.sequence)
        try await texts.taken(by: 1)
        let error = try await failure { try await recorder.next(timeout: $0) { $0.error != nil } }
        #expect(error.description.split(separator: "\n").count == 2)
        #expect(error.description.hasSuffix("so far:\n  1. completed(two\\u{A}lines)"), "\(error)")
    }

    @Test(arguments: [RetryPolicy.exponential(attempts: .max), RetryPolicy(attempts: .max) { _ in true }])
    func `a forgotten response fails the call at once, whatever the retry policy`(retry: RetryPolicy) async throws {
        let fetcher = ScriptedFetcher<Int, Int>()
        let store = Store(cacher: MemoryCacher(), fetcher: fetcher, policy: StorePolicy(retry: retry), time: time)
        let error = await #expect(throws: StoreError.self) { try await store[1].requireData() }
        #expect(error?.code == .unscriptedRequest)
        #expect(fetcher.startedCount == 1)
        let waiting = try await failure { try await fetcher.started(count: 2, timeout: $0) }
        #expect(waiting.message.hasSuffix("so far:\n  1. content of 1, failed, because the script had no answer left"))
    }

    @Test func `every wait of the kit times out and names its own line`() async throws {
        let recorder = RecordingObserver(feed.sequence)
        try await feed.taken(by: 1)
        fetcher.hold()
        let store = Store(cacher: MemoryCacher<Int, Int>(), fetcher: fetcher, onEvent: events.record)
        let caller = Task { try await store[1].requireData() }
        try await fetcher.started(count: 1)
        try await events.recorded(count: 2) { _ in true }
        let sleeper = Task { [time] in try await time.sleep(until: time.now.advanced(by: .seconds(5))) }
        try await time.sleepers(atLeast: 1)
        let first = #line + 2
        let errors = [
            try await failure { _ = try await recorder.states(count: 2, timeout: $0) },
            try await failure { try await recorder.wait(timeout: $0) { $0.count == 2 } },
            try await failure { try await recorder.ended(timeout: $0) },
            try await failure { try await feed.observers(count: 2, timeout: $0) },
            try await failure { try await feed.taken(by: 2, timeout: $0) },
            try await failure { try await time.sleepers(atLeast: 2, timeout: $0) },
            try await failure { try await time.sleepers(atMost: 0, timeout: $0) },
            try await failure { try await fetcher.started(count: 2, timeout: $0) },
            try await failure { try await fetcher.ended(count: 1, timeout: $0) },
            try await failure { try await fetcher.cancelled(count: 1, timeout: $0) },
            try await failure { try await fetcher.release(next: 2, timeout: $0) },
            try await failure { try await fetcher.answer(2, with: .success(2), timeout: $0) },
            try await failure { try await events.joined(count: 1, timeout: $0) },
            try await failure { try await events.recorded(timeout: $0) { $0.param == 2 } },
        ]
        for (offset, error) in errors.enumerated() {
            #expect(error.message.contains("at StoreCoreTestingTests/TimeoutTests.swift:\(first + offset): "))
        }
        #expect(errors[3].message.hasSuffix("so far:\n  1. current state: loading(nil)\n  2. observer 1 waits for the next state"))
        #expect(errors[5].message.hasSuffix("so far:\n  1. a task sleeps for another 5 s"))
        #expect(errors[7].message.hasSuffix("so far:\n  1. content of 1, held"))
        #expect(errors[12].message.hasSuffix("so far:\n  1. #1 1: miss\n  2. #2 1: fetch of content began"))
        fetcher.release()
        _ = try await caller.value
        let last = try await failure { try await fetcher.answerNext(with: .success(2), timeout: $0) }
        #expect(last.message.hasSuffix("so far:\n  1. content of 1, ended"))
        sleeper.cancel()
    }

    @Test func `a timeout covers the whole wait, however many states arrive`() async throws {
        let recorder = RecordingObserver(feed.sequence)
        let sender = Task { [feed] in
            var number = 0
            while !Task.isCancelled {
                number += 1
                feed.send(.completed(number))
                await Task.yield()
            }
        }
        let error = try await failure { try await recorder.next(timeout: $0) { $0.error != nil } }
        sender.cancel()
        #expect(error.code == .waitTimedOut)
    }

    @Test func `a long history is cut to its newest hundred states`() async throws {
        let recorder = RecordingObserver(feed.sequence)
        for number in 1...120 {
            try await feed.taken(by: 1)
            feed.send(.completed(number))
        }
        _ = try await recorder.states(count: 121)
        let error = try await failure { try await recorder.next(timeout: $0) { _ in true } }
        #expect(error.message.contains("so far:\n  (21 earlier)\n  22. completed(21)\n"))
        #expect(error.message.hasSuffix("\n  121. completed(120)"))
    }

    @Test func `C9: a canceled wait throws the cancellation, not a timeout`() async throws {
        let waiter = Task { [time] in try await time.sleepers(atLeast: 1) }
        waiter.cancel()
        await #expect(throws: CancellationError.self) { try await waiter.value }
    }
}

/// Tests the order of waits and states, and waiting for callers that join a fetch.
@Suite(.timeLimit(.minutes(hangMinutes)))
struct PositionTests {
    let feed = ManualStates<Int>(.loading(content: nil))

    @Test func `a wait does not match the state that the previous wait matched`() async throws {
        let recorder = RecordingObserver(feed.sequence)
        try await feed.taken(by: 1)
        feed.send(.completed(1))
        #expect(try await recorder.next { $0.isCompleted } == .completed(1))
        await #expect(throws: StoreError.self) { try await recorder.next(timeout: .milliseconds(1)) { $0.isCompleted } }
        feed.send(.completed(1))
        #expect(try await recorder.next { $0.isCompleted } == .completed(1))
    }

    @Test func `a wait finds a state that came between two waits`() async throws {
        let recorder = RecordingObserver(feed.sequence)
        try await feed.taken(by: 1)
        feed.send(.completed(1))
        try await feed.taken(by: 1)
        feed.send(.completed(2))
        try await feed.taken(by: 1)
        try await recorder.next { $0 == .completed(1) }
        #expect(try await recorder.next { $0.isCompleted } == .completed(2))
        #expect(recorder.states.first { $0.isCompleted } == .completed(1))
    }

    @Test(arguments: [true, false])
    func `waiting for a count or a history moves the position too`(counts: Bool) async throws {
        let recorder = RecordingObserver(feed.sequence)
        try await feed.taken(by: 1)
        feed.send(.completed(1))
        try await feed.taken(by: 1)
        if counts { _ = try await recorder.states(count: 2) } else { try await recorder.wait { $0.contains { $0.isCompleted } } }
        feed.send(.completed(2))
        #expect(try await recorder.next { $0.isCompleted } == .completed(2))
    }

    @Test func `C1: a test can wait until a hundred callers have joined a fetch`() async throws {
        let fetcher = ScriptedFetcher<Int, Int>(.success(7))
        let events = EventRecorder<Int>()
        let store = Store(cacher: MemoryCacher<Int, Int>(), fetcher: fetcher, onEvent: events.record)
        fetcher.hold()
        let callers = (1...101).map { _ in Task { try await store[1].requireData() } }
        try await events.joined(count: 100, param: 1)
        await #expect(throws: StoreError.self) { try await events.joined(count: 101, timeout: .milliseconds(1)) }
        await #expect(throws: StoreError.self) { try await events.joined(count: 1, param: 2, timeout: .milliseconds(1)) }
        fetcher.release()
        for caller in callers { #expect(try await caller.value == 7) }
        #expect(fetcher.startedCount == 1)
        // Each event is delivered after its transition.
        try await until("the events have no gap") {
            let numbers = events.events.map(\.number)
            return numbers == Array(1...UInt64(numbers.count))
        }
    }

    @Test func `C13: a test can wait until a second request has joined a page load`() async throws {
        let fetcher = ScriptedPaginationFetcher<Int, Int>(.page([1], nextKey: "b"))
        let events = EventRecorder<Int>()
        let lists = PaginationStore(cacher: MemoryCacher<Int, [Int]>(), fetcher: fetcher, onEvent: events.record)
        _ = try await lists[1].requireData()
        fetcher.hold()
        async let first = lists[1].requestNextData()
        try await fetcher.started(count: 2)
        async let second = lists[1].requestNextData()
        try await events.joined(count: 1)
        try await fetcher.answerNext(with: .page([2]))
        #expect(await [first, second] == [.loaded, .joined])
    }

    @Test func `a timeout of any length does not trap`() async throws {
        let states = ManualStates<Int>(.completed(1))
        for timeout in [Duration.seconds(Int64.max), .seconds(-1), .seconds(Int64.min)] {
            let observer = RecordingObserver(states.sequence)
            if timeout > .zero {
                try await observer.next(timeout: timeout) { $0.isCompleted }
                let task = Task { try await observer.next(timeout: timeout) { $0.isLoading } }
                for _ in 0..<1000 { await Task.yield() }
                task.cancel()
                await #expect(throws: CancellationError.self) { try await task.value }
            } else {
                await #expect(throws: StoreError.self) { try await observer.next(timeout: timeout) { $0.isLoading } }
            }
        }
    }
}
