import StoreCore
import StoreCoreTesting
import StoreTrials
import Testing
import Trials

@Suite(.timeLimit(.minutes(hangMinutes)))
struct CombineStateTests {
    let numbers = ManualStates<Int>()
    let words = ManualStates<String>()
    let flags = ManualStates<Bool>()

    var combined: LoadingStateSequence<(Int, String, Bool)> { numbers.sequence.combineState(words.sequence, flags.sequence) }

    // MARK: The combined state

    @Test(arguments: Kind.allCases, Kind.allCases)
    func `error beats loading, loading beats completed, and there is content once every input has some`(one: Kind, two: Kind) async throws {
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

    @Test func `the page states of the only list are kept in every position, also by nested combinations`() async {
        let list = LoadingState.completed(content: 1, next: .error(rawError: Offline()), prev: .loading)
        numbers.send(list)
        words.send(.completed("a"))
        flags.send(.completed(true))
        let nested = flags.sequence.combineState(words.sequence.combineState(numbers.sequence))
        let second: LoadingStateSequence<(String, Int, Bool)> = words.sequence.combineState(numbers.sequence, flags.sequence)
        for sequence in [combined.mapContent { $0.0 }, second.mapContent { $0.1 }, nested.mapContent { $0.1.1 }] {
            var iterator = sequence.makeAsyncIterator()
            #expect(await iterator.next() == list)
        }
    }

    @Test func `combining two lists drops their page states`() async {
        numbers.send(.completed(content: 1, next: .fixed(canRequestAdditionalData: true), prev: .none))
        words.send(.completed(content: "a", next: .none, prev: .error(rawError: Offline())))
        flags.send(.completed(true))
        var iterator = combined.makeAsyncIterator()
        #expect(await iterator.next()?.summary == "completed((1, \"a\", true))")
    }

    @Test func `a combination publishes a page that starts loading, even if nothing else changes`() async throws {
        numbers.send(.completed(content: 1, next: .fixed(canRequestAdditionalData: true), prev: .none))
        words.send(.completed("a"))
        let recorder = RecordingObserver(numbers.sequence.combineState(words.sequence) { "\($0)\($1)" })
        try await recorder.next { $0 == .completed(content: "1a", next: .fixed(canRequestAdditionalData: true), prev: .none) }
        numbers.send(.completed(content: 1, next: .loading, prev: .none))
        try await recorder.next { $0 == .completed(content: "1a", next: .loading, prev: .none) }
    }

    // MARK: With a transform

    @Test func `a transform combines the content of any number of sequences`() async {
        numbers.send(.completed(2))
        words.send(.completed("a"))
        flags.send(.completed(true))
        var three = numbers.sequence.combineState(words.sequence, flags.sequence) { "\($0)\($1)\($2)" }.makeAsyncIterator()
        #expect(await three.next() == .completed("2atrue"))
        var one = numbers.sequence.combineState { $0 * 2 }.makeAsyncIterator()
        #expect(await one.next() == .completed(4))
    }

    @Test func `a transform applies to stale content and does not run while a content is missing`() async {
        numbers.send(.loading(content: 2))
        words.send(.completed("a"))
        var stale = numbers.sequence.combineState(words.sequence) { "\($0)\($1)" }.makeAsyncIterator()
        #expect(await stale.next() == .loading(content: "2a"))
        numbers.send(.error(rawError: Offline(), content: nil))
        var failed = numbers.sequence.combineState(words.sequence) { _, _ in
            Issue.record("the transform ran without a number")
            return ""
        }.makeAsyncIterator()
        #expect(await failed.next() == .error(rawError: Offline(), content: nil))
    }

    @Test func `any number of sequences can be combined, and combinations can be nested`() async {
        let one = ManualStates<Int>(.completed(1)).sequence
        let five = one.combineState(one, one.mapContent { "\($0)" }, one, one.mapContent { Double($0) })
        var iterator = five.combineState(five.mapContent { $0.2 }).mapContent { "\($0.0.0) \($0.0.4) \($0.1)" }.makeAsyncIterator()
        #expect(await iterator.next() == .completed("1 1.0 1"))
        var alone = one.combineState().makeAsyncIterator()
        #expect(await alone.next() == .completed(1))
    }

    // MARK: Joining

    @Test func `C8: the first state arrives when every input has sent one`() async throws {
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

    @Test func `C8: no input is joined before the first next, which joins all of them`() async throws {
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

    @Test func `inputs are read at the priority of the first next`() async {
        let seen = WatchedState<[TaskPriority]>([])
        let probe = LoadingStateSequence { PrioritySource(seen) }
        await Task(priority: .high) {
            var iterator = probe.combineState(probe).makeAsyncIterator()
            _ = await iterator.next()
        }.value
        #expect(seen.current.count >= 2 && seen.current.allSatisfy { $0 == .high })
    }

    // MARK: Order

    @Test func `C8: a slow observer gets the newest state of all inputs, once`() async throws {
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

    @Test func `C8: a slow observer holds one state of each input`() async throws {
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

    @Test func `C7: every combination consists of states that were current at the same moment`() async throws {
        // The right input is level with the left one or one step ahead, so any other pair never existed.
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

    struct Named: Error, CustomStringConvertible { let description: String }

    /// A source that records the priority of each call and ends after one state.
    private final class PrioritySource: LoadingStateSource {
        private let seen: WatchedState<[TaskPriority]>
        private var isDone = false

        init(_ seen: WatchedState<[TaskPriority]>) { self.seen = seen }

        func next() async -> LoadingState<Int>? {
            seen.update { $0.append(Task.currentPriority) }
            defer { isDone = true }
            return isDone ? nil : .completed(1)
        }
    }
}
