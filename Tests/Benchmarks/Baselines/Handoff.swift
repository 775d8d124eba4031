internal import Synchronization

/// The least that can bring a number from one task to another: one slot, one lock, one bare continuation.
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
