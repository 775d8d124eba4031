import StoreCore
import Testing

/// State of parts, each with its own waiters.
struct WatchedStateTests {
    private struct Counters: Sendable {
        private(set) var values: [String: Int] = [:]
        private var changed = ChangedParts.nothing

        mutating func raise(_ name: String) {
            values[name, default: 0] += 1
            changed.insert(name)
        }

        mutating func raiseAll() {
            for name in values.keys { values[name, default: 0] += 1 }
            changed = .everything
        }

        mutating func takeChanges() -> ChangedParts { changed.take() }
    }

    private let state = WatchedState(Counters()) { $0.takeChanges() }
    private let looks = WatchedState<[String: Int]>([:])

    /// Waits until a counter has risen, and counts how often it was looked at.
    private func waiter(_ name: String, until value: Int) -> Task<Int, any Error> {
        Task { [state, looks] in
            try await state.wait(for: name) { counters in
                looks.update { $0[name, default: 0] += 1 }
                return counters.values[name].flatMap { $0 >= value ? $0 : nil }
            }
        }
    }

    @Test func `who waits for a part is looked at when that part changes, and at no other time`() async throws {
        let waiters = ["a", "b", "c"].map { ($0, waiter($0, until: 2)) }
        try await looks.wait { $0.count == 3 ? () : nil }
        for _ in 0..<100 { state.update { $0.raise("d") } }
        #expect(looks.current == ["a": 1, "b": 1, "c": 1])
        state.update { $0.raise("b") }
        #expect(looks.current == ["a": 1, "b": 2, "c": 1])
        state.update { $0.raise("b") }
        #expect(try await waiters[1].1.value == 2)
        // A change of all parts is one of each; those who are gone are not looked at.
        state.update { counters in
            counters.raise("a")
            counters.raise("c")
        }
        state.update { $0.raiseAll() }
        #expect(try await waiters[0].1.value == 2)
        #expect(try await waiters[2].1.value == 2)
        #expect(looks.current == ["a": 3, "b": 3, "c": 3])
    }

    @Test func `who waits for the whole is looked at after each change`() async throws {
        let waiter = Task { [state] in
            try await state.wait { $0.values["a"] == 1 && $0.values["b"] == 1 ? $0.values.count : nil }
        }
        for name in ["a", "c", "b"] { state.update { $0.raise(name) } }
        #expect(try await waiter.value == 3)
    }

    @Test func `a cancelled waiter of a part returns at once, and its neighbour stays`() async throws {
        let (leaving, staying) = (waiter("a", until: 1), waiter("a", until: 1))
        try await looks.wait { $0["a"] == 2 ? () : nil }
        leaving.cancel()
        await #expect(throws: CancellationError.self) { try await leaving.value }
        state.update { $0.raise("a") }
        #expect(try await staying.value == 1)
    }
}
