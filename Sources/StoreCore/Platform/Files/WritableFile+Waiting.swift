internal import Dispatch
package import StoreCore

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
        let copy = try copy(), end = try ThreadSignal(path)
        let failure = Lock<StoreError?>(nil)
        waits = true
        DispatchQueue(label: "StoreCore.lock").async {
            do throws(StoreError) { try copy.waitForLock() } catch { failure.withLock { $0 = error } }
            onEnd()
            end.send()
        }
        guard end.wait(atMost: patience) else { return false }
        if let failure = failure.withLock({ $0 }) { throw failure }
        return true
    }
}

/// A signal that one thread sends and another waits for, for a time on the monotonic clock.
///
/// On Linux, a semaphore of Dispatch waits until a time on the wall clock: if that clock is set back meanwhile, the wait takes as much longer.
final class ThreadSignal: Sendable {
    private let reading: Int32
    private let writing: Int32

    /// Creates a signal that was not sent.
    ///
    /// - Parameter path: The file that the threads are concerned with, for the error.
    /// - Throws: ``StoreError/Code/fileSystem`` if the process has no descriptor left.
    init(_ path: String) throws(StoreError) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw .fileSystem("waiting for", path: path, errno: errno) }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        (reading, writing) = (ends[0], ends[1])
    }

    deinit {
        _ = close(reading)
        _ = close(writing)
    }

    /// Ends the wait of the other thread; called once.
    func send() {
        var byte: UInt8 = 1
        // The pipe is empty and both of its ends are open, so the write succeeds.
        _ = uninterrupted { write(writing, &byte, 1) }
    }

    /// Blocks the calling thread until the signal is sent.
    ///
    /// - Returns: `false` if the time has passed first.
    func wait(atMost patience: Duration) -> Bool {
        let deadline = ContinuousClock.now.advanced(by: min(patience, .seconds(86_400)))
        while true {
            let rest = max(.zero, ContinuousClock.now.duration(to: deadline))
            var entry = pollfd(fd: reading, events: Int16(POLLIN), revents: 0)
            // Rounded up, so that the wait does not spin in its last millisecond.
            let result = poll(&entry, 1, Int32(clamping: Int(rest / .milliseconds(1)) + 1))
            if result > 0 { return true }
            if rest == .zero { return false }
        }
    }
}

/// The lock of a file that several processes share. A process that is stopped while it holds the lock blocks the others for a limited time.
///
/// After that time, ``withLock(_:named:in:_:)`` throws and changes nothing. The change is then lost unless the caller repeats it, as a store
/// does with a failed save. Later calls fail at once while the other process still holds the lock.
package final class PatientLock: Sendable {
    private let patience: Duration
    /// Whether a thread still waits after a timeout. One thread waits, however many changes fail.
    private let isBlocked = Lock(false)

    package init(patience: Duration = .seconds(5)) {
        self.patience = patience
    }

    /// Runs a change under the lock, and blocks the calling thread until then.
    ///
    /// - Parameters:
    ///   - file: The open file.
    ///   - name: Its name, under which it is opened again for a wait.
    ///   - folder: Its directory.
    ///   - body: The change.
    /// - Throws: ``StoreError/Code/fileSystem`` if another process has held the lock for too long, or if the disk has no locks; the error of
    ///   `body`.
    package func withLock<Result>(
        _ file: WritableFile, named name: String, in folder: DirectoryHandle, _ body: () throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        guard let holder = try lock(file, name, folder) else {
            let path = file.path.escapedForDisplay()
            throw StoreError(.fileSystem, "another process has held \(path) for \(patience); continue or end that process")
        }
        // A process forked meanwhile has the descriptor too, so that closing it would not release the lock.
        defer { holder.unlock() }
        return try body()
    }

    private func lock(_ file: WritableFile, _ name: String, _ folder: DirectoryHandle) throws(StoreError) -> WritableFile? {
        if try file.lock() { return file }
        guard !isBlocked.withLock({ $0 }) else { return nil }
        // Opened again, because the waiting thread keeps the file after a timeout.
        let file = try WritableFile(name, in: folder, mode: 0o600)
        isBlocked.withLock { $0 = true }
        return try file.lock(within: patience, onEnd: { [weak self] in self?.isBlocked.withLock { $0 = false } }) ? file : nil
    }
}
