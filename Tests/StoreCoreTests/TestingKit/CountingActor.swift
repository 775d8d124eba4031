import Dispatch
import StoreCore

/// An actor that counts how often something is put on its executor, as happens after each time its isolation was left.
actor CountingActor {
    private let executor = Executor()

    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    var jobCount: Int { executor.jobs.current }

    private final class Executor: SerialExecutor {
        let jobs = WatchedState(0)
        private let queue = DispatchQueue(label: "CountingActor")

        func enqueue(_ job: consuming ExecutorJob) {
            jobs.update { $0 += 1 }
            let job = UnownedJob(job)
            queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
        }
    }
}
