import StoreCore
import Trials

/// A sequence that a test rings, and that reports when an element has been handled.
package final class Bell: AsyncSequence, Sendable {
    package typealias Element = Void
    private struct Ringing: Sendable { var rung = 0, asked = 0, isOver = false, fails = false, iterators = 0 }
    private let state = WatchedState(Ringing())

    package init() {}

    package func ring(_ times: Int = 1) async throws {
        let target = state.update { state in
            state.rung += times
            return state.rung
        }
        try await state.wait { $0.asked > target ? () : nil }
    }

    package func end(failing: Bool = false) { state.update { ($0.isOver, $0.fails) = (true, failing) } }
    package func left() async throws { try await state.wait { $0.iterators == 0 ? () : nil } }
    package func heard() async throws { try await state.wait { $0.asked > 0 ? () : nil } }

    package func makeAsyncIterator() -> Iterator { Iterator(bell: self) }

    package final class Iterator: AsyncIteratorProtocol {
        private let bell: Bell
        private var taken = 0

        fileprivate init(bell: Bell) {
            self.bell = bell
            bell.state.update { $0.iterators += 1 }
        }

        deinit { bell.state.update { $0.iterators -= 1 } }

        package func next() async throws -> Void? {
            let taken = taken
            bell.state.update { $0.asked += 1 }
            let (isOver, fails) = try await bell.state.wait { state -> (Bool, Bool)? in
                state.isOver || state.rung > taken ? (state.isOver, state.fails) : nil
            }
            if fails { throw Offline() }
            self.taken += 1
            return isOver ? nil : ()
        }
    }
}
