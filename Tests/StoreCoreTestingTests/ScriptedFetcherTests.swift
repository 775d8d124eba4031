import StoreCore
import StoreCoreTesting
import StoreTrials
import Testing
import Trials

@Suite(.timeLimit(.minutes(hangMinutes)))
struct ScriptedFetcherTests {
    typealias Fetcher = ScriptedFetcher<Int, String>

    // MARK: Results

    @Test func `results follow the order of the script, and requests are recorded with number, key and validator`() async throws {
        let fetcher = Fetcher(.success("a"), .failure(Offline()), .notModified(.fresh(for: .seconds(1))))
        let tag = Validator(entityTag: "\"1\"")
        #expect(try await fetcher.fetch(param: 7, revalidating: nil) == .modified("a"))
        await #expect(throws: Offline.self) { try await fetcher.fetch(param: 8, revalidating: nil) }
        #expect(try await fetcher.fetch(param: 7, revalidating: tag) == .notModified(.fresh(for: .seconds(1))))
        fetcher.enqueue(.success("b", freshness: .fresh(for: .seconds(2)), validator: tag), .success("c"))
        #expect(try await fetcher.fetch(param: 9, revalidating: nil) == .modified("b", .fresh(for: .seconds(2)), tag))
        #expect(try await fetcher.fetch(param: 5, revalidating: nil) == .modified("c"))
        #expect(fetcher.requests.map(\.number) == [1, 2, 3, 4, 5])
        #expect(fetcher.requests.map(\.param) == [7, 8, 7, 9, 5])
        #expect(fetcher.requests.map(\.validator) == [nil, nil, tag, nil, nil])
        #expect(fetcher.requests.allSatisfy { $0.direction == nil && $0.pageKey == nil })
    }

    @Test func `the closure is called when the script is used up`() async throws {
        let fetcher = Fetcher { request in
            if request.param < 0 { throw Offline() }
            return .success("\(request.param)#\(request.number)")
        }
        fetcher.enqueue(.success("scripted"))
        #expect(try await fetcher.fetch(param: 5, revalidating: nil) == .modified("scripted"))
        #expect(try await fetcher.fetch(param: 5, revalidating: nil) == .modified("5#2"))
        await #expect(throws: Offline.self) { try await fetcher.fetch(param: -1, revalidating: nil) }
        #expect(fetcher.endedCount == 3)
    }

    @Test func `the error for an unscripted fetch names the remedy`() async throws {
        let fetcher = Fetcher()
        let error = await #expect(throws: StoreError.self) { try await fetcher.fetch(param: 5, revalidating: nil) }
        #expect(error?.code == .unscriptedRequest)
        #expect(error?.description.contains("fetch 1") == true && error?.description.contains("enqueue") == true)
        #expect((fetcher.startedCount, fetcher.endedCount, fetcher.runningCount) == (1, 1, 0))
    }

    // MARK: The gate

    @Test func `a held fetch has begun and waits until the gate opens`() async throws {
        let fetcher = Fetcher()
        fetcher.hold()
        let fetches = (0..<3).map { number in Task { try await fetcher.fetch(param: number, revalidating: nil) } }
        try await fetcher.started(count: 3)
        #expect((fetcher.heldCount, fetcher.runningCount, fetcher.endedCount) == (3, 3, 0))
        fetcher.enqueue(.success("first"), .success("second"), .success("third"))
        fetcher.release()
        var answers: [Int: FetchResult<String>] = [:]
        for (number, fetch) in fetches.enumerated() { answers[number] = try await fetch.value }
        // Results are assigned in the order in which the fetches began.
        #expect(fetcher.requests.map { answers[$0.param] } == [.modified("first"), .modified("second"), .modified("third")])
        #expect((fetcher.heldCount, fetcher.runningCount, fetcher.endedCount) == (0, 0, 3))
        fetcher.enqueue(.success("fourth"))
        #expect(try await fetcher.fetch(param: 9, revalidating: nil) == .modified("fourth"))
    }

    @Test func `fetches are released one by one while the gate stays closed`() async throws {
        let fetcher = Fetcher(.success("a"), .success("b"))
        fetcher.hold()
        let first = try await held(fetcher, number: 1)
        let second = try await held(fetcher, number: 2)
        try await fetcher.release(next: 1)
        #expect(try await first.value == .modified("a"))
        #expect(fetcher.heldCount == 1)
        try await fetcher.release(next: 1)
        #expect(try await second.value == .modified("b"))
    }

    @Test func `held fetches can be completed out of order`() async throws {
        let fetcher = Fetcher()
        fetcher.hold()
        let first = try await held(fetcher, number: 1)
        let second = try await held(fetcher, number: 2)
        let third = try await held(fetcher, number: 3)
        try await fetcher.answer(2, with: .success("two"))
        #expect(try await second.value == .modified("two"))
        try await fetcher.answerNext(with: .failure(Offline()))
        await #expect(throws: Offline.self) { try await first.value }
        try await fetcher.answerNext(with: .success("three"))
        #expect(try await third.value == .modified("three"))
    }

