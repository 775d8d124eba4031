import StoreCore
import Testing

@Suite(.timeLimit(.minutes(1)))
struct CombineStateTests {
    let numbers = ManualStates<Int>()
    let words = ManualStates<String>()
    let flags = ManualStates<Bool>()

    var combined: LoadingStateSequence<(Int, String, Bool)> {
        numbers.sequence.combineState(words.sequence, flags.sequence)
    }

    // MARK: What is combined to what

    @Test(arguments: Kind.allCases, Kind.allCases)
    func `an error beats loading, loading beats completed, and content is there once all have it`(one: Kind, two: Kind) async throws {
        for three in Kind.allCases {
            numbers.send(one.state(1, error: "one"))
            words.send(two.state("a", error: "two"))
            flags.send(three.state(true, error: "three"))
            let kinds = [one, two, three]
            let content = kinds.allSatisfy(\.hasContent) ? "(1, \"a\", true)" : "nil"
            let failed = zip(kinds, ["one", "two", "three"]).first { $0.0.hasError }
            let expected =
                if let failed { "error(\(failed.1),\(content))" } else if kinds.contains(where: \.isLoading) {
                    "loading(\(content))"
                } else { "completed(\(content))" }
            var iterator = combined.makeAsyncIterator()
            #expect(await iterator.next()?.summary == expected)
        }
    }

    @Test func `a combination has no pages beside it`() async {
        numbers.send(.completed(content: 1, next: .fixed(canRequestAdditionalData: true), prev: .loading))
        words.send(.completed(content: "a", next: .error(rawError: Offline()), prev: .none))
        var iterator = numbers.sequence.combineState(words.sequence).makeAsyncIterator()
        #expect(await iterator.next()?.summary == "completed((1, \"a\"))")
    }

    @Test func `any number of sequences is combined, and combinations are combined again`() async {
        let one = ManualStates<Int>(.completed(1)).sequence
        let five = one.combineState(one, one.mapContent { "\($0)" }, one, one.mapContent { Double($0) })
        var iterator = five.combineState(five.mapContent { $0.2 }).mapContent { "\($0.0.0) \($0.0.4) \($0.1)" }.makeAsyncIterator()
        #expect(await iterator.next() == .completed("1 1.0 1"))
        var alone = one.combineState().makeAsyncIterator()
        #expect(await alone.next() == .completed(1))
    }

    // MARK: Joining

    @Test func `C8: the first state comes when every sequence has given its first`() async throws {
        let recorder = RecordingObserver(combined)
        numbers.send(.loading(content: nil))
        try await numbers.taken(by: 1)
        flags.send(.completed(true))
        try await flags.taken(by: 1)
        numbers.send(.completed(1))
        try await numbers.taken(by: 1)
        #expect(recorder.states.isEmpty)
        words.send(.completed("a"))
        #expect(try await recorder.states(count: 1).map(\.summary) == ["completed((1, \"a\", true))"])
    }

    @Test func `C8: nothing is joined before the first next, and everything then`() async throws {
        var iterator = combined.makeAsyncIterator()
        #expect((numbers.joinedCount, words.joinedCount, flags.joinedCount) == (0, 0, 0))
        async let first = iterator.next()
        try await numbers.observers(count: 1)
        try await words.observers(count: 1)
        try await flags.observers(count: 1)
        numbers.send(.completed(1))
        words.send(.completed("a"))
        flags.send(.completed(true))
        #expect(await first?.summary == "completed((1, \"a\", true))")
    }

    @Test func `the inputs are followed at the priority of the first next`() async {
        let seen = WatchedState<[TaskPriority]>([])
        let probe = LoadingStateSequence { PrioritySource(seen) }
        await Task(priority: .high) {
            var iterator = probe.combineState(probe).makeAsyncIterator()
            _ = await iterator.next()
        }.value
        #expect(seen.current.count >= 2 && seen.current.allSatisfy { $0 == .high })
    }

    // MARK: Order

    @Test func `C8: a slow observer is given the newest states together, once`() async throws {
        numbers.send(.completed(0))
        words.send(.completed("0"))
        var iterator = numbers.sequence.combineState(words.sequence).makeAsyncIterator()
        _ = await iterator.next()
        for number in 1...5 {
            numbers.send(.completed(number))
            try await numbers.taken(by: 1)
            words.send(.loading(content: "\(number)"))
            try await words.taken(by: 1)
        }
        #expect(await iterator.next()?.summary == "loading((5, \"5\"))")
        async let next = iterator.next()
        words.send(.completed("6"))
        #expect(await next?.summary == "completed((5, \"6\"))")
    }

