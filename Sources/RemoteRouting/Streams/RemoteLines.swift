internal import Foundation

/// The lines of an answer.
struct RemoteLines: AsyncSequence, Sendable {
    let bytes: RemoteBytes
    let limit: Int

    /// Reads the lines.
    struct AsyncIterator: AsyncIteratorProtocol {
        private var base: RemoteBytes.AsyncIterator
        private let bytes: RemoteBytes
        private var splitter: LineSplitter
        private var ready: [String] = []
        private var isAtEnd = false

        fileprivate init(_ lines: RemoteLines) {
            base = lines.bytes.makeAsyncIterator()
            bytes = lines.bytes
            splitter = LineSplitter(limit: lines.limit)
        }

        /// The next line; `nil` at the end.
        ///
        /// - Throws: ``RemoteError``; with ``RemoteError/Code/bodyTooLarge`` for a line beyond the limit.
        mutating func next() async throws -> String? {
            while ready.isEmpty {
                if isAtEnd { return nil }
                if let piece = try await base.next() {
                    guard let lines = splitter.take(piece) else { throw bytes.tooLong(splitter.limit) }
                    // Reversed, so that taking the next one costs nothing.
                    ready = lines.reversed()
                } else {
                    isAtEnd = true
                    if let last = splitter.finish() { ready = [last] }
                }
            }
            return ready.popLast()
        }
    }

    /// Begins to read.
    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }
}

@available(*, unavailable)
extension RemoteLines.AsyncIterator: Sendable {}

/// Cuts bytes into lines, wherever the pieces end.
struct LineSplitter {
    let limit: Int
    private var line: [UInt8] = []
    private var lastWasCR = false

    init(limit: Int) { self.limit = limit }

    /// The lines that are complete with these bytes; `nil` where one is too long.
    mutating func take(_ piece: Data) -> [String]? {
        var lines: [String] = []
        for byte in piece {
            let follows = lastWasCR
            lastWasCR = byte == 0x0D
            switch byte {
            case 0x0A where follows: break
            case 0x0A, 0x0D:
                lines.append(String(decoding: line, as: UTF8.self))
                line.removeAll(keepingCapacity: true)
            default:
                guard line.count < limit else { return nil }
                line.append(byte)
            }
        }
        return lines
    }

    /// What stands behind the last end of a line.
    mutating func finish() -> String? {
        defer { line = [] }
        return line.isEmpty ? nil : String(decoding: line, as: UTF8.self)
    }
}
