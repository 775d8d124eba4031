public import Synchronization

/// `Mutex`, in a form whose order the thread sanitizer can see.
///
/// On Linux the slow path of `Mutex` stands in a library that is not built with the sanitizer, which therefore takes every contended
/// lock for a race. The acquiring load and the releasing store of `order` are what the lock guarantees anyway; they are seen, and on x86
/// they cost nothing. This type can go when the toolchain's own lock is instrumented.
@usableFromInline
package struct Lock<Value: ~Copyable>: ~Copyable {
    @usableFromInline let mutex: Mutex<Value>
    @usableFromInline let order = Atomic<UInt8>(0)

    /// Makes an open lock.
    ///
    /// - Parameter value: What it guards.
    @inlinable
    package init(_ value: consuming sending Value) {
        mutex = Mutex(value)
    }

    /// Calls a closure with the value while nobody else has it; not recursive.
    ///
    /// - Parameter body: Must not suspend, and must not call what the lock's owner does not know.
    /// - Returns: What `body` returned.
    /// - Throws: What `body` threw.
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
