internal import Foundation

/// A pipe that ends the wait of a thread in `poll`.
final class WakePipe: Sendable {
    let output: Int32
    private let input: Int32

    init?() {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return nil }
        for end in ends {
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
        }
        (output, input) = (ends[0], ends[1])
    }

    deinit {
        close(output)
        close(input)
    }

    /// Ends the current wait, or the next one. A failed write does not matter, because a full pipe ends the wait anyway.
    func post() {
        var byte: UInt8 = 0
        _ = write(input, &byte, 1)
    }

    /// Empties the pipe, so that the next wait blocks again.
    func drain() {
        var bytes: (UInt64, UInt64) = (0, 0)
        while read(output, &bytes, 16) == 16 {}
    }
}
