import Dispatch
import StoreCore

/// What other threads want of the origin's thread; as a task executor it also takes the handlers' jobs there.
///
/// Handlers run on the origin's own thread, not in the cooperative pool: a test that blocks the pool cannot starve its own server.
final class Mailbox: TaskExecutor {
    enum Letter: Sendable {
        case job(UnownedJob)
        case answer(LoopbackOrigin.Response, number: Int, connection: Int)
        case nudge(at: ContinuousClock.Instant)
        case goDown(Reply)
        case comeBack(Reply)
        /// Asks for nothing but a reply, once what has begun is done.
        case settle(Reply)
        case stop
    }

    /// Where a caller waits for the thread to have done what it asked for.
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
    /// Guards the letters; the pipe is rung outside, or its reader would wake only to wait for the lock.
    private let state = Lock(State())

    init() throws(LoopbackOrigin.Failure) {
        pipe = try WakePipe()
    }

    /// Whoever may still post holds the mailbox, so that nobody rings a pipe that is closed.
    deinit {
        pipe.close()
    }

    /// The descriptor that becomes readable when a letter arrives.
    var descriptor: Int32 { pipe.readingEnd }

    /// Leaves a letter; returns whether anyone will read it.
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

    /// Takes all letters.
    func empty() -> [Letter] {
        // First, because a ring that comes after this is for letters that may not be among those taken.
        pipe.silence()
        return state.withLock { state in
            defer { state.letters = [] }
            return state.letters
        }
    }

    /// Takes the last letters and accepts no more.
    func close() -> [Letter] {
        state.withLock { state in
            state.isClosed = true
            defer { state.letters = [] }
            return state.letters
        }
    }

    /// Takes a handler's job to the origin's thread; when that has ended, the handler goes on elsewhere to notice its cancellation.
    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        if !post(.job(job)) { runElsewhere(job) }
    }

    func run(_ job: UnownedJob) {
        job.runSynchronously(on: asUnownedTaskExecutor())
    }

    func runElsewhere(_ job: UnownedJob) {
        DispatchQueue.global().async { self.run(job) }
    }
}
