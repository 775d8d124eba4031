internal import Dispatch

/// Runs jobs that block on the disk on a queue of their own, because another process may hold the session's lock for seconds. The shared
/// threads of the concurrency runtime stay free.
final class DiskExecutor: SerialExecutor {
    private let queue = DispatchQueue(label: "TextStore.disk")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }
}
