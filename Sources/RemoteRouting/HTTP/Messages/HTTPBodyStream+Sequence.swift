public import Foundation
internal import StoreCore

// Bodies from asynchronous sequences. A transport requests the next chunk when it can send it, so the memory holds two chunks at most.
// Initializers for chunks and for bytes differ, because no protocol includes both elements.

extension HTTPBodyStream {
    /// Creates a body of the chunks of a sequence, which is iterated and sent once.
    ///
    /// ```swift
    /// try await api.send(
    ///     Route(
    ///         path: "/recordings", method: .post,
    ///         body: .stream(HTTPBodyStream(recording), type: "audio/wav")))
    /// ```
    ///
    /// The next chunk is requested when the connection can send it. An error of the sequence ends the exchange and its connection with
    /// ``RemoteError/Code/bodyUnreadable``, so the server never takes a partial body for a complete one. The end of the exchange
    /// cancels the task that iterates the sequence.
    ///
    /// - Parameters:
    ///   - chunks: The chunks, such as `Data`; it must throw if its end is not that of the body.
    ///   - length: The length in bytes, which is checked; `nil` if it is unknown. The last chunk is sent when the sequence has ended.
    public init<Chunks: AsyncSequence & Sendable>(_ chunks: Chunks, length: Int64? = nil) where Chunks.Element: ContiguousBytes {
        self.init(once: length) { HTTPBodyStream.pieces(of: chunks) }
    }

    /// Creates a body of the bytes of a sequence, which is iterated and sent once, in pieces of 16 KiB.
    ///
    /// - Parameters:
    ///   - bytes: The bytes; the sequence must throw if its end is not that of the body.
    ///   - length: The length in bytes, which is checked; `nil` if it is unknown.
    public init<Bytes: AsyncSequence & Sendable>(_ bytes: Bytes, length: Int64? = nil) where Bytes.Element == UInt8 {
        self.init(once: length) { HTTPBodyStream.pieces(of: bytes) }
    }

    /// Creates a body of the chunks of a sequence that is made for each attempt and redirect, so that the body can be sent again.
    ///
    /// - Parameters:
    ///   - length: The length in bytes, which is checked; `nil` if it is unknown.
    ///   - make: Makes a sequence with the same bytes.
    public init<Chunks: AsyncSequence & Sendable>(
        length: Int64? = nil, making make: @escaping @Sendable () throws -> Chunks
    ) where Chunks.Element: ContiguousBytes {
        self.init(length: length, isReplayable: true, pieces: { HTTPBodyStream.pieces(of: try make()) })
    }

    /// Creates a body of the bytes of a sequence that is made for each attempt and redirect, so that the body can be sent again.
    ///
    /// - Parameters:
    ///   - length: The length in bytes, which is checked; `nil` if it is unknown.
    ///   - make: Makes a sequence with the same bytes.
    public init<Bytes: AsyncSequence & Sendable>(
        length: Int64? = nil, making make: @escaping @Sendable () throws -> Bytes
    ) where Bytes.Element == UInt8 {
        self.init(length: length, isReplayable: true, pieces: { HTTPBodyStream.pieces(of: try make()) })
    }

    /// Reads the whole body into memory, for a transport without a network.
    ///
    /// - Throws: ``TransportFailure`` with the error of the body; `CancellationError` if the task is canceled.
    public func collect() async throws -> Data {
        var whole = Data()
        do {
            if let reader = chunks?() {
                while let piece = try await reader.next() { whole.append(piece) }
            } else {
                let read = try open()
                while let piece = try read(65_536) { whole.append(piece) }
            }
        } catch {
            try Task.checkCancellation()
            throw TransportFailure.unreadableBody(error)
        }
        return whole
    }

    /// Opens the body for a thread that may block, and checks its length; the end of the exchange ends the wait.
    func opened(for exchange: Exchange) throws -> @Sendable (_ upTo: Int) throws -> Data? {
        guard let reader = chunks?() else { return try checked(open()) }
        exchange.onEnd { reader.cancel() }
        return checked { _ in try reader.waitForNext() }
    }

    func checked(_ read: @escaping @Sendable (_ upTo: Int) throws -> Data?) -> @Sendable (_ upTo: Int) throws -> Data? {
        let check = lengthCheck()
        return { upTo in try check(read(upTo)) }
    }

    /// Returns a function that passes on each piece of the body and its end, and throws if their length is not the announced one.
    func lengthCheck() -> @Sendable (_ piece: Data?) throws -> Data? {
        guard let length else { return { $0 } }
        let left = Lock(length)
        return { piece in
            let rest = left.withLock { left in
                left -= Int64(piece?.count ?? 0)
                return left
            }
            if rest < 0 { throw TransportFailure.longBody }
            if piece == nil, rest > 0 { throw TransportFailure.shortBody }
            return piece
        }
    }

    /// Creates a body of a sequence that is used once: its second iteration would send another body, or none.
    private init(once length: Int64?, _ pieces: @escaping @Sendable () -> () async throws -> Data?) {
        let isUsed = Lock(false)
        self.init(
            length: length, isReplayable: false,
            pieces: {
                let wasUsed = isUsed.withLock { isUsed in
                    defer { isUsed = true }
                    return isUsed
                }
                guard !wasUsed else {
                    throw TransportFailure(
                        .bodyUnreadable,
                        "the sequence of the request body was already used; make a new one, or pass a closure that makes it")
                }
                return pieces()
            })
    }

    private init(length: Int64?, isReplayable: Bool, pieces: @escaping @Sendable () throws -> () async throws -> Data?) {
        self.init(chunks: { ChunkReader(length: length, pieces) }, length: length, isReplayable: isReplayable)
    }

    private static func pieces<Chunks: AsyncSequence>(
        of chunks: Chunks
    ) -> () async throws -> Data? where Chunks.Element: ContiguousBytes {
        var iterator = chunks.makeAsyncIterator()
        return {
            guard let chunk = try await iterator.next(isolation: #isolation) else { return nil }
            if let data = chunk as? Data { return data }
            return chunk.withUnsafeBytes { Data($0) }
        }
    }

    private static func pieces<Bytes: AsyncSequence>(of bytes: Bytes) -> () async throws -> Data? where Bytes.Element == UInt8 {
        var iterator = bytes.makeAsyncIterator()
        return {
            var piece = Data()
            while piece.count < 16_384, let byte = try await iterator.next(isolation: #isolation) { piece.append(byte) }
            return piece.isEmpty ? nil : piece
        }
    }
}
