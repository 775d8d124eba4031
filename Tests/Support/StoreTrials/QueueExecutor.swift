import Dispatch

/// Runs its tasks one at a time, in the order in which they were started or resumed.
package final class QueueExecutor: TaskExecutor {
    private let queue = DispatchQueue(label: "QueueExecutor")

    package init() {}

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