    @Test func `completing waits for a fetch that has not begun`() async throws {
        let fetcher = Fetcher()
        fetcher.hold()
        async let next: Void = fetcher.answerNext(with: .success("one"))
        #expect(try await fetcher.fetch(param: 1, revalidating: nil) == .modified("one"))
        try await next
        async let second: Void = fetcher.answer(2, with: .success("two"))
        #expect(try await fetcher.fetch(param: 1, revalidating: nil) == .modified("two"))
        try await second
        fetcher.enqueue(.success("three"))
        async let third: Void = fetcher.release(next: 1)
        #expect(try await fetcher.fetch(param: 1, revalidating: nil) == .modified("three"))
        try await third
    }

    @Test func `completing a fetch that has left the gate is an error`() async throws {
        let fetcher = Fetcher(.success("a"))
        _ = try await fetcher.fetch(param: 1, revalidating: nil)
        let error = await #expect(throws: StoreError.self) { try await fetcher.answer(1, with: .success("late")) }
        #expect(error?.code == .notHeld)
    }

    // MARK: Cancellation

    @Test func `C9: a held fetch ends at once when it is canceled, and consumes no scripted result`() async throws {
        let fetcher = Fetcher(.success("a"))
        fetcher.hold()
        let fetch = try await held(fetcher, number: 1)
        fetch.cancel()
        try await fetcher.cancelled(count: 1)
        await #expect(throws: CancellationError.self) { try await fetch.value }
        #expect((fetcher.cancelledCount, fetcher.endedCount, fetcher.heldCount) == (1, 1, 0))
        fetcher.release()
        #expect(try await fetcher.fetch(param: 1, revalidating: nil) == .modified("a"))
    }

    @Test(arguments: [ScriptedCancellation.honored, .ignored])
    func `a fetch in a canceled task throws unless it ignores cancellation`(cancellation: ScriptedCancellation) async throws {
        let fetcher = Fetcher(.success("a"), cancellation: cancellation)
        let fetch = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await fetcher.fetch(param: 1, revalidating: nil)
        }
        switch cancellation {
        case .honored: await #expect(throws: CancellationError.self) { try await fetch.value }
        case .ignored: #expect(try await fetch.value == .modified("a"))
        }
        #expect((fetcher.startedCount, fetcher.cancelledCount, fetcher.endedCount) == (1, 1, 1))
    }

    @Test(arguments: [false, true])
    func `a fetch that ignores cancellation, even by a later choice, returns when it is released`(isChosenLater: Bool) async throws {
        let fetcher = Fetcher(.success("late"), cancellation: isChosenLater ? .honored : .ignored)
        if isChosenLater { fetcher.cancellation = .ignored }
        fetcher.hold()
        let fetch = try await held(fetcher, number: 1)
        fetch.cancel()
        try await fetcher.cancelled(count: 1)
        #expect(fetcher.cancellation == .ignored)
        #expect((fetcher.heldCount, fetcher.endedCount) == (1, 0))
        fetcher.release()
        #expect(try await fetch.value == .modified("late"))
        #expect((fetcher.cancelledCount, fetcher.endedCount) == (1, 1))
    }

    @Test(arguments: 0..<6)
    func `C9: canceling any wait ends it at once`(number: Int) async throws {
        let fetcher = Fetcher()
        let waits: [@Sendable () async throws -> Void] = [
            { try await fetcher.started(count: 1) }, { try await fetcher.ended(count: 1) }, { try await fetcher.cancelled(count: 1) },
            { try await fetcher.release(next: 1) }, { try await fetcher.answerNext(with: .success("")) },
            { try await fetcher.answer(1, with: .success("")) },
        ]
        let waiter = Task { try await waits[number]() }
        waiter.cancel()
        await #expect(throws: CancellationError.self) { try await waiter.value }
    }

    @Test func `C15: a fetcher retains nothing of a fetch that ended`() async throws {
        let counter = LifeCounter()
        let fetcher = ScriptedFetcher<Int, LifeCounter.Life> { _ in .success(counter.make()) }
        for _ in 0..<100 { _ = try await fetcher.fetch(param: 1, revalidating: nil) }
        try await counter.none()
        #expect(fetcher.runningCount == 0)
    }

    @Test func `racing cancellation against release ends every fetch once`() async throws {
        let fetcher = Fetcher { _ in .success("a") }
        for round in 1...300 {
            fetcher.hold()
            let fetches = (0..<3).map { number in Task { try await fetcher.fetch(param: number, revalidating: nil) } }
            if round.isMultiple(of: 2) { try await fetcher.started(count: round * 3) }
            async let released: Void = Self.concurrently { fetcher.release() }
            async let canceled: Void = Self.concurrently { fetches.forEach { $0.cancel() } }
            _ = await (released, canceled)
            for fetch in fetches {
                switch await fetch.result {
                case .success(let result): #expect(result == .modified("a"))
                case .failure(let error): #expect(error is CancellationError)
                }
            }
            #expect((fetcher.startedCount, fetcher.endedCount, fetcher.runningCount) == (round * 3, round * 3, 0))
        }
    }

    @concurrent private static func concurrently(_ body: @Sendable () -> Void) async { body() }

    private func held(_ fetcher: Fetcher, number: Int) async throws -> Task<FetchResult<String>, any Error> {
        let fetch = Task { try await fetcher.fetch(param: number, revalidating: nil) }
        try await fetcher.started(count: number)
        return fetch
    }
}
