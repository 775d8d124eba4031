#if THREAD_SANITIZER
import Synchronization

/// Takes the place of the standard `Mutex` in builds for the thread sanitizer (`-Xswiftc -DTHREAD_SANITIZER`).
///
/// On Linux the standard one waits inside a library that is not instrumented, so that the sanitizer sees two critical sections race
/// as soon as they contend; no upstream issue is known. The atomic tells it that one happens after the other; a race past the lock is found as before.
struct Mutex<Value: ~Copyable>: ~Copyable, Sendable {
    private let base: Synchronization.Mutex<Value>
    private let witness = Atomic<Int>(0)

    init(_ value: consuming sending Value) {
        base = Synchronization.Mutex(value)
    }

    borrowing func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        try base.withLock { (value: inout sending Value) throws(Failure) -> sending Result in
            witness.add(1, ordering: .acquiringAndReleasing)
            defer { witness.add(1, ordering: .acquiringAndReleasing) }
            return try body(&value)
        }
    }
}
#endif