    @Test func `C8: a slow observer keeps one state of each input`() async throws {
        let counter = LifeCounter()
        let one = ManualStates<LifeCounter.Life>(.completed(counter.make()))
        let two = ManualStates<LifeCounter.Life>(.completed(counter.make()))
        var iterator = one.sequence.combineState(two.sequence).makeAsyncIterator()
        _ = await iterator.next()
        for _ in 0..<100 {
            one.send(.completed(counter.make()))
            two.send(.completed(counter.make()))
            try await one.taken(by: 1)
            try await two.taken(by: 1)
        }
        #expect(counter.alive == 2)
        _ = await iterator.next()
    }

    @Test func `C7: every combination is of states that were the latest at one moment`() async throws {
        // The right one is always level with the left one or one step ahead: a combination of any other two never was.
        let right = ManualStates<Int>(.completed(0))
        numbers.send(.completed(0))
        let (left, steps) = (numbers, 3_000)
        let observer = Task.detached {
            var pairs: [(left: Int, right: Int)] = []
            for await state in left.sequence.combineState(right.sequence) {
                guard let pair = state.content else { continue }
                pairs.append((pair.0, pair.1))
                if pair.0 == steps { break }
            }
            return pairs
        }
        for step in 1...steps {
            try await left.taken(by: 1)
            right.send(.completed(step))
            try await right.taken(by: 1)
            left.send(.completed(step))
        }
        let pairs = await observer.value
        #expect(pairs.allSatisfy { $0.right == $0.left || $0.right == $0.left + 1 })
        #expect(zip(pairs, pairs.dropFirst()).allSatisfy { $0.left <= $1.left && $0.right <= $1.right && $0 != $1 })
        #expect(pairs.last?.left == steps)
    }

    // MARK: Leaving

    @Test(arguments: [true, false])
    func `C9: a cancelled observer returns at once and leaves every input`(hasFirst: Bool) async throws {
        numbers.send(.completed(1))
        if hasFirst { words.send(.completed("a")) }
        let sequence = numbers.sequence.combineState(words.sequence)
        let observer = Task {
            var iterator = sequence.makeAsyncIterator()
            var count = 0
            while await iterator.next() != nil { count += 1 }
            let again = await iterator.next()
            return (count, again == nil)
        }
        try await numbers.taken(by: 1)
        try await words.taken(by: 1)
        observer.cancel()
        let (count, staysEnded) = await observer.value
        #expect(count <= (hasFirst ? 1 : 0) && staysEnded)
        try await numbers.observers(count: 0)
        try await words.observers(count: 0)
    }

