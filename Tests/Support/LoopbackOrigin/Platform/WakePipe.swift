import StorePlatform

/// A pipe within the process: writing a byte wakes the thread that polls the reading end.
struct WakePipe: Sendable {
    let readingEnd: Int32
    private let writingEnd: Int32

    init() throws(LoopbackOrigin.Failure) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw .system("open a pipe", errno) }
        for end in ends {
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
        }
        readingEnd = ends[0]
        writingEnd = ends[1]
    }

    /// Wakes the poller; a full pipe already does.
    func ring() {
        var byte: UInt8 = 1
        _ = write(writingEnd, &byte, 1)
    }

    /// Reads the written bytes, so that the next poll waits again.
    func silence() {
        var bytes = [UInt8](repeating: 0, count: 64)
        while read(readingEnd, &bytes, bytes.count) == bytes.count {}
    }

    func close() { for end in [readingEnd, writingEnd] { closeDescriptor(end) } }
}

private func closeDescriptor(_ descriptor: Int32) { _ = close(descriptor) }
