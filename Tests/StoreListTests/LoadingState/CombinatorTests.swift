import StoreCore
import StoreCoreTesting
import StoreTrials
import Testing
import Trials

@Suite(.timeLimit(.minutes(hangMinutes)))
struct CombinatorTests {
    let states = ManualStates<Int>(.loading(content: nil))

    // MARK: All layers

    @Test(arguments: Layer.allCases)
    func `C8: a layer joins at its first next and leaves when it is released`(layer: Layer) async throws {
        let sequence = layer.over(states.sequence)
        do {
            var iterator = sequence.makeAsyncIterator()
            #expect(states.joinedCount == 0)
            states.send(.completed(1))
            #expect(await iterator.next() == .completed(1))
            #expect((states.joinedCount, states.observerCount) == (1, 1))
        }
        try await states.observers(count: 0)
    }

    @Test(arguments: Layer.allCases)
    func `C9: a layer ends at once and permanently when its task is canceled`(layer: Layer) async throws {
        let observer = Task {
            var iterator = layer.over(states.sequence).makeAsyncIterator()
            return [await iterator.next(), await iterator.next(), await iterator.next()]
        }
        try await states.taken(by: 1)
        observer.cancel()
        let seen = await observer.value
        #expect(seen.dropFirst() == [nil, nil])
        try await states.observers(count: 0)
    }

    @Test(arguments: Layer.allCases)
    func `each iterator of a layer is a separate observer`(layer: Layer) async {
        let sequence = layer.over(states.sequence)
        var one = sequence.makeAsyncIterator()
        #expect(await one.next() == .loading(content: nil))
        states.send(.completed(1))
        var two = sequence.makeAsyncIterator()
        #expect(await two.next() == .completed(1))
        #expect(await one.next() == .completed(1))
        #expect(states.observerCount == 2)
    }

    @Test(arguments: Layer.allCases)
    func `C15: a released layer keeps no content`(layer: Layer) async throws {
        let counter = LifeCounter()
        let states = ManualStates<LifeCounter.Life>(.completed(counter.make()))
        do {
            var iterator = layer.over(states.sequence) { _, _ in false }.makeAsyncIterator()
            _ = await iterator.next()
            states.send(.completed(counter.make()))
            _ = await iterator.next()
        }
        try await states.observers(count: 0)
        states.send(.loading(content: nil))
        try await counter.none()
    }

    @Test(arguments: Layer.allCases)
    func `taking an available state does not leave the caller's actor`(layer: Layer) async throws {
        let states = states
        let jobs = try await CountingActor().takeTwo(from: layer.over(states.sequence)) {
            states.send(.completed(1))
            // A combination reads its inputs in a separate task.
            if layer == .combined || layer == .all { try await states.taken(by: 1) }
        }
        #expect(jobs == 0)
    }

    // MARK: mapContent

    @Test func `mapping a state changes only its content`() async {
        var iterator = states.sequence.mapContent { "<\($0)>" }.makeAsyncIterator()
        #expect(await iterator.next() == .loading(content: nil))
        states.send(.completed(content: 1, next: .loading, prev: .fixed(canRequestAdditionalData: true)))
        #expect(await iterator.next() == .completed(content: "<1>", next: .loading, prev: .fixed(canRequestAdditionalData: true)))
        states.send(.error(rawError: Offline(), content: 1))
        #expect(await iterator.next() == .error(rawError: Offline(), content: "<1>"))
        states.send(.loading(content: 1))
        #expect(await iterator.next() == .loading(content: "<1>"))
    }

    @Test func `C8: a state is mapped once when it is delivered, and never when it is skipped`() async {
        let mapped = WatchedState<[Int]>([])
        let sequence = states.sequence.mapContent { content in
            mapped.update { $0.append(content) }
            return content * 10
        }
        var iterator = sequence.makeAsyncIterator()
        _ = await iterator.next()
        for number in 1...3 { states.send(.completed(number)) }
        #expect(mapped.current == [])
        #expect(await iterator.next() == .completed(30))
        #expect(mapped.current == [3])
    }

    // MARK: removeDuplicates

