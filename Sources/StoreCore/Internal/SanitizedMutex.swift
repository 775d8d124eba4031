#if THREAD_SANITIZER
#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// Stands in for the library's `Mutex` where this module is built for the thread sanitizer: `swift test --sanitize=thread -Xswiftc
/// -DTHREAD_SANITIZER`.
///
/// The library's own waits for a contended lock in code that the sanitizer was not built into, so that it reports each access under
/// such a lock as a race; twenty lines of `Mutex<[Int]>` show it (Swift 6.3.1, Linux). POSIX locks it knows. Can go when the library
/// tells the sanitizer.
///
/// Unchecked, because the value is touched under the lock alone, which the compiler cannot see.
@usableFromInline
final class Mutex<Value>: @unchecked Sendable {
    private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private var value: Value

    init(_ value: consuming sending Value) {
        self.value = value
        lock.initialize(to: pthread_mutex_t())
        pthread_mutex_init(lock, nil)
    }

    deinit {
        pthread_mutex_destroy(lock)
        lock.deallocate()
    }

    @usableFromInline
    func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        pthread_mutex_lock(lock)
        defer { pthread_mutex_unlock(lock) }
        return try body(&value)
    }
}
#endif
