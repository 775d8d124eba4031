import StoreCore
import StoreCoreTesting
import StoreTrials
import Testing
import Trials

@Suite(.timeLimit(.minutes(hangMinutes)))
struct RecordingObserverTests {
    let feed = ManualStates<Int>(.loading(content: nil))

    @Test func `every delivered state is recorded in order, and a wait for a count returns the first ones`() async throws {
        let recorder = RecordingObserver(feed.sequence)
        try await feed.taken(by: 1)
        feed.send(.completed(1))
        try await feed.taken(by: 1)
        feed.send(.error(rawError: Offline(), content: 1))
        let states = try await recorder.states(count: 3)
        #expect(states == [.loading(content: nil), .completed(1), .error(rawError: Offline(), content: 1)])
        #expect(recorder.states == states)
        #expect(recorder.summary == "loading(nil) completed(1) error(Offline,1)")
        #expect(try await recorder.states(count: 1) == [.loading(content: nil)])
        #expect(try await recorder.states(count: 0) == [])
    }

    @Test func `the condition sees each state once and may use the recorder`() async throws {
        let recorder = RecordingObserver(feed.sequence)
        let checked = WatchedState<[String]>([])
        let search = Task {
            try await recorder.next { state in
                checked.update { $0.append(state.summary) }
                return recorder.states.last?.content == 3 && state.content == 3
            }
        }
        for number in 1...3 {
            try await feed.taken(by: 1)
            try await checked.wait { $0.count == number ? () : nil }
            feed.send(.completed(number))
        }
        _ = try await search.value
        #expect(checked.current == ["loading(nil)", "completed(1)", "completed(2)", "completed(3)"])
    }

    @Test func `the condition of a wait sees the whole history`() async throws {
        let recorder = RecordingObserver(feed.sequence)
        try await feed.taken(by: 1)
        async let states = recorder.wait { $0.filter(\.isCompleted).count == 2 }
        feed.send(.completed(1))
        try await feed.taken(by: 1)
        feed.send(.completed(2))
        #expect(try await states.map(\.summary) == ["loading(nil)", "completed(1)", "completed(2)"])
    }

    @Test func `stopping leaves the sequence and keeps the recorded states`() async throws {
        let recorder = RecordingObserver(feed.sequence)
        try await feed.taken(by: 1)
        try await recorder.stopAndLeave()
        #expect(feed.observerCount == 0)
        feed.send(.completed(1))
        #expect(recorder.summary == "loading(nil)")
        recorder.stop()
    }

    @Test(arguments: [true, false])
    func `a wait beyond the end of the recording fails and lists the recorded states`(stops: Bool) async throws {
        let recorder = RecordingObserver(feed.sequence)
        try await feed.taken(by: 1)
        let waiter = Task { try await recorder.states(count: 2) }
        if stops { recorder.stop() } else { feed.finish() }
        let error = await #expect(throws: StoreError.self) { try await waiter.value }
        #expect(error?.code == .recordingEnded)
        #expect(error?.message.contains("2 states") == true && error?.message.hasSuffix("so far:\n  1. loading(nil)") == true)
    }

    @Test func `C9: canceling a wait ends it at once`() async throws {
        let recorder = RecordingObserver(feed.sequence)
        let waiter = Task { try await recorder.next { $0.isCompleted } }
        waiter.cancel()
        await #expect(throws: CancellationError.self) { try await waiter.value }
    }

    @Test func `C15: a released recorder leaves the sequence and releases its states`() async throws {
        let counter = LifeCounter()
        let feed = ManualStates<LifeCounter.Life>()
        feed.send(.completed(counter.make()))
        var recorder: RecordingObserver<LifeCounter.Life>? = RecordingObserver(feed.sequence)
        try await feed.taken(by: 1)
        weak let released = recorder
        recorder = nil
        #expect(released == nil)
        try await feed.observers(count: 0)
        feed.send(.loading(content: nil))
        try await counter.none()
    }

    @Test(arguments: [
        (LoadingState<[Int]>.loading(content: nil), "loading(nil)"),
        (.loading(content: [1]), "loading([1])"),
        (.completed([]), "completed([])"),
        (.completed(content: [1], next: .fixed(canRequestAdditionalData: true), prev: .loading), "completed([1],next:more,prev:loading)"),
        (.completed(content: [1], next: .error(rawError: Offline()), prev: .none), "completed([1],next:error(Offline))"),
        (.error(rawError: Offline(), content: nil), "error(Offline,nil)"),
        (.error(rawError: Refused.forbidden, content: [1]), "error(forbidden,[1])"),
    ])
    func `a summary is short and distinguishes states`(state: LoadingState<[Int]>, summary: String) {
        #expect(state.summary == summary)
    }

    private enum Refused: Error { case forbidden }
}
