internal import Dispatch
internal import StoreCore

/// Locks an open file or directory; returns `false` if another holder has locked it. Throws on a disk without locks.
func tryLock(_ descriptor: Int32, _ kind: Int32, path: String) throws(StoreError) -> Bool {
    if uninterrupted({ flock(descriptor, kind | LOCK_NB) }) == 0 { return true }
    if errno == EWOULDBLOCK { return false }
    throw .failedCall("locking", at: path)
}

/// Locks an open file or directory, and blocks the calling thread for a limited time while another holder has locked it.
///
/// The system's wait has no time limit, so another thread waits with a copy of the descriptor. After a timeout, that thread remains until
/// the other holder releases the lock. The lock then ends when the caller's descriptor is closed.
func waitForLock(
    _ descriptor: Int32, _ kind: Int32, path: String, atMost patience: Duration, onEnd: @escaping @Sendable () -> Void = {}
) throws(StoreError) -> Bool {
    var waits = false
    defer { if !waits { onEnd() } }
    let end = try ThreadSignal(path)
    let copy = uninterrupted { fcntl(descriptor, F_DUPFD_CLOEXEC, 0) }
    guard copy >= 0 else { throw .failedCall("locking", at: path) }
    let failure = Lock<Int32>(0)
    waits = true
    DispatchQueue(label: "StoreCore.lock").async {
        if uninterrupted({ flock(copy, kind) }) != 0 { failure.withLock { [code = errno] in $0 = code } }
        _ = close(copy)
        onEnd()
        end.send()
    }
    guard end.wait(atMost: patience) else { return false }
    let code = failure.withLock { $0 }
    guard code == 0 else { throw .fileSystem("locking", path: path, errno: code) }
    return true
}

/// A signal that one thread sends and another waits for, for a time on the monotonic clock.
///
/// On Linux, a semaphore of Dispatch waits until a time on the wall clock: if that clock is set back, the wait becomes longer by as much.
final class ThreadSignal: Sendable {
    private let reading: Int32
    private let writing: Int32

    /// Creates a signal that was not sent; throws if the process has no descriptor left. The path is for the error.
    init(_ path: String) throws(StoreError) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw .failedCall("waiting for", at: path) }
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

    /// Blocks the calling thread until the signal is sent; returns `false` if the time has passed first.
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
