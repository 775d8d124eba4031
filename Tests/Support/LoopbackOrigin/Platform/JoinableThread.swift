import StorePlatform

/// A thread that can be joined, which Foundation's `Thread` cannot.
///
/// `pthread_t` is a number on one platform and a pointer on others; storing its bits makes the value `Sendable` on all.
struct JoinableThread: Sendable {
    private let bits: UInt

    /// Starts a thread that runs `body` and ends.
    init(_ body: @escaping @Sendable () -> Void) throws(LoopbackOrigin.Failure) {
        let work = Unmanaged.passRetained(Work(body))
        #if canImport(Glibc)
        var handle = pthread_t()
        #else
        var handle: pthread_t?
        #endif
        let outcome = pthread_create(&handle, nil, { Work.run($0) }, work.toOpaque())
        guard outcome == 0 else {
            work.release()
            throw .system("start a thread", outcome)
        }
        #if canImport(Glibc)
        bits = handle
        #else
        bits = UInt(bitPattern: handle)
        #endif
    }

    /// Whether the caller runs on this thread.
    var isCurrent: Bool {
        #if canImport(Glibc)
        pthread_self() == bits
        #else
        UInt(bitPattern: pthread_self()) == bits
        #endif
    }

    /// Waits until the thread has ended; on the thread itself, only detaches it.
    func join() {
        #if canImport(Glibc)
        let handle = bits
        #else
        guard let handle = pthread_t(bitPattern: bits) else { return }
        #endif
        _ = isCurrent ? pthread_detach(handle) : pthread_join(handle, nil)
    }

    /// Passes the closure through the C argument of the thread's start routine.
    private final class Work: Sendable {
        let body: @Sendable () -> Void

        init(_ body: @escaping @Sendable () -> Void) { self.body = body }

        static func run(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
            guard let argument else { return nil }
            Unmanaged<Work>.fromOpaque(argument).takeRetainedValue().body()
            return nil
        }
    }
}
