#if canImport(Darwin)
internal import Foundation
internal import StoreCore

/// The writing end of a streamed body on Apple's systems.
///
/// `URLSession` reads only streams of Foundation's own classes there: a subclass of `InputStream` ends the process. The body therefore goes
/// through a pair of bound streams. A thread of its own fills the pair, because a slow source may block.
final class BoundBody: Sendable {
    /// Guards the stream, which only the thread uses.
    private let output: Lock<OutputStream>
    private let read: @Sendable (_ upTo: Int) throws -> Data?
    private let isOver: @Sendable () -> Bool
    private let onFailure: @Sendable (any Error) -> Void

    private init(
        _ output: sending OutputStream, _ read: @escaping @Sendable (_ upTo: Int) throws -> Data?,
        _ isOver: @escaping @Sendable () -> Bool, _ onFailure: @escaping @Sendable (any Error) -> Void
    ) {
        self.output = Lock(output)
        self.read = read
        self.isOver = isOver
        self.onFailure = onFailure
    }

    /// Gives a request a body that is produced while it is sent. `onFailure` receives the error of a failed read, which the session would
    /// otherwise hide.
    static func attach(
        to request: inout URLRequest, read: @escaping @Sendable (_ upTo: Int) throws -> Data?, isOver: @escaping @Sendable () -> Bool,
        onFailure: @escaping @Sendable (any Error) -> Void
    ) throws(TransportFailure) {
        var input: InputStream?
        var output: OutputStream?
        Stream.getBoundStreams(withBufferSize: 65_536, inputStream: &input, outputStream: &output)
        guard let output else { throw TransportFailure(.bodyUnreadable, "the system has no stream for the body; send it from memory") }
        request.httpBodyStream = input
        let body = BoundBody(output, read, isOver, onFailure)
        Thread.detachNewThread { body.write() }
    }

    private func write() {
        output.withLock { output in
            // Without a delegate, the stream does not wake the run loop.
            let waker = Waker()
            output.delegate = waker
            output.schedule(in: .current, forMode: .default)
            output.open()
            withExtendedLifetime(waker) { fill(output) }
            output.close()
            output.remove(from: .current, forMode: .default)
        }
    }

    /// Writes the body until its end, or until the session has closed its side.
    private func fill(_ output: OutputStream) {
        var pending = Data()
        var isComplete = true
        while isComplete, !isOver() {
            guard output.hasSpaceAvailable else {
                guard isOpen(output), BoundBody.wait() else { return }
                continue
            }
            do {
                if pending.isEmpty {
                    guard let piece = try read(65_536) else { return }
                    pending = piece
                    if piece.isEmpty { continue }
                }
            } catch {
                onFailure(error)
                isComplete = false
                continue
            }
            let count = pending.withUnsafeBytes { bytes in
                bytes.bindMemory(to: UInt8.self).baseAddress.map { output.write($0, maxLength: bytes.count) } ?? 0
            }
            guard count > 0 else { return }
            pending = Data(pending.dropFirst(count))
        }
        // Closing now would mark the end of a body that is incomplete. The session closes its side when it cancels the request.
        for _ in 0..<60 where isOpen(output) {
            guard BoundBody.wait() else { return }
        }
    }

    private func isOpen(_ output: OutputStream) -> Bool {
        output.streamStatus != .closed && output.streamStatus != .error
    }

    /// Waits for an event of the stream, at most a second; returns `false` if the run loop has no stream.
    private static func wait() -> Bool {
        RunLoop.current.run(mode: .default, before: Date(timeIntervalSinceNow: 1))
    }

    private final class Waker: NSObject, StreamDelegate {}
}
#endif
