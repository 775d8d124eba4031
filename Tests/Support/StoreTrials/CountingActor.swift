import Dispatch
import StoreCore

/// An actor that counts the jobs of its executor: one for each return to its isolation.
package actor CountingActor {
    private let executor = Executor()

    package init() {}

    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    package var jobCount: Int { executor.jobs.current }

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
