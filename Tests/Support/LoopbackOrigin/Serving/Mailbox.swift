import Dispatch
import StoreCore

/// Commands for the origin's thread; as a task executor, it also runs the handlers' jobs there.
///
/// Handlers do not run in the cooperative pool, so a test that blocks the pool cannot starve its own server.
final class Mailbox: TaskExecutor {
    enum Letter: Sendable {
        case job(UnownedJob)
        case answer(LoopbackOrigin.Response, number: Int, connection: Int)
        case goDown(Reply)
        case comeBack(Reply)
        /// Asks only for a reply after the current work is done.
        case settle(Reply)
        case stop
    }

    /// The reply that a caller waits for.
    final class Reply: Sendable {
        private let arrival = DispatchSemaphore(value: 0)
        private let failure = Lock<LoopbackOrigin.Failure?>(nil)

        func send(_ failure: LoopbackOrigin.Failure? = nil) {
            self.failure.withLock { $0 = failure }
            arrival.signal()
        }

        func wait() throws(LoopbackOrigin.Failure) {
            arrival.wait()
            if let failure = failure.withLock(\.self) { throw failure }
        }
    }

    private struct State {
        var letters: [Letter] = []
        var isClosed = false
    }

    private let pipe: WakePipe
    /// Guards the letters. The pipe is written outside the lock, because its reader would otherwise wake only to wait for the lock.
    private let state = Lock(State())

    init() throws(LoopbackOrigin.Failure) { pipe = try WakePipe() }

    // Every poster retains the mailbox, so no write follows the close.
    deinit { pipe.close() }

    /// The descriptor that becomes readable when a letter arrives.
    var descriptor: Int32 { pipe.readingEnd }

    /// Posts a letter; returns whether the thread will read it.
    @discardableResult
    func post(_ letter: Letter) -> Bool {
        let (isAccepted, isFirst) = state.withLock { state in
            guard !state.isClosed else { return (false, false) }
            state.letters.append(letter)
            return (true, state.letters.count == 1)
        }
        if isFirst { pipe.ring() }
        return isAccepted
    }

    /// Removes and returns all letters.
    func empty() -> [Letter] {
        // Silenced first: a later ring may announce letters that are not among those taken.
        pipe.silence()
        return state.withLock { state in
            defer { state.letters = [] }
            return state.letters
        }
    }

    /// Removes and returns the last letters, and accepts no more.
    func close() -> [Letter] {
        state.withLock { state in
            state.isClosed = true
            defer { state.letters = [] }
            return state.letters
        }
    }

    /// Posts a handler's job to the origin's thread; after that thread has ended, the handler runs elsewhere to notice its cancellation.
    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        if !post(.job(job)) { runElsewhere(job) }
    }

    func run(_ job: UnownedJob) { job.runSynchronously(on: asUnownedTaskExecutor()) }

    func runElsewhere(_ job: UnownedJob) { DispatchQueue.global().async { self.run(job) } }
}
