internal import Synchronization

/// The cheapest way to pass a number between two tasks: one slot, one lock, and one bare continuation.
final class Handoff: Sendable {
    private enum Slot {
        case empty
        case full(Int)
        case awaited(UnsafeContinuation<Int, Never>)
    }

    private let slot = Mutex(Slot.empty)

    func send(_ number: Int) {
        let waiting = slot.withLock { slot -> UnsafeContinuation<Int, Never>? in
            if case .awaited(let continuation) = slot {
                slot = .empty
                return continuation
            }
            slot = .full(number)
            return nil
        }
        waiting?.resume(returning: number)
    }

    func receive() async -> Int {
        await withUnsafeContinuation { continuation in
            let number = slot.withLock { slot -> Int? in
                if case .full(let number) = slot {
                    slot = .empty
                    return number
                }
                slot = .awaited(continuation)
                return nil
            }
            if let number { continuation.resume(returning: number) }
        }
    }
}
