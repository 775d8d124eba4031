internal import Dispatch

extension WritableFile {
    /// Locks the file, and blocks the calling thread for a limited time while another holder has locked it.
    ///
    /// The system's wait has no time limit, so another thread waits with another reference to the open file. After the timeout, that thread
    /// remains until the other holder releases the lock. The lock then ends once the caller has released this file too, so a caller must
    /// not use the file after a timeout.
    ///
    /// - Parameters:
    ///   - patience: The longest wait.
    ///   - onEnd: Called once, on any thread, when no thread waits any longer. After a timeout that is later than the return.
    /// - Returns: `false` if the patience has ended first.
    /// - Throws: ``StoreError/Code/fileSystem``, also on a disk without locks.
    package func lock(within patience: Duration, onEnd: @escaping @Sendable () -> Void = {}) throws(StoreError) -> Bool {
        var waits = false
        defer { if !waits { onEnd() } }
        if try lock() { return true }
        let copy = try copy(), hasEnded = DispatchSemaphore(value: 0)
        let failure = Lock<StoreError?>(nil)
        waits = true
        DispatchQueue(label: "StoreCore.lock").async {
            do throws(StoreError) { try copy.waitForLock() } catch { failure.withLock { $0 = error } }
            onEnd()
            hasEnded.signal()
        }
        guard hasEnded.wait(timeout: .now() + .nanoseconds(Int(patience.saturatedNanoseconds))) == .success else { return false }
        if let failure = failure.withLock({ $0 }) { throw failure }
        return true
    }
}
