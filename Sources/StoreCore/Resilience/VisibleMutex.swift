internal import Synchronization

/// A `Mutex` with synchronization that the thread sanitizer can see.
///
/// On Linux the slow path of `Mutex` is in a library without the sanitizer's instrumentation, so the sanitizer reports each contended mutex
/// as a race. The acquiring load and the releasing store of `order` repeat what the mutex guarantees anyway. Use a plain `Mutex` when the
/// toolchain's library is instrumented. PostgresCacher has a link to this file, because both targets use only the public API of StoreCore.
struct VisibleMutex<Value: ~Copyable>: ~Copyable {
    private let mutex: Mutex<Value>
    private let order = Atomic<UInt8>(0)

    init(_ value: consuming sending Value) { mutex = Mutex(value) }

    /// Calls a closure with exclusive access to the value; not recursive.
    borrowing func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        try mutex.withLock { value throws(Failure) in
            _ = order.load(ordering: .acquiring)
            defer { order.store(0, ordering: .releasing) }
            return try body(&value)
        }
    }
}

extension VisibleMutex: Sendable where Value: ~Copyable {}
