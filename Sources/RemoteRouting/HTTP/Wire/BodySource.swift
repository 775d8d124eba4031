#if os(Linux)
internal import Dispatch
internal import Foundation
internal import StoreCore

/// The request body that libcurl reads: bytes in memory, or chunks that another thread reads ahead.
final class BodySource {
    enum Step {
        /// The number of bytes filled in; 0 is the end.
        case bytes(Int)
        case notYet
        case failed(TransportFailure)
    }

    /// Requests the next chunk, which `take(_:)` receives later; `nil` for a body in memory.
    private let requestNext: (@Sendable () -> Void)?
    /// The chunk in progress and the number of its bytes already sent.
    private var piece = Data()
    private var offset = 0
    private var next: Data?
    private var isReading = false
    private var isAtEnd = false
    private var failure: (any Error)?

    init(_ data: Data) {
        requestNext = nil
        piece = data
        isAtEnd = true
    }

    /// Creates a body that is read while it is sent.
    init(_ ticket: WireMachine.Ticket, _ mailbox: Mailbox, _ stream: HTTPBodyStream) {
        if let chunks = stream.chunks?() {
            // The app may have set another length after the sequence, which the chunks do not know.
            let check = stream.lengthCheck()
            requestNext = { chunks.read { result in mailbox.post(.read(ticket, Result { try check(result.get()) })) } }
            return
        }
        let opened = Lock<(@Sendable (_ upTo: Int) throws -> Data?)?>(nil)
        let readNext = { @Sendable () throws -> Data? in
            // Only one chunk is read at a time, so the lock is uncontended.
            try opened.withLock { opened throws -> Data? in
                let read = try opened ?? stream.checked(stream.open())
                opened = read
                while let piece = try read(65_536) {
                    if !piece.isEmpty { return piece }
                }
                return nil
            }
        }
        // A body may block the thread that reads it.
        requestNext = { DispatchQueue.global().async { mailbox.post(.read(ticket, Result { try readNext() })) } }
    }

    init(_ ticket: WireMachine.Ticket, _ mailbox: Mailbox, _ socket: FrameLink) {
        requestNext = { socket.requestNext { mailbox.post(.read(ticket, .success($0))) } }
    }

    /// Starts reading ahead from the beginning; fails a body that cannot be rewound.
    func prepare() {
        // An earlier connection may have received a part of it.
        if !rewind(to: 0) {
            (piece, offset, next) = (Data(), 0, nil)
            failure = TransportFailure(.connectionLost, "the connection ended in the middle of the request body; try again")
        }
        readAhead()
    }

    func take(_ result: Result<Data?, any Error>) {
        isReading = false
        switch result {
        case .success(let data?): next = data
        case .success(nil): isAtEnd = true
        case .failure(let error): failure = error
        }
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> Step {
        while offset == piece.count {
            if let data = next {
                next = nil
                (piece, offset) = (data, 0)
                readAhead()
            } else if let failure {
                return .failed(.unreadableBody(failure))
            } else if isAtEnd {
                return .bytes(0)
            } else {
                readAhead()
                return .notYet
            }
        }
        let count = min(buffer.count, piece.count - offset)
        let start = piece.startIndex + offset
        piece.copyBytes(to: buffer, from: start..<(start + count))
        offset += count
        return .bytes(count)
    }

    /// Rewinds a body in memory, or a body that has not been read; returns `false` for any other body.
    func rewind(to place: Int64) -> Bool {
        if requestNext == nil, place <= Int64(piece.count) {
            offset = Int(place)
            return true
        }
        return place == 0 && offset == 0 && piece.isEmpty
    }

    private func readAhead() {
        guard let requestNext, !isReading, !isAtEnd, next == nil, failure == nil else { return }
        isReading = true
        requestNext()
    }
}
#endif