    @Test func `equal states are delivered once when adjacent, and each time otherwise`() async throws {
        let recorder = RecordingObserver(states.sequence.removeDuplicates())
        try await send([
            .loading(content: nil), .completed(1), .completed(1), .loading(content: 1), .loading(content: 1), .completed(1),
            .completed(content: 1, next: .loading, prev: .none), .error(rawError: Offline(), content: 1),
            .error(rawError: Offline(), content: 1), .completed(2),
        ])
        #expect(
            recorder.summary
                == "loading(nil) completed(1) loading(1) completed(1) completed(1,next:loading) error(Offline,1) completed(2)")
    }

    @Test func `the caller defines which contents are equal`() async throws {
        let recorder = RecordingObserver(states.sequence.removeDuplicates { $0 / 10 == $1 / 10 })
        try await send([
            .completed(10), .completed(11), .loading(content: 12), .loading(content: 13), .loading(content: nil), .loading(content: 1),
            .completed(20), .completed(30),
        ])
        #expect(recorder.summary == "loading(nil) completed(10) loading(12) loading(nil) loading(1) completed(20) completed(30)")
    }

    // MARK: contents

    @Test func `contents delivers the content of completed states only`() async throws {
        let seen = WatchedState<[Int]>([])
        let observer = Task { for await content in states.sequence.contents() { seen.update { $0.append(content) } } }
        try await send([.completed(1), .loading(content: 1), .error(rawError: Offline(), content: 1), .completed(2)])
        #expect(seen.current == [1, 2])
        await observer.cancelAndWait()
        #expect(states.observerCount == 0)
    }

    @Test func `C8: contents joins at the first next and leaves when released`() async {
        let contents = states.sequence.contents()
        do {
            var iterator = contents.makeAsyncIterator()
            #expect(states.joinedCount == 0)
            states.send(.completed(1))
            #expect(await iterator.next() == 1)
            #expect(states.observerCount == 1)
        }
        #expect(states.observerCount == 0)
    }

    // MARK: doAction

    @Test @MainActor func `doAction calls the matching closure on its caller's actor until it is canceled`() async throws {
        var log: [String] = []
        let observer = Task {
            await states.sequence.doAction(
                onLoading: { content in
                    MainActor.assertIsolated()
                    log.append("loading \(content.map(String.init) ?? "nothing")")
                },
                onCompleted: { content, next, prev in
                    await Task.yield()
                    MainActor.assertIsolated()
                    log.append("completed \(content) \(next.isLoading) \(prev.isLoading)")
                },
                onError: { error, content in log.append("error \(error) \(content ?? 0)") })
        }
        try await send([.completed(content: 1, next: .loading, prev: .none), .error(rawError: Offline(), content: 1)])
        #expect(log == ["loading nothing", "completed 1 true false", "error Offline() 1"])
        await observer.cancelAndWait()
        #expect(states.observerCount == 0)
    }

    /// Sends states one by one, each after the observer has taken the previous one.
    private func send(_ sent: [LoadingState<Int>]) async throws {
        for state in sent {
            try await states.taken(by: 1)
            states.send(state)
        }
        try await states.taken(by: 1)
    }

    /// A layer between a sequence and its observer that passes these states on unchanged.
    enum Layer: CaseIterable {
        case mapped, deduplicated, combined, all

        func over<Content: Sendable>(
            _ sequence: LoadingStateSequence<Content>, areSame: @escaping @Sendable (Content, Content) -> Bool
        ) -> LoadingStateSequence<Content> {
            switch self {
            case .mapped: return sequence.mapContent { $0 }
            case .deduplicated: return sequence.removeDuplicates(by: areSame)
            case .combined:
                let other = ManualStates<Bool>(.completed(true)).sequence
                return sequence.combineState(other).mapContent { content, _ in content }
            case .all:
                return Self.combined.over(
                    Self.deduplicated.over(Self.mapped.over(sequence, areSame: areSame), areSame: areSame), areSame: areSame)
            }
        }

        func over(_ sequence: LoadingStateSequence<Int>) -> LoadingStateSequence<Int> { over(sequence, areSame: ==) }
    }
}

extension CountingActor {
    /// Takes a state, waits for the next one, and counts the jobs needed to take that one.
    fileprivate func takeTwo(from sequence: LoadingStateSequence<Int>, between: @Sendable () async throws -> Void) async throws -> Int {
        var iterator = sequence.makeAsyncIterator()
        _ = await iterator.next()
        try await between()
        let before = jobCount
        _ = await iterator.next()
        return jobCount - before
    }
}
