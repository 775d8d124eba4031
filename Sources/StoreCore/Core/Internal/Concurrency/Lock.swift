public import Synchronization

/// A `Mutex` with synchronization that the thread sanitizer can see.
///
/// On Linux the slow path of `Mutex` is in a library without the sanitizer's instrumentation, so the sanitizer reports each contended lock
/// as a race. The acquiring load and the releasing store of `order` repeat what the lock guarantees anyway. The sanitizer sees them, and on
/// x86 they cost nothing. This type can go when the toolchain's library is instrumented.
@usableFromInline
package struct Lock<Value: ~Copyable>: ~Copyable {
    @usableFromInline let mutex: Mutex<Value>
    @usableFromInline let order = Atomic<UInt8>(0)

    @inlinable
    package init(_ value: consuming sending Value) {
        mutex = Mutex(value)
    }

    /// Calls a closure with exclusive access to the value; not recursive.
    ///
    /// - Parameter body: Must not suspend, and must not call code that the lock's owner does not know.
    @inlinable
    package borrowing func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        try mutex.withLock { value throws(Failure) in
            _ = order.load(ordering: .acquiring)
            defer { order.store(0, ordering: .releasing) }
            return try body(&value)
        }
    }
}

extension Lock: Sendable where Value: ~Copyable {}
