internal import Dispatch

/// A thread of its own for what blocks as the disk does: another process may have the session's lock for seconds, and the few threads that
/// all tasks share would stand still meanwhile.
final class DiskExecutor: SerialExecutor {
    private let queue = DispatchQueue(label: "TextStore.disk")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }
}
