import StoreCore
import StoreCoreTesting
import StoreTrials
import Testing
import Trials

@Suite(.timeLimit(.minutes(hangMinutes)))
struct CombineStateLeavingTests {
    let numbers = ManualStates<Int>()
    let words = ManualStates<String>()

    // MARK: Leaving

    @Test(arguments: [true, false])
    func `C9, C15: a canceled observer returns at once and leaves every input, even if one has sent nothing`(hasFirst: Bool) async throws {
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

    @Test func `C9: an observer canceled before its first next joins no input`() async {
        let observer = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            var iterator = numbers.sequence.combineState(words.sequence).makeAsyncIterator()
            return await iterator.next() == nil
        }
        #expect(await observer.value)
        #expect((numbers.joinedCount, words.joinedCount) == (0, 0))
    }

    @Test func `C9: an input that ignores cancellation does not delay its observer`() async throws {
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

    // MARK: The end

    @Test func `an ended input keeps its last state, and the combination ends when all inputs have`() async throws {
        numbers.send(.completed(1))
        words.send(.completed("a"))
        let recorder = try await observeFirst(numbers.sequence.combineState(words.sequence))
        numbers.finish()
        try await numbers.observers(count: 0)
        words.send(.completed("b"))
        _ = try await recorder.states(count: 2)
        words.finish()
        try await recorder.ended()
        #expect(recorder.summary == "completed((1, \"a\")) completed((1, \"b\"))")
    }

    @Test func `C8: a state that is pending when all inputs end is still delivered`() async throws {
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

    @Test func `a combination ends when an input ends without a state`() async throws {
        numbers.send(.completed(1))
        let recorder = RecordingObserver(numbers.sequence.combineState(words.sequence))
        try await numbers.taken(by: 1)
        words.finish()
        try await recorder.ended()
        #expect(recorder.states.isEmpty)
        try await numbers.observers(count: 0)
    }

    // MARK: Stress

    @Test func `C15: racing senders, observers and cancellations leave no observer behind`() async throws {
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
            let leaver = Task.detached { for await _ in left.sequence.combineState(right.sequence) {} }
            await Task.yield()
            await leaver.cancelAndWait()
        }
        for sender in senders { await sender.value }
        for stayer in stayers { #expect(await stayer.value) }
        try await left.observers(count: 0)
        try await right.observers(count: 0)
    }

    /// A source that ignores cancellation.
    private final class StubbornSource: LoadingStateSource {
        private let gate: ManualStates<Int>

        init(_ gate: ManualStates<Int>) { self.gate = gate }

        func next() async -> LoadingState<Int>? { await Task { [gate] in await gate.sequence.first { _ in true } }.value }
    }
}
