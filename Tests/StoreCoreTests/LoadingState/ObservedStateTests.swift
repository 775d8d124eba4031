import MainActorClient
import Observation
import StoreCore
import Testing

@MainActor
@Suite(.timeLimit(.minutes(10)))
struct ObservedStateTests {
    let states = ManualStates<Int>(.completed(1))

    @Test func `an observed state is loading without content until the sequence sends its first state`() async throws {
        let observed = ObservedState(states.sequence)
        #expect(observed.state == .loading(content: nil))
        #expect(observed.isLoading && observed.content == nil && observed.error == nil)
        try await states.taken(by: 1)
        #expect(observed.state == .completed(1))
    }

    @Test func `an observed state follows the sequence`() async throws {
        let observed = ObservedState(states.sequence)
        try await states.taken(by: 1)
        #expect(!observed.isLoading && observed.content == 1 && observed.error == nil)
        states.send(.loading(content: 2))
        try await states.taken(by: 1)
        #expect(observed.isLoading && observed.content == 2 && observed.error == nil)
        states.send(.error(rawError: Offline(), content: 2))
        try await states.taken(by: 1)
        #expect(!observed.isLoading && observed.content == 2 && observed.error is Offline)
    }

    @Test(arguments: Reading.allCases)
    func `each change invalidates a view that read one of the properties`(reading: Reading) async throws {
        let observed = ObservedState(states.sequence)
        try await states.taken(by: 1)
        for number in 1...3 {
            let changes = WatchedState(0)
            withObservationTracking {
                reading.read(observed)
            } onChange: {
                changes.update { $0 += 1 }
            }
            // An equal state counts as a change too, because content need not be equatable.
            states.send(.completed(number / 3))
            try await changes.wait { $0 == 1 ? () : nil }
            try await states.taken(by: 1)
            #expect(observed.state == .completed(number / 3))
        }
    }

    @Test func `a change does not invalidate a view that read no property`() async throws {
        let observed = ObservedState(states.sequence)
        let changes = WatchedState(0)
        withObservationTracking {
            _ = observed
        } onChange: {
            changes.update { $0 += 1 }
        }
        states.send(.completed(2))
        try await states.taken(by: 1)
        #expect(observed.content == 2 && changes.current == 0)
    }

    @Test func `C15: an observed state released while its sequence waits leaves the sequence`() async throws {
        let counter = LifeCounter()
        let states = ManualStates<LifeCounter.Life>(.completed(counter.make()))
        var observed: ObservedState? = ObservedState(states.sequence)
        try await states.taken(by: 1)
        weak let released = observed
        #expect(observed?.content != nil)
        observed = nil
        #expect(released == nil)
        try await states.observers(count: 0)
        states.send(.loading(content: nil))
        try await counter.none()
    }

    @Test func `C15: an observed state can be released before it joined`() async throws {
        var observed: ObservedState? = ObservedState(states.sequence)
        weak let released = observed
        #expect(observed != nil)
        observed = nil
        #expect(released == nil)
        try await states.observers(count: 0)
    }

    @Test func `C15: an observed state can be released on any thread`() async throws {
        for _ in 0..<100 {
            let owner = Owner(ObservedState(states.sequence))
            try await states.taken(by: 1)
            await Task.detached { [owner] in owner.drop() }.value
            try await states.observers(count: 0)
        }
    }

    @Test func `an observed state keeps its last state when the sequence ends`() async throws {
        let observed = ObservedState(states.sequence)
        try await states.taken(by: 1)
        states.finish()
        try await states.observers(count: 0)
        #expect(observed.state == .completed(1))
    }

    @Test func `a client with the main actor as its default isolation follows a sequence`() async throws {
        let states = ManualStates<User>(.loading(content: nil))
        let model = UserModel()
        let following = Task { await model.follow(states.sequence) }
        try await states.taken(by: 1)
        states.send(.completed(try await UserFetcher().fetch(param: 7)))
        try await states.taken(by: 1)
        #expect(model.shown == ["…", "user 7"])
        following.cancel()
        await following.value
    }

    enum Reading: CaseIterable {
        case state, content, error, isLoading

        @MainActor func read(_ observed: ObservedState<Int>) {
            switch self {
            case .state: _ = observed.state
            case .content: _ = observed.content
            case .error: _ = observed.error
            case .isLoading: _ = observed.isLoading
            }
        }
    }

    /// An owner that can release the object on any thread.
    private final class Owner: Sendable {
        private let owned: WatchedState<ObservedState<Int>?>

        nonisolated init(_ observed: ObservedState<Int>) {
            owned = WatchedState(observed)
        }

        nonisolated func drop() {
            owned.update { $0 = nil }
        }
    }
}
