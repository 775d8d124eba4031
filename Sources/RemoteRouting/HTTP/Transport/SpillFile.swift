internal import StorePlatform
internal import Foundation

/// A temporary file without a name, which disappears even if the process is killed.
final class SpillFile: Sendable {
    private let descriptor: Int32

    init() throws(TransportFailure) {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent(".remote-routing.\(UUID().uuidString).tmp").path
        descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode_t(0o600))
        guard descriptor >= 0 else {
            throw SpillFile.failure("creating a temporary file in \(FileManager.default.temporaryDirectory.path)")
        }
        // Ignores a failure, because a file that outlives the exchange is no reason to fail the exchange.
        _ = unlink(path)
    }

    deinit {
        _ = close(descriptor)
    }

    func write(_ data: Data, at offset: Int) throws(TransportFailure) {
        var done = 0
        while done < data.count {
            let start = done
            let count = data.withUnsafeBytes { bytes in
                pwrite(descriptor, bytes.baseAddress?.advanced(by: start), bytes.count - start, off_t(offset + start))
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw SpillFile.failure("writing unread bytes to a temporary file") }
            done += count
        }
    }

    func read(upTo count: Int, at offset: Int) throws(TransportFailure) -> Data {
        var data = Data(count: count)
        while true {
            let got = data.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, count, off_t(offset)) }
            if got < 0, errno == EINTR { continue }
            guard got > 0 else { throw SpillFile.failure("reading unread bytes from a temporary file") }
            return got == count ? data : data.prefix(got)
        }
    }

    /// Frees the disk space of bytes already read.
    func empty() {
        // A failure only costs disk space until the end of the exchange.
        _ = ftruncate(descriptor, 0)
    }

    private static func failure(_ operation: String) -> TransportFailure {
        TransportFailure(
            .spillFailed, "\(operation): \(String(cString: strerror(errno))); free some space, or read the body faster")
    }
}
