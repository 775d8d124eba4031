import StoreCore
import Testing
import Trials

/// Tests state of several parts, each with its own waiters.
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
    private let checks = WatchedState<[String: Int]>([:])

    /// Waits until a counter reaches a value, and counts how often the condition is checked.
    private func waiter(_ name: String, until value: Int) -> Task<Int, any Error> {
        Task { [state, checks] in
            try await state.wait(for: name) { counters in
                checks.update { $0[name, default: 0] += 1 }
                return counters.values[name].flatMap { $0 >= value ? $0 : nil }
            }
        }
    }

    @Test func `the condition of a waiter for a part is checked only when that part changes`() async throws {
        let waiters = ["a", "b", "c"].map { ($0, waiter($0, until: 2)) }
        try await checks.wait { $0.count == 3 ? () : nil }
        for _ in 0..<100 { state.update { $0.raise("d") } }
        #expect(checks.current == ["a": 1, "b": 1, "c": 1])
        state.update { $0.raise("b") }
        #expect(checks.current == ["a": 1, "b": 2, "c": 1])
        state.update { $0.raise("b") }
        #expect(try await waiters[1].1.value == 2)
        // A change of all parts checks each waiter once; waiters that returned are not checked.
        state.update { counters in
            counters.raise("a")
            counters.raise("c")
        }
        state.update { $0.raiseAll() }
        #expect(try await waiters[0].1.value == 2)
        #expect(try await waiters[2].1.value == 2)
        #expect(checks.current == ["a": 3, "b": 3, "c": 3])
    }

    @Test func `the condition of a waiter for the whole state is checked after each change`() async throws {
        let waiter = Task { [state] in try await state.wait { $0.values["a"] == 1 && $0.values["b"] == 1 ? $0.values.count : nil } }
        for name in ["a", "c", "b"] { state.update { $0.raise(name) } }
        #expect(try await waiter.value == 3)
    }

    @Test func `canceling a waiter of a part ends it at once and does not affect another waiter`() async throws {
        let (leaving, staying) = (waiter("a", until: 1), waiter("a", until: 1))
        try await checks.wait { $0["a"] == 2 ? () : nil }
        leaving.cancel()
        await #expect(throws: CancellationError.self) { try await leaving.value }
        state.update { $0.raise("a") }
        #expect(try await staying.value == 1)
    }

    /// A waiter that is canceled before it suspends ends the list of its part, and the next waiter begins another list.
    @Test(.timeLimit(.minutes(hangMinutes)))
    func `waiters of a part are independent of one that is canceled before it suspends`() async throws {
        for round in 1...rounds(2_000, quick: 400) {
            let waiters = (0..<8).map { number in
                Task { [state] in
                    try await state.wait(for: "a") { counters in
                        // The first check precedes the suspension.
                        if number.isMultiple(of: 2) { withUnsafeCurrentTask { $0?.cancel() } }
                        return counters.values["a"] == round ? () : nil
                    }
                }
            }
            for waiter in waiters.enumerated() where waiter.offset.isMultiple(of: 2) {
                await #expect(throws: CancellationError.self) { try await waiter.element.value }
            }
            state.update { $0.raise("a") }
            for waiter in waiters.enumerated() where !waiter.offset.isMultiple(of: 2) { try await waiter.element.value }
        }
    }
}
