internal import Foundation

/// The lines of a response body.
struct RemoteLines: AsyncSequence, Sendable {
    let bytes: RemoteBytes
    let limit: Int

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

        /// Returns the next line; `nil` at the end.
        ///
        /// - Throws: ``RemoteError``; with ``RemoteError/Code/bodyTooLarge`` for a line over the limit.
        mutating func next() async throws -> String? {
            while ready.isEmpty {
                if isAtEnd { return nil }
                if let piece = try await base.next() {
                    guard let lines = splitter.take(piece) else { throw bytes.tooLong(splitter.limit) }
                    // Reversed, because removing the last element takes constant time.
                    ready = lines.reversed()
                } else {
                    isAtEnd = true
                    if let last = splitter.finish() { ready = [last] }
                }
            }
            return ready.popLast()
        }
    }

    /// Creates the iterator; only one can read the body.
    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }
}

@available(*, unavailable)
extension RemoteLines.AsyncIterator: Sendable {}

/// A splitter of bytes into lines, which may span several pieces.
struct LineSplitter {
    let limit: Int
    private var line: [UInt8] = []
    private var lastWasCR = false

    init(limit: Int) { self.limit = limit }

    /// Returns the lines that these bytes complete; `nil` if a line is too long.
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

    /// Returns the text after the last line ending; `nil` if there is none.
    mutating func finish() -> String? {
        defer { line = [] }
        return line.isEmpty ? nil : String(decoding: line, as: UTF8.self)
    }
}
