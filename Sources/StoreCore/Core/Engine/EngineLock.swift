internal import Synchronization

/// The lock of an engine, which names the mistake if user code that runs under the lock calls the same store.
///
/// An engine runs small pieces of user code under its lock: patches, changes of a stream's value, identities of elements, decisions on
/// retries, and the hashing, comparison and release of keys. A call of the store from there could only wait for itself.
struct EngineLock: ~Copyable {
    private let lock: Lock<EngineState>
    /// The thread that holds the lock; zero if none does. Only the holder writes it, so a thread never reads its own number by mistake.
    private let holder = Atomic<UInt>(0)

    init(_ state: sending EngineState) {
        lock = Lock(state)
    }

    /// Calls a closure with exclusive access to the state. The program stops with a message if the calling thread holds the lock already.
    borrowing func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending EngineState) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        let thread = currentThread()
        precondition(
            holder.load(ordering: .relaxed) != thread,
            "a closure that a store runs under its lock has called the same store: a patch of mutate or of a command, a change of a live "
                + "value, an element's identity, a content's cost and RetryPolicy.shouldRetry may only use their arguments; call the store "
                + "in a new Task")
        return try lock.withLock { state throws(Failure) in
            holder.store(thread, ordering: .relaxed)
            defer { holder.store(0, ordering: .relaxed) }
            return try body(&state)
        }
    }
}
