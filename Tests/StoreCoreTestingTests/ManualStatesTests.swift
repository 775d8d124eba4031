import StoreCore
import StoreCoreTesting
import Testing
import Trials

@Suite(.timeLimit(.minutes(hangMinutes)))
struct ManualStatesTests {
    let states = ManualStates<Int>(.loading(content: nil))

    @Test func `C8: an observer joins at its first next and gets the current state`() async {
        var iterator = states.sequence.makeAsyncIterator()
        #expect(states.joinedCount == 0)
        states.send(.completed(1))
        #expect(await iterator.next() == .completed(1))
        #expect((states.joinedCount, states.observerCount) == (1, 1))
    }

    @Test func `C8: the newest state replaces the pending one of each observer separately`() async {
        var slow = states.sequence.makeAsyncIterator()
        var quick = states.sequence.makeAsyncIterator()
        _ = await (slow.next(), quick.next())
        states.send(.completed(1))
        #expect(await quick.next() == .completed(1))
        states.send(.completed(2))
        #expect(await slow.next() == .completed(2))
        #expect(await quick.next() == .completed(2))
    }

    @Test func `an observer without a current state waits for the first one sent`() async throws {
        let states = ManualStates<Int>()
        let first = Task { await states.sequence.first { _ in true } }
        try await states.taken(by: 1)
        states.send(.completed(1))
        #expect(await first.value == .completed(1))
    }

    @Test func `C9: canceling an observer ends it at once and permanently`() async throws {
        let observer = Task {
            var iterator = states.sequence.makeAsyncIterator()
            var seen: [LoadingState<Int>?] = []
            for _ in 0..<3 { seen.append(await iterator.next()) }
            return seen
        }
        try await states.taken(by: 1)
        observer.cancel()
        #expect(await observer.value == [.loading(content: nil), nil, nil])
        #expect(states.observerCount == 0)
    }

    @Test func `C9: an observer canceled before its first state does not join`() async {
        let observer = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await states.sequence.first { _ in true }
        }
        #expect(await observer.value == nil)
        #expect(states.observerCount == 0)
    }

    @Test func `C8: finishing ends observers after their pending state`() async throws {
        var iterator = states.sequence.makeAsyncIterator()
        _ = await iterator.next()
        states.send(.completed(1))
        states.finish()
        #expect(await iterator.next() == .completed(1))
        #expect(await iterator.next() == nil)
        let waiting = Task { await ManualStates<Int>().sequence.first { _ in true } }
        waiting.cancel()
        #expect(await waiting.value == nil)
    }

    @Test func `content may use the sequence while it is being released`() async {
        let states = ManualStates<Reentrant>()
        states.send(.completed(Reentrant(states)))
        do {
            var iterator = states.sequence.makeAsyncIterator()
            _ = await iterator.next()
            states.send(.completed(Reentrant(states)))
            states.send(.completed(Reentrant(states)))
            states.send(.loading(content: nil))
            #expect(await iterator.next()?.content == nil)
            states.send(.completed(Reentrant(states)))
        }
        states.send(.loading(content: nil))
        #expect(states.observerCount == 0)
    }

    private final class Reentrant: Sendable {
        private let states: ManualStates<Reentrant>

        init(_ states: ManualStates<Reentrant>) { self.states = states }

        deinit { _ = states.observerCount }
    }
}