    @Test func `C9: an observer that is cancelled before its first next joins nothing`() async {
        let observer = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            var iterator = numbers.sequence.combineState(words.sequence).makeAsyncIterator()
            return await iterator.next() == nil
        }
        #expect(await observer.value)
        #expect((numbers.joinedCount, words.joinedCount) == (0, 0))
    }

    @Test func `C9: an input that does not return when it is cancelled holds nobody up`() async throws {
        let gate = ManualStates<Int>()
        let stubborn = LoadingStateSequence { StubbornSource(gate) }
        let observer = Task {
            var iterator = stubborn.combineState(stubborn).makeAsyncIterator()
            return await iterator.next() == nil
        }
        try await gate.taken(by: 2)
        observer.cancel()
        #expect(await observer.value)
        #expect(gate.observerCount == 2)
        gate.finish()
        try await gate.observers(count: 0)
    }

    @Test func `C15: a released iterator leaves every input and keeps no content`() async throws {
        let counter = LifeCounter()
        let one = ManualStates<LifeCounter.Life>(.completed(counter.make()))
        let two = ManualStates<LifeCounter.Life>(.completed(counter.make()))
        for _ in 0..<100 {
            var iterator = one.sequence.combineState(two.sequence).makeAsyncIterator()
            _ = await iterator.next()
        }
        try await one.observers(count: 0)
        try await two.observers(count: 0)
        one.send(.loading(content: nil))
        two.send(.loading(content: nil))
        try await counter.none()
    }

    @Test func `C15: an iterator that is released while an input is silent leaves nothing`() async throws {
        numbers.send(.completed(1))
        let observer = Task {
            var iterator = numbers.sequence.combineState(words.sequence).makeAsyncIterator()
            _ = await iterator.next()
        }
        try await words.taken(by: 1)
        observer.cancel()
        await observer.value
        try await numbers.observers(count: 0)
        try await words.observers(count: 0)
    }

    // MARK: The end

    @Test func `the last state of an input that ended stays, and the combination ends when all have`() async throws {
        numbers.send(.completed(1))
        words.send(.completed("a"))
        let recorder = RecordingObserver(numbers.sequence.combineState(words.sequence))
        _ = try await recorder.states(count: 1)
        numbers.finish()
        try await numbers.observers(count: 0)
        words.send(.completed("b"))
        _ = try await recorder.states(count: 2)
        words.finish()
        try await recorder.ended()
        #expect(recorder.summary == "completed((1, \"a\")) completed((1, \"b\"))")
    }

    @Test func `a state that is pending when all inputs end is still given`() async throws {
        numbers.send(.completed(1))
        words.send(.completed("a"))
        var iterator = numbers.sequence.combineState(words.sequence).makeAsyncIterator()
        _ = await iterator.next()
        numbers.send(.completed(2))
        numbers.finish()
        words.finish()
        try await numbers.observers(count: 0)
        try await words.observers(count: 0)
        #expect(await iterator.next()?.summary == "completed((2, \"a\"))")
        #expect(await iterator.next() == nil)
    }

    @Test func `a combination ends when an input ends without any state`() async throws {
        numbers.send(.completed(1))
        let recorder = RecordingObserver(numbers.sequence.combineState(words.sequence))
        try await numbers.taken(by: 1)
        words.finish()
        try await recorder.ended()
        #expect(recorder.states.isEmpty)
        try await numbers.observers(count: 0)
    }

    // MARK: Stress

    @Test func `racing senders, observers and cancellation leave nothing behind`() async throws {
        let (left, right, rounds) = (ManualStates<Int>(.completed(0)), ManualStates<Int>(.completed(0)), 2_000)
        let senders = [left, right].map { states in
            Task.detached {
                for number in 1...rounds {
                    states.send(.completed(number))
                    if number.isMultiple(of: 16) { await Task.yield() }
                }
            }
        }
        let stayers = (0..<4).map { _ in
            Task.detached {
                var last = (0, 0)
                for await state in left.sequence.combineState(right.sequence) {
                    guard let pair = state.content else { continue }
                    #expect(pair.0 >= last.0 && pair.1 >= last.1)
                    last = pair
                    if pair == (rounds, rounds) { return true }
                }
                return false
            }
        }
        for _ in 0..<300 {
            let leaver = Task.detached {
                for await _ in left.sequence.combineState(right.sequence) {}
            }
            await Task.yield()
            leaver.cancel()
            await leaver.value
        }
        for sender in senders { await sender.value }
        for stayer in stayers { #expect(await stayer.value) }
        try await left.observers(count: 0)
        try await right.observers(count: 0)
    }

    /// A kind of state, with and without content.
    enum Kind: CaseIterable {
        case loading, reloading, completed, failed, failedWithContent

        var hasContent: Bool { self != .loading && self != .failed }
        var hasError: Bool { self == .failed || self == .failedWithContent }
        var isLoading: Bool { self == .loading || self == .reloading }

        func state<Content>(_ content: Content, error: String) -> LoadingState<Content> {
            switch self {
            case .loading: .loading(content: nil)
            case .reloading: .loading(content: content)
            case .completed: .completed(content)
            case .failed: .error(rawError: Named(description: error), content: nil)
            case .failedWithContent: .error(rawError: Named(description: error), content: content)
            }
        }
    }

    struct Named: Error, CustomStringConvertible {
        let description: String
    }

    /// Notes at which priority it is asked; ends after one state.
    private final class PrioritySource: LoadingStateSource {
        private let seen: WatchedState<[TaskPriority]>
        private var isDone = false

        init(_ seen: WatchedState<[TaskPriority]>) {
            self.seen = seen
        }

        func next() async -> LoadingState<Int>? {
            seen.update { $0.append(Task.currentPriority) }
            defer { isDone = true }
            return isDone ? nil : .completed(1)
        }
    }

    /// Does not notice that its task is cancelled.
    private final class StubbornSource: LoadingStateSource {
        private let gate: ManualStates<Int>

        init(_ gate: ManualStates<Int>) {
            self.gate = gate
        }

        func next() async -> LoadingState<Int>? {
            await Task { [gate] in await gate.sequence.first { _ in true } }.value
        }
    }
}
